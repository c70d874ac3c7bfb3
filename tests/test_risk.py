"""Population risk against reference numbers, other integrations, simulated data and finite differences."""

import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.special import erf, ndtr

from seqindex import (
    Attention,
    Encoding,
    OppositeEncoding,
    PositionalSemanticTarget,
    Problem,
    Projection,
    RandomEncoding,
    Target,
)
from seqindex.gaussian.quadrature import trapezoid
from seqindex.theory.pair_risk import PairRisk
from seqindex.theory.risk import PopulationRisk
from seqindex.theory.sampled_risk import SampledRisk

GENERAL = Encoding([[0.8], [0.5]], target_component=[0.3, -0.2])


def ps_problem(omega=0.67, alignment=1.0, encoding=None, loss="square"):
    student = Attention(2, encoding or OppositeEncoding())
    return Problem(PositionalSemanticTarget(omega, alignment=alignment), student, loss)


@pytest.fixture(scope="module")
def ps():
    return PopulationRisk(ps_problem())


@pytest.fixture(scope="module")
def ps_norm():
    return PopulationRisk(ps_problem(loss="norm"))


# Reference numbers


@pytest.mark.parametrize(
    ("omega", "alignment", "m", "e", "value"),
    [
        (0.67, 1.0, 0.0, 0.0, 0.263504151894),
        (0.67, 1.0, 0.5, 0.3, 0.2388290940359),
        (0.67, 1.0, 0.0, 1.0, 0.2031026963618),
        (0.3, 0.85, 0.0, 0.0, 0.2310969497111),
        (0.3, 0.85, 0.5, 0.5, 0.2193457084084),
        (0.95, 0.76, 0.0, 0.0, 0.1959943554601),
    ],
)
def test_positional_semantic_risk(omega, alignment, m, e, value):
    risk = PopulationRisk(ps_problem(omega, alignment))
    assert float(risk(m, e)) == pytest.approx(value, abs=1e-12)
    assert float(risk.error(m, e)) < 1e-11


def test_positional_semantic_derivatives_and_noise(ps):
    # dR/de = dR/de_1 - dR/de_2, as P_1 = -P_2.
    np.testing.assert_allclose(ps.gradient(0.5, 0.3), [-0.0720686808886, -2 * 0.0168436613797], atol=1e-12)
    along = 2 * (0.0260478263718 - 0.1148400244293)
    np.testing.assert_allclose(ps.hessian(0.0, 0.0), [[-0.1455315429356, 0.0], [0.0, along]], atol=1e-12)
    assert float(ps.mean_square_gradient(0.0, 0.0)) == pytest.approx(0.1140744963884, abs=1e-12)
    assert float(ps.mean_square_gradient(0.5, 0.3)) == pytest.approx(0.1088294973819, abs=1e-12)


def test_trace_student_with_a_polynomial_target():
    target = Target(lambda z: 1.0 + z[..., 0] * z[..., 1] + 0.5 * (z[..., 0] ** 2 - 1.0), length=2)
    risk = PopulationRisk(Problem(target, Attention(2, OppositeEncoding(), reduction="plain_trace")))
    np.testing.assert_allclose(risk(0.5, [0.0, 0.4]), [1.740253319754, 1.786372710423], atol=1e-11)


def test_encoding_with_a_target_component():
    risk = PopulationRisk(ps_problem(encoding=GENERAL))
    assert float(risk(0.4, 0.5)) == pytest.approx(0.266181224008, abs=1e-11)
    np.testing.assert_allclose(risk.gradient(0.4, 0.5), [-0.060401422721, 0.060137585765], atol=1e-11)


