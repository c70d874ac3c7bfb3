"""Predicted recovery times: closed forms, exit times by integrals, and the exact chain.

Kolmogorov-Smirnov tests reject at 1e-6.  Each has a control that the same test must reject.
"""

import math

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from scipy.interpolate import PchipInterpolator
from scipy.special import erfinv
from scipy.stats import ks_1samp

import seqindex as sx
from seqindex.outcome import Outcome
from seqindex.theory.drift import drift_of
from seqindex.theory.escape_line import escape_line
from seqindex.theory.passage import Passage

K = 2.0 / math.sqrt(math.pi)
LEVEL = 1e-6


def tied(text, length=1, activation="relu"):
    return sx.Problem(sx.Target(text, length), sx.TiedNetwork(length, activation))


def second(length):
    return tied("sum(He2(z))/sqrt(2)", length)


EVEN = sx.Problem(sx.Target("He2(z1) + He2(z2)", 2), sx.Attention(2, reduction="trace"))
THIRD = tied("-He3(z1)/sqrt(6)", 1, "tanh")


# First passage of a diffusion ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.0, 0.3, -0.7])
def test_brownian_motion_leaves_an_interval(start):
    """Mean 1 - x^2, variance 2 (1 - x^4) / 3, and the eigenfunction series of the distribution."""
    law = Passage(np.zeros_like, lambda x: np.full_like(x, 0.5), -1.0, 1.0, start)
    assert law.mean == pytest.approx(1.0 - start**2, rel=2e-4)
    assert law.deviation**2 == pytest.approx(2.0 / 3.0 * (1.0 - start**4), rel=1e-3)
    odd = 2 * np.arange(60) + 1
    for time in (0.2, 1.0, 2.0):
        terms = (
            4.0 / (np.pi * odd) * np.sin(odd * np.pi * (start + 1.0) / 2.0) * np.exp(-(odd**2) * np.pi**2 * time / 8)
        )
        assert law.probability(time) == pytest.approx(1.0 - terms.sum(), abs=2e-4)
    assert law.probability(law.quantile(0.3)) == pytest.approx(0.3, abs=1e-4)


def exit_moments(slope, a, end, start):
    """E T and E T^2 for dx = slope x dt + sqrt(2 a) dW: T' = -(1/a) e^{-psi} int_0^x f e^psi, by Simpson's rule."""
    x = np.linspace(0.0, end, 4001)
    weight = np.exp(0.5 * slope * x**2 / a)

    def solve(f):
        inner = cumulative_simpson(f * weight, x=x, initial=0) / (a * weight)
        whole = cumulative_simpson(inner, x=x, initial=0)
        return whole[-1] - whole

    first = solve(np.ones_like(x))
    return np.interp(start, x, first), np.interp(start, x, solve(2.0 * first))


@pytest.mark.parametrize("slope", [1.0, -0.6])
def test_exit_times_by_integrals(slope):
    """Growth, and attraction to the start against which only the noise helps."""
    a, end, start = 0.05, 0.6, 0.15
    mean, square = exit_moments(slope, a, end, start)
    law = Passage(lambda x: slope * x, lambda x: np.full_like(x, a), -end, end, start)
    assert law.mean == pytest.approx(mean, rel=2e-3)
    assert law.deviation == pytest.approx(math.sqrt(square - mean**2), rel=3e-3)


@pytest.mark.parametrize("noise", [1e-4, 1e-8])
def test_growth_from_a_gaussian_start(noise):
    """Weak noise: log|N(0, 1)| in closed form, mean, deviation and quantiles."""
    deviation = math.sqrt(0.5 * noise)
    law = Passage(lambda x: x, lambda x: np.full_like(x, noise), -0.5, 0.5, 0.0, deviation)
    size = math.sqrt(deviation**2 + noise)
    assert law.mean == pytest.approx(math.log(0.5 / size) + 0.5 * (np.euler_gamma + math.log(2.0)), rel=1e-3)
    assert law.deviation == pytest.approx(math.pi / math.sqrt(8.0), rel=2e-3)
    assert law.quantile(0.5) == pytest.approx(math.log(0.5 / size / 0.6744897501960817), rel=2e-3)
    assert law.quantile(0.95) == pytest.approx(math.log(0.5 / size / 0.0627067779432138), rel=2e-3)


def test_a_steady_drift_carries_a_narrow_start():
    law = Passage(np.ones_like, lambda x: np.full_like(x, 1e-5), -0.5, 0.5, 0.1)
    assert law.mean == pytest.approx(0.4, rel=1e-3)
    assert law.deviation == pytest.approx(math.sqrt(2e-5 * 0.4), rel=1e-2)
    assert law.quantile(0.975) == pytest.approx(0.4 + 1.96 * law.deviation, rel=1e-3)


def test_a_drift_that_opposes_strongly_is_never_overcome():
    law = Passage(lambda x: -x, lambda x: np.full_like(x, 1e-3), -0.5, 0.5, 0.1)
    assert math.isinf(law.mean)
    assert math.isinf(law.quantile(0.5))
    assert law.probability(1e9) == 0.0
    with pytest.raises(ValueError, match=r"^mean and 0 must lie between the ends -1 and 0\.5, got mean 0\.7"):
        Passage(np.ones_like, np.ones_like, -1.0, 0.5, 0.7)


