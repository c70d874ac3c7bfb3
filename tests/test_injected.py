"""Injected encodings: constant shifts of the fields in both simulations, in every engine of the risk, and stored."""

import json
from itertools import pairwise

import numpy as np
import pytest

import chains
import seqindex as sx
from seqindex.gaussian.quadrature import trapezoid

BOTH = sx.Encoding([[0.8], [0.5]], [0.3, -0.2], injection=[0.7, -0.4])
THREE = sx.Encoding([[0.5, 0.1], [-0.3, 0.4], [0.2, 0.2]], [0.1, 0.0, -0.2], injection=[0.5, 0.0, -0.6])


def plain_trace(target, injection):
    return sx.Problem(target, sx.Attention(2, sx.InjectedEncoding(injection), reduction="plain_trace"))


# Encoding, frame and storage


def test_matrix_may_be_absent():
    encoding = sx.InjectedEncoding([1, -2, 0])
    assert (encoding.length, encoding.directions) == (3, 0)
    frame = sx.Attention(3, encoding).frame
    assert (frame.rank, frame.directions) == (1, 0)
    np.testing.assert_array_equal(frame.offsets(np.zeros((4, 1))), np.tile([1.0, -2.0, 0.0], (4, 1)))
    tilted = sx.Attention(2, sx.Encoding(target_component=[0.5, -0.5])).frame
    np.testing.assert_array_equal(tilted.offsets(np.array([0.4])), [0.2, -0.2])


def test_offsets_add_up():
    frame = sx.Attention(2, BOTH).frame
    np.testing.assert_allclose(frame.offsets(np.array([0.5, -0.6])), [0.15 - 0.48 + 0.7, -0.1 - 0.3 - 0.4], atol=1e-15)


@pytest.mark.parametrize("encoding", [BOTH, sx.InjectedEncoding([1.0, -1.0]), sx.Encoding(target_component=[1.0, 0.0])])
def test_attrs_round_trip(encoding):
    problem = sx.Problem(sx.PositionalSemanticTarget(0.5, alignment=1.0), sx.Attention(2, encoding))
    again = sx.Problem.from_attrs(problem.to_attrs())
    np.testing.assert_array_equal(again.frame.positions, problem.frame.positions)
    np.testing.assert_array_equal(again.frame.injection, problem.frame.injection)
    assert again.to_attrs() == problem.to_attrs()


def test_attrs_without_injection_are_as_before():
    old = {"matrix": [[1.0], [-1.0]], "target_component": [0.0, 0.0]}
    assert sx.OppositeEncoding().spec() == old
    problem = sx.Problem(sx.PositionalSemanticTarget(0.5, alignment=1.0), sx.Attention(2, sx.OppositeEncoding()))
    assert json.loads(problem.to_attrs()["student"])["encoding"] == old
    np.testing.assert_array_equal(sx.Problem.from_attrs(problem.to_attrs()).frame.injection, [0.0, 0.0])


def test_messages():
    with pytest.raises(TypeError, match=r"^encoding must have a matrix, a target_component or an injection, got none"):
        sx.Encoding()
    with pytest.raises(ValueError, match=r"^injection must have shape \(2,\), got \(3,\)$"):
        sx.Encoding([[1], [0]], injection=[1, 2, 3])
    with pytest.raises(ValueError, match=r"^injection must have shape \(any,\), got \(2, 1\)$"):
        sx.InjectedEncoding([[1], [0]])
    with pytest.raises(ValueError, match=r"^injection must be finite, got nan in it$"):
        sx.InjectedEncoding([1.0, np.nan])
    with pytest.raises(ValueError, match=r"^encoding must have at least one position, got none$"):
        sx.InjectedEncoding([])
    with pytest.raises(TypeError, match=r"^injection must be an array of numbers of shape \(any,\), got None$"):
        sx.InjectedEncoding(None)
    with pytest.raises(ValueError, match=r"^encoding must have length 3 as the student, got 2$"):
        sx.Attention(3, sx.InjectedEncoding([1.0, 1.0]))
    for kind in ("steepest", "semantic"):
        with pytest.raises(
            ValueError, match=r"^encoding must have directions and no injection, got Encoding\(length=2"
        ):
            sx.phase_boundary(kind, encoding=BOTH)


# Simulation