def test_linear_scores_in_closed_form():
    # g = z1^2, f = |z|^2 without encoding: E g^2 = 3, E f^2 = 8, E g f = 2 + 2 m^2; c = 4 (f - g) z.
    target = Target(lambda z: z[..., 0] ** 2, length=2)
    risk = PopulationRisk(Problem(target, Attention(2, reduction="plain_trace", scores="linear")))
    m = np.array([-1.0, -0.6, 0.0, 0.3, 1.0])
    np.testing.assert_allclose(risk(m), 7.0 - 4.0 * m**2, atol=1e-10)
    np.testing.assert_allclose(risk.gradient(m)[:, 0], -8.0 * m, atol=1e-10)
    np.testing.assert_allclose(risk.hessian(m)[:, 0, 0], -8.0, atol=1e-9)
    # V = 16 E (f - g)^2 |z|^2; at m = 1 it is 16 E z2^4 |z|^2 = 16 (3 + 15), at m = 0 it is 16 (48 - 2 * 8 + 3 * 2).
    np.testing.assert_allclose(risk.mean_square_gradient([0.0, 1.0]), [16 * 38, 16 * 18], rtol=1e-11)


def test_risk_of_a_matched_student_vanishes_at_full_overlap():
    risk = PopulationRisk(ps_problem(omega=0.0))
    np.testing.assert_allclose(risk([1.0, -1.0], 0.0), 0.0, atol=1e-12)
    np.testing.assert_allclose(risk.mean_square_gradient(1.0, 0.0), 0.0, atol=1e-11)


# Other ways to integrate


def brute_force(problem, s, step, extent):
    """Risk and E|c|^2 by a trapezoid rule over all 2 L variables (z*, xi)."""
    rule = trapezoid(step, extent)
    length = problem.length
    mesh = np.stack(np.meshgrid(*[rule.nodes] * length, indexing="ij"), axis=-1).reshape(-1, length)
    weights = np.prod(np.stack(np.meshgrid(*[rule.weights] * length, indexing="ij")), axis=0).ravel()
    m, total = s[0], np.zeros(2)
    for zstar, weight in zip(mesh, weights, strict=True):
        if weight < 1e-13:
            continue
        z = m * zstar + np.sqrt(1 - m * m) * mesh + problem.frame.offsets(s)
        fixed = np.broadcast_to(zstar, z.shape)
        noise = (problem.field_gradient(fixed, z) ** 2).sum(-1) if length == 2 else np.zeros(len(z))
        total += weight * (weights @ np.stack([problem.loss_at(fixed, z), noise], axis=1))
    return total


@pytest.mark.parametrize("scores", ["softmax", "linear"])
@pytest.mark.parametrize("reduction", ["identity", "trace", "plain_trace", Projection([1.0, -0.5], [0.3, 0.9])])
def test_length_2_against_four_dimensional_integration(scores, reduction):
    student = Attention(2, GENERAL, reduction, scores)
    if student.outputs == 4:
        target = PositionalSemanticTarget(0.4, alignment=0.9)
    else:
        target = Target(lambda z: np.tanh(z[..., 0] + 0.3) * z[..., 1], length=2)
    problem = Problem(target, student)
    risk = PopulationRisk(problem)
    s = np.array([0.55, -0.4])
    value, noise = brute_force(problem, s, 0.5, 7.0)
    assert float(risk(*s)) == pytest.approx(value, rel=3e-5)
    assert float(risk.mean_square_gradient(*s)) == pytest.approx(noise, rel=2e-4)


def test_length_3_against_six_dimensional_integration():
    alignment = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]]
    student = Attention(3, Encoding([[0.5, 0.1], [-0.3, 0.4], [0.2, 0.2]], [0.1, 0.0, -0.2]))
    problem = Problem(PositionalSemanticTarget(0.4, alignment_matrix=alignment), student)
    s = np.array([0.6, 0.4, -0.3])
    value, _ = brute_force(problem, s, 0.9, 5.4)
    assert float(PopulationRisk(problem)(s[0], s[1:])) == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize("kind", ["relu", "sign", "abs"])
