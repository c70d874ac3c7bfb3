"""Risk of students of one combination of the fields, and predicted recovery times."""

import math

import numpy as np
import pytest

import seqindex as sx
from seqindex.theory.hermite_risk import HermiteRisk
from seqindex.theory.line_risk import LineRisk, second_moment
from seqindex.theory.stability import stability_bound

LINK = "z1*z2 + 0.5*He3(z1) + 0.7*z3"


def risk_of(text, length, activation="relu", **keywords):
    student = sx.TiedNetwork(length, activation, **keywords)
    return sx.PopulationRisk(sx.Problem(sx.Target(text, length), student))


@pytest.mark.parametrize(
    ("text", "length", "activation", "m", "value"),
    [
        (LINK, 3, "tanh", 0.4, 3.1929384501661),
        (LINK, 3, "softplus", 0.4, 3.7275482639777),
        ("z1*z2*z3", 3, "tanh", 0.6, 1.4245232423234),
    ],
)
def test_reference_values(text, length, activation, m, value):
    risk = risk_of(text, length, activation)
    assert isinstance(risk.engine, LineRisk)
    assert float(risk(m)) == pytest.approx(value, abs=1e-12)
    assert risk.error(m) < 1e-11


def test_reference_noise():
    """V of the tied tanh network with z1 z2, and in closed form of relu with the sum of He2, lengths 1 to 1000."""
    risk = risk_of("z1*z2", 2, "tanh")
    assert float(risk.mean_square_gradient(0.0)) == pytest.approx(2.1578154217973, abs=1e-11)
    assert float(risk.mean_square_gradient(0.5)) == pytest.approx(1.8530259812529, abs=1e-11)
    for length in (1, 4, 300):
        risk = risk_of("sum(He2(z))/sqrt(2)", length)
        exact = 2.0 * (length + 1) - 4.0 * 0.3**2 / math.sqrt(math.pi)
        assert float(risk.mean_square_gradient(0.3)) == pytest.approx(exact, rel=1e-11)
        assert float(risk.gradient(0.3)[0]) == pytest.approx(-2.0 * 0.3 / math.sqrt(math.pi), abs=1e-12)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("encoding", [None, sx.Encoding([[1.0], [-0.5]], [0.2, 0.1]), sx.InjectedEncoding([0.4, -1.0])])
def test_against_integrals_over_all_fields(activation, encoding):
    """Two independent algorithms: one combination, and a grid over both fields (coarse for the kink of relu)."""
    target = sx.Target("z1*z2 + tanh(z1) + He2(z2)", 2)
    problem = sx.Problem(target, sx.TiedNetwork(2, activation, [1.0, 0.7], encoding))
    line, grid = LineRisk(problem, 2**10, 2, 0), HermiteRisk(problem)
    m = np.array([0.0, 0.35, -0.6])
    shifts = np.array([[0.0, 0.0], [0.3, -0.2], [0.1, 0.5]])
    if problem.frame.injection.any():
        shifts = np.zeros((3, 2))
    tolerance = 1e-9 if activation == "tanh" else 4e-3
    for order in (0, 1, 2):
        got, want = line.derivatives(m, shifts, order), grid.derivatives(m, shifts, order)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=(10.0**order) * tolerance)


def test_derivatives_against_differences():
    """Central differences of half steps 1e-2 and 5e-3: errors fall fourfold."""
    risk = risk_of(LINK, 3, "tanh", encoding=sx.Encoding([[1.0], [0.2], [-0.7]]))
    m, e = 0.3, 0.4
    gradient = risk.gradient(m, e)
    errors = []
    for h in (1e-2, 5e-3):
        by_m = (risk(m + h, e) - risk(m - h, e)) / (2 * h)
        by_e = (risk(m, e + h) - risk(m, e - h)) / (2 * h)
        errors.append(np.abs(np.array([by_m, by_e]) - gradient))
    assert (errors[0] < 1e-2).all()
    np.testing.assert_allclose(errors[0] / errors[1], 4.0, rtol=0.05)


