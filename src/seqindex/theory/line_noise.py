"""Moments of one sample's gradient for students that see one combination of the fields, without sampling.

As in ``line_risk`` only x* = U.z*, x = U.z = m x* + q k + t and the label matter, and c = kappa U.  Given x* the label
has the moments E[g | x*] and E[g^2 | x*], two Hermite series, so that what is left is a plane integral.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.hermite import normalised_hermite
from seqindex.gaussian.quadrature import gauss_hermite, split_panels
from seqindex.model.problem import Problem
from seqindex.theory.line_risk import ORDER, series_of, squared_target

Array = NDArray[np.float64]
_ACROSS = 80
"""Gauss-Hermite nodes across the line x = const: exact for polynomials up to degree 159."""


class LineNoise:
    """Mean and covariance of kappa (x*, k, 1), and E|c|^2 = E kappa^2, at any state.

    Args:
        problem: the square loss, a student of one combination and one output.

    Raises:
        ValueError: a target whose square has no Hermite series.
    """

    def __init__(self, problem: Problem) -> None:
        self._student = problem.student
        v = problem.student.combinations[0]
        self.direction: Array = v / np.linalg.norm(v)
        target: Any = problem.target
        self._label, self._square = (_series(part, self.direction) for part in (target, squared_target(target)))

    def moments(self, m: float, mean: float) -> tuple[Array, float]:
        """Covariance (3, 3) of kappa (x*, k, 1), and E kappa^2, at overlap m and mean t of x."""
        q = math.sqrt(max(0.0, 1.0 - m * m))
        along = split_panels([-mean])  # panels meet at x = 0, where an activation may have a kink
        across = gauss_hermite(_ACROSS)
        centred, weight = along.nodes[:, None], along.weights[:, None] * across.weights
        x = centred + mean
        star = m * centred + q * across.nodes
        k = q * centred - m * across.nodes
        field = x * self.direction
        f = self._student(field)
        slope = (self._student.pull_back(field, np.ones((len(x), 1))) @ self.direction)[:, None]
        y1, y2 = _values(self._label, star), _values(self._square, star)
        basis = np.stack([star, k, np.ones_like(star)])
        first = np.einsum("iab,ab->i", basis, weight * 2.0 * slope * (f - y1))
        kappa2 = weight * 4.0 * slope**2 * (f * f - 2.0 * f * y1 + y2)
        second = np.einsum("iab,jab,ab->ij", basis, basis, kappa2, optimize=True)
        return second - np.outer(first, first), float(kappa2.sum())


def _series(target: Any, direction: Array) -> Array:
    """E[target | x*] = sum_j a_j h_j(x*)."""
    series = series_of(target)
    order = min(series.degree, 150) if series.exact else ORDER
    values = series.taylor(direction, order)[0][0]
    return np.asarray(values * np.sqrt([float(math.factorial(j)) for j in range(order + 1)]))


def _values(coefficients: Array, x: Array) -> Array:
    return np.tensordot(coefficients, normalised_hermite(x, len(coefficients) - 1), axes=1)