# Predictions against closed forms ------------------------------------------------------------------------------------


def exact_mean(length, dim, rate, threshold, start_variance):
    """SIE 2 of a relu network (theory of section 3, case i): the flow and the amplitude in closed form."""
    growth = K - rate * (length + 1)
    limit = growth / (K * (1.0 - rate))
    v = start_variance + rate * (2 * length + 10 - 4 * K) / (2.0 * growth * dim)
    flow = (math.log(limit) - math.log(limit / threshold**2 - 1.0)) / (2.0 * growth)
    return dim / rate * (flow - (0.5 * math.log(v) - 0.5 * (np.euler_gamma + math.log(2.0))) / growth), growth


@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize("zero", [False, True])
def test_second_order_in_closed_form(length, zero):
    dim, rate = 10**6, 0.25 * K / (length + 1)
    start = sx.Start.orthogonal() if zero else None
    found = sx.predicted_recovery(second(length), dim, rate, 0.5, start)
    mean, growth = exact_mean(length, dim, rate, 0.5, 0.0 if zero else 1.0 / dim)
    deviation = dim / rate * math.pi / math.sqrt(8.0) / growth
    assert found.steps == pytest.approx(mean, rel=1e-6)
    assert found.spread == pytest.approx(deviation, rel=1e-9)
    # The diffusion agrees up to 1/d.
    assert found.mean == pytest.approx(mean, rel=1e-4)
    assert found.deviation == pytest.approx(deviation, rel=2e-3)
    # The law of -log|N| / growth around it.
    for p in (0.1, 0.5, 0.9):
        normal = math.sqrt(2.0) * float(erfinv(1.0 - p))
        shift = -math.log(normal) - 0.5 * (np.euler_gamma + math.log(2.0))
        assert found.quantile(p) == pytest.approx(mean + dim / rate * shift / growth, rel=2e-3)


def test_first_order_in_closed_form():
    """dm/dt = (1 - m)(1 + (1 - 2 gamma) m): at gamma = 1/2 t = -log(1 - m); at 3/2 it stops at m = 1/2."""
    problem = tied("sum(z)/2", 4)
    dim, rate = 10**6, 0.5
    found = sx.predicted_recovery(problem, dim, rate, 0.5, sx.Start.overlaps(0.1))
    assert found.steps == pytest.approx(dim / rate * math.log(0.9 / 0.5), rel=1e-6)
    assert found.mean == pytest.approx(found.steps, rel=1e-3)
    assert found.reaching_rate == pytest.approx(1.5, rel=1e-6)
    fixed = sx.predicted_recovery(problem, dim, rate, 0.5, sx.Start.overlaps(0.7))
    assert fixed.mean == fixed.quantile(0.9) == 0.0


def test_third_order_in_closed_form():
    """A weak rate: t = int dm / (a m^2 + ...) from the start on, and no noise to speak of."""
    dim = 10**6
    found = sx.predicted_recovery(THIRD, dim, 1e-5, 0.05, sx.Start.overlaps(0.01))
    pull = -found.order.coefficient / 2.0
    assert found.steps == pytest.approx(dim / 1e-5 / pull * (100.0 - 20.0), rel=3e-3)
    assert found.median == pytest.approx(found.steps, rel=2e-3)
    zero = sx.predicted_recovery(THIRD, 1000, 0.01, 0.5, sx.Start.orthogonal())
    assert zero.steps is None
    assert "only the noise carries runs on" in zero.reason
    assert zero.median < math.inf
    assert sx.predicted_recovery(THIRD, 1000, None, 0.5, sx.Start.orthogonal()).learning_rate is None


def test_rates_that_reach_the_threshold():
    """lambda = K (1 - gamma) eta^2 at the largest rate: the fixed point lies at the threshold."""
    for length in (1, 3):
        found = sx.predicted_recovery(second(length), 1000, 0.1, 0.5)
        assert found.largest_rate == pytest.approx(K / (length + 1), rel=1e-9)
        assert found.reaching_rate == pytest.approx(K * 0.75 / (length + 1 - 0.25 * K), rel=1e-6)
    assert sx.predicted_recovery(tied("z1 - z2", 2), 1000).median == math.inf


@pytest.mark.parametrize(
    "problem", [second(1), THIRD, tied("sum(z)", 3), tied("-h4(z1)"), tied("He2(z1) + He3(z1)", 1, "sigmoid"), EVEN]
)
@pytest.mark.parametrize("end", [0.3, 0.9])
def test_a_straight_line_has_the_drift_of_the_flow(problem, end):
    """Also near the start, where the drift is the small rest of large parts."""
    order = sx.escape_order(problem)
    line = escape_line(sx.PopulationRisk(problem), order, 0.01, end)
    x = np.concatenate([np.linspace(-end, end, 8), [1e-3, 0.01, 0.05]])
    sign = order.direction[0]
    exact = sign * drift_of(problem, 0.01)(sign * x[:, None])[:, 0]
    np.testing.assert_allclose(line.drift(x), exact, rtol=1e-7, atol=1e-9 * np.abs(exact).min())


