"""Predicted time of weak recovery: how many steps SGD takes from a random start to a given overlap, with constants.

Along the direction v in which SGD leaves s = 0, with x = s.v, k the escape order, a = -R^(k) / (k - 1)! along v and
V = E|c|^2 at the start, the mean follows

    dx/dt = a x^(k-1) + ... - (gamma / 2) V x,    t = gamma * step / d.

k = 1: x leaves at once.  k = 2: x grows like exp(lambda t), lambda = a - gamma V / 2, from a Gaussian of variance
v = 1/d + gamma D / (2 lambda d), D the variance of one step's gradient along v, hence
E log|x| = (1/2) log v - (gamma_Euler + log 2) / 2.  k >= 3: x must exceed what the noise takes away from the start.
Without an encoding the drift is that of the whole risk; with one only its leading term is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.order import Order
from seqindex.theory.escape import escape_order
from seqindex.theory.risk import PopulationRisk

Array = NDArray[np.float64]

_LOG_NORMAL = 0.5 * (np.euler_gamma + math.log(2.0))
"""-E log|N(0, 1)|."""
_MEDIAN = 0.6744897501960817
"""Median of |N(0, 1)|."""
_BEST = {1: 0.5, 2: 0.5, 3: 0.715}
"""Share of the largest rate at which fewest steps are needed, by escape order (3 stands for all beyond)."""


@dataclass(frozen=True)
class Recovery:
    """Prediction for one problem, dimension and learning rate.

    Attributes:
        order: the escape order.
        learning_rate: gamma; None where SGD does not leave the start.
        largest_rate: rate beyond which the noise keeps SGD at the start (or, for order 1, below the threshold).
        steps: predicted number of steps: the mean for orders 1 and 2, from the median start for higher ones; None where
            the threshold is not reached.
        spread: standard deviation of that number, for order 2.
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


def predicted_recovery(
    problem: Problem, dim: int, learning_rate: float | None = None, threshold: float = 0.2
) -> Recovery:
    """Steps to an overlap of size ``threshold`` from a start uniform on the sphere.

    Args:
        problem: target, student and loss.
        dim: dimension d.
        learning_rate: gamma; None for the one that needs fewest steps by the theory.
        threshold: size of the overlap along the direction of escape, in (0, 1).

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", length=4), sx.TiedNetwork(4))
        >>> found = predicted_recovery(problem, dim=1000, threshold=0.5)
        >>> round(found.largest_rate * 5 * np.pi**0.5 / 2, 6), round(found.steps, -3)  # gamma_c = K / (L + 1)
        (1.0, 51000.0)
    """
    dim = check.integer("dim", dim, problem.frame.rank + 1)
    threshold = check.number("threshold", threshold, 0.0, 1.0, positive=True)
    if learning_rate is not None:
        learning_rate = check.number("learning_rate", learning_rate, positive=True)
    order = escape_order(problem)
    risk = PopulationRisk(problem)
    noise = float(risk.mean_square_gradient(0.0, _zeros(problem)))
    if order.value is None or order.value == math.inf or order.direction is None or order.coefficient is None:
        return Recovery(order, None, None, None, None, noise, order.reason)
    k = int(order)
    pull = -order.coefficient / math.factorial(k - 1)
    start = _MEDIAN / math.sqrt(dim)
    largest = 2.0 * pull / noise * {1: 1.0 / threshold, 2: 1.0}.get(k, start ** max(k - 2, 0))
    rate = _BEST[min(k, 3)] * largest if learning_rate is None else learning_rate
    drift = _Drift(risk, order, pull, rate, noise, threshold)
    if k == 1:
        time = drift.time(0.0, threshold)
        return _found(order, rate, largest, time, None, noise, dim)
    if k == 2:
        growth = pull - 0.5 * rate * noise
        if growth <= 0.0:
            return _found(order, rate, largest, None, None, noise, dim)
        variance = (1.0 + 0.5 * rate * _step_variance(problem, order.direction) / growth) / dim
        escape = (math.log(threshold) - 0.5 * math.log(variance) + _LOG_NORMAL) / growth
        time = drift.excess(growth, threshold)
        spread = math.pi / math.sqrt(8.0) / growth
        return _found(order, rate, largest, None if time is None else time + escape, spread, noise, dim)
    return _found(order, rate, largest, drift.time(start, threshold), None, noise, dim)