@pytest.mark.parametrize("m", [0.3, 0.9])
def test_targets_with_kinks_on_any_line_have_covered_errors(kind, m):
    # g(z*) = phi(a.z*) averages over z* given zeta to a smooth function, whose integral is then exact.
    a, shift = np.array([1.0, -1.0]), np.array([0.3, 0.2])
    target = Target({"relu": _relu, "sign": _sign, "abs": _abs}[kind], length=2)
    student = Attention(2, Encoding([[0.5], [1.0 / 3.0]]), reduction="trace")
    rule = trapezoid(0.1, 11.0)
    zeta = np.stack(np.meshgrid(rule.nodes, rule.nodes, indexing="ij"), axis=-1)
    f = student(zeta + shift)[..., 0]
    mean, width = m * zeta @ a, np.sqrt((1 - m * m) * (a @ a))
    smooth = {
        "relu": mean * ndtr(mean / width) + width * np.exp(-0.5 * (mean / width) ** 2) / np.sqrt(2 * np.pi),
        "sign": erf(mean / width / np.sqrt(2.0)),
    }
    smooth["abs"] = 2 * smooth["relu"] - mean
    square = {"relu": 1.0, "sign": 1.0, "abs": 2.0}[kind]
    exact = square + rule.weights @ (f**2 - 2.0 * smooth[kind] * f) @ rule.weights
    if m == 0.9:
        shift = shift * 0.6  # stay in the disc
        f = student(zeta + shift)[..., 0]
        exact = square + rule.weights @ (f**2 - 2.0 * smooth[kind] * f) @ rule.weights
    risk = PopulationRisk(Problem(target, student))
    e = shift[0] / 0.5
    assert abs(float(risk(m, e)) - exact) <= float(risk.error(m, e)) < 0.05


def _relu(z):
    return np.maximum(z[..., 0] - z[..., 1], 0.0)


def _sign(z):
    return np.sign(z[..., 0] - z[..., 1])


def _abs(z):
    return np.abs(z[..., 0] - z[..., 1])


def test_kinks_at_zero_of_a_field_are_integrated_exactly():
    # E g = 2/pi; with f = const = 1 for the projection on a row of ones of a row-stochastic matrix.
    target = Target(lambda z: np.abs(z[..., 0] * z[..., 1]), length=2)
    risk = PopulationRisk(Problem(target, Attention(2, reduction=Projection([1.0, 0.0], [1.0, 1.0]))))
    assert float(risk(0.5)) == pytest.approx(1.0 + 1.0 - 4.0 / np.pi, abs=1e-12)
    assert float(risk.error(0.5)) < 1e-10


# Explicit data in d dimensions


def sampled_loss(problem, s, dim, samples, seed):
    """Losses and |c|^2 over explicit tokens."""
    rng = np.random.default_rng(seed)
    basis = problem.frame.basis(dim, rng)
    positions = problem.frame.positions @ basis.T
    rest = rng.standard_normal(dim)
    rest -= basis @ (basis.T @ rest)
    w = np.sqrt(dim) * (basis @ s + np.sqrt(1 - s @ s) * rest / np.linalg.norm(rest))
    wstar = np.sqrt(dim) * basis[:, 0]
    tokens = rng.standard_normal((samples, problem.length, dim)) / np.sqrt(dim)
    zstar, z = tokens @ wstar, (tokens + positions / np.sqrt(dim)) @ w
    return problem.loss_at(zstar, z), (problem.field_gradient(zstar, z) ** 2).sum(-1)


THREE = Encoding([[1.0, 0.2], [0.5, 0.1], [-0.3, 0.7]], [0.2, 0.0, -0.4])


@pytest.mark.parametrize(
    ("length", "encoding", "s", "loss"),
    [
        (2, GENERAL, [0.5, -0.6], "square"),
        (2, GENERAL, [0.5, -0.6], "norm"),
        (3, THREE, [0.4, 0.5, -0.3], "square"),
        (3, THREE, [0.4, 0.5, -0.3], "norm"),
        (4, RandomEncoding(4), [-0.5, 0.3, 0.2, -0.4, 0.1], "norm"),
        (6, None, [0.7], "square"),
    ],
)
def test_explicit_data(length, encoding, s, loss):
    alignment = np.random.default_rng(1).dirichlet(np.ones(length), size=length)
    problem = Problem(PositionalSemanticTarget(0.3, alignment_matrix=alignment), Attention(length, encoding), loss)
    s = np.array(s)
    risk = PopulationRisk(problem, points=2**15)
    e = None if len(s) == 1 else s[1] if len(s) == 2 else s[1:]
    values, noise = sampled_loss(problem, s, 12, 40_000, seed=7)
    for sample, exact, of in (
        (values, risk(s[0], e), "value"),
        (noise, risk.mean_square_gradient(s[0], e), "mean_square_gradient"),
    ):
        deviation = sample.std() / np.sqrt(len(sample))
        # 12 comparisons at 4 standard errors: a false alarm in one of 1000 runs.
        assert abs(sample.mean() - float(exact)) < 4.0 * deviation + float(risk.error(s[0], e, of=of))
        assert float(risk.error(s[0], e, of=of)) < 0.02 * float(exact)


