"""Boundaries of the positional-semantic phases for the squared loss: conditions whose sign changes at a boundary.

Notation of ``corner_integrals``.  Since S(-z) = S(z), the risk is even in m and even in e, so (0, 0) and (1, 0) are
critical points along e for every alignment matrix, and gradients in m vanish at m = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize, newton

from seqindex.theory.corner_integrals import Integrals

Array = NDArray[np.float64]

STARTS = 3
"""Starting points of the search for the best positional point."""


def first_root(function: Callable[[float], float], points: int, tolerance: float = 1e-14) -> float:
    """Smallest root in [0, 1] at which ``function`` changes sign on a uniform grid, NaN without one."""
    grid = np.linspace(0.0, 1.0, points)
    before = function(grid[0])
    for left, right in pairwise(grid):
        after = function(right)
        if before == 0.0:
            return float(left)
        if before * after < 0.0:
            return float(brentq(function, left, right, xtol=tolerance, rtol=1e-14))
        before = after
    return 1.0 if before == 0.0 else float("nan")


class SquareConditions:
    """Conditions on omega for one encoding and one alignment matrix; any length.

    Args:
        integrals: the integrals of the encoding.
        alignment: A, (L, L), row-stochastic.
        coarse: the integrals by a cheaper rule, for first guesses with several encoding directions; None: no guess.

    Example:
        >>> A = np.array([[0.88, 0.12], [0.12, 0.88]])
        >>> conditions = SquareConditions(Integrals(np.array([[1.0], [-1.0]])), A)
        >>> bool(conditions.steepest(0.5) < 0 < conditions.steepest(0.9))
        True
    """

    def __init__(self, integrals: Integrals, alignment: Array, coarse: Integrals | None = None) -> None:
        self.integrals = integrals
        self._coarse = None if coarse is None else SquareConditions(coarse, alignment)
        self.alignment = alignment.ravel()
        origin = integrals.origin
        self._tensor = integrals.along(origin.matrix_tensor)
        self._square_tensor = integrals.along(origin.square_tensor)
        self._overlap = float((origin.matrix_tensor**2).sum())
        self._jacobian = integrals.positions.T @ integrals.jacobian_square @ integrals.positions
        self._jacobian_trace = float(np.trace(integrals.jacobian_square))

    def _mean_label(self, omega: float) -> Array:
        return (1.0 - omega) * self.integrals.origin.matrix + omega * self.alignment

    def origin_curvatures(self, omega: float) -> tuple[float, Array]:
        """R_mm and R_ee, (r, r), at the origin."""
        curvature = self._square_tensor - 2.0 * self._tensor @ self._mean_label(omega)
        return -2.0 * (1.0 - omega) * self._overlap, curvature

    def steepest(self, omega: float) -> float:
        """R_mm minus the lowest eigenvalue of R_ee at the origin: negative where m grows faster than every e."""
        along_m, along_e = self.origin_curvatures(omega)
        return along_m - float(np.linalg.eigvalsh(along_e)[0])

    def semantic(self, omega: float) -> float:
        """Lowest curvature of the risk on the sphere at m = 1: positive where that point is a local minimum."""
        pull = 2.0 * (1.0 - omega)
        curvature = omega * (self._square_tensor - 2.0 * self._tensor @ self.alignment) + pull * self._jacobian
        return float(np.linalg.eigvalsh(curvature)[0]) + pull * self._jacobian_trace

    def best_positional(self, omega: float) -> Array:
        """The e of norm 1 with the lowest risk at m = 0, shape (r,)."""
        directions = self.integrals.directions
        if directions == 1:
            return np.ones(1)
        label = self._mean_label(omega)

        def value(v: Array) -> tuple[float, Array]:
            norm = float(np.linalg.norm(v))
            e = v / norm
            risk, gradient = self.integrals.positional_risk(e, label)
            return risk, (gradient - e * (e @ gradient)) / norm

        if self._coarse is not None:
            starts = self._coarse.best_positional(omega)[None]
        else:
            # The risk at m = 0 is even in e, so one sign of each eigenvector of the Hessian at the origin is enough.
            starts = np.linalg.eigh(self.origin_curvatures(omega)[1])[1].T[:STARTS]
        found = [minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-8}) for start in starts]
        best = min(found, key=lambda result: float(result.fun)).x
        return np.asarray(best / np.linalg.norm(best))

    def equal_risk(self, omega: float) -> float:
        """R at the best positional point minus R(m = 1): negative where the positional point is lower."""
        slope, value = self._equal_risk_line(self.best_positional(omega))
        return value + slope * omega

    def _equal_risk_line(self, e: Array) -> tuple[float, float]:
        """Slope in omega, and value at omega = 0, of R(0, e) - R(1, 0) at fixed e."""
        origin, there = self.integrals.origin, self.integrals.moments(e)
        overlap = origin.matrix @ there.matrix
        slope = 2.0 * (overlap - origin.square + self.alignment @ (origin.matrix - there.matrix))
        return float(slope), float(there.square + origin.square - 2.0 * overlap)

    def positional(self, omega: float) -> float:
        """R_mm - e.R_e at the best positional point: positive where that point is a local minimum."""
        e = self.best_positional(omega)
        slope, value = self._positional_line(e)
        return value + slope * omega

    def _positional_line(self, e: Array) -> tuple[float, float]:
        """Slope in omega, and value at omega = 0, of R_mm - e.R_e at (0, e)."""
        origin, there = self.integrals.origin, self.integrals.moments(e)
        overlap = float((origin.matrix_tensor * there.matrix_tensor).sum())
        radial = e @ there.matrix_gradient
        own = float(origin.matrix @ radial)
        slope = 2.0 * (overlap - own + float(self.alignment @ radial))
        return slope, float(2.0 * own - 2.0 * overlap - e @ there.square_gradient)

    def explicit(self, kind: str) -> float:
        """Root of the condition ``kind`` for one encoding direction, where every condition is linear in omega."""
        e = np.ones(1)
        if kind == "equal_risk":
            slope, value = self._equal_risk_line(e)
        elif kind == "positional":
            slope, value = self._positional_line(e)
        else:
            condition = self.steepest if kind == "steepest" else self.semantic
            value = condition(0.0)
            slope = condition(1.0) - value
        root = -value / slope if slope != 0.0 else float("nan")
        return root if 0.0 <= root <= 1.0 else float("nan")

    def solve(self, kind: str) -> float:
        """Smallest root of the condition ``kind`` in [0, 1] by root finding, for any number of directions."""
        if kind == "equal_risk":
            return self._newton_equal_risk()
        condition: Callable[[float], float] = getattr(self, kind)
        if kind == "positional" and self._coarse is not None:
            guess = first_root(self._coarse.positional, 11, tolerance=1e-7)
            return guess if np.isnan(guess) else float(newton(condition, guess, x1=guess - 1e-4, tol=1e-11))
        return first_root(condition, 33 if kind == "positional" else 129)

    def _newton_equal_risk(self) -> float:
        # A minimum of functions linear in omega is concave, and it is positive at omega = 0, where the semantic point
        # has no risk: Newton's method from omega = 1 falls monotonically to its one root.
        omega = 1.0
        if self.equal_risk(omega) > 0.0:
            return float("nan")
        for _ in range(50):
            slope, value = self._equal_risk_line(self.best_positional(omega))
            following = -value / slope
            if abs(following - omega) < 1e-14:
                break
            omega = following
        return float(following)