CASES = {
    "alone": (sx.InjectedEncoding([0.8, -0.5]), 2, "square", 1, 12),
    "alone, batch": (sx.InjectedEncoding([0.8, 0.0, -1.2]), 3, "norm", 3, 2),
    "with directions": (BOTH, 2, "norm", 1, 3),
    "with directions, batch": (THREE, 3, "square", 2, 12),
}
# Three samples of states, each compared on up to four statistics, in four cases: 1e-4 false alarms over all.
ALARM = 1e-4 / (4 * 4)


@pytest.mark.parametrize("case", CASES)
def test_reduced_and_explicit_agree_in_law(case):
    encoding, length, loss, batch, dim = CASES[case]
    problem = chains.one_label(length, encoding, loss, "trace")
    state = [0.3, 0.4, -0.2][: problem.frame.rank]
    arguments = (problem, dim, chains.rate_of(problem, dim, 0.5, state), batch, 12, 20_000)
    truth = chains.explicit(*arguments, 20, state)
    assert truth[0].std() > 0.1, "the states must have spread"
    assert min(chains.p_values(chains.reduced(*arguments, 21, state), truth)) > ALARM
    bare = sx.Encoding(encoding.matrix if encoding.directions else None, encoding.target_component)
    without = chains.one_label(length, bare, loss, "trace")
    wrong = chains.reduced(without, *arguments[1:], 21, state)
    assert min(chains.p_values(wrong, truth)) < ALARM, "the injection must matter"


# Risk


def brute_force(problem, s, step, extent):
    """Risk and E|c|^2 by a trapezoid rule over all 2 L variables (z*, xi)."""
    rule = trapezoid(step, extent)
    grid = np.stack(np.meshgrid(*[rule.nodes] * problem.length, indexing="ij"), axis=-1).reshape(-1, problem.length)
    weights = np.prod(np.meshgrid(*[rule.weights] * problem.length, indexing="ij"), axis=0).ravel()
    m, total = s[0], np.zeros(2)
    encoding = problem.student.encoding
    shift = encoding.matrix @ s[1:] + encoding.target_component * m + encoding.injection
    for zstar, weight in zip(grid, weights, strict=True):
        if weight > 1e-13:
            z, fixed = m * zstar + np.sqrt(1 - m * m) * grid + shift, np.broadcast_to(zstar, grid.shape)
            noise = (problem.field_gradient(fixed, z) ** 2).sum(-1)
            total += weight * (weights @ np.stack([problem.loss_at(fixed, z), noise], axis=1))
    return total


@pytest.mark.parametrize(("loss", "tolerance"), [("square", (3e-5, 2e-4)), ("norm", (2e-4, 4e-3))])
def test_length_2_against_four_dimensional_integration(loss, tolerance):
    """Both integrations of the norm loss err by its kink."""
    problem = sx.Problem(sx.PositionalSemanticTarget(0.4, alignment=0.9), sx.Attention(2, BOTH), loss)
    s = np.array([0.55, -0.4])
    risk = sx.PopulationRisk(problem)
    value, noise = brute_force(problem, s, 0.4 if loss == "norm" else 0.5, 6.0)
    assert float(risk(*s)) == pytest.approx(value, rel=tolerance[0])
    assert float(risk.mean_square_gradient(*s)) == pytest.approx(noise, rel=tolerance[1])


@pytest.mark.parametrize(("length", "loss"), [(3, "square"), (3, "norm"), (6, "square")])
def test_longer_sequences_against_samples(length, loss):
    injection = np.linspace(0.8, -0.5, length)
    student = sx.Attention(length, sx.Encoding(np.ones((length, 1)), injection=injection), "trace")
    problem = sx.Problem(sx.Target(chains.link, length), student, loss)
    zstar, xi = np.random.default_rng(3).standard_normal((2, 100_000, length))
    z = 0.6 * zstar + 0.8 * xi - 0.3 + injection
    risk = sx.PopulationRisk(problem, points=2**16)
    noise = (problem.field_gradient(zstar, z) ** 2).sum(-1)
    for sample, of in ((problem.loss_at(zstar, z), "value"), (noise, "mean_square_gradient")):
        exact = float((risk if of == "value" else risk.mean_square_gradient)(0.6, -0.3))
        # 6 comparisons at 4 standard errors: a false alarm in one of 2500 runs.
        slack = 4.0 * sample.std() / np.sqrt(len(sample)) + float(risk.error(0.6, -0.3, of=of))
        assert abs(sample.mean() - exact) < slack < 0.05 * exact


