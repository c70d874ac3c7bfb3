"""Times of which some are only known to lie beyond the end of a watch: survival function, resampling, intervals.

A replica that was censored at T enters as "later than T", by the product-limit estimator of the survival function,
S(t) = prod over crossings t_i <= t of (1 - 1 / number still watched at t_i), ties one after the other (Kaplan and
Meier, J. Am. Stat. Assoc. 53, 457, 1958).  One that started above the threshold crossed at 0.  One that diverged tells
nothing of when it would have crossed: it is left out and counted.  Intervals come from drawing replicas anew, each with
what became of it (Efron, J. Am. Stat. Assoc. 76, 312, 1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from seqindex import check
from seqindex.outcome import Outcome

Array = NDArray[np.float64]

RESAMPLES = 2000
_CROSSED = (Outcome.RECOVERED, Outcome.ALREADY_ABOVE)
_CLOSE = 1e-9  # survival functions are products of fractions


@dataclass(frozen=True)
class Estimate:
    """A number from replicas, with its interval.

    Attributes:
        value: the estimate; NaN where the data leave it undefined.
        low: lower end of the interval; a lower bound even where the value is undefined.
        high: upper end; infinite where the data set no bound.
        level: nominal coverage of the interval.
        replicas: how many entered.
        censored: how many of these were censored.
        diverged: how many were left out because they diverged.
        reason: why the value is undefined, else empty.
    """

    value: float
    low: float
    high: float
    level: float
    replicas: int
    censored: int
    diverged: int
    reason: str = ""


class Sample:
    """Times in order, crossings before censorings at the same time.

    Args:
        times: Dataset with "time" and "outcome" over replica, from ``hitting_time`` or ``recovery_time``.

    Raises:
        TypeError, ValueError: something else, or no replica that did not diverge.
    """

    def __init__(self, times: xr.Dataset) -> None:
        if not isinstance(times, xr.Dataset):
            raise TypeError(f"times must be a Dataset such as hitting_time returns, got {check.shown(times)}")
        for name in ("time", "outcome"):
            if name not in times or times[name].dims != ("replica",):
                raise ValueError(f"times must hold {name!r} over replica alone, got {check.shown(dict(times.sizes))}")
        time, outcome = times["time"].values.astype(np.float64), times["outcome"].values
        kept = outcome != Outcome.DIVERGED
        self.diverged = int((~kept).sum())
        if not kept.any():
            raise ValueError(f"times must hold a replica that did not diverge, got {self.diverged} that did")
        crossed = np.isin(outcome, _CROSSED)[kept]
        order = np.lexsort((~crossed, time[kept]))
        self.time: Array = time[kept][order]
        self.crossed: NDArray[np.bool_] = crossed[order]

    def survival(self, weights: Array) -> Array:
        """S after each time, for replicas that count ``weights`` times, shape (..., n)."""
        watched = np.cumsum(weights[..., ::-1], axis=-1)[..., ::-1]
        lost = np.divide(weights, watched, out=np.zeros_like(watched), where=watched > 0)
        return np.asarray(np.cumprod(np.where(self.crossed, 1.0 - lost, 1.0), axis=-1), dtype=np.float64)

    def resampled(self, statistic: Callable[[Array], Array], rng: np.random.Generator) -> Array:
        """A statistic of S, (k, n) -> (k,), for RESAMPLES random draws of n replicas out of n."""
        n = len(self.time)
        size = max(1, 2**20 // n)
        found = []
        for begin in range(0, RESAMPLES, size):
            draws = rng.multinomial(n, np.full(n, 1.0 / n), size=min(size, RESAMPLES - begin))
            found.append(statistic(self.survival(draws.astype(np.float64))))
        return np.concatenate(found)

    def plain(self, statistic: Callable[[Array], Array]) -> float:
        """The statistic of the sample itself."""
        return float(statistic(self.survival(np.ones((1, len(self.time)))))[0])

    def median(self, survival: Array) -> Array:
        """First time with S <= 1/2, (k, n) -> (k,); the middle of a stretch at 1/2; infinite if there is none."""
        below = survival < 0.5 - _CLOSE
        half = survival < 0.5 + _CLOSE
        first = np.where(half.any(-1), self.time[half.argmax(-1)], math.inf)
        second = np.where(below.any(-1), self.time[below.argmax(-1)], first)
        return np.asarray(0.5 * (first + second))

    def restricted_mean(self, horizon: float) -> Callable[[Array], Array]:
        """Integral of S from 0 to the horizon."""
        ends = np.minimum(np.concatenate([[0.0], self.time, [math.inf]]), horizon)
        return lambda survival: ends[1] + survival @ np.diff(ends[1:])

    def estimate(self, value: float, low: float, high: float, level: float, reason: str = "") -> Estimate:
        """With the numbers of replicas filled in."""
        censored = int((~self.crossed).sum())
        return Estimate(value, low, high, level, len(self.time), censored, self.diverged, reason)


def interval(low: Array, high: Array, level: float) -> tuple[float, float]:
    """Equal-tailed percentiles, the lower one of ``low`` and the upper one of ``high``; infinities are in order."""
    tail = 0.5 * (1.0 - level)
    return (
        float(np.quantile(low, tail, method="lower")),
        float(np.quantile(high, 1.0 - tail, method="higher")),
    )


def checked_level(level: float) -> float:
    """``level`` if it lies strictly between 0 and 1."""
    result = check.number("level", level, 0.0, 1.0, positive=True)
    if result == 1.0:
        raise ValueError("level must be below 1, got 1.0")
    return result