def _found(
    order: Order, rate: float, largest: float, time: float | None, spread: float | None, noise: float, dim: int
) -> Recovery:
    if time is None:
        reason = f"at learning rate {rate:.3g} the noise outweighs the pull before the threshold; it must be lower"
        return Recovery(order, rate, largest, None, None, noise, reason)
    scale = dim / rate
    law = {1: "d", 2: "d log d"}.get(int(order), f"d^{int(order) - 1}")
    reason = f"steps grow like {law} with the dimension"
    return Recovery(order, rate, largest, scale * time, None if spread is None else scale * spread, noise, reason)


def _zeros(problem: Problem) -> Array | float | None:
    directions = problem.frame.directions
    return None if directions == 0 else 0.0 if directions == 1 else np.zeros(directions)


class _Drift:
    """dx/dt along the direction of escape."""

    def __init__(self, risk: PopulationRisk, order: Order, pull: float, rate: float, noise: float, end: float) -> None:
        self._risk = risk
        self._order = order
        self._pull = pull
        self._rate = rate
        self._noise = np.array([0.0, 0.0, noise])
        if risk.problem.frame.rank == 1:
            # The noise changes little up to the threshold: a parabola through three points.
            assert order.direction is not None
            x = np.array([0.0, 0.5 * end, end])
            values = [noise, *risk.mean_square_gradient(float(order.direction[0]) * x[1:])]
            self._noise = np.polyfit(x, values, 2)

    def __call__(self, x: Array) -> Array:
        damping = 0.5 * self._rate * np.polyval(self._noise, x) * x
        if self._risk.problem.frame.rank == 1:
            assert self._order.direction is not None
            sign = float(self._order.direction[0])
            return np.asarray(-(1.0 - x**2) * sign * self._risk.gradient(sign * x)[..., 0] - damping)
        return np.asarray(self._pull * x ** (int(self._order) - 1) - damping)

    def time(self, begin: float, end: float) -> float | None:
        """Integral of dx / (dx/dt), in log x where x starts above 0; None where the drift vanishes on the way."""
        if begin >= end:
            return 0.0
        nodes, weights = np.polynomial.legendre.leggauss(200)
        low, high = (0.0, end) if begin == 0.0 else (math.log(begin), math.log(end))
        y = low + 0.5 * (high - low) * (nodes + 1.0)
        x = y if begin == 0.0 else np.exp(y)
        drift = self(x)
        if (drift <= 0.0).any():
            return None
        return float(0.5 * (high - low) * weights @ ((1.0 if begin == 0.0 else x) / drift))

    def excess(self, growth: float, end: float) -> float | None:
        """Integral of 1/(dx/dt) - 1/(growth x) from 0: what the curvature of the landscape adds to pure growth."""
        nodes, weights = np.polynomial.legendre.leggauss(60)
        x = 0.5 * end * (nodes + 1.0)
        drift = self(x)
        if (drift <= 0.0).any():
            return None
        return float(0.5 * end * weights @ (1.0 / drift - 1.0 / (growth * x)))


def _step_variance(problem: Problem, direction: Array) -> float:
    """Variance of the gradient of one sample along a direction of s, at s = 0, by random points.

    Its relative error of about 1e-2 enters the recovery time through a logarithm only.
    """
    length = problem.length
    zstar, z = np.random.default_rng(0).standard_normal((2, min(2**16, max(2**12, 2**20 // length)), length))
    z = z + problem.frame.injection
    c = problem.field_gradient(zstar, z)
    along = direction[0] * (zstar * c).sum(1) + c @ (problem.frame.positions @ direction)
    # Along encoding directions the tokens' own components are independent of the fields.
    own = float(direction[1:] @ direction[1:]) * (c * c).sum(1)
    return float(along.var() + own.mean())
