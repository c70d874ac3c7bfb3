"""Escape from s = 0 as a motion on one line: drift and noise along the path that leaves along the direction of escape.

Without an encoding the line is m itself.  With one it is the path of the flow that starts along the direction of
escape v, measured by its length x from s = 0, so that it may curve; the noise on it is that at the start, along v, for
far from there noise hardly matters.  Other directions along which the start is unstable are not followed: where there
are some, what holds on this line holds for the runs that take it.

    dx = drift(x) dt + sqrt(gamma variance(x) / d) dW,        t = gamma * step / d
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import PchipInterpolator

from seqindex.order import Order
from seqindex.theory.diffusion import step_covariance
from seqindex.theory.drift import drift_of
from seqindex.theory.risk import PopulationRisk

Array = NDArray[np.float64]
Profile = Callable[[Array], Array]

_DEGREE = 8
"""Of the polynomials for V(m) and Cov(b)(m) up to the threshold."""
_HIGHEST = 199
"""Largest degree of the polynomial for R'(m)."""
_NUDGE = 1e-3
"""Length at which the path of the flow begins; below, the leading terms hold."""
_LONGEST = math.pi
"""Length at which a path is given up."""
_STILL = 1e-8
"""Speed at which a path has ended."""
_ALONG = 1e-6
"""A direction with less of m than this is orthogonal to the target: its own coordinate counts, not m."""


@dataclass(frozen=True)
class EscapeLine:
    """One line and the motion on it.

    Attributes:
        order: the escape order k.
        pull: a in dx/dt = a x^(k-1) + ... - (gamma / 2) V x near x = 0.
        noise: V = E|c|^2 at the start.
        rate: gamma.
        drift: dx/dt, vectorised.
        variance: variance of one step's move b along the line, vectorised.
        low: x at which the threshold is reached on the side of -v; None where it is not.
        high: the same on the side of v.
    """

    order: int
    pull: float
    noise: float
    rate: float
    drift: Profile
    variance: Profile
    low: float | None
    high: float | None

    @property
    def growth(self) -> float:
        """Rate of exponential growth at x = 0, for k = 2."""
        return (self.pull if self.order == 2 else 0.0) - 0.5 * self.rate * self.noise


def escape_line(risk: PopulationRisk, order: Order, rate: float, threshold: float) -> EscapeLine:
    """The line along which SGD leaves its start, at learning rate gamma, for a problem with a finite escape order.

    The threshold is one of |m|; where the direction of escape is orthogonal to the target, of the coordinate along it.

    Example:
        >>> problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", 4), sx.TiedNetwork(4))
        >>> line = escape_line(sx.PopulationRisk(problem), sx.escape_order(problem), rate=0.1, threshold=0.5)
        >>> k = 2 / np.pi**0.5  # R' = -K m, V = 2 (L + 1) - 2 K m^2, D = 2 L + 10 - 4 K at m = 0
        >>> [round(float(value), 9) for value in (line.pull / k, line.growth - k + 0.5)]
        [1.0, 0.0]
        >>> bool(abs(line.drift(np.array([0.3]))[0] - 0.3 * (k - 0.5 - k * 0.9 * 0.09)) < 1e-9)
        True
    """
    assert order.direction is not None
    assert order.coefficient is not None
    k = int(order)
    pull = -order.coefficient / math.factorial(k - 1)
    maker = _straight if risk.problem.frame.rank == 1 else _curved
    return maker(risk, np.asarray(order.direction, dtype=np.float64), k, pull, rate, threshold)


def _straight(risk: PopulationRisk, direction: Array, k: int, pull: float, rate: float, end: float) -> EscapeLine:
    """x = m, or -m where SGD leaves towards m < 0.

    Near x = 0 the drift is far smaller than its parts, so that -R'(x) / x^(k-1) is what a polynomial stands for.
    """
    sign = float(np.sign(direction[0]))
    # Interpolation converges like rho^-degree, with singularities at |m| = 1; odd, so that x = 0 is no node.
    degree = min(_HIGHEST, 2 * int(18.0 / math.acosh(1.0 / end)) + 3)
    steep = _polynomial(lambda x: -sign * risk.gradient(sign * x)[..., 0] / x ** (k - 1), degree, end)
    noise = _polynomial(lambda x: risk.mean_square_gradient(sign * x), _DEGREE, end)
    variance: list[Profile] = []

    def drift(x: Array) -> Array:
        return np.asarray((1.0 - x * x) * x ** (k - 1) * steep(x) - 0.5 * rate * noise(x) * x)

    def log_variance(x: Array) -> Array:
        values = step_covariance(risk.problem, sign * x[:, None], rate)[:, 0, 0]
        return np.asarray(np.log(np.maximum(values, 1e-300)))

    def along(x: Array) -> Array:
        if not variance:  # the longest part of the work, and not always asked for
            variance.append(_polynomial(log_variance, _DEGREE, end))
        return np.asarray(np.exp(variance[0](x)))

    return EscapeLine(k, pull, float(risk.mean_square_gradient(0.0)), rate, drift, along, -end, end)


