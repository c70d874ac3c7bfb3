"""The ODE of the sufficient statistics: reference values, closed forms, the mean of the exact chain, events, outcomes.

Against the chain: one joint test a problem (Hotelling's T^2 over all recorded overlaps), level 1e-3, fixed seeds; the
same test must reject the ODE without its second-order term.
"""

import math

import numpy as np
import pytest
from scipy import stats

import seqindex as sx
from seqindex.theory.drift import drift_of, growth_rates, jacobian

LEVEL = 1e-3


def positional_semantic(omega=0.6):
    return sx.Problem(sx.PositionalSemanticTarget(omega, alignment=1.0), sx.Attention(2, sx.OppositeEncoding()))


def separable(length, student, **settings):
    return sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", length), student(length, **settings))


def linear(length, student, **settings):
    return sx.Problem(sx.Target(f"sum(z)/sqrt({length})", length), student(length, **settings))


# Values of an independent Runge-Kutta solution on two grids: (omega, rate, m0 = e0, times, m, e).
REFERENCE = [
    (0.6, 0.5, 0.2, [2, 5, 10], [0.258513475, 0.369899794, 0.623916598], [0.230898171, 0.268335164, 0.247179916]),
    (0.67, 0.0, 0.05, [10, 20], [0.196297438, 0.385346412], [0.263930726, 0.662176262]),
]


@pytest.mark.parametrize(("omega", "rate", "start", "times", "m", "e"), REFERENCE)
def test_reference_values_of_attention(omega, rate, start, times, m, e):
    path = sx.gradient_flow(positional_semantic(omega), start, start, times=times, learning_rate=rate)
    assert path["overlap"].values == pytest.approx(m, abs=2e-9)
    assert path["encoding_overlap"].values == pytest.approx(e, abs=2e-9)


def test_reference_values_of_a_softplus_network():
    problem = sx.Problem(sx.Target("z1*z2", 2), sx.TiedNetwork(2, "softplus"))
    path = sx.gradient_flow(problem, 0.1, times=[2, 5, 8])
    assert np.abs(path["overlap"] - [0.223849808699, 0.621566866951, 0.939438469351]).max() < 1e-8


@pytest.mark.parametrize("method", ["LSODA", "DOP853", "RK45", "Radau", "BDF"])
@pytest.mark.parametrize(("length", "rate"), [(1, 0.0), (3, 0.1), (3, 0.25)])
def test_closed_form_of_the_separable_target(method, length, rate):
    t = np.linspace(0.0, 4.0, 9)
    slope = 2.0 / math.sqrt(math.pi)
    lam = slope - rate * (length + 1)
    limit = lam / (slope * (1.0 - rate))
    exact = np.sqrt(limit / (1.0 + (limit / 0.04 - 1.0) * np.exp(-2.0 * lam * t)))
    path = sx.gradient_flow(
        separable(length, sx.TiedNetwork), 0.2, times=t, learning_rate=rate, method=method, rtol=1e-8
    )
    assert np.abs(path["overlap"] - exact).max() < 3e-7


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 2.0])
def test_closed_form_of_the_linear_target(rate):
    t = np.linspace(0.0, 3.0, 7)
    b = 1.0 - 2.0 * rate
    ratio = (1.0 + 0.1 * b) / 0.9 * np.exp((1.0 + b) * t)
    exact = (ratio - 1.0) / (ratio + b)
    path = sx.gradient_flow(linear(5, sx.TiedNetwork), 0.1, times=t, learning_rate=rate)
    assert np.abs(path["overlap"] - exact).max() < 1e-7


@pytest.mark.parametrize("sphere", ["rows", "joint"])
@pytest.mark.parametrize("make", [separable, linear])
def test_an_untied_network_with_equal_rows_is_the_tied_one_slowed_by_its_length(sphere, make):
    tied = sx.gradient_flow(make(3, sx.TiedNetwork), 0.2, times=[0.5, 1.0], learning_rate=0.2)
    untied = sx.gradient_flow(make(3, sx.UntiedNetwork, sphere=sphere), 0.2, times=[1.5, 3.0], learning_rate=0.2)
    assert np.abs(untied["overlap"].values - tied["overlap"].values[:, None]).max() < 1e-8


