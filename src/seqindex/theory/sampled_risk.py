"""Population risk by scrambled Sobol points in the 2 L variables (z*, xi): the engine for long sequences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.sobol import sobol_normals
from seqindex.model.problem import Problem
from seqindex.theory.path import SPREADS, chunks, clamped, noise_terms, path_terms

Array = NDArray[np.float64]


class SampledRisk:
    """Engine of ``PopulationRisk`` for any length and loss.

    The points are fixed, so that the estimate is a smooth function of the overlaps whose derivatives are the estimated
    derivatives.  Errors are three standard errors over the scrambles.

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
        length = problem.length
        normals = sobol_normals(2 * length, points, scrambles, seed)
        self._zstar = np.concatenate([normals[..., :length]] * 2, axis=1)
        self._xi = np.concatenate([normals[..., length:], -normals[..., length:]], axis=1)
        half = normals[..., :length].reshape(-1, length)
        for part in chunks(len(half), length):
            values = problem.target(half[part])
            bad = np.argwhere(~np.isfinite(values))
            if len(bad):
                z = ", ".join(f"{x:.4g}" for x in half[part][bad[0, 0]])
                raise ValueError(f"target must be finite for every z*, got {values[tuple(bad[0])]} at z* = ({z})")

    def derivatives(self, m: Array, shifts: Array, order: int) -> Array:
        """Means over all points, shape (N,) + (1 + L,) * order."""
        return self._over_points(m, shifts, lambda m, shift: self._derivative(m, shift, order)[0])

    def error(self, m: Array, shifts: Array, order: int) -> Array:
        """Three standard errors, plus what the central differences and the distance from |m| = 1 may change."""
        return self._over_points(m, shifts, lambda m, shift: self._derivative_error(m, shift, order))

    def mean_square_gradient(self, m: Array, shifts: Array) -> Array:
        """V = E |c|^2, shape (N,)."""
        return self._over_points(m, shifts, lambda m, shift: self._noise(m, shift)[0])

    def mean_square_gradient_error(self, m: Array, shifts: Array) -> Array:
        """Its three standard errors, shape (N,)."""
        return self._over_points(m, shifts, lambda m, shift: 3.0 * self._noise(m, shift)[1])

    @staticmethod
    def _over_points(m: Array, shifts: Array, function: Callable[[float, Array], Array]) -> Array:
        return np.stack([function(float(x), shift) for x, shift in zip(m, shifts, strict=True)])

    def _derivative(self, m: float, shift: Array, order: int, spread: float | None = None) -> tuple[Array, Array]:
        m = clamped(m, order)
        return self._average(lambda z, xi: path_terms(self.problem, z, xi, m, shift, order, spread))

    def _derivative_error(self, m: float, shift: Array, order: int) -> Array:
        mean, deviation = self._derivative(m, shift, order)
        error = 3.0 * deviation
        if order == 2:  # the bias of a central difference is a third of what doubling its step changes
            wider = self._derivative(m, shift, order, 2.0 * SPREADS[self.problem.loss.name])[0]
            error = error + np.abs(wider - mean)
        if clamped(m, order) != m:
            further = self._derivative(clamped(m, order, 2.0**0.5), shift, order)[0]
            error = error + np.abs(further - mean)
        return error

    def _noise(self, m: float, shift: Array) -> tuple[Array, Array]:
        return self._average(lambda z, xi: noise_terms(self.problem, z, xi, m, shift))

    def _average(self, terms: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
        """Mean and standard error over the scrambles."""
        means = []
        for zstar, xi in zip(self._zstar, self._xi, strict=True):
            sums = [terms(zstar[part], xi[part]).sum(0) for part in chunks(len(zstar), self.problem.length)]
            means.append(sum(sums[1:], start=sums[0]) / len(zstar))
        return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means))