# Derivatives


def difference_errors(risk, m, e, steps):
    """Distance of central differences of value and gradient from gradient and Hessian."""
    e = np.atleast_1d(e)
    s = np.concatenate([[m], e])

    def split(x):
        return x[0], x[1] if len(e) == 1 else x[1:]

    errors = []
    for h in steps:
        units = h * np.eye(len(s))
        slopes = [(risk(*split(s + u)) - risk(*split(s - u))) / (2 * h) for u in units]
        curves = [(risk.gradient(*split(s + u)) - risk.gradient(*split(s - u))) / (2 * h) for u in units]
        errors.append([np.abs(slopes - risk.gradient(*split(s))).max(), np.abs(curves - risk.hessian(*split(s))).max()])
    return np.array(errors)


@pytest.mark.parametrize(
    ("problem", "m", "e"),
    [
        (ps_problem(), 0.5, 0.3),
        (ps_problem(), -0.93, 0.2),
        (ps_problem(encoding=GENERAL), 0.4, -0.5),
        (ps_problem(encoding=Encoding([[0.8, 0.1], [0.5, -0.7]], [0.3, -0.2])), 0.4, [0.5, -0.2]),
        (
            Problem(
                PositionalSemanticTarget(0.5, alignment_matrix=np.eye(3)),
                Attention(3, Encoding([[0.8], [0.5], [-1.0]], [0.1, 0.2, 0.3])),
            ),
            0.4,
            0.3,
        ),
    ],
)
def test_derivatives_are_limits_of_differences(problem, m, e):
    steps = np.array([0.04, 0.02])
    errors = difference_errors(PopulationRisk(problem), m, e, steps)
    order = np.log(errors[0] / errors[1]) / np.log(2.0)
    np.testing.assert_allclose(order, 2.0, atol=0.1)


def test_derivatives_of_the_norm_loss_and_of_sobol_points(ps_norm):
    errors = difference_errors(ps_norm, 0.5, 0.3, np.array([0.04, 0.02]))
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), 2.0, atol=0.15)
    problem = Problem(PositionalSemanticTarget(0.5, alignment_matrix=np.eye(5)), Attention(5))
    risk = PopulationRisk(problem, points=2**13)
    # The points are fixed, so the gradient is that of the estimate itself, not only of the risk.
    h = 1e-4
    assert float((risk(0.5 + h) - risk(0.5 - h)) / (2 * h)) == pytest.approx(risk.gradient(0.5).item(), rel=1e-6)
    change = (risk.gradient(0.5 + h) - risk.gradient(0.5 - h)).item() / (2 * h)
    assert change == pytest.approx(risk.hessian(0.5).item(), rel=1e-5)


def test_risk_is_continuous_up_to_full_overlap(ps):
    m = np.concatenate([1.0 - np.logspace(-1, -12, 23), [1.0]])
    values, slopes = ps(m, 0.0), ps.gradient(m, 0.0)[:, 0]
    # Trapezoid sums of the slope bridge every gap between the points, orders of the series included.
    gaps = values[-1] - values[:-1]
    np.testing.assert_allclose(gaps, slopes[-1] * (1 - m[:-1]) - 0.5 * _curvature(ps) * (1 - m[:-1]) ** 2, atol=2e-3)
    near = m > 1 - 1e-5
    np.testing.assert_allclose(values[near], values[-1] + slopes[-1] * (m[near] - 1.0), atol=1e-10)
    assert (np.diff(values) < 0).all()


