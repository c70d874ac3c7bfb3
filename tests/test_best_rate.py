"""The measured best rate: parabolas, intervals, edges, the search, and the rates that theory says are best."""

import math

import numpy as np
import pytest
import xarray as xr

import seqindex as sx
from seqindex.outcome import Outcome


def sample(times, horizon=math.inf):
    """Recovery times, censored at a horizon."""
    times = np.asarray(times, dtype=float)
    outcome = np.where(
        np.isnan(times), Outcome.DIVERGED, np.where(times > horizon, Outcome.CENSORED, Outcome.RECOVERED)
    )
    return xr.Dataset(
        {"time": ("replica", np.minimum(times, horizon)), "outcome": ("replica", outcome.astype(np.int8))}
    )


RATES = [0.05, 0.1, 0.3, 0.5, 0.8]


def parabola(rate, best=0.23, least=100.0, curvature=0.7):
    return least * np.exp(curvature * np.log(rate / best) ** 2)


def test_the_vertex_of_an_exact_parabola():
    found = sx.best_of_rates(RATES, [sample([parabola(rate)] * 5) for rate in RATES])
    assert float(found.best_rate) == pytest.approx(0.23, rel=1e-12)
    assert float(found.fewest_steps) == pytest.approx(100.0, rel=1e-12)
    assert float(found.best_rate_low) == pytest.approx(0.23, rel=1e-12)
    assert found.attrs["reason"] == ""
    assert found.support.values.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_rates_in_any_order():
    order = [3, 0, 4, 1, 2]
    rng = np.random.default_rng(0)
    samples = [sample(rng.exponential(parabola(rate), 40)) for rate in RATES]
    shuffled = sx.best_of_rates([RATES[i] for i in order], [samples[i] for i in order])
    xr.testing.assert_identical(shuffled, sx.best_of_rates(RATES, samples))


def test_intervals_cover_the_truth():
    """At level 0.9 at least 36 of 50 experiments cover it, and their intervals are no wider than a third of it.

    False alarm of the first: 4e-5 at a coverage of 0.9.
    """
    rng = np.random.default_rng(1)
    rates = [0.1, 0.16, 0.23, 0.33, 0.5]
    hits, widths = 0, []
    for number in range(50):
        samples = [sample(parabola(rate, curvature=2.0) * rng.lognormal(0.0, 0.5, 40)) for rate in rates]
        found = sx.best_of_rates(rates, samples, level=0.9, seed=number)
        hits += bool(found.best_rate_low <= 0.23 <= found.best_rate_high)
        widths.append(float(found.best_rate_high - found.best_rate_low))
    assert hits >= 36
    assert np.median(widths) < 0.08


@pytest.mark.parametrize(("best", "side"), [(0.01, "lowest"), (5.0, "highest")])
def test_a_best_rate_beyond_the_grid_is_not_made_up(best, side):
    found = sx.best_of_rates(RATES, [sample([parabola(rate, best)] * 5) for rate in RATES])
    assert math.isnan(found.best_rate)
    assert math.isnan(found.fewest_steps)
    assert f"the {side} rate has the least median" in found.attrs["reason"]
    assert bool(found.best_rate_low <= best <= found.best_rate_high)
    assert bool(found.fewest_steps_low <= 100.0 <= found.fewest_steps_high)


def test_censored_and_diverged_replicas_are_counted_and_never_averaged():
    times = [sample([50.0, 60.0, 900.0, 900.0, 900.0], 500.0), sample([30.0, 40.0, 41.0, np.nan]), sample([np.nan] * 3)]
    found = sx.best_of_rates([0.1, 0.2, 0.4], times)
    assert found["median"].values.tolist()[1] == 40.0
    assert np.isnan(found["median"].values[[0, 2]]).all()
    assert found.recovered.values.tolist() == [0.4, 0.75, 0.0]
    assert found.censored.values.tolist() == [0.6, 0.0, 0.0]
    assert found.diverged.values.tolist() == [0.0, 0.25, 1.0]
    assert float(found.best_rate) == 0.2, "without finite neighbours the rate itself"
    nothing = sx.best_of_rates([0.1, 0.2, 0.4], [times[0], times[0], times[2]])
    assert nothing.attrs["reason"] == "at no rate did half of the replicas cross"
    assert (float(nothing.best_rate_low), float(nothing.best_rate_high)) == (0.0, math.inf)


