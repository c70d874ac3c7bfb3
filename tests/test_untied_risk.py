"""Population risk of the untied network: published and closed values, the weighted tied network, Monte Carlo."""

import math

import numpy as np
import pytest

import seqindex as sx
from seqindex.theory.untied_risk import UntiedRisk

RNG = np.random.default_rng(0)
LINKS = {
    "polynomial": "z1*z2 + He3(z1)/2 + 0.7*z3",
    "smooth": "tanh(z1*z2) + z3/2 + He2(z2)/3",
    "kinked": "sign(z1) + relu(z2 - z3)",
}


TARGETS = {name: sx.Target(link, 3) for name, link in LINKS.items()}
"""Made once, since their series are kept by identity."""


def untied(link, length=3, activation="relu", sphere="rows"):
    target = TARGETS[link] if link in TARGETS else sx.Target(link, length)
    return sx.Problem(target, sx.UntiedNetwork(length, activation, sphere))


def test_reference_value():
    """Trapezoid rule on two grids, 13 digits."""
    risk = UntiedRisk(untied("polynomial", activation="sigmoid"))
    m = [0.5, -0.3, 0.8]
    assert float(risk(m)) == pytest.approx(3.1512722723955, abs=2e-13)
    assert float(risk.error(m)) < 1e-12


@pytest.mark.parametrize("activation", ["relu", "tanh", "square"])
@pytest.mark.parametrize("link", LINKS)
def test_it_is_the_risk_of_a_tied_network_weighted_by_the_overlaps(link, activation):
    """u depends on z* through m.z* alone, as that of a tied network of weights along m and overlap ||m|| / sqrt(L)."""
    m = np.array([0.9, -0.4, 1.1])
    overlap = float(np.linalg.norm(m)) / math.sqrt(3)
    tied = sx.TiedNetwork(3, activation, weights=m / overlap)
    other = sx.PopulationRisk(sx.Problem(TARGETS[link], tied))
    risk = UntiedRisk(untied(link, 3, activation, "joint"))
    slack = float(risk.error(m)) + float(other.error(overlap))
    assert slack < 1e-2
    assert abs(float(risk(m)) - float(other(overlap))) < slack + 1e-12
    # Along m itself the risk changes with the overlap alone.
    along = float(risk.gradient(m) @ m) / overlap
    assert along == pytest.approx(float(other.gradient(overlap)[0]), abs=1e-7)
    wanted = float(other.mean_square_gradient(overlap))
    assert float(risk.mean_square_gradient(m)) == pytest.approx(wanted, rel=1e-3 if link == "kinked" else 1e-9)


@pytest.mark.parametrize("link", LINKS)
def test_against_samples(link):
    """Value, gradient and E |c|^2 of a million samples at 4.5 standard errors; 15 checks: a false alarm in 10,000."""
    problem, m = untied(link, activation="tanh"), np.array([0.6, -0.5, 0.9])
    zstar = RNG.standard_normal((1_000_000, 3))
    rest, k = math.sqrt(3.0 - m @ m), RNG.standard_normal(1_000_000)
    u = (zstar @ m + rest * k) / math.sqrt(3)
    z = u[:, None] / math.sqrt(3) * np.ones(3)  # any fields with this u
    loss, c = problem.loss_at(zstar, z), problem.field_gradient(zstar, z)
    # d u / d m_l on the sphere, where rest^2 = L - ||m||^2
    slope = c[:, :1] * (zstar - m / rest * k[:, None])
    risk = UntiedRisk(problem)
    wrong = 0
    for samples, value in (
        (loss[:, None], risk(m)),
        (slope, risk.gradient(m)),
        ((c * c).sum(1)[:, None], risk.mean_square_gradient(m)),
    ):
        error = samples.std(0) / 1000.0
        assert (np.abs(samples.mean(0) - value) < 4.5 * error).all()
        wrong += int((np.abs(samples.mean(0) - 1.1 * np.asarray(value)) > 4.5 * error).any())
    assert wrong == 3, "an error of 10 % must show"


@pytest.mark.parametrize("link", ["sum(He2(z))/sqrt(2)", "sum(z)/sqrt(L)"])
@pytest.mark.parametrize("length", [1, 4, 30])
def test_uniform_rows_see_the_tied_risk_slowed_by_the_length(link, length):
    risk, r = UntiedRisk(untied(link, length)), 0.4
    slope = 2.0 / math.sqrt(math.pi) * r if "He2" in link else 1.0  # -R'(r) of the tied network
    noise = 2.0 * (length + 1.0) - 4.0 / math.sqrt(math.pi) * r * r if "He2" in link else 4.0 * (1.0 - r)
    m = np.full(length, r)
    np.testing.assert_allclose(risk.gradient(m), -slope / length, rtol=1e-8)
    assert float(risk.mean_square_gradient(m)) == pytest.approx(noise, rel=1e-12)


def test_shapes():
    risk = UntiedRisk(untied("smooth"))
    m = RNG.uniform(-0.9, 0.9, (2, 5, 3))
    values, gradient = risk(m), risk.gradient(m)
    assert values.shape == risk.error(m).shape == risk.mean_square_gradient(m).shape == (2, 5)
    assert gradient.shape == (2, 5, 3)
    assert values[1, 2] == risk(m[1, 2])
    np.testing.assert_array_equal(gradient[1, 2], risk.gradient(m[1, 2]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: UntiedRisk(untied("z1"))([1.0, 1.0, 1.1]), ValueError, r"^\|\|m\|\|\^2 must be at most the length 3"),
        (lambda: UntiedRisk(untied("z1"))([1.0, 1.0]), ValueError, r"^m must have"),
        (
            lambda: UntiedRisk(sx.Problem(sx.Target("z1", 2), sx.TiedNetwork(2))),
            TypeError,
            r"^student must have one weight vector a position here",
        ),
        (
            lambda: UntiedRisk(sx.Problem(sx.Target("z1", 2), sx.UntiedNetwork(2), "norm")),
            ValueError,
            r"^loss must be 'square' for this risk, got 'norm'$",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