def _curvature(risk):
    return risk.hessian(1.0, 0.0)[0, 0]


def test_full_overlap_agrees_with_direct_integration(ps):
    rule = trapezoid(0.08, 11.0)
    z = np.stack(np.meshgrid(rule.nodes, rule.nodes, indexing="ij"), axis=-1)
    for m in (1.0, -1.0):
        loss = ps.problem.loss_at(z, m * z)
        assert float(ps(m, 0.0)) == pytest.approx(rule.weights @ loss @ rule.weights, abs=1e-12)


# Errors


@pytest.mark.parametrize(("m", "e"), [(0.0, 0.0), (0.5, 0.3), (0.9, -0.4), (-1.0, 0.0), (0.0, 1.0)])
def test_engines_agree_within_their_errors(ps, m, e):
    # The square loss through the grid and through Sobol points, which share nothing with the series.
    shifts = np.array([[e, -e]])
    overlap = np.array([m])
    exact = ps._engine
    for engine in (PairRisk(ps.problem), SampledRisk(ps.problem, 2**14, 16, 0)):
        # The grid that serves the norm loss near |m| = 1 takes half a minute for derivatives.
        for order in (0, 1, 2) if abs(m) < 0.95 or isinstance(engine, SampledRisk) else (0,):
            distance = np.abs(engine.derivatives(overlap, shifts, order) - exact.derivatives(overlap, shifts, order))
            assert (distance <= engine.error(overlap, shifts, order) + 1e-8).all()
        distance = engine.mean_square_gradient(overlap, shifts) - exact.mean_square_gradient(overlap, shifts)
        assert abs(distance) <= engine.mean_square_gradient_error(overlap, shifts)


def test_sobol_standard_errors_are_calibrated(ps):
    scores = []
    for seed in range(12):
        engine = SampledRisk(ps.problem, 2**12, 16, seed)
        for m, e in ((0.0, 0.3), (0.5, 0.3)):
            shift = np.array([[e, -e]])
            exact = ps._engine.derivatives(np.array([m]), shift, 0)
            scores.append((engine.derivatives(np.array([m]), shift, 0) - exact) / engine.error(np.array([m]), shift, 0))
    # The error is four standard errors.
    assert 0.6 < 4.0 * np.std(scores) < 1.6
    assert np.abs(scores).max() < 1.0


def test_norm_loss_transition_and_errors(ps_norm):
    # The directions of steepest descent at the origin trade places at omega = 0.62781(1).
    gaps = []
    for omega in (0.62, 0.635):
        risk = PopulationRisk(ps_problem(omega, loss="norm"))
        hessian = risk.hessian(0.0, 0.0)
        gaps.append(hessian[0, 0] - hessian[1, 1])
    assert 0.62 - 0.015 * gaps[0] / (gaps[1] - gaps[0]) == pytest.approx(0.62781, abs=2e-5)
    for point in ((0.0, 0.0), (0.5, 0.3), (0.97, 0.1), (1.0, 0.0)):
        assert float(ps_norm.error(*point)) < 2e-4
    # Continuity between the two grids, at |m| = 0.9708.
    left, right = ps_norm([0.9707, 0.9709], 0.1)
    slope = float(ps_norm.gradient(0.9708, 0.1)[0])
    assert right - left == pytest.approx(2e-4 * slope, abs=1e-5)


def test_norm_loss_equal_risk_of_the_two_minima():
    gaps = []
    for omega in (0.71, 0.74):
        semantic, positional = PopulationRisk(ps_problem(omega, loss="norm"))([1.0, 0.0], [0.0, 1.0])
        gaps.append(semantic - positional)
    assert 0.71 - 0.03 * gaps[0] / (gaps[1] - gaps[0]) == pytest.approx(0.7255, abs=3e-4)


