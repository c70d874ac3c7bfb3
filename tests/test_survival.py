"""Statistics of censored times: published numbers, exact laws, and coverage of the intervals.

Coverage tests: 200 trials at 95 %; fewer than 178 hits have probability 3e-4 and 200 hits 4e-5 at exact coverage.
"""

import math

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from seqindex.outcome import Outcome
from seqindex.sgd import censored
from seqindex.sgd.scaling import FAMILIES, LAWS, growth_law, nearest_law, power_law
from seqindex.sgd.survival import median_ratio, median_time, restricted_mean, survival_curve


def dataset(time, outcome=None):
    outcome = np.zeros(len(time), dtype=np.int8) if outcome is None else np.asarray(outcome, dtype=np.int8)
    return xr.Dataset({"time": ("replica", np.asarray(time, dtype=float)), "outcome": ("replica", outcome)})


def watched(time, horizon):
    """Times as seen by one who stops at the horizon."""
    return dataset(np.minimum(time, horizon), np.where(time <= horizon, Outcome.RECOVERED, Outcome.CENSORED))


# Remission under 6-mercaptopurine, weeks: Freireich et al., Blood 21, 699 (1963).
REMISSION = dataset(
    [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35], [Outcome.RECOVERED] * 9 + [2] * 12
)


def test_published_curve():
    """Values and log-log intervals as printed in textbooks for these data."""
    curve = survival_curve(REMISSION.isel(replica=np.random.default_rng(0).permutation(21)))
    published = {
        6: (0.8571, 0.6197, 0.9516, 21),
        7: (0.8067, 0.5631, 0.9228, 17),
        10: (0.7529, 0.5032, 0.8894, 15),
        13: (0.6902, 0.4316, 0.8491, 12),
        16: (0.6275, 0.3675, 0.8049, 11),
        22: (0.5378, 0.2678, 0.7468, 7),
        23: (0.4482, 0.1881, 0.6801, 6),
        35: (0.4482, 0.1881, 0.6801, 1),
    }
    for time, (s, low, high, count) in published.items():
        row = curve.sel(time=time)
        np.testing.assert_allclose([row.survival, row.low, row.high], [s, low, high], atol=6e-5)
        assert int(row.watched) == count
    assert curve.attrs == {"level": 0.95, "replicas": 21, "censored": 12, "diverged": 0}
    assert median_time(REMISSION).value == 23
    assert restricted_mean(REMISSION, horizon=23).value == pytest.approx(17.909, abs=5e-4)
    assert restricted_mean(REMISSION).value == pytest.approx(23.287, abs=5e-4)  # to 35 weeks


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_without_censoring_these_are_the_plain_ones(n):
    time = np.random.default_rng(n).integers(1, 20, n).astype(float)  # with ties
    data = dataset(time)
    assert median_time(data).value == np.median(time)
    assert restricted_mean(data).value == pytest.approx(time.mean(), rel=1e-12)
    assert restricted_mean(data, horizon=9.5).value == pytest.approx(np.minimum(time, 9.5).mean(), rel=1e-12)
    assert restricted_mean(data, horizon=1e6).value == pytest.approx(time.mean(), rel=1e-12)
    curve = survival_curve(data)
    np.testing.assert_allclose(curve.survival, [(time > t).mean() for t in curve.time.values], atol=1e-12)
    assert (curve.low <= curve.survival).all()
    assert (curve.survival <= curve.high).all()


