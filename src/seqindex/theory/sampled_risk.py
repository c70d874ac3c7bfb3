"""Population risk by scrambled Sobol points in the 2 L variables (z*, xi): the engine for long sequences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.sobol import sobol_normals
from seqindex.model.problem import Problem
from seqindex.theory.path import SPREADS, FieldLoss, chunks, clamped, noise_terms, path_terms

Array = NDArray[np.float64]
_KEPT = 2**26
"""Labels kept in memory (half a gigabyte)."""


class SampledRisk:
    """Engine of ``PopulationRisk`` for any length and loss.

    The points are fixed, so that the estimate is a smooth function of the overlaps whose derivatives are the estimated
    derivatives.  Errors are four standard errors over the scrambles.

    Args:
        problem: target, student and loss.
        points: points over all scrambles; each serves twice, with xi and -xi.
        scrambles: independent scrambles.
        seed: seed of the scrambles.

    Raises:
        ValueError: a target that is not finite on a point.
    """

    def __init__(self, problem: Problem, points: int, scrambles: int, seed: int) -> None:
        self.problem = problem
        self._loss = FieldLoss(problem)
        length = problem.length
        normals = sobol_normals(2 * length, points, scrambles, seed)
        self._zstar, self._xi = normals[..., :length], normals[..., length:]
        size = normals.shape[0] * normals.shape[1] * problem.target.outputs
        # Labels do not depend on the overlaps: kept where they fit in memory, and always computed once as a check.
        self._labels = [self._checked(z) for z in self._zstar] if size <= _KEPT else None
        if self._labels is None:
            for z in self._zstar:
                self._checked(z)

    def _checked(self, zstar: Array) -> Array:
        """Labels of fields (n, L)."""
        labels = self.problem.target(zstar)
        bad = np.argwhere(~np.isfinite(labels))
        if len(bad):
            z = ", ".join(f"{x:.4g}" for x in zstar[bad[0, 0]])
            raise ValueError(f"target must be finite for every z*, got {labels[tuple(bad[0])]} at z* = ({z})")
        return labels

    def derivatives(self, m: Array, shifts: Array, order: int) -> Array:
        """Means over all points, shape (N,) + (1 + L,) * order."""
        return self._over_points(m, shifts, lambda m, shift: self._derivative(m, shift, order)[0])

    def sketch(self, m: Array, shifts: Array, order: int) -> Array:
        """The derivatives themselves: fewer points would move their zeros."""
        return self.derivatives(m, shifts, order)

    def error(self, m: Array, shifts: Array, order: int) -> Array:
        """Four standard errors, plus what the central differences and the distance from |m| = 1 may change."""
        return self._over_points(m, shifts, lambda m, shift: self._derivative_error(m, shift, order))

    def mean_square_gradient(self, m: Array, shifts: Array) -> Array:
        """V = E |c|^2, shape (N,)."""
        return self._over_points(m, shifts, lambda m, shift: self._noise(m, shift)[0])

    def mean_square_gradient_error(self, m: Array, shifts: Array) -> Array:
        """Its four standard errors, shape (N,)."""
        return self._over_points(m, shifts, lambda m, shift: 4.0 * self._noise(m, shift)[1])

    def _over_points(self, m: Array, shifts: Array, function: Callable[[float, Array], Array]) -> Array:
        offsets = shifts + self.problem.frame.injection
        return np.stack([function(float(x), offset) for x, offset in zip(m, offsets, strict=True)])

    def _derivative(self, m: float, shift: Array, order: int, widening: float = 1.0) -> tuple[Array, Array]:
        m, spread = clamped(m, order), widening * SPREADS[self.problem.loss.name]
        return self._average(lambda y, z, xi: path_terms(self._loss, y, z, xi, m, shift, order, spread))

    def _derivative_error(self, m: float, shift: Array, order: int) -> Array:
        mean, deviation = self._derivative(m, shift, order)
        error = 4.0 * deviation
        if order == 2:  # the bias of a central difference is a third of what doubling its step changes
            wider = self._derivative(m, shift, order, 2.0)[0]
            error = error + np.abs(wider - mean)
        if clamped(m, order) != m:
            further = self._derivative(clamped(m, order, 2.0**0.5), shift, order)[0]
            error = error + 2.0 * np.abs(further - mean)
        return error

    def _noise(self, m: float, shift: Array) -> tuple[Array, Array]:
        return self._average(lambda y, z, xi: noise_terms(self._loss, y, z, xi, m, shift))

    def _average(self, terms: Callable[[Array, Array, Array], Array]) -> tuple[Array, Array]:
        """Mean and standard error over the scrambles, each with xi and -xi."""
        means = []
        for index, (zstar, xi) in enumerate(zip(self._zstar, self._xi, strict=True)):
            labels = self.problem.target(zstar) if self._labels is None else self._labels[index]
            total = np.zeros(())
            for part in chunks(len(zstar), self.problem.length + self.problem.target.outputs):
                y, z, x = labels[part], zstar[part], xi[part]
                total = total + terms(y, z, x).sum(0) + terms(y, z, -x).sum(0)
            means.append(total / (2.0 * len(zstar)))
        return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means))