@pytest.mark.parametrize("loss", ["square", "norm"])
def test_derivatives_are_those_of_the_risk(loss):
    risk = sx.PopulationRisk(sx.Problem(sx.PositionalSemanticTarget(0.4, alignment=0.9), sx.Attention(2, BOTH), loss))
    errors = []
    for h in (0.08, 0.04):
        slope = [
            (risk(0.4 + h, 0.3) - risk(0.4 - h, 0.3)) / (2 * h),
            (risk(0.4, 0.3 + h) - risk(0.4, 0.3 - h)) / (2 * h),
        ]
        errors.append(np.abs(slope - risk.gradient(0.4, 0.3)).max())
    assert all(np.log2(a / b) == pytest.approx(2.0, abs=0.1) for a, b in pairwise(errors))


# The paper's appendix D: an even student learns odd targets


def test_coefficients_of_the_injected_trace():
    """E[f He_(i,j)] of Tr S at c = (1, 1), to 1e-12: from the expansion of the risk with g = He_(i,j)."""
    reference = {
        (1, 0): -0.0563386106435,
        (2, 0): 0.1247405859720,
        (1, 1): -0.1532944636722,
        (3, 0): -0.0875586470403,
        (2, 1): 0.0533276220410,
    }
    polynomials = [lambda x: 1.0 + 0.0 * x, lambda x: x, lambda x: x**2 - 1.0, lambda x: x**3 - 3.0 * x]
    for (i, j), value in reference.items():
        target = sx.Target(lambda z, i=i, j=j: polynomials[i](z[..., 0]) * polynomials[j](z[..., 1]), length=2)
        risk = sx.PopulationRisk(plain_trace(target, [1.0, 1.0]))
        # R(m) - R(-m), or for even orders R(m) + R(-m) - 2 R(0), holds -2 m^(i+j) E[f He_ij] alone.
        m, odd = 0.5, (i + j) % 2
        change = risk(m) - risk(-m) if odd else risk(m) + risk(-m) - 2.0 * risk(0.0)
        assert float(change) == pytest.approx(-4.0 * m ** (i + j) * value, abs=2e-12)


def test_odd_targets_have_a_slope_at_the_origin():
    total = sx.Target(lambda z: z[..., 0] + z[..., 1], length=2)
    assert sx.PopulationRisk(plain_trace(total, [1.0, 1.0])).gradient(0.0).item() == pytest.approx(0.22535444, abs=1e-8)
    for injection in ([1.0, -1.0], [0.0, 0.0]):  # an antisymmetric slope, and an even student
        risk = sx.PopulationRisk(plain_trace(total, injection))
        np.testing.assert_allclose(risk(np.linspace(-1, 1, 5)), risk(0.0), atol=1e-13)
    cubic = sx.Target(lambda z: (z**3 - 3.0 * z).sum(-1), length=2)
    risk = sx.PopulationRisk(plain_trace(cubic, [1.0, 1.0]))
    assert float(risk(0.1) - risk(0.0)) * 6 / 0.1**3 == pytest.approx(2.10140753, abs=1e-7)


def _total(z):
    return z[..., 0] + z[..., 1]


def test_sgd_learns_an_odd_target_in_the_direction_of_the_slope():
    total = sx.Target(_total, length=2)
    final = {}
    for injection in ((1.0, 1.0), (1.0, -1.0)):
        problem = plain_trace(total, injection)
        runs = sx.sgd(problem, dim=1000, learning_rate=0.02, steps=200_000, replicas=64, records=2)
        final[injection] = runs["overlap"].values[:, -1]
    flow = -0.22535444 * 0.02 * 200_000 / 1000  # about the slope at the origin times t = 4, less what saturates
    assert (final[1.0, 1.0] < 0.4 * flow).all()
    # Without a slope the overlap stays where noise carries it; 64 replicas, mean within 5 standard errors of zero.
    rest = final[1.0, -1.0]
    assert abs(rest.mean()) < 5.0 * rest.std() / 8.0 < 0.1


def test_all_critical_points_are_found():
    total = sx.Target(lambda z: z[..., 0] + z[..., 1], length=2)
    points = sx.critical_points(sx.PopulationRisk(plain_trace(total, [1.0, 1.0])))
    best = min(points, key=lambda p: p.value)
    assert (best.kind, best.m < 0) == ("minimum", True)
    assert sum((1 if p.boundary else 2) * (-1) ** int((p.eigenvalues < 0).sum()) for p in points) == 0