def _polynomial(function: Profile, degree: int, end: float) -> Profile:
    """Interpolation in Chebyshev's nodes on [-end, end]."""
    fitted: Profile = Chebyshev.interpolate(function, degree, domain=[-end, end])
    return fitted


def _curved(risk: PopulationRisk, direction: Array, k: int, pull: float, rate: float, end: float) -> EscapeLine:
    """Along the path of the flow."""
    zero = np.zeros(risk.problem.frame.rank)
    at_start = float(risk.mean_square_gradient(0.0, zero[1] if len(zero) == 2 else zero[1:]))
    line = EscapeLine(k, pull, at_start, rate, np.zeros_like, np.zeros_like, None, None)
    forward = _branch(risk, line, direction, end)
    high = forward.end
    variance: list[float] = []

    def along(x: Array) -> Array:
        if not variance:
            variance.append(float(direction @ step_covariance(risk.problem, zero, rate) @ direction))
        return np.full_like(x, variance[0])

    if k % 2:  # towards -v the drift leads back to the start

        def odd(x: Array) -> Array:
            back = pull * x ** (k - 1) - 0.5 * rate * at_start * x
            return np.where(x >= 0.0, forward(np.abs(x)), back)

        return EscapeLine(k, pull, at_start, rate, odd, along, None if high is None else -high, high)
    backward = _branch(risk, line, -direction, end)

    def even(x: Array) -> Array:
        return np.where(x >= 0.0, forward(np.abs(x)), -backward(np.abs(x)))

    low = None if backward.end is None else -backward.end
    return EscapeLine(k, pull, at_start, rate, even, along, low, high)


class _Branch:
    """dx/dt on one side: leading terms up to the nudge, then what a path of the flow gives."""

    def __init__(self, line: EscapeLine, lengths: Array, speeds: Array, end: float | None) -> None:
        self.end = end
        self._line = line
        self._table = PchipInterpolator(np.log(lengths), speeds / lengths) if len(lengths) > 1 else None
        self._first, self._last = float(lengths[0]), float(lengths[-1])

    def __call__(self, x: Array) -> Array:
        """x >= 0."""
        k, pull, damping = self._line.order, self._line.pull, 0.5 * self._line.rate * self._line.noise
        near = pull * x ** (k - 1) - damping * x
        if self._table is None:
            return np.asarray(near)
        far = x * self._table(np.log(np.clip(x, self._first, self._last)))
        return np.where(x < self._first, near, far)


def _branch(risk: PopulationRisk, line: EscapeLine, direction: Array, threshold: float) -> _Branch:
    """Follow the flow until the threshold; where the noise would keep it at the start, the flow without noise."""
    held = line.growth < 0.0 and line.order > 1
    full = drift_of(risk.problem, line.rate, risk)
    path = drift_of(risk.problem, 0.0, risk) if held else full

    def tangent(_: float, s: Array) -> Array:
        speed = path(s)
        return np.asarray(speed / max(float(np.linalg.norm(speed)), _STILL))

    def missing(_: float, s: Array) -> float:
        return threshold - float(abs(s[0]) if abs(direction[0]) > _ALONG else abs(s @ direction))

    def moving(_: float, s: Array) -> float:
        return float(np.linalg.norm(path(s))) - 2.0 * _STILL

    for event in (missing, moving):
        event.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(
        tangent, (_NUDGE, _LONGEST), _NUDGE * direction, "LSODA", events=(missing, moving), rtol=1e-6, atol=1e-9
    )
    speeds = [float(full(s) @ tangent(0.0, s)) for s in found.y.T]
    reached = len(found.t_events[0]) > 0
    return _Branch(line, found.t, np.array(speeds), float(found.t[-1]) if reached else None)