def test_a_curved_line_is_the_flow():
    """The time along the line is that of ``gradient_flow``, with an encoding and a mixed direction of escape."""
    problem = mixed()
    order = sx.escape_order(problem)
    line = escape_line(sx.PopulationRisk(problem), order, 0.05, 0.5)
    assert line.low == pytest.approx(-line.high, rel=1e-3)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    low, high = math.log(0.1), math.log(line.high)
    x = np.exp(low + 0.5 * (high - low) * (nodes + 1.0))
    time = 0.5 * (high - low) * weights @ (x / line.drift(x))
    begin = 0.1 * order.direction
    flow = sx.gradient_flow(problem, begin[0], begin[1], None, 0.05, [1.1 * time], 0.5, rtol=1e-5)
    assert float(flow["recovery_time"]) == pytest.approx(time, rel=1e-2)


# Predictions against the exact chain ---------------------------------------------------------------------------------


def mixed():
    """An even student that learns an odd target through its encoding; SGD leaves along a mixture of m and e."""
    return sx.Problem(sx.Target("z1 - z2", 2), sx.Attention(2, sx.OppositeEncoding(), reduction="trace"))


CASES = {
    "first order": (tied("z1"), 10**4, 0.3, sx.Start.random(), 512, 1.05),
    "second order, random": (second(1), 2000, 0.25 * K / 2, sx.Start.random(), 1024, 1.2),
    "second order, zero": (second(1), 2000, 0.25 * K / 2, sx.Start.orthogonal(), 1024, 1.2),
    "second order, given": (second(4), 1000, 0.25 * K / 5, sx.Start.overlaps(0.03), 512, 1.25),
    "third order, ahead": (THIRD, 500, 0.05, sx.Start.overlaps(3 / math.sqrt(500)), 192, 1.5),
    "third order, random, far above the largest rate": (THIRD, 400, 0.1, sx.Start.random(), 256, 2.0),
    "attention without an encoding": (EVEN, 500, 0.03, sx.Start.orthogonal(), 128, 1.5),
    "mixed with an encoding": (mixed(), 300, 0.05, sx.Start.random(), 128, 1.5),
}


@pytest.mark.parametrize("name", CASES)
def test_the_law_of_the_exact_chain(name):
    """The whole distribution; times stretched by the last number are the control."""
    problem, dim, rate, start, replicas, stretch = CASES[name]
    found = sx.predicted_recovery(problem, dim, rate, 0.5, start)
    horizon = int(30 * found.mean)
    times = sx.hitting_time(problem, dim, rate, horizon, 0.5, replicas, seed=7, start=start, progress=False)
    assert (times.outcome == Outcome.RECOVERED).all()
    sample = times.time.values
    knots = np.geomspace(0.9 * sample.min(), 1.1 * stretch * sample.max(), 40)
    law = PchipInterpolator(knots, [found.probability(t) for t in knots])
    assert ks_1samp(sample, law).pvalue > LEVEL
    assert ks_1samp(stretch * sample, law).pvalue < LEVEL


@pytest.mark.parametrize("order", [1, 2])
def test_runs_below_and_above_the_rate_that_reaches(order):
    """First and second order: all runs recover at 0.8 of it, hardly any at 1.2 in ten times as long."""
    problem = tied("z1") if order == 1 else second(1)
    dim = 3000
    rate = sx.predicted_recovery(problem, dim, 0.1, 0.5).reaching_rate
    below, above = (
        sx.hitting_time(problem, dim, share * rate, 400_000, 0.5, 64, seed=1, progress=False) for share in (0.8, 1.2)
    )
    assert (below.outcome == Outcome.RECOVERED).all()
    assert (above.outcome == Outcome.CENSORED).all()
    assert sx.predicted_recovery(problem, dim, 0.8 * rate, 0.5).quantile(0.99) < 400_000
    assert sx.predicted_recovery(problem, dim, 1.2 * rate, 0.5).probability(400_000) < 1e-9


def test_the_largest_rate_of_order_three_is_no_wall():
    """Noise carries runs from the random start: five times beyond the largest rate all recover, and sooner."""
    slow = sx.predicted_recovery(THIRD, 400, threshold=0.5)
    fast = sx.predicted_recovery(THIRD, 400, 5.0 * slow.largest_rate, 0.5)
    assert fast.steps is None
    assert fast.median < 0.5 * slow.median
    times = sx.hitting_time(THIRD, 400, fast.learning_rate, 10**7, 0.5, 128, seed=2, progress=False)
    assert (times.outcome == Outcome.RECOVERED).all()
    # Median of 128: the share of runs below the predicted one, five standard errors.
    assert abs((times.time.values < fast.median).mean() - 0.5) < 5.0 * 0.5 / math.sqrt(128)


def test_a_threshold_of_one_is_refused():
    with pytest.raises(ValueError, match="threshold must be below 1"):
        sx.predicted_recovery(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1)), 100, threshold=1.0)