CHAINS = {
    "attention": (positional_semantic(), 2.0, {"m": 0.25, "e": 0.2}),
    "tied": (separable(2, sx.TiedNetwork), 0.3, {"m": 0.3}),
    "untied rows": (separable(2, sx.UntiedNetwork), 0.35, {"m": 0.3}),
    "untied joint": (separable(2, sx.UntiedNetwork, sphere="joint"), 0.35, {"m": 0.3}),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_mean_of_a_thousand_chains_follows_the_ode_only_with_the_term_of_the_rate(name):
    problem, rate, start = CHAINS[name]
    dim, horizon = 100_000, 0.6
    steps = round(horizon * dim / rate)
    runs = sx.sgd(problem, dim, rate, steps, replicas=1000, seed=7, start=sx.Start.overlaps(**start), records=4)
    columns = ["overlap", "encoding_overlap"] if name == "attention" else ["overlap"]
    measured = np.concatenate([runs[c].values[:, 1:].reshape(1000, -1) for c in columns], axis=1)
    p = {}
    for gamma in (rate, 0.0):
        path = sx.gradient_flow(
            problem, start["m"], start.get("e"), times=runs["step"].values[1:] * rate / dim, learning_rate=gamma
        )
        expected = np.concatenate([path[c].values.ravel() for c in columns])
        p[gamma] = hotelling(measured, expected)
    assert p[rate] > LEVEL
    assert p[0.0] < 1e-12


def hotelling(samples, mean):
    """p-value of "the samples (n, p) have this mean"."""
    n, size = samples.shape
    difference = samples.mean(0) - mean
    t2 = n * difference @ np.linalg.solve(np.cov(samples.T), difference)
    return stats.f.sf(t2 * (n - size) / (size * (n - 1)), size, n - size)


OUTCOMES = [
    (0.0, 5.0, 0.0, "stuck"),
    (1e-3, 2.0, 0.0, "censored"),
    (0.1, 2.0, 0.0, "recovered"),
    (0.3, 2.0, 0.0, "already_above"),
    (0.1, 400.0, 0.0, "converged"),
    (0.1, 50.0, 100.0, "converged"),  # to the start, which so large a rate makes stable
]


@pytest.mark.parametrize(("m0", "horizon", "rate", "outcome"), OUTCOMES)
def test_outcomes(m0, horizon, rate, outcome):
    path = sx.gradient_flow(separable(2, sx.TiedNetwork), m0, horizon=horizon, learning_rate=rate)
    assert path.attrs["outcome"] == outcome
    assert path.sizes["time"] == 401
    assert np.isfinite(path["overlap"]).all()
    assert float(path["end_time"]) == horizon


def test_events_are_recorded_and_cut_nothing_short():
    path = sx.gradient_flow(separable(1, sx.TiedNetwork), 0.1, horizon=20.0, threshold=0.5)
    lam = 2.0 / math.sqrt(math.pi)
    exact = math.log((1.0 / 0.01 - 1.0) / (1.0 / 0.25 - 1.0)) / (2.0 * lam)
    assert float(path["recovery_time"]) == pytest.approx(exact, abs=1e-7)
    assert exact < float(path["convergence_time"]) < 20.0
    assert path["end_rates"].values == pytest.approx([-2.0 * lam], abs=1e-3)


def test_a_positional_end_converges_without_recovery():
    path = sx.gradient_flow(positional_semantic(0.9), 1e-3, 0.1, horizon=400.0)
    assert path.attrs["outcome"] == "converged"
    assert abs(float(path["encoding_overlap"][-1])) > 0.99
    assert math.isnan(float(path["recovery_time"]))


def test_a_joint_sphere_converges_to_its_valley():
    path = sx.gradient_flow(separable(3, sx.UntiedNetwork, sphere="joint"), [0.1, 0.2, -0.3], horizon=100.0)
    assert path.attrs["outcome"] == "converged"
    assert float(path["overlap_norm"][-1]) == pytest.approx(1.0, abs=1e-6)


def test_a_flat_start_takes_as_long_as_its_power_law_says():
    problem = sx.Problem(sx.Target("He4(z1)", 1), sx.TiedNetwork(1, "He4"))  # dm/dt = 192 m^3 (1 - m^2)
    path = sx.gradient_flow(problem, 1e-3, horizon=1e5)

    def clock(m):  # integral of dm / (m^3 (1 - m^2))
        return math.log(m) - 0.5 * math.log(1.0 - m * m) - 0.5 / m**2

    assert float(path["recovery_time"]) == pytest.approx((clock(0.2) - clock(1e-3)) / 192.0, rel=1e-6)


def test_a_limit_on_the_solver_keeps_what_is_done():
    path = sx.gradient_flow(separable(1, sx.TiedNetwork), 0.1, horizon=20.0, max_steps=30)
    assert path.attrs["outcome"] == "step_limit"
    reached = float(path["end_time"])
    known = np.isfinite(path["overlap"].values)
    assert 0.0 < reached < 20.0
    assert known.sum() == (path["time"] <= reached).sum() > 5


def test_the_jacobian_at_rest_is_minus_the_hessian():
    problem = positional_semantic(0.67)
    rates = growth_rates(drift_of(problem), np.zeros(2)).real
    assert rates == pytest.approx([0.1775843961150, 0.1455315429356], abs=1e-8)
    noise = float(sx.PopulationRisk(problem).mean_square_gradient(0.0, 0.0))
    damped = growth_rates(drift_of(problem, 0.8), np.zeros(2)).real
    assert damped == pytest.approx(rates - 0.4 * noise, abs=1e-8)


def test_the_jacobian_at_a_minimum_on_the_circle():
    risk = sx.PopulationRisk(positional_semantic(0.67))
    gradient, hessian = risk.gradient(1.0, 0.0), risk.hessian(1.0, 0.0)
    found = jacobian(drift_of(risk.problem), np.array([1.0, 0.0]))
    assert found[1, 1] == pytest.approx(-(hessian[1, 1] - gradient[0]), abs=1e-6)


BAD = [
    ({"m0": 1.2, "horizon": 1.0}, ValueError, "m must be in"),
    ({"m0": math.nan, "horizon": 1.0}, ValueError, "m must be finite"),
    ({"m0": 0.1}, ValueError, "horizon must be a positive time, or times be given"),
    ({"m0": 0.1, "horizon": -1.0}, ValueError, "horizon must be positive"),
    ({"m0": 0.1, "times": [1.0, 0.5]}, ValueError, "times must be ascending"),
    ({"m0": 0.1, "horizon": 1.0, "learning_rate": -0.1}, ValueError, "learning_rate must be in"),
    ({"m0": 0.1, "horizon": 1.0, "method": "LSOAD"}, ValueError, "did you mean 'LSODA'"),
    ({"m0": 0.1, "e0": 0.2, "horizon": 1.0}, ValueError, "e must have shape"),
    ({"m0": 0.1, "horizon": 1.0, "threshold": 2.0}, ValueError, "threshold must be in"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        sx.gradient_flow(separable(2, sx.TiedNetwork), **arguments)


def test_bad_starts_of_untied_networks():
    with pytest.raises(ValueError, match=r"m0 must have \|m_l\| at most 1"):
        sx.gradient_flow(separable(2, sx.UntiedNetwork), [1.2, 0.0], horizon=1.0)
    with pytest.raises(ValueError, match="m0 must have shape"):
        sx.gradient_flow(separable(2, sx.UntiedNetwork), [0.1, 0.2, 0.3], horizon=1.0)
    with pytest.raises(ValueError, match="e0 must be None"):
        sx.gradient_flow(separable(2, sx.UntiedNetwork), 0.1, 0.2, horizon=1.0)


def test_a_target_that_is_not_finite_is_named():
    problem = sx.Problem(sx.Target(lambda z: z[..., 0] / (z[..., 0] > 0.3), 2), sx.Attention(2, reduction="trace"))
    with (
        np.errstate(divide="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="target must be finite"),
    ):
        sx.gradient_flow(problem, 0.1, horizon=1.0)
