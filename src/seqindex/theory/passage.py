"""First passage of a diffusion on an interval: mean, deviation and quantiles of the time it takes to reach either end.

With dx = b(x) dt + sqrt(2 a(x)) dW and L = b d/dx + a d^2/dx^2, and as functions of the start x,

    mean T:       L T = -1,          T = 0 at the ends,
    variance w:   L w = -2 a T'^2,   w = 0,
    transform:    L u = s u,         u = E exp(-s T) = 1,

of which the last is inverted for the distribution (Abate and Whitt, INFORMS J. Comput. 18, 408, 2006, "Euler").  Unlike
the density itself, all three are smooth at the ends however weak the noise is.  x = l sinh(y) with equal steps in y
resolves the start, of size l, as well as the ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_banded
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from seqindex import check

Array = NDArray[np.float64]
Profile = Callable[[Array], Array]

_STEP = 0.02
"""Step in y: relative errors of about 1e-5 in the mean and the deviation, 1e-3 in quantiles."""
_CLIMB = 40.0
"""Passage takes exp(this) times longer where the drift opposes it by so much, which counts as never."""
_NARROW = 0.05
"""Below this deviation over mean the law is taken as normal: the inversion would need ever more terms."""
_TERMS = 16
_TABLE = 200


class Passage:
    """Law of the time to reach either end of [low, high] from a normal (or fixed) start, in the units of b.

    Args:
        drift: b(x), vectorised.
        diffusion: a(x) > 0, half the variance that the noise adds in unit time.
        low: lower end, below 0.
        high: upper end, above 0.
        mean: of the start; must lie between the ends.
        deviation: of the start; 0 for a fixed start.

    Attributes:
        mean: of the time; infinite where the drift keeps it from the ends.
        deviation: of the time.

    Example:
        >>> law = Passage(lambda x: 0.0 * x, lambda x: 0.5 + 0.0 * x, -1.0, 1.0)  # Brownian motion
        >>> round(law.mean, 2), round(law.deviation**2, 2), round(law.quantile(0.5), 2)  # 1, 2/3, and its median
        (1.0, 0.67, 0.76)
    """

    def __init__(
        self,
        drift: Profile,
        diffusion: Profile,
        low: float,
        high: float,
        mean: float = 0.0,
        deviation: float = 0.0,
    ) -> None:
        if not low < mean < high or not low < 0.0 < high:
            raise ValueError(f"mean and 0 must lie between the ends {low:g} and {high:g}, got mean {mean:g}")
        size = _smallest(drift, diffusion, low, high, deviation)
        bottom, top = math.asinh(low / size), math.asinh(high / size)
        y = np.linspace(bottom, top, max(101, int((top - bottom) / _STEP)))
        self._x: Array = size * np.sinh(y)
        self._x[0], self._x[-1] = low, high
        self._operator = _Operator(self._x, size * np.cosh(y), float(y[1] - y[0]), drift, diffusion)
        self._start = _weights(self._x, y, size, mean, deviation)
        self.mean = math.inf
        self.deviation = math.inf
        if self._operator.climb(self._start) > _CLIMB:
            return
        times = self._operator.solve(np.full(len(y), -1.0), 0.0).real
        within = self._operator.solve(-2.0 * self._operator.diffusion * self._operator.slope(times) ** 2, 0.0).real
        self.mean = float(self._start @ times)
        between = float(self._start @ (times - self.mean) ** 2) if deviation else 0.0
        self.deviation = math.sqrt(float(self._start @ within) + between)

    def probability(self, time: float) -> float:
        """P(T <= time)."""
        if math.isinf(self.mean) or time <= 0.0:
            return 0.0
        if self.deviation < _NARROW * self.mean:
            return float(ndtr((time - self.mean) / self.deviation)) if self.deviation else float(time >= self.mean)
        total = 0.0
        for node, weight in zip(*_euler(), strict=True):
            s = node / time
            u = self._operator.solve(np.zeros(len(self._x)), s, at_ends=1.0)
            total += weight * float((self._start @ u / s).real)
        return min(1.0, max(0.0, total / time))

    def quantile(self, p: float) -> float:
        """Time by which a share p has passed."""
        p = check.number("p", p, 0.0, 1.0, positive=True)
        if p == 1.0 or math.isinf(self.mean):
            return math.inf
        if self.deviation < _NARROW * self.mean:
            return self.mean + self.deviation * float(ndtri(p))
        high = low = math.log(self.mean)
        while self.probability(math.exp(high)) < p:
            high += 1.0
        while self.probability(math.exp(low)) > p:
            low -= 1.0
        return math.exp(brentq(lambda t: self.probability(math.exp(t)) - p, low, high, xtol=1e-5))


class _Operator:
    """L on the grid, by central differences; an end to which the drift does not lead is one that is not reached."""

    def __init__(self, x: Array, stretch: Array, step: float, drift: Profile, diffusion: Profile) -> None:
        self._x = x
        self.drift, self.diffusion = drift(x), diffusion(x)
        between = 0.5 * (stretch[1:] + stretch[:-1])
        n = len(x)
        inner = slice(1, -1)
        speed = self.drift[inner] / (2.0 * step * stretch[inner])
        noise = self.diffusion[inner] / (step**2 * stretch[inner])
        self._bands: Array = np.zeros((3, n))
        self._bands[0, 2:] = noise / between[1:] + speed
        self._bands[2, :-2] = noise / between[:-1] - speed
        self._bands[1, inner] = -noise / between[1:] - noise / between[:-1]
        # Next to an end that the drift leads away from, what happens there is decided by the drift alone.
        apart = np.abs(self.drift) * step * stretch > 2.0 * self.diffusion
        self._absorbing = (not (self.drift[0] > 0.0 and apart[0]), not (self.drift[-1] < 0.0 and apart[-1]))
        if not self._absorbing[0]:
            rate = self.drift[0] / (x[1] - x[0])
            self._bands[1, 0], self._bands[0, 1] = -rate, rate
        if not self._absorbing[1]:
            rate = self.drift[-1] / (x[-1] - x[-2])
            self._bands[1, -1], self._bands[2, -2] = rate, -rate

    def solve(self, right: Array, s: complex, at_ends: float = 0.0) -> NDArray[np.complex128]:
        """u with L u - s u = right inside and a value at the ends."""
        bands = self._bands.astype(np.complex128) if isinstance(s, complex) else self._bands.copy()
        bands[1] -= s
        values = right.astype(bands.dtype)
        for absorbing, i in zip(self._absorbing, (0, -1), strict=True):
            if absorbing:
                bands[1, i], values[i] = 1.0, at_ends
        if self._absorbing[0]:
            bands[0, 1] = 0.0
        if self._absorbing[1]:
            bands[2, -2] = 0.0
        return np.asarray(solve_banded((1, 1), bands, values, overwrite_ab=True, overwrite_b=True, check_finite=False))

    def slope(self, values: Array) -> Array:
        """d values / dx."""
        return np.asarray(np.gradient(values, self._x, edge_order=2))

    def climb(self, start: Array) -> float:
        """How much the drift opposes the easier way out, -integral b / a over the way where it is uphill."""
        force = -self.drift / self.diffusion
        height = np.concatenate([[0.0], np.cumsum(0.5 * (force[1:] + force[:-1]) * np.diff(self._x))])
        begin = int(np.argmax(np.cumsum(start) >= 0.5))
        right = float((height[begin:] - np.minimum.accumulate(height[begin:])).max())
        back = height[begin::-1]
        left = float((back - np.minimum.accumulate(back)).max())
        return min(left, right)


def _smallest(drift: Profile, diffusion: Profile, low: float, high: float, deviation: float) -> float:
    """Half the smallest size that matters: of the start, or where the drift begins to outweigh the noise."""
    far = max(-low, high)
    near = np.geomspace(1e-12 * far, min(-low, high), _TABLE)
    sizes = [far] if deviation == 0.0 else [far, deviation]
    for x in (near, -near):
        strong = np.abs(drift(x) * x) > diffusion(x)
        if strong.any():
            sizes.append(float(near[np.argmax(strong)]))
    return 0.5 * min(sizes)


def _weights(x: Array, y: Array, size: float, mean: float, deviation: float) -> Array:
    """Weights of the nodes under a normal start; for a fixed one those of linear interpolation in y."""
    if deviation == 0.0:
        place = math.asinh(mean / size)
        return np.asarray(np.maximum(0.0, 1.0 - np.abs(y - place) / (y[1] - y[0])))
    weights = np.exp(-0.5 * ((x - mean) / deviation) ** 2) * np.cosh(y)
    return np.asarray(weights / weights.sum())


def _euler() -> tuple[NDArray[np.complex128], Array]:
    """Nodes and weights of f(t) = (1/t) sum_j weight_j Re F(node_j / t)."""
    m = _TERMS
    index = np.arange(2 * m + 1)
    nodes = (m * math.log(10.0) / 3.0 + 1j * math.pi * index).astype(np.complex128)
    share = np.ones(2 * m + 1)
    share[0] = 0.5
    share[2 * m] = 2.0**-m
    for j in range(1, m):
        share[2 * m - j] = share[2 * m - j + 1] + 2.0**-m * math.comb(m, j)
    return nodes, np.asarray(10.0 ** (m / 3.0) * (-1.0) ** index * share, dtype=np.float64)
