"""Predicted time of weak recovery: how many steps SGD takes from its start to a given overlap, with constants.

Along the line on which SGD leaves s = 0, with x the coordinate on it, k the escape order, a = -R^(k) / (k - 1)! along
the line and V = E|c|^2 at the start, the mean follows

    dx/dt = a x^(k-1) + ... - (gamma / 2) V x,    t = gamma * step / d.

k = 1: x leaves at once.  k = 2: x grows like exp(lambda t), lambda = a - gamma V / 2, from a Gaussian of variance
v = v_start + gamma D / (2 lambda d), D the variance of one step's gradient along the line, hence
E log|x| = (1/2) log v - (gamma_Euler + log 2) / 2.  k >= 3: x must exceed what the noise takes away from the start,
or be carried there by the noise itself.

``steps`` and ``spread`` come from these formulas.  The whole law comes from the diffusion
dx = drift dt + sqrt(gamma D(x) / d) dW, whose first passage ``passage`` solves; it holds for every k and every rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from seqindex import check
from seqindex.model.frame import Frame
from seqindex.model.problem import Problem
from seqindex.order import Order
from seqindex.theory.escape import escape_order
from seqindex.theory.escape_line import EscapeLine, escape_line
from seqindex.theory.passage import Passage
from seqindex.theory.risk import PopulationRisk

Array = NDArray[np.float64]

_LOG_NORMAL = 0.5 * (np.euler_gamma + math.log(2.0))
"""-E log|N(0, 1)|."""
_MEDIAN = 0.6744897501960817
"""Median of |N(0, 1)|."""
_BEST = {1: 0.5, 2: 0.5, 3: 0.715}
"""Share of the largest rate at which fewest steps are needed, by escape order (3 stands for all beyond)."""


class StartLaw(Protocol):
    """What a prediction needs to know of a start, such as ``Start.random()``."""

    def moments(self, frame: Frame, dim: int) -> tuple[Array, float]:
        """Mean of s, shape (R,), and the standard deviation of each of its coordinates."""
        ...


@dataclass(frozen=True)
class Recovery:
    """Prediction for one problem, dimension, learning rate and start.

    Attributes:
        order: the escape order.
        learning_rate: gamma; None where SGD does not leave the start.
        largest_rate: rate beyond which the noise outweighs the pull: from s = 0 on (k = 2), from the start (k >= 3), at
            the threshold (k = 1).  For k >= 3 that is no wall: the noise carries runs across, ever later.
        steps: mean number of steps for k <= 2 by the formulas above; for k >= 3 that of the mean path from the start
            (a random one: the median); None where the mean path does not reach the threshold.
        spread: standard deviation of the number of steps, for k = 2 and starts without a mean.
        noise: V = E|c|^2 at the start.
        reason: a sentence.
    """

    order: Order
    learning_rate: float | None
    largest_rate: float | None
    steps: float | None
    spread: float | None
    noise: float
    reason: str
    _reaching: Callable[[], float | None] = field(default=lambda: None, repr=False, compare=False)
    _law: Callable[[], tuple[float, Passage] | None] = field(default=lambda: None, repr=False, compare=False)

    @cached_property
    def _passage(self) -> tuple[float, Passage] | None:
        return self._law()

    @cached_property
    def reaching_rate(self) -> float | None:
        """Largest rate at which the mean path gets from the start to the threshold itself; it is what limits k <= 2.

        None with an encoding, or where SGD does not leave the start.
        """
        return self._reaching()

    @property
    def mean(self) -> float:
        """Mean number of steps under the diffusion; infinite where SGD never recovers."""
        return math.inf if self._passage is None else self._passage[0] * self._passage[1].mean

    @property
    def deviation(self) -> float:
        """Standard deviation of the number of steps under the diffusion."""
        return math.inf if self._passage is None else self._passage[0] * self._passage[1].deviation

    @property
    def median(self) -> float:
        """Median number of steps under the diffusion."""
        return self.quantile(0.5)

    def quantile(self, p: float) -> float:
        """Number of steps by which a share p, in (0, 1], of the runs has recovered, under the diffusion."""
        return math.inf if self._passage is None else self._passage[0] * self._passage[1].quantile(p)

    def probability(self, steps: float) -> float:
        """Share of the runs that has recovered after a number of steps, under the diffusion."""
        return 0.0 if self._passage is None else self._passage[1].probability(steps / self._passage[0])


def predicted_recovery(
    problem: Problem,
    dim: int,
    learning_rate: float | None = None,
    threshold: float = 0.2,
    start: StartLaw | None = None,
) -> Recovery:
    """Steps to an overlap of size ``threshold``: mean, deviation and quantiles over the runs.

    Args:
        problem: target, student (with one weight vector) and loss.
        dim: dimension d.
        learning_rate: gamma; None for the one that needs fewest steps by the formulas.
        threshold: size of |m|, in (0, 1); of the coordinate along the direction of escape where that is orthogonal to
            the target.
        start: law of the start; None for one uniform on the sphere.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", length=4), sx.TiedNetwork(4))
        >>> found = predicted_recovery(problem, dim=1000, threshold=0.5)
        >>> round(found.largest_rate * 5 * np.pi**0.5 / 2, 6), round(found.steps, -3)  # gamma_c = K / (L + 1)
        (1.0, 51000.0)
        >>> zero = predicted_recovery(problem, dim=1000, threshold=0.5, start=sx.Start.orthogonal())
        >>> found.median < zero.median < zero.quantile(0.9)
        True
    """
    dim = check.integer("dim", dim, problem.frame.rank + 1)
    threshold = check.number("threshold", threshold, 0.0, 1.0, positive=True)
    if threshold == 1.0:
        raise ValueError("threshold must be below 1, which SGD reaches only in the limit, got 1")
    if learning_rate is not None:
        learning_rate = check.number("learning_rate", learning_rate, positive=True)
    rank = problem.frame.rank
    state, deviation = (np.zeros(rank), dim**-0.5) if start is None else start.moments(problem.frame, dim)
    order = escape_order(problem)
    risk = PopulationRisk(problem)
    noise = float(risk.mean_square_gradient(0.0, _zeros(problem)))
    if order.value is None or order.value == math.inf or order.direction is None or order.coefficient is None:
        return Recovery(order, None, None, None, None, noise, order.reason)
    k = int(order)
    pull = -order.coefficient / math.factorial(k - 1)
    mean = float(state @ order.direction)
    if mean < 0.0 and k % 2 == 0:
        mean = -mean
    begin = max(mean, _MEDIAN * deviation)
    largest = 2.0 * pull / noise * {1: 1.0 / threshold, 2: 1.0}.get(k, begin ** max(k - 2, 0))
    rate = _BEST[min(k, 3)] * largest if learning_rate is None else learning_rate
    if rate == 0.0:
        reason = "from this start only the noise moves SGD: give a learning_rate"
        return Recovery(order, None, largest, None, None, noise, reason)
    line = escape_line(risk, order, rate, threshold)

    def law() -> tuple[float, Passage] | None:
        if line.low is None or line.high is None:
            return None
        if not line.low < mean < line.high:
            return 0.0, Passage(np.ones_like, np.ones_like, -1.0, 1.0)  # above the threshold from the start on
        passage = Passage(
            line.drift, lambda x: 0.5 * rate * line.variance(x) / dim, line.low, line.high, mean, deviation
        )
        return dim / rate, passage

    time, spread = _formulas(line, mean, begin, deviation, dim)
    if k == 2 and time is not None and mean != 0.0:
        passage = law()
        time = None if passage is None else passage[1].mean * min(1.0, passage[0])
    scale = dim / rate
    steps = None if time is None else scale * time

    def reaching() -> float | None:
        return _reaching(risk, order, threshold, 0.0 if k <= 2 else begin) if rank == 1 else None

    return Recovery(
        order,
        rate,
        largest,
        steps,
        None if steps is None or spread is None else scale * spread,
        noise,
        _reason(k, rate, steps),
        reaching,
        law,
    )


def _formulas(
    line: EscapeLine, mean: float, begin: float, deviation: float, dim: int
) -> tuple[float | None, float | None]:
    """Mean time t and its standard deviation, each None where no formula gives it."""
    if line.high is None or line.low is None:
        return None, None
    if line.order != 2:
        return _time(line, mean if line.order == 1 else begin, line.high), None
    if line.growth <= 0.0:
        return None, None
    start = deviation**2 + 0.5 * line.rate * float(line.variance(np.zeros(1))[0]) / line.growth / dim
    sides = [_from_growth(line, end) for end in (line.high, line.low)]
    if sides[0] is None or sides[1] is None:
        return None, None
    time = 0.5 * (sides[0] + sides[1]) + (_LOG_NORMAL - 0.5 * math.log(start)) / line.growth
    return time, math.pi / math.sqrt(8.0) / line.growth if mean == 0.0 else None


def _reason(k: int, rate: float, steps: float | None) -> str:
    if steps is None and k <= 2:
        return f"at learning rate {rate:.3g} the noise outweighs the pull before the threshold; it must be lower"
    if steps is None:
        return f"at learning rate {rate:.3g} the mean path does not reach the threshold: only the noise carries runs on"
    return f"steps grow like {({1: 'd', 2: 'd log d'}).get(k, f'd^{k - 1}')} with the dimension"


def _zeros(problem: Problem) -> Array | float | None:
    directions = problem.frame.directions
    return None if directions == 0 else 0.0 if directions == 1 else np.zeros(directions)


def _time(line: EscapeLine, begin: float, end: float) -> float | None:
    """Integral of dx / (dx/dt), in log x where x starts above 0; None where the drift vanishes on the way."""
    if begin >= end:
        return 0.0
    if begin == 0.0 and line.order > 1:
        return None
    nodes, weights = np.polynomial.legendre.leggauss(200)
    low, high = (math.log(begin), math.log(end)) if begin > 0.0 else (begin, end)
    y = low + 0.5 * (high - low) * (nodes + 1.0)
    x = np.exp(y) if begin > 0.0 else y
    drift = line.drift(x)
    if (drift <= 0.0).any():
        return None
    return float(0.5 * (high - low) * weights @ ((x if begin > 0.0 else 1.0) / drift))


def _from_growth(line: EscapeLine, end: float) -> float | None:
    """Limit of the time from x to the end, plus log|x| / lambda, as x -> 0."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    x = 0.5 * end * (nodes + 1.0)
    drift = line.drift(x)
    if (drift * x <= 0.0).any():
        return None
    excess = float(0.5 * end * weights @ (1.0 / drift - 1.0 / (line.growth * x)))
    return excess + math.log(abs(end)) / line.growth


def _reaching(risk: PopulationRisk, order: Order, threshold: float, begin: float) -> float:
    """Largest gamma with a positive drift all the way: the least of -2 (1 - x^2) R'(x) / (V(x) x)."""
    assert order.direction is not None
    sign = float(order.direction[0])

    def bound(x: Array) -> Array:
        pull = -(1.0 - x * x) * sign * risk.gradient(sign * x)[..., 0]
        return np.asarray(2.0 * pull / (risk.mean_square_gradient(sign * x) * x))

    least = max(begin, 1e-6 * threshold)
    if least >= threshold:
        return float(bound(np.array(threshold)))
    grid = np.geomspace(least, threshold, 33)
    values = bound(grid)
    at = int(np.argmin(values))
    around = (float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)]))
    found = minimize_scalar(lambda x: float(bound(np.array(x))), bounds=around, method="bounded")
    return max(0.0, min(float(values[at]), float(found.fun)))