def test_errors_hold_where_the_series_is_cut():
    """relu learning relu at L = 2: the arc-cosine kernel of order one in closed form, also at m = 1 where R = 0."""
    risk = risk_of("relu((z1 + z2)/sqrt(2))", 2)
    m = np.array([0.0, 0.5, 0.9, 0.99, 1.0])
    angle = np.arccos(m)
    exact = 1.0 - (np.sin(angle) + (np.pi - angle) * m) / np.pi
    gap = np.abs(risk(m) - exact)
    assert (gap <= risk.error(m)).all()
    assert gap[:2].max() < 1e-12


def test_against_explicit_data():
    """d = 60, L = 5: mean loss over 200,000 samples at w of given overlap within five standard errors."""
    rng = np.random.default_rng(3)
    d, length, m = 60, 5, 0.6
    problem = sx.Problem(sx.Target("sum(He2(z)) + z1*z2*z3", length), sx.TiedNetwork(length, "tanh"))
    star = np.zeros(d)
    star[0] = math.sqrt(d)
    w = math.sqrt(d) * np.concatenate([[m], np.full(d - 1, math.sqrt((1 - m * m) / (d - 1)))])
    losses = []
    for _ in range(20):
        x = rng.standard_normal((10_000, length, d)) / math.sqrt(d)
        losses.append(problem.loss_at(x @ star, x @ w))
    sample = np.concatenate(losses)
    error = sample.std() / math.sqrt(sample.size)
    assert abs(sample.mean() - float(sx.PopulationRisk(problem)(m))) < 5.0 * error


@pytest.mark.parametrize(
    ("text", "length", "value"),
    [
        ("sum(He2(z))", 1000, 2000.0),
        ("z1*z2 + 3", 2, 10.0),
        ("prod(z)", 6, 1.0),
        ("sum(relu(z))", 2, 1.0 + 1.0 / np.pi),
    ],
)
def test_second_moments(text, length, value):
    got, error = second_moment(sx.Target(text, length))
    assert abs(got - value) <= error + 1e-10
    assert error < 1e-8


@pytest.mark.parametrize(("length", "steps"), [(1, 27776.0), (4, 70919.0)])
def test_predicted_recovery_of_the_solvable_case(length, steps):
    """sum He2 / sqrt 2, relu, a quarter of gamma_c = K / (L + 1), d = 1000, threshold 0.5: the flow's closed form."""
    problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", length), sx.TiedNetwork(length))
    critical = 2.0 / math.sqrt(math.pi) / (length + 1)
    found = sx.predicted_recovery(problem, 1000, 0.25 * critical, 0.5)
    assert found.largest_rate == pytest.approx(critical, rel=1e-9)
    assert found.steps == pytest.approx(steps, rel=5e-3)  # computed by other code
    assert sx.predicted_recovery(problem, 1000, 1.1 * critical, 0.5).steps is None


def test_predicted_recovery_against_the_chain():
    """Order 1 (means over 256 runs within 5 standard errors and 3 %), and medians within 20 % at order 3."""
    problem = sx.Problem(sx.Target("sum(z)/sqrt(L)", 3), sx.TiedNetwork(3))
    found = sx.predicted_recovery(problem, 2000, 0.2, 0.3)
    times = sx.hitting_time(problem, 2000, 0.2, 10**6, 0.3, replicas=256, seed=2, progress=False)["time"].values
    assert abs(times.mean() - found.steps) < 5.0 * times.std() / 16.0 + 0.03 * found.steps
    no = sx.Problem(sx.Target("z1 - z2", 2), sx.TiedNetwork(2))
    assert sx.predicted_recovery(no, 1000).steps is None


def test_stability_bound_of_the_solvable_case():
    problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", 3), sx.TiedNetwork(3))
    assert stability_bound(problem) == pytest.approx(2.0 / math.sqrt(math.pi) / 4.0, rel=0.05)
    assert stability_bound(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1))) is None
