"""Statistics of recovery times that know that a censored replica crosses later, if ever; see ``censored``."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtri

from seqindex import check
from seqindex.sgd.censored import Estimate, Sample, checked_level, interval

Array = NDArray[np.float64]


def survival_curve(times: xr.Dataset, level: float = 0.95) -> xr.Dataset:
    """Product-limit (Kaplan-Meier) estimate of the probability not to have crossed by a time.

    Args:
        times: Dataset with "time" and "outcome" over replica, from ``hitting_time`` or ``recovery_time``.
        level: nominal coverage of the pointwise intervals (Greenwood's variance of log(-log S)).

    Returns:
        Dataset over "time", 0 and the distinct times of crossing or censoring, with "survival", "low", "high" and
        "watched", the number not yet crossed or censored just before; attributes "replicas", "censored", "diverged".

    Raises:
        TypeError, ValueError: see ``Sample``.

    Example:
        >>> times = xr.Dataset({"time": ("replica", [2.0, 3.0, 5.0, 5.0]), "outcome": ("replica", [0, 0, 0, 2])})
        >>> curve = survival_curve(times)
        >>> curve.time.values.tolist(), curve.survival.values.tolist(), curve.watched.values.tolist()
        ([0.0, 2.0, 3.0, 5.0], [1.0, 0.75, 0.5, 0.25], [4, 4, 3, 2])
    """
    level = checked_level(level)
    sample = Sample(times)
    n = len(sample.time)
    moments = np.unique(np.concatenate([[0.0], sample.time]))
    before = np.searchsorted(sample.time, moments, side="left")
    until = np.searchsorted(sample.time, moments, side="right")
    s = np.concatenate([[1.0], sample.survival(np.ones(n))])[until]
    watched = n - before
    events = np.concatenate([[0], np.cumsum(sample.crossed)])
    crossings = events[until] - events[before]
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(crossings / (watched * (watched - crossings)))
        spread = float(ndtri(0.5 * (1.0 + level))) * np.sqrt(variance) / np.log(s)
        low, high = s ** np.exp(-spread), s ** np.exp(spread)
    certain = s == 1.0  # nobody crossed yet: Greenwood's variance is zero, and the interval is one-sided
    low, high = np.where(certain, (1.0 - level) ** (1.0 / n), low), np.where(certain, 1.0, high)
    gone = s == 0.0
    low, high = np.where(gone, 0.0, low), np.where(gone, 1.0 - (1.0 - level) ** (1.0 / n), high)
    variables = {"survival": s, "low": low, "high": high, "watched": watched}
    attrs = {"level": level, "replicas": n, "censored": int((~sample.crossed).sum()), "diverged": sample.diverged}
    return xr.Dataset({name: ("time", value) for name, value in variables.items()}, {"time": moments}, attrs)


def median_time(times: xr.Dataset, level: float = 0.95, seed: int = 0) -> Estimate:
    """Median of the recovery time; undefined where fewer than half of the replicas crossed.

    Args:
        times: Dataset with "time" and "outcome" over replica, from ``hitting_time`` or ``recovery_time``.
        level: nominal coverage of the interval.
        seed: seed of the resampling.

    Raises:
        TypeError, ValueError: see ``Sample``.

    Example:
        >>> times = xr.Dataset({"time": ("replica", [2.0, 9.0, 9.0]), "outcome": ("replica", [0, 2, 2])})
        >>> median_time(times).reason
        'fewer than half crossed: the median is beyond the last step watched'
    """
    level = checked_level(level)
    sample = Sample(times)
    draws = sample.resampled(sample.median, np.random.default_rng(seed))
    low, high = interval(draws, draws, level)
    value = sample.plain(sample.median)
    low = min(low, float(sample.time[-1]))  # where even this is infinite, the median lies beyond what was watched
    if value < math.inf:
        return sample.estimate(value, low, high, level)
    return sample.estimate(
        math.nan, low, math.inf, level, "fewer than half crossed: the median is beyond the last step watched"
    )


def restricted_mean(times: xr.Dataset, horizon: float | None = None, level: float = 0.95, seed: int = 0) -> Estimate:
    """Mean of min(recovery time, horizon), the integral of the survival function up to the horizon.

    Args:
        times: Dataset with "time" and "outcome" over replica, from ``hitting_time`` or ``recovery_time``.
        horizon: None for the longest time watched; with no replica censored this gives the plain mean.
        level: nominal coverage of the interval.
        seed: seed of the resampling.

    Raises:
        TypeError: see ``Sample``.
        ValueError: a horizon up to which no replica was watched, where some have not crossed; see ``Sample``.

    Example:
        >>> times = xr.Dataset({"time": ("replica", [2.0, 4.0, 9.0]), "outcome": ("replica", [0, 0, 2])})
        >>> restricted_mean(times).value, round(restricted_mean(times, horizon=3).value, 6)
        (5.0, 2.666667)
    """
    level = checked_level(level)
    sample = Sample(times)
    longest = float(sample.time[-1])
    if horizon is None:
        horizon = longest
    horizon = check.number("horizon", horizon, 0.0)
    if horizon > longest and not sample.crossed[-1]:
        raise ValueError(f"horizon must be at most {longest:g}, the longest time watched, got {horizon:g}")
    statistic = sample.restricted_mean(horizon)
    draws = sample.resampled(statistic, np.random.default_rng(seed))
    return sample.estimate(sample.plain(statistic), *interval(draws, draws, level), level)


def median_ratio(times: xr.Dataset, over: xr.Dataset, level: float = 0.95, seed: int = 0) -> Estimate:
    """Ratio of two median recovery times, median(times) / median(over): the gain of the second over the first.

    Args:
        times: numerator, from ``hitting_time`` or ``recovery_time``.
        over: denominator, of replicas independent of those of ``times``.
        level: nominal coverage of the interval.
        seed: seed of the resampling.

    Returns:
        Estimate whose numbers of replicas are sums over both.  Where the numerator is undefined ``low`` still bounds
        the ratio from below.

    Raises:
        TypeError, ValueError: see ``Sample``.

    Example:
        >>> slow = xr.Dataset({"time": ("replica", [20.0, 30.0, 40.0]), "outcome": ("replica", [0, 0, 2])})
        >>> fast = xr.Dataset({"time": ("replica", [5.0, 6.0, 7.0]), "outcome": ("replica", [0, 0, 0])})
        >>> median_ratio(slow, fast).value
        5.0
    """
    level = checked_level(level)
    above, below = Sample(times), Sample(over)
    rng = np.random.default_rng(seed)
    top, bottom = above.resampled(above.median, rng), below.resampled(below.median, rng)
    # A median beyond the horizon is anything from there up.
    with np.errstate(divide="ignore", invalid="ignore"):
        least, most = np.minimum(top, above.time[-1]) / bottom, top / np.minimum(bottom, below.time[-1])
    low, high = interval(np.where(np.isnan(least), 0.0, least), np.where(np.isnan(most), math.inf, most), level)
    value, divisor = above.plain(above.median), below.plain(below.median)
    reason = ""
    if value == math.inf or divisor == math.inf:
        which = " and ".join(name for name, one in (("numerator", value), ("denominator", divisor)) if one == math.inf)
        reason = f"fewer than half crossed in the {which}"
    elif divisor == 0.0:
        reason = "at least half started above the threshold in the denominator"
    ratio = math.nan if reason else value / divisor
    return Estimate(
        ratio,
        low,
        high,
        level,
        len(above.time) + len(below.time),
        int((~above.crossed).sum() + (~below.crossed).sum()),
        above.diverged + below.diverged,
        reason,
    )
