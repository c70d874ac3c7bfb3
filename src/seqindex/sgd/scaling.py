"""How recovery times grow with the dimension or the length: exponents, and laws that are no powers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from seqindex import check
from seqindex.sgd.censored import Sample, checked_level, interval

Array = NDArray[np.float64]

_DECIDES = 10.0
"""Difference of the criterion that decides."""

LAWS: dict[str, Callable[[Array], Array]] = {
    "d": lambda x: x,
    "d log d": lambda x: x * np.log(x),
    "d^2": lambda x: x**2,
    "d^3": lambda x: x**3,
}
"""Steps to weak recovery from a random start, by escape order: 1, 2, 3 and 4 (the paper, theorem 4)."""

FAMILIES: dict[str, tuple[Callable[[Array, float], Array], tuple[float, float] | None]] = {
    "d": (lambda x, _: x, None),
    "d (log d + c)": (lambda x, c: x * (np.log(x) + c), (-1.0, 50.0)),
    "d (log d + c)^2": (lambda x, c: x * (np.log(x) + c) ** 2, (-1.0, 50.0)),
    "d^p": (lambda x, p: x**p, (-10.0, 10.0)),
}
"""Laws with a prefactor and the constant that goes with a logarithm, or a free power: shape, limits of the constant.

From a start of overlap d^{-1/2} growth at a rate lambda takes (1 / lambda) (log d / 2 + constant), so that the constant
is as large as the logarithm itself; limits are units of log d at the smallest d, down to no logarithm left there.
"""


@dataclass(frozen=True)
class PowerLaw:
    """A straight line through log medians against log x.

    Attributes:
        exponent: its slope.
        low: lower end of the slope's interval.
        high: upper end.
        level: nominal coverage of the interval.
        x: the values of x that entered.
        left_out: the others, where too few replicas crossed to bound the median, or half started above the threshold.
        diverged: how many replicas were left out because they diverged.
    """

    exponent: float
    low: float
    high: float
    level: float
    x: tuple[float, ...]
    left_out: tuple[float, ...]
    diverged: int


@dataclass(frozen=True)
class Law:
    """The law of a list that is nearest to log medians, its prefactor free.

    Attributes:
        name: the law.
        prefactor: median recovery time over the law, in the least-squares sense on logarithms.
        support: share of resamples in which each law is the nearest; only a share near 1 decides.
    """

    name: str
    prefactor: float
    support: dict[str, float]


@dataclass(frozen=True)
class Growth:
    """Laws of ``FAMILIES`` beside log medians, by Akaike's criterion.

    Attributes:
        name: the law of the least criterion.
        criterion: chi-square plus twice the number of constants, by law; differences above 10 decide.
        misfit: chi-square, by law, from the medians' errors.
        constant: c or p, by law; NaN for a law without one.
        freedom: number of x minus number of constants, by law, to compare the misfit with.
        decided: whether every other law's criterion is larger by 10 or more.
    """

    name: str
    criterion: dict[str, float]
    misfit: dict[str, float]
    constant: dict[str, float]
    freedom: dict[str, int]
    decided: bool


def power_law(
    x: ArrayLike,
    times: Sequence[xr.Dataset],
    over: Sequence[xr.Dataset] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> PowerLaw:
    """Exponent of the median recovery time, or of a ratio of two, as a power of x.

    The line is a plain least-squares fit.  Its interval comes from resampling replicas; it says how well these fix the
    slope over the given x, not that the law is a power: d log d has slope 1.17 on d = 100 ... 1600.

    Args:
        x: positive and distinct, such as dimensions or lengths.
        times: for each x a Dataset from ``hitting_time`` or ``recovery_time``.
        over: the same for a denominator; then the exponent is that of median(times) / median(over).
        level: nominal coverage of the interval.
        seed: seed of the resampling.

    Raises:
        TypeError, ValueError: arguments that do not fit together, or fewer than two x where the replicas bound the
            median.

    Warns:
        UserWarning: x spans less than a factor of ten.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def sample(mean):
        ...     time = rng.exponential(mean, 64)
        ...     return xr.Dataset({"time": ("replica", time), "outcome": ("replica", np.zeros(64, int))})
        >>> fit = power_law([10, 30, 100], [sample(d**2) for d in (10, 30, 100)])
        >>> fit.low < 2.0 < fit.high
        True
    """
    level = checked_level(level)
    points = _Points(x, [times] if over is None else [times, over], level, seed)
    logs = np.log(points.x)
    if logs.max() - logs.min() < math.log(10.0) - 1e-9:
        warnings.warn(
            f"x spans a factor of {math.exp(logs.max() - logs.min()):.3g} only; an exponent needs a decade or more",
            UserWarning,
            stacklevel=2,
        )
    slope = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    draws = points.draws @ slope
    low, high = interval(draws, draws, level)
    used, left = tuple(points.x.tolist()), tuple(points.left_out.tolist())
    return PowerLaw(float(points.values @ slope), low, high, level, used, left, points.diverged)


def nearest_law(
    x: ArrayLike,
    times: Sequence[xr.Dataset],
    laws: Mapping[str, Callable[[Array], Array]] | None = None,
    seed: int = 0,
) -> Law:
    """The law of growth that fits the median recovery times best, with nothing but a prefactor free.

    Args:
        x: positive and distinct, such as dimensions.
        times: for each x a Dataset from ``hitting_time`` or ``recovery_time``.
        laws: functions of x by name; None for ``LAWS``.
        seed: seed of the resampling.

    Raises:
        TypeError, ValueError: see ``power_law``.

    Example:
        >>> def sample(time):
        ...     return xr.Dataset({"time": ("replica", [time] * 3), "outcome": ("replica", [0, 0, 0])})
        >>> d = np.array([100.0, 400.0, 1600.0])
        >>> law = nearest_law(d, [sample(time) for time in 5 * d * np.log(d)])
        >>> law.name, round(law.prefactor, 6)
        ('d log d', 5.0)
    """
    points = _Points(x, [times], 0.95, seed)
    chosen = LAWS if laws is None else laws
    names = list(chosen)
    with np.errstate(divide="ignore", invalid="ignore"):
        shapes = np.array([np.log(chosen[name](points.x)) for name in names])
    if not np.isfinite(shapes).all():
        raise ValueError(f"laws must be positive at every x, got x from {points.x.min():g} to {points.x.max():g}")
    misfit = np.stack([(points.draws - shape).var(axis=1) for shape in shapes])
    share = np.bincount(misfit.argmin(axis=0), minlength=len(names)) / misfit.shape[1]
    best = int(np.argmin([(points.values - shape).var() for shape in shapes]))
    prefactor = math.exp(float((points.values - shapes[best]).mean()))
    return Law(names[best], prefactor, dict(zip(names, share.tolist(), strict=True)))


def growth_law(x: ArrayLike, times: Sequence[xr.Dataset], seed: int = 0) -> Growth:
    """Compare d, d (log d + c), d (log d + c)^2 and d^p as laws of the median recovery time, by Akaike's criterion.

    Each is fitted to the logarithms of the medians, weighted by their errors as resampling gives them.  Since these
    errors are known, the criterion is chi-square + 2 * (number of constants); a misfit far above ``freedom`` says that
    no law of the list is the whole truth.

    Args:
        x: positive and distinct, such as dimensions; four or more.
        times: for each x a Dataset from ``hitting_time`` or ``recovery_time``.
        seed: seed of the resampling.

    Raises:
        TypeError, ValueError: arguments that do not fit together, or fewer than four x where the replicas bound the
            median, or x that are not above 1.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def sample(median):
        ...     time = median * np.exp(0.3 * rng.standard_normal(1024))
        ...     return xr.Dataset({"time": ("replica", time), "outcome": ("replica", np.zeros(1024, int))})
        >>> d = np.array([1e2, 1e3, 1e4, 1e5, 1e6])
        >>> found = growth_law(d, [sample(one) for one in d * np.log(d)])
        >>> found.name, found.decided
        ('d (log d + c)', True)
    """
    points = _Points(x, [times], 0.95, seed)
    if len(points.x) < 4 or points.x.min() <= 1.0:
        raise ValueError(
            f"x must hold four or more above 1 whose median is bounded, got {check.shown(points.x.tolist())}"
        )
    variance = np.maximum(points.draws.var(axis=0), 1e-16)
    smallest = math.log(float(points.x.min()))

    def chi_square(shape: Callable[[Array, float], Array], constant: float) -> float:
        gap = points.values - np.log(shape(points.x, constant))
        return float(((gap - np.average(gap, weights=1.0 / variance)) ** 2 / variance).sum())

    misfit, constant, freedom = {}, {}, {}
    for name, (shape, limits) in FAMILIES.items():
        if limits is None:
            misfit[name], constant[name] = chi_square(shape, 0.0), math.nan
        else:
            low, high = limits if name == "d^p" else (0.999 * smallest * limits[0], smallest * limits[1])
            found = minimize_scalar(partial(chi_square, shape), bounds=(low, high), method="bounded")
            misfit[name], constant[name] = float(found.fun), float(found.x)
        freedom[name] = len(points.x) - (1 if limits is None else 2)
    criterion = {name: misfit[name] + 2.0 * (len(points.x) - freedom[name]) for name in FAMILIES}
    best = min(criterion, key=criterion.__getitem__)
    others = min(value for name, value in criterion.items() if name != best)
    return Growth(best, criterion, misfit, constant, freedom, others - criterion[best] >= _DECIDES)


class _Points:
    """Log medians, or log ratios of two, with their resamples, at the x where the replicas bound them."""

    def __init__(self, x: ArrayLike, groups: Sequence[Sequence[xr.Dataset]], level: float, seed: int) -> None:
        given = check.array("x", x, (None,))
        if (given <= 0.0).any() or len(np.unique(given)) < len(given):
            raise ValueError(f"x must be positive and distinct, got {check.shown(given.tolist())}")
        for name, group in zip(("times", "over"), groups, strict=False):
            if len(group) != len(given):
                raise ValueError(f"{name} must hold one Dataset for each of the {len(given)} x, got {len(group)}")
        rng = np.random.default_rng(seed)
        self.diverged = 0
        values, draws = np.zeros(len(given)), []
        kept = np.ones(len(given), dtype=bool)
        for i, column in enumerate(zip(*groups, strict=True)):
            total: Array = np.zeros(1)
            for sign, one in zip((1.0, -1.0), column, strict=False):
                sample = Sample(one)
                self.diverged += sample.diverged
                medians = sample.resampled(sample.median, rng)
                value = sample.plain(sample.median)
                _, high = interval(medians, medians, level)
                if not (0.0 < value < math.inf and medians.min() > 0.0 and high < math.inf):
                    kept[i] = False
                    break
                # The few resamples beyond the horizon, fewer than the interval leaves out, are counted at the horizon.
                total = total + sign * np.log(np.minimum(medians, sample.time[-1]))
                values[i] += sign * math.log(value)
            draws.append(total)
        if kept.sum() < 2:
            raise ValueError(f"times must bound the median at two x or more, got {int(kept.sum())} of {len(given)}")
        self.x: Array = given[kept]
        self.left_out: Array = given[~kept]
        self.values: Array = values[kept]
        self.draws: Array = np.stack([one for one, keep in zip(draws, kept, strict=True) if keep], axis=1)
