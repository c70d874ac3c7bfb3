"""The learning rate that needs fewest steps to recovery, measured: median steps against the rate, and their minimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.outcome import Outcome
from seqindex.progress import Advance
from seqindex.sgd.censored import RESAMPLES, Sample, checked_level, interval
from seqindex.sgd.hitting import hitting_time
from seqindex.sgd.start import Start

Array = NDArray[np.float64]

_OUTCOMES = {
    "recovered": (Outcome.RECOVERED, Outcome.ALREADY_ABOVE),
    "censored": (Outcome.CENSORED,),
    "diverged": (Outcome.DIVERGED,),
}
_TRIES = 30
"""Rates of the coarse search, a factor of two apart."""
_PATIENCE = 8
"""The search watches a rate for so many times the least median known."""


def measured_best_rate(
    problem: Problem,
    dim: int,
    steps: int,
    rates: ArrayLike | None = None,
    threshold: float = 0.2,
    replicas: int = 64,
    seed: int = 0,
    start: Start | None = None,
    batch: int = 1,
    level: float = 0.95,
    workers: int | None = None,
    progress: bool | Advance | None = None,
) -> xr.Dataset:
    """Median steps to recovery at several learning rates, and the rate that needs fewest.

    Args:
        problem: see ``seqindex.sgd``, as for all arguments that are not named here.
        dim: dimension d.
        steps: horizon T; a replica that has not crossed by then is censored.
        rates: learning rates, distinct and at least three; None for a search: rates a factor of two apart, from one at
            which the noise is of the order of the pull on, until the least median is between two others, then two more
            around it.  It watches no rate for longer than eight times the least median known.
        threshold: size of the overlap, "overlap_norm" of ``sgd``, in (0, 1].
        replicas: number of independent runs at every rate.
        seed: seed of the streams.
        start: law of the start; None for ``Start.random()``.
        batch: mini-batch size.
        level: nominal coverage of the intervals.
        workers: threads; None for all processors.
        progress: as in ``sgd``.

    Returns:
        See ``best_of_rates``.

    Raises:
        ValueError, TypeError: a bad argument, named in one line; see ``hitting_time``.
        Interrupted: on Ctrl-C.

    Example:
        >>> problem = sx.Problem(sx.Target("He2(z1)", 1), sx.TiedNetwork(1))  # gamma_c = 1 / sqrt(pi)
        >>> found = measured_best_rate(problem, dim=300, steps=10**6, rates=[0.1, 0.2, 0.3, 0.4, 0.5], threshold=0.5)
        >>> found.sizes["rate"], 0.2 < float(found.best_rate) < 0.4, bool(found.best_rate_high > found.best_rate_low)
        (5, True, True)
    """
    level = checked_level(level)
    settings = {"replicas": replicas, "seed": seed, "start": start, "batch": batch, "workers": workers}

    def measure(rate: float, horizon: int) -> xr.Dataset:
        return hitting_time(problem, dim, rate, horizon, threshold, progress=progress, **settings)  # type: ignore[arg-type]

    if rates is None:
        steps = check.integer("steps", steps, 1)
        batch = check.integer("batch", batch, 1)
        times = _search(measure, batch / _noise(problem), steps)
    else:
        times = {rate: measure(rate, steps) for rate in _checked(rates)}
    found = best_of_rates(list(times), list(times.values()), level)
    kept = next(iter(times.values())).attrs
    return found.assign_attrs({key: value for key, value in kept.items() if key not in ("learning_rate", "steps")})


def best_of_rates(rates: ArrayLike, times: Sequence[xr.Dataset], level: float = 0.95, seed: int = 0) -> xr.Dataset:
    """The rate of the least median recovery time: the vertex of a parabola in logarithms through it and its neighbours.

    Args:
        rates: learning rates, distinct and at least three.
        times: for each a Dataset from ``hitting_time`` or ``recovery_time``.
        level: nominal coverage of the intervals.
        seed: seed of the resampling.

    Returns:
        Dataset over rate, in increasing order: "median" steps with "median_low" and "median_high" (see
        ``median_time``), the shares "recovered" (or above the threshold from the start), "censored" and "diverged", and
        "support", the share of resamples in which the rate has the least median.  Scalars: "best_rate" and
        "fewest_steps" with "_low" and "_high" from resampling the replicas of every rate.  Where the least median
        is that of the lowest or highest rate, the best one may lie beyond it: "best_rate" is NaN, its interval open on
        that side, and the attribute "reason" says so.

    Raises:
        TypeError, ValueError: arguments that do not fit together; see ``median_time``.

    Example:
        >>> def sample(time):
        ...     return xr.Dataset({"time": ("replica", [time] * 3), "outcome": ("replica", [0, 0, 0])})
        >>> found = best_of_rates([0.1, 0.2, 0.4], [sample(time) for time in (30.0, 20.0, 30.0)])
        >>> round(float(found.best_rate), 12), round(float(found.fewest_steps), 9), found.support.values.tolist()
        (0.2, 20.0, [0.0, 1.0, 0.0])
    """
    given = _checked(rates)
    level = checked_level(level)
    if len(times) != len(given):
        raise ValueError(f"times must hold one Dataset for each of the {len(given)} rates, got {len(times)}")
    order = np.argsort(given)
    rate, ordered = np.array(given)[order], [times[i] for i in order]
    rng = np.random.default_rng(seed)
    medians = [_medians(one, level, rng) for one in ordered]
    value, low, high = np.array([one[:3] for one in medians]).T
    here, drawn = _Least(rate, value[None]), _Least(rate, np.stack([one[3] for one in medians], axis=1))
    variables: dict[str, Any] = {
        "median": ("rate", np.where(value < math.inf, value, math.nan), {"long_name": "median steps to recovery"}),
        "median_low": ("rate", low),
        "median_high": ("rate", high),
        "support": ("rate", np.bincount(drawn.place[drawn.found], minlength=len(rate)) / len(drawn.place)),
        "best_rate": here.rate[0] if here.inside[0] else math.nan,
        "fewest_steps": here.steps[0] if here.inside[0] else math.nan,
    }
    variables["best_rate_low"], variables["best_rate_high"] = interval(*drawn.rate_bounds, level)
    variables["fewest_steps_low"], variables["fewest_steps_high"] = interval(*drawn.steps_bounds, level)
    for name, outcomes in _OUTCOMES.items():
        variables[name] = ("rate", [float(np.isin(one["outcome"].values, outcomes).mean()) for one in ordered])
    reason = ""
    if not here.found[0]:
        reason = "at no rate did half of the replicas cross"
    elif not here.inside[0]:
        end = "lowest" if here.place[0] == 0 else "highest"
        reason = f"the {end} rate has the least median: the best one may lie beyond it"
    attrs = {"level": level, "replicas": int(ordered[0].sizes["replica"]), "reason": reason}
    return xr.Dataset(variables, {"rate": rate}, attrs)


class _Least:
    """Where rows of medians, (n, rates), are least.

    Args:
        rate: in increasing order.
        medians: infinite beyond what was watched.

    Attributes:
        place: index of the least median.
        found: whether there is one.
        inside: whether it is neither the first nor the last.
        rate, steps: at the vertex of the parabola through it and its neighbours, or itself where one is infinite.
    """

    def __init__(self, rate: Array, medians: Array) -> None:
        n, count = medians.shape
        self.place = medians.argmin(1)
        least = medians[np.arange(n), self.place]
        self.found = least < math.inf
        self.inside = self.found & (self.place > 0) & (self.place < count - 1)
        middle = np.clip(self.place, 1, count - 2)
        around = middle[:, None] + np.array([-1, 0, 1])
        x = np.log(rate)[around]
        y = np.take_along_axis(medians, around, axis=1)
        curved = self.inside & (y < math.inf).all(1) & (y > 0.0).all(1)
        y = np.log(np.where(curved[:, None], y, 1.0))
        left, right = x[:, 1] - x[:, 0], x[:, 2] - x[:, 1]
        rise, fall = (y[:, 2] - y[:, 1]) / right, (y[:, 1] - y[:, 0]) / left
        bend = (rise - fall) / (left + right)  # half the second derivative
        slope = (rise * left + fall * right) / (left + right)  # at the middle
        curved &= bend > 0.0
        move = np.where(curved, -0.5 * slope / np.where(curved, bend, 1.0), 0.0)
        self.rate: Array = np.where(curved, np.exp(x[:, 1] + move), rate[self.place])
        self.steps: Array = np.where(curved, np.exp(y[:, 1] + 0.5 * slope * move), least)
        self._first = ~self.found | (self.place == 0)
        self._last = ~self.found | (self.place == count - 1)

    @property
    def rate_bounds(self) -> tuple[Array, Array]:
        """Lowest and highest that the best rate can be: open beyond the first and the last rate."""
        return np.where(self._first, 0.0, self.rate), np.where(self._last, math.inf, self.rate)

    @property
    def steps_bounds(self) -> tuple[Array, Array]:
        """Fewest and most that the least number of steps can be."""
        return np.where(self.inside, self.steps, 0.0), np.where(self.found, self.steps, math.inf)


def _medians(times: xr.Dataset, level: float, rng: np.random.Generator) -> tuple[float, float, float, Array]:
    """Median with its interval and its resamples, infinite beyond what was watched or where all replicas diverged."""
    if (times["outcome"] == Outcome.DIVERGED).all():
        return math.inf, 0.0, math.inf, np.full(RESAMPLES, math.inf)
    sample = Sample(times)
    draws = sample.resampled(sample.median, rng)
    low, high = interval(draws, draws, level)
    return sample.plain(sample.median), min(low, float(sample.time[-1])), high, draws


def _checked(rates: ArrayLike) -> list[float]:
    found = check.array("rates", rates, (None,))
    if len(found) < 3 or len(np.unique(found)) < len(found) or (found <= 0.0).any():
        raise ValueError(f"rates must be at least three distinct positive numbers, got {check.shown(found.tolist())}")
    return [float(rate) for rate in found]


def _noise(problem: Problem) -> float:
    """E |c|^2 of one sample at the start, where z* and z are independent; good to a factor, as a first guess needs."""
    length = problem.length
    zstar, z = np.random.default_rng(0).standard_normal((2, max(2**8, 2**18 // length), length))
    c = problem.field_gradient(zstar, z)
    size = float(np.nanmean(np.where(np.isfinite(c), c, math.nan) ** 2) * length)
    if not 0.0 < size < math.inf:
        raise ValueError(f"problem must have a gradient of finite size at the start for a search, got E |c|^2 = {size}")
    return size


def _search(measure: Callable[[float, int], xr.Dataset], first: float, steps: int) -> dict[float, xr.Dataset]:
    """Recovery times at rates ``first`` 2^i with the least median inside, and at sqrt(2) times and over its rate."""
    times: dict[float, xr.Dataset] = {}
    medians: dict[float, float] = {}

    def look(place: float) -> float:
        if place not in medians:
            known = min(medians.values(), default=math.inf)
            horizon = steps if known == math.inf else min(steps, max(1, math.ceil(_PATIENCE * known)))
            found = measure(first * 2.0**place, horizon)
            times[place] = found
            broken = bool((found["outcome"] == Outcome.DIVERGED).all())
            sample = None if broken else Sample(found)
            medians[place] = math.inf if sample is None else sample.plain(sample.median)
        return medians[place]

    best = 0.0
    while len(medians) < _TRIES:
        # Too high a rate never recovers: go down, until one does and its neighbours do worse.
        if look(best) == math.inf or look(best - 1.0) < look(best):
            best -= 1.0
        elif look(best + 1.0) < look(best):
            best += 1.0
        else:
            look(best - 0.5)
            look(best + 0.5)
            break
    return {first * 2.0**place: found for place, found in sorted(times.items())}