# Against closed forms

MEAN = "sum(z)/sqrt(L)"


def steps_of_the_mean(rate, threshold=0.2):
    """Steps over d of the relu network with g = L^{-1/2} sum z from m = 0, dm/dt = (1 - m)(1 + (1 - 2 gamma) m)."""
    b = 1.0 - 2.0 * rate
    return np.log((1.0 + b * threshold) / (1.0 - threshold)) / (1.0 + b) / rate


def test_the_search_finds_the_best_rate_of_both_networks():
    """Closed form: 2.08 for either, where the untied network needs L times the steps; intervals of level 1 - 1e-4."""
    grid = np.linspace(1.5, 2.7, 10_001)
    best = grid[steps_of_the_mean(grid).argmin()]
    fewest = 4000.0 * steps_of_the_mean(best)
    for factor, student in ((1, sx.TiedNetwork(4)), (4, sx.UntiedNetwork(4))):
        problem = sx.Problem(sx.Target(MEAN, 4), student)
        found = sx.measured_best_rate(problem, 4000, 10**5, replicas=128, seed=2, level=1 - 1e-4, progress=False)
        # The parabola through rates sqrt(2) apart is not the curve: up to 10 % of the rate, 3 % of the steps.
        assert found.best_rate_low / 1.1 < best < found.best_rate_high * 1.1
        assert found.fewest_steps_low / 1.03 < factor * fewest < found.fewest_steps_high * 1.03
        assert float(found.best_rate_high / found.best_rate_low) < 1.5
        # A factor of L in the rate, as between the published bounds, is excluded.
        assert not found.best_rate_low < best / 2.0 < found.best_rate_high
        assert found.attrs["threshold"] == 0.2
        assert "learning_rate" not in found.attrs


def test_the_given_rates_are_measured_with_the_times_of_hitting_time():
    problem = sx.Problem(sx.Target(MEAN, 2), sx.TiedNetwork(2))
    arguments = {"threshold": 0.3, "replicas": 20, "seed": 3, "progress": False}
    found = sx.measured_best_rate(problem, 200, 300, [0.5, 1.0, 2.0], **arguments)
    for rate in (0.5, 1.0, 2.0):
        times = sx.hitting_time(problem, 200, rate, 300, **arguments)
        assert float(found.censored.sel(rate=rate)) == float((times.outcome == Outcome.CENSORED).mean())
        median = sx.median_time(times).value
        assert np.array_equal(float(found["median"].sel(rate=rate)), median, equal_nan=True)


@pytest.mark.parametrize(
    ("rates", "error", "message"),
    [
        ([0.1, 0.2], ValueError, r"^rates must be at least three distinct positive numbers, got \[0.1, 0.2\]$"),
        ([0.1, 0.2, 0.2], ValueError, r"^rates must be at least three distinct positive numbers"),
        ([0.1, 0.0, 0.2], ValueError, r"^rates must be at least three distinct positive numbers"),
        ("fast", TypeError, r"^rates must be an array of numbers of shape \(any,\), got 'fast'$"),
    ],
)
def test_bad_rates(rates, error, message):
    problem = sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1))
    with pytest.raises(error, match=message):
        sx.measured_best_rate(problem, 100, 100, rates)


def test_bad_samples():
    with pytest.raises(ValueError, match=r"^times must hold one Dataset for each of the 5 rates, got 1$"):
        sx.best_of_rates(RATES, [sample([1.0])])
    with pytest.raises(ValueError, match=r"^level must be below 1"):
        sx.best_of_rates(RATES, [sample([1.0])] * 5, level=1.0)
    with pytest.raises(ValueError, match=r"^steps must be at least 1, got 0$"):
        sx.measured_best_rate(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1)), 100, 0)