@pytest.mark.parametrize("length", [3, 4])
def test_longer_sequences_state_errors_that_cover(length):
    alignment = np.random.default_rng(1).dirichlet(np.ones(length), size=length)
    problem = Problem(PositionalSemanticTarget(0.4, alignment_matrix=alignment), Attention(length))
    risk, sobol = PopulationRisk(problem), SampledRisk(problem, 2**18, 16, 0)
    for m in (0.5, 0.95, 1.0):
        point = np.array([m]), np.zeros((1, length))
        assert abs(risk(m) - sobol.derivatives(*point, 0)) < sobol.error(*point, 0) + risk.error(m)
        assert float(risk.error(m)) < 2e-4
    # At m = 1 without a shift the integral is over L variables only.
    rule = trapezoid(0.3 if length == 3 else 0.5, 6.5)
    z = np.stack(np.meshgrid(*[rule.nodes] * length, indexing="ij"), axis=-1)
    value = problem.loss_at(z, z)
    for _ in range(length):
        value = value @ rule.weights
    assert abs(float(risk(1.0)) - value) < float(risk.error(1.0))


# Interface


def test_shapes_broadcast(ps):
    assert ps(np.zeros((3, 1)), np.zeros(4)).shape == (3, 4)
    assert ps.gradient(np.zeros((3, 1)), np.zeros(4)).shape == (3, 4, 2)
    assert ps.hessian(0.1).shape == (2, 2)
    assert ps.error([0.1, 0.2], 0.0, of="hessian").shape == (2, 2, 2)
    assert ps(np.zeros(0), 0.0).shape == (0,)
    assert float(ps(0.3)) == float(ps(0.3, 0.0))
    wide = PopulationRisk(ps_problem(encoding=Encoding(np.eye(2))))
    assert wide(np.zeros((5, 1)), np.zeros((5, 3, 2))).shape == (5, 3)
    assert wide.gradient(0.2, [0.1, 0.0]).shape == (3,)


def test_values_do_not_depend_on_what_is_asked_with_them(ps):
    m, e = np.linspace(-0.7, 0.7, 9), np.linspace(0.5, -0.5, 9)
    together = ps(m, e)
    np.testing.assert_allclose([float(ps(x, y)) for x, y in zip(m, e, strict=True)], together, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r(0.9, 0.9), r"m\^2 \+ \|e\|\^2 must be at most 1, got 1.62"),
        (lambda r: r(np.nan, 0.0), "m must be finite, got nan"),
        (lambda r: r([0.1, 0.2], [0.1, 0.2, 0.3]), "m and e must broadcast"),
        (lambda r: r.error(0.1, 0.1, of="gradiant"), "of must be one of .*did you mean 'gradient'"),
    ],
)
def test_bad_overlaps_are_refused(ps, call, message):
    with pytest.raises(ValueError, match=message):
        call(ps)


def test_rounding_beyond_the_circle_is_accepted(ps):
    assert np.isfinite(ps(0.6, np.sqrt(1 - 0.36) + 1e-14))


def test_other_bad_input_is_refused():
    risk = PopulationRisk(ps_problem(encoding=Encoding(np.eye(2))))
    with pytest.raises(ValueError, match="e must be an array with last axis 2, got shape \\(3,\\)"):
        risk(0.1, [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="as there is no encoding"):
        PopulationRisk(Problem(PositionalSemanticTarget(0.5, alignment=1.0), Attention(2)))(0.1, 0.0)
    with pytest.raises(TypeError, match="m must be a number or an array of numbers, got 'x'"):
        risk("x")
    with pytest.raises(TypeError, match="problem must be a Problem"):
        PopulationRisk("x")


@pytest.mark.parametrize(("length", "loss"), [(2, "square"), (2, "norm"), (3, "square"), (5, "square")])
def test_a_target_that_is_not_finite_is_named_at_once(length, loss):
    def broken(z):
        return np.where(z[..., 0] > 1.5, np.nan, z[..., 1])

    problem = Problem(Target(broken, length), Attention(length, reduction="trace"), loss)
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"target must be finite for every z\*, got nan at z\* = \(") as caught:
        PopulationRisk(problem)
    assert time.perf_counter() - start < 30.0
    assert "\n" not in str(caught.value)


def test_theory_stays_light():
    code = (
        "import sys, seqindex.theory.risk, seqindex.theory.critical; "
        "sys.exit(len({'matplotlib', 'torch', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
