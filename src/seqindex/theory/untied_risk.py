"""Population risk of networks with one weight vector a position, as a function of the overlaps m in R^L.

The output depends on u = L^{-1/2} sum_l w_l.x_l alone, a standard normal on either sphere; its covariance with z*_l is
v_l = m_l / sqrt(L).  With the Taylor coefficients g_j(v) = <C_j(g), v^{(x) j}> / j! of the target along v and
c_j = E[sigma(x) He_j(x)],

    R(m) = E g^2 + E sigma^2 - 2 sum_j g_j(v) c_j,

and likewise for E |c|^2 = 4 E (g - sigma)^2 sigma'^2 with the target's square (the paper, appendix E).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.theory.hermite_series import activation_coefficients
from seqindex.theory.line_risk import ORDER, second_moment, series_of, squared_target

Array = NDArray[np.float64]

_STEP = 1e-3  # well below 1 / ORDER, so that a difference of eighth order is good to about 1e-11
_STENCIL = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}


class UntiedRisk:
    """R(m) = E (y - f)^2 and its gradient, for untied networks under the square loss.

    By R alone the spheres cannot be told apart; they differ in what m can be, |m_l| <= 1 or ||m||^2 <= L.

    Args:
        problem: target, untied network and the square loss.

    Raises:
        TypeError: a student with one weight vector for all positions.
        ValueError: another loss, or a target that has no finite square mean.

    Example:
        >>> risk = UntiedRisk(sx.Problem(sx.Target("sum(z)/2", length=4), sx.UntiedNetwork(4)))
        >>> float(risk([0.5, 0.5, 0.0, 0.0]).round(9)), risk.gradient([0.5, 0.5, 0.0, 0.0]).round(9).tolist()
        (1.25, [-0.25, -0.25, -0.25, -0.25])
    """

    def __init__(self, problem: Problem) -> None:
        if problem.loss.name != "square":
            raise ValueError(f"loss must be 'square' for this risk, got {problem.loss.name!r}")
        self.length = problem.rows.length
        self.problem = problem
        self._core = problem.student.core
        target: Any = problem.target
        self._square = second_moment(target)
        self._cross = _Pairing(target, self._sigma)
        self._energy = _mean(lambda x: self._sigma(x) ** 2)

    def __call__(self, m: ArrayLike) -> Array:
        """R at overlaps of shape (..., L) -> (...).

        Raises:
            ValueError: overlaps of another length, or ||m||^2 > L.
        """
        result: Array = self._square[0] + self._energy[0] - 2.0 * self._each(m, self._cross.value)
        return result

    def error(self, m: ArrayLike) -> Array:
        """Bound of the absolute error of R, (..., L) -> (...)."""
        size = math.sqrt(self._square[0] * self._energy[0])
        result: Array = self._square[1] + self._energy[1] + 2.0 * self._each(m, lambda v: self._cross.error(v, size))
        return result

    def gradient(self, m: ArrayLike) -> Array:
        """dR / dm_l, (..., L) -> (..., L)."""
        points = self._checked(m)

        def moved(position: int, by: float) -> Array:
            shifted = points.copy()
            shifted[..., position] += by
            return self._spread(shifted, self._cross.value)

        result = np.empty_like(points)
        for position in range(self.length):
            parts = [
                weight * (moved(position, k * _STEP) - moved(position, -k * _STEP)) for k, weight in _STENCIL.items()
            ]
            result[..., position] = -2.0 * sum(parts) / _STEP
        return result

    def mean_square_gradient(self, m: ArrayLike) -> Array:
        """V = E |c|^2, c = d loss / d z, (..., L) -> (...); each row has E |c_l|^2 = V / L.

        Raises:
            ValueError: in addition, a target whose square has no series.
        """
        slope, square, constant = self._noise
        cross = self._each(m, slope.value)
        result: Array = 4.0 * (constant - 2.0 * cross + self._each(m, square.value))
        return result

    @cached_property
    def _noise(self) -> tuple[_Pairing, _Pairing, float]:
        target: Any = self.problem.target
        slope = _Pairing(target, lambda x: self._sigma(x) * self._slope(x) ** 2)
        square = _Pairing(squared_target(target), lambda x: self._slope(x) ** 2)
        return slope, square, _mean(lambda x: (self._sigma(x) * self._slope(x)) ** 2)[0]

    def _sigma(self, x: Array) -> Array:
        return np.asarray(self._core(x[..., None])[..., 0])

    def _slope(self, x: Array) -> Array:
        return np.asarray(self._core.pull_back(x[..., None], np.ones((*x.shape, 1)))[..., 0])

    def _checked(self, m: ArrayLike) -> Array:
        points = np.array(check.fields("m", m, self.length), dtype=np.float64)
        largest = float((points**2).sum(-1).max(initial=0.0))
        if largest > self.length * (1.0 + 1e-12):
            raise ValueError(f"||m||^2 must be at most the length {self.length}, got {largest:.6g}")
        return points

    def _each(self, m: ArrayLike, function: Callable[[Array], float]) -> Array:
        return self._spread(self._checked(m), function)

    def _spread(self, points: Array, function: Callable[[Array], float]) -> Array:
        """A function of v = m / sqrt(L) at every point."""
        rows = points.reshape(-1, self.length) / math.sqrt(self.length)
        return np.array([function(row) for row in rows]).reshape(points.shape[:-1])


class _Pairing:
    """E[g(z*) F(u)] by the two series.

    Args:
        target: g.
        function: F.
    """

    def __init__(self, target: Any, function: Callable[[Array], Array]) -> None:
        self._series = series_of(target)
        self._order = min(self._series.degree, 150) if self._series.exact else ORDER
        self._of_u, self._of_u_errors = activation_coefficients(function, self._order)

    def value(self, v: Array) -> float:
        """At covariances v of u with z*."""
        return float(self._series.taylor(v, self._order)[0][0] @ self._of_u)

    def error(self, v: Array, size: float) -> float:
        """Its absolute error; ``size`` bounds the product of the norms of g and F, for the terms left out."""
        values, errors = (part[0] for part in self._series.taylor(v, self._order))
        found = np.abs(errors) @ np.abs(self._of_u) + np.abs(values) @ self._of_u_errors
        rest = 0.0 if self._series.exact else size * float(np.linalg.norm(v)) ** (self._order + 1)
        return float(found + rest + 1e-15 * np.abs(values) @ np.abs(self._of_u))


def _mean(function: Callable[[Array], Array]) -> tuple[float, float]:
    """E F(x) and its absolute error."""
    values, errors = activation_coefficients(function, 0)
    return float(values[0]), float(errors[0])