def test_what_lies_beyond_the_horizon_does_not_matter():
    time = np.random.default_rng(3).exponential(1.0, 101)
    seen = watched(time, 1.2)
    assert 20 < (seen.outcome == Outcome.CENSORED).sum() < 45
    assert median_time(seen).value == np.median(time)
    assert median_time(seen).high == median_time(dataset(time)).high
    assert restricted_mean(seen).value == pytest.approx(np.minimum(time, 1.2).mean(), rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_resampled_medians_follow_their_exact_law(level):
    """P(resampled median <= k-th time) = P(Bin(n, k/n) > n/2); one place off is allowed for 2000 resamples."""
    n = 41
    time = np.arange(1.0, n + 1)
    law = binom.sf(n // 2, n, np.arange(1, n + 1) / n)
    found = median_time(dataset(time), level)
    tail = 0.5 * (1 - level)
    assert abs(found.low - time[(law >= tail).argmax()]) <= 1
    assert abs(found.high - time[(law >= 1 - tail).argmax()]) <= 1


def test_undefined_median_is_said_to_be():
    data = dataset([1.0, 2.0, 9.0, 9.0, 9.0], [0, 0, 2, 2, 2])
    found = median_time(data)
    assert math.isnan(found.value)
    assert found.high == math.inf
    assert 1.0 <= found.low <= 9.0
    assert "fewer than half crossed" in found.reason
    assert median_time(dataset([9.0] * 5, [2] * 5)).low == 9.0
    assert median_time(dataset([1.0, 2.0, 9.0, 9.0], [0, 0, 2, 2])).value == 2.0  # half crossed
    assert math.isnan(median_time(dataset([1.0, 2.0, 9.0, 9.0, 9.0], [2, 2, 0, 2, 2])).value)


def test_diverged_are_left_out_and_counted():
    data = dataset([1.0, np.nan, 0.0, 4.0, np.nan], [0, 6, 1, 2, 6])
    without = data.isel(replica=[0, 2, 3])
    for statistic in (median_time, restricted_mean):
        found = statistic(data)
        assert (found.replicas, found.censored, found.diverged) == (3, 1, 2)
        assert found.value == statistic(without).value
        assert math.isfinite(found.value)
    assert survival_curve(data).attrs["diverged"] == 2
    assert restricted_mean(data).value == pytest.approx((1 + 0 + 4) / 3)
    with pytest.raises(ValueError, match=r"^times must hold a replica that did not diverge, got 2"):
        median_time(data.isel(replica=[1, 4]))


def test_ratios_without_a_value_keep_their_bounds():
    fast, slow = dataset([4.0] * 9), dataset([100.0] * 9, [2] * 9)
    found = median_ratio(slow, fast)
    assert (math.isnan(found.value), found.low, found.high) == (True, 25.0, math.inf)
    found = median_ratio(fast, slow)
    assert (math.isnan(found.value), found.low, found.high) == (True, 0.0, 0.04)
    found = median_ratio(slow, slow)
    assert (math.isnan(found.value), found.low, found.high) == (True, 0.0, math.inf)
    assert "numerator and denominator" in found.reason
    assert "started above" in median_ratio(fast, dataset([0.0] * 9, [1] * 9)).reason


def hits(trial):
    """How many of 200 trials cover."""
    return sum(trial(np.random.default_rng(seed)) for seed in range(200))


def test_coverage_of_medians_means_and_ratios(monkeypatch):
    """Exponential times, a quarter censored; the ratio's numerator has mean 3."""
    monkeypatch.setattr(censored, "RESAMPLES", 500)
    horizon = math.log(4.0)

    def cover(rng):
        one, three = watched(rng.exponential(1.0, 60), horizon), watched(rng.exponential(3.0, 60), 3 * horizon)
        ratio = median_ratio(three, one)
        median, mean = median_time(one), restricted_mean(one, horizon * 0.99)
        truth = 1.0 - math.exp(-horizon * 0.99)
        return np.array(
            [
                median.low <= math.log(2.0) <= median.high,
                mean.low <= truth <= mean.high,
                ratio.low <= 3.0 <= ratio.high,
            ]
        )

    found = hits(cover)
    assert (found >= 178).all(), found
    assert (found < 200).all(), found


DIMENSIONS = [100, 200, 400, 800, 1600]


def noisy(rng, typical, replicas=40, noise=0.2):
    """Log-normal times of that median, one in ten censored."""
    time = typical * np.exp(noise * rng.standard_normal(replicas))
    return watched(time, typical * math.exp(1.2815515655 * noise))


@pytest.mark.parametrize("name", LAWS)
def test_the_right_law_and_the_slope(name, monkeypatch):
    monkeypatch.setattr(censored, "RESAMPLES", 200)
    typical = LAWS[name](np.array(DIMENSIONS, dtype=float))
    truth = np.polyfit(np.log(DIMENSIONS), np.log(typical), 1)[0]

    def cover(rng):
        times = [noisy(rng, one) for one in typical]
        fit = power_law(DIMENSIONS, times)
        if name == "d log d":
            assert fit.exponent > 1.05  # no straight line tells this from a power; the law does
        law = nearest_law(DIMENSIONS, times)
        assert abs(sum(law.support.values()) - 1.0) < 1e-12
        return np.array([fit.low <= truth <= fit.high, law.name == name])

    found, right = hits(cover)
    assert 178 <= found < 200
    assert right >= 198


def test_slopes_of_ratios():
    rng = np.random.default_rng(0)
    slow = [noisy(rng, 7.0 * x**2, 400, 0.05) for x in DIMENSIONS]
    fast = [noisy(rng, 3.0 * x, 400, 0.05) for x in DIMENSIONS]
    fit = power_law(DIMENSIONS, slow, over=fast)
    assert fit.low < 1.0 < fit.high
    assert fit.high - fit.low < 0.02
    assert power_law(DIMENSIONS, fast, over=slow).exponent == -fit.exponent


GROWTH = {"d": 0.0, "d (log d + c)": -2.0, "d (log d + c)^2": 3.0, "d^p": 2.0}


@pytest.mark.parametrize("name", GROWTH)
def test_the_criterion_finds_the_law_and_its_constant(name):
    """Five decades of d, 256 replicas a dimension; misfits of the true law follow chi-square (mean within 5 sigma)."""
    d = np.geomspace(1e2, 1e6, 6)
    typical = FAMILIES[name][0](d, GROWTH[name])
    rng = np.random.default_rng(len(name))
    misfits = []
    for _ in range(6):
        found = growth_law(d, [dataset(one * np.exp(0.3 * rng.standard_normal(256))) for one in typical])
        misfits.append(found.misfit[name])
        # A power near 1 is a rival of d that costs one constant only.
        assert found.name == name or (name == "d" and found.criterion["d"] - found.criterion[found.name] < 10.0)
        assert found.decided == (name != "d")
        if name != "d":
            assert found.constant[name] == pytest.approx(GROWTH[name], abs=0.7)
    freedom = found.freedom[name]
    # Errors of medians from resampling are a little uneven, hence the factor.
    assert 0.4 * freedom < np.mean(misfits) < 1.5 * freedom + 5.0 * math.sqrt(2.0 * freedom / 6)
    assert growth_law(d, [dataset([one] * 9) for one in d * np.log(d)]).misfit["d"] > 1e6


def test_exact_d_log_d_has_slope_117():
    d = np.array(DIMENSIONS, dtype=float)
    fit = power_law(d, [dataset([one] * 3) for one in d * np.log(d)])
    assert fit.exponent == pytest.approx(1.17, abs=5e-3)
    assert fit.low == pytest.approx(fit.high, abs=1e-12)


def test_lengths_that_do_not_recover_are_left_out():
    times = [dataset([10.0 * x] * 9) for x in (1, 4, 16)]
    lost = dataset([99.0] * 9, [0] * 3 + [2] * 6)
    fit = power_law([1, 4, 16, 64], [*times, lost])
    assert fit.x == (1.0, 4.0, 16.0)
    assert fit.left_out == (64.0,)
    assert fit.exponent == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(ValueError, match=r"^times must bound the median at two x or more, got 1 of 3"):
        power_law([1, 4, 16], [times[0], lost, lost])


def test_a_warning_below_one_decade():
    times = [dataset([10.0 * x] * 9) for x in (1, 9)]
    with pytest.warns(UserWarning, match="x spans a factor of 9 only"):
        power_law([1, 9], times)
    power_law([1, 10], times)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: median_time(3), TypeError, "times must be a Dataset"),
        (lambda: median_time(xr.Dataset()), ValueError, "times must hold 'time' over replica"),
        (lambda: median_time(REMISSION, level=1), ValueError, "level must be below 1"),
        (lambda: restricted_mean(REMISSION, horizon=36), ValueError, "horizon must be at most 35"),
        (lambda: power_law([1, -2], [REMISSION] * 2), ValueError, "x must be positive and distinct"),
        (lambda: power_law([1, 2, 3], [REMISSION] * 2), ValueError, "times must hold one Dataset for each of the 3 x"),
        (lambda: power_law([1, 20], [REMISSION] * 2, [REMISSION]), ValueError, "over must hold one Dataset"),
        (lambda: growth_law([1, 2, 3, 4], [dataset([1, 2])] * 4), ValueError, "x must hold four or more above 1"),
        (lambda: nearest_law([1, 2], [dataset([1, 2])] * 2), ValueError, "laws must be positive at every x"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
