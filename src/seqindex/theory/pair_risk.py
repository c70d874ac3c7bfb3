"""Population risk of length 1 and 2 under any loss by a grid over the pair (z*, z): the engine for the norm loss.

The loss does not depend on the overlaps, so it is tabulated once; the overlaps enter only through the bivariate normal
density of each pair (z*_l, z_l), whose derivatives are explicit.  R = sum_{ij} loss(z*_i, z_j) prod_l p_l(i_l, j_l) is
then a matrix product for many overlaps together, with derivatives that need none of the loss.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.quadrature import trapezoid
from seqindex.model.problem import Problem
from seqindex.theory.mehler import require_finite
from seqindex.theory.path import SPREADS, FieldLoss, chunks, clamped, noise_terms, path_terms

Array = NDArray[np.float64]
STEP = 0.2
"""Spacing of the grid over (z*, z)."""
EXTENT = 6.0
PATH_STEPS = (0.1, 0.5)
"""Spacings of the grid over z* and xi that serves where the density is too narrow for the grid over (z*, z).

As |m| -> 1 the kink lies in z* alone, so that these nodes must be dense."""
RESOLVED = 1.2
"""Widths sqrt(1 - m^2) down to this many steps are resolved: the trapezoid rule errs by 1e-12 there, or 4e-9 for
second derivatives."""
_FLOOR = 1e-7
"""What the ends of the grid and the narrowest density may cost, relative to the loss."""
_BATCH = 128


class PairRisk:
    """Engine of ``PopulationRisk`` at length 1 and 2 for a loss with kinks.

    The norm loss has a kink where the residual vanishes, so the error falls only like a power of the step; it is taken
    from a grid of twice the spacing.

    Raises:
        ValueError: a target that is not finite on a node.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        reach = float(np.linalg.norm(problem.frame.positions, axis=1).max())
        self._fine = _Grid(problem, STEP, PATH_STEPS, reach)
        self._coarse = _Grid(problem, 2.0 * STEP, (2.0 * PATH_STEPS[0], 1.6 * PATH_STEPS[1]), reach)

    def derivatives(self, m: Array, shifts: Array, order: int) -> Array:
        """Derivatives of the risk in (m, shifts), shape (N,) + (1 + L,) * order."""
        return self._fine.derivatives(m, shifts, order)

    def sketch(self, m: Array, shifts: Array, order: int) -> Array:
        """The derivatives on the coarser grid, faster."""
        return self._coarse.derivatives(m, shifts, order)

    def error(self, m: Array, shifts: Array, order: int) -> Array:
        """Change on a grid of twice the spacing, plus what the distance from |m| = 1 changes."""
        fine = self._fine.derivatives(m, shifts, order)
        scale = self._fine.derivatives(m, shifts, 0).reshape(-1, *(1,) * order)
        error = np.abs(fine - self._coarse.derivatives(m, shifts, order)) + _FLOOR * scale
        for index, (x, shift) in enumerate(zip(m, shifts, strict=True)):
            if clamped(float(x), order) != x:
                further = self._fine.path(clamped(float(x), order, 2.0**0.5), shift, order)
                error[index] += 2.0 * np.abs(further - fine[index])
        return error

    def mean_square_gradient(self, m: Array, shifts: Array) -> Array:
        """V = E |c|^2, shape (N,)."""
        return self._fine.noise(m, shifts)

    def mean_square_gradient_error(self, m: Array, shifts: Array) -> Array:
        """Its absolute error, shape (N,)."""
        noise = self._fine.noise(m, shifts)
        return np.abs(noise - self._coarse.noise(m, shifts)) + _FLOOR * noise


class _Grid:
    """One resolution: tables of the loss, lazily of |c|^2, and the fallback near |m| = 1."""

    def __init__(self, problem: Problem, step: float, path_steps: tuple[float, float], reach: float) -> None:
        self.problem = problem
        self.length = problem.length
        self.step = step
        self.targets = trapezoid(step, EXTENT).nodes
        self.students = trapezoid(step, EXTENT + reach).nodes
        self._path_rules = trapezoid(path_steps[0], EXTENT), trapezoid(path_steps[1], EXTENT)
        for nodes in (self.targets, self._path_rules[0].nodes):
            require_finite(np.moveaxis(problem.target(self._mesh(nodes)), -1, 0), nodes)
        self._field_loss = FieldLoss(problem)
        self._loss = self._table(noise=False)
        self._noise: Array | None = None

    def _mesh(self, nodes: Array) -> Array:
        return np.stack(np.meshgrid(*[nodes] * self.length, indexing="ij"), axis=-1)

    def _table(self, noise: bool) -> Array:
        """Values at (z*_i, z_j), shape (pairs of the first field, pairs of the second one or 1)."""
        z = self._mesh(self.students).reshape(-1, self.length) + self.problem.frame.injection
        labels = self.problem.target(self._mesh(self.targets).reshape(-1, self.length))
        outputs = self.problem.student(z)
        jacobian = self.problem.student.jacobian(z) if noise else None
        rows = np.empty((len(labels), len(z)))
        for index, label in enumerate(labels):
            residual = outputs - label
            if jacobian is None:
                rows[index] = self.problem.loss.value(residual)
            else:
                c = np.einsum("nkl,nk->nl", jacobian, self.problem.loss.gradient(residual))
                rows[index] = (c**2).sum(-1)
        n, k = len(self.targets), len(self.students)
        if self.length == 1:
            return rows.reshape(-1, 1)
        return np.ascontiguousarray(rows.reshape(n, n, k, k).transpose(0, 2, 1, 3)).reshape(n * k, n * k)

    def derivatives(self, m: Array, shifts: Array, order: int) -> Array:
        """Derivatives in (m, shifts), shape (N,) + (1 + L,) * order."""
        result = np.empty((len(m), *(1 + self.length,) * order))
        near = np.sqrt(np.maximum(1.0 - m * m, 0.0)) < RESOLVED * self.step
        for index in np.flatnonzero(near):
            result[index] = self.path(clamped(float(m[index]), order), shifts[index], order)
        resolved = np.flatnonzero(~near)
        for start in range(0, len(resolved), _BATCH):
            part = resolved[start : start + _BATCH]
            result[part] = self._resolved(self._loss, m[part], shifts[part], order)
        return result

    def noise(self, m: Array, shifts: Array) -> Array:
        """E |c|^2, shape (N,)."""
        if self._noise is None:
            self._noise = self._table(noise=True)
        result = np.empty(len(m))
        near = np.sqrt(np.maximum(1.0 - m * m, 0.0)) < RESOLVED * self.step
        for index in np.flatnonzero(near):
            result[index] = self._path_sum(float(m[index]), shifts[index], None)
        resolved = np.flatnonzero(~near)
        for start in range(0, len(resolved), _BATCH):
            part = resolved[start : start + _BATCH]
            result[part] = self._resolved(self._noise, m[part], shifts[part], 0)
        return result

    def _resolved(self, table: Array, m: Array, shifts: Array, order: int) -> Array:
        densities = [self._densities(m, shifts[:, axis], order) for axis in range(self.length)]
        last = densities[1] if self.length == 2 else {(0, 0): np.ones((len(m), 1))}
        first = {key: density @ table for key, density in densities[0].items()}
        result = np.empty((len(m), *(1 + self.length,) * order))
        for axes in np.ndindex(*result.shape[1:]):
            if axes > axes[::-1]:
                result[(slice(None), *axes)] = result[(slice(None), *axes[::-1])]
                continue
            total = np.zeros(len(m))
            # A derivative in m acts on either pair (Leibniz), one in a shift on its own pair.
            for owners in itertools.product(*[range(self.length) if axis == 0 else (axis - 1,) for axis in axes]):
                keys = [[0, 0], [0, 0]]
                for axis, owner in zip(axes, owners, strict=True):
                    keys[owner][min(axis, 1)] += 1
                total += (first[keys[0][0], keys[0][1]] * last[keys[1][0], keys[1][1]]).sum(1)
            result[(slice(None), *axes)] = total
        return result

    def _densities(self, m: Array, shift: Array, order: int) -> dict[tuple[int, int], Array]:
        """Weights of the pairs (i, j) of one field and their derivatives, by orders in (m, shift): shape (N, pairs)."""
        m, shift = m[:, None, None], shift[:, None, None]
        x = self.targets[:, None]
        width = 1.0 - m * m
        q = (self.students - shift - m * x) / width
        log_weight = -0.5 * x**2 - 0.5 * width * q**2
        weight = np.exp(log_weight) * (self.step**2 / (2.0 * np.pi)) / np.sqrt(width)
        result = {(0, 0): weight}
        if order >= 1:  # logarithmic derivatives of the density
            by_m, by_shift = q * x + m / width - m * q**2, q
            result |= {(1, 0): weight * by_m, (0, 1): weight * by_shift}
        if order == 2:
            by_mm = -(x**2) / width + 4.0 * m * q * x / width - q**2 * (1.0 + 4.0 * m**2 / width)
            by_mm = by_mm + (1.0 + m**2) / width**2
            result |= {
                (2, 0): weight * (by_m**2 + by_mm),
                (1, 1): weight * (by_m * by_shift + (2.0 * m * q - x) / width),
                (0, 2): weight * (by_shift**2 - 1.0 / width),
            }
        return {key: value.reshape(len(m), -1) for key, value in result.items()}

    def path(self, m: float, shift: Array, order: int) -> Array:
        """Derivatives at one point by a grid over (z*, xi)."""
        return self._path_sum(m, shift, order)

    def _path_sum(self, m: float, shift: Array, order: int | None) -> Array:
        """Sum over the grid of derivatives, or of |c|^2 where ``order`` is None."""
        zstar, xi = (self._mesh(rule.nodes).reshape(-1, self.length) for rule in self._path_rules)
        outer, inner = (np.prod(self._mesh(rule.weights).reshape(-1, self.length), axis=1) for rule in self._path_rules)
        labels = self.problem.target(zstar)
        spread = SPREADS[self.problem.loss.name]
        offset = shift + self.problem.frame.injection
        total = np.zeros((1 + self.length,) * (order or 0))
        for part in chunks(len(zstar), len(xi)):
            repeated = np.repeat(labels[part], len(xi), axis=0), np.repeat(zstar[part], len(xi), axis=0)
            moving = np.tile(xi, (len(labels[part]), 1))
            if order is None:
                terms = noise_terms(self._field_loss, *repeated, moving, m, offset)
            else:
                terms = path_terms(self._field_loss, *repeated, moving, m, offset, order, spread)
            total += np.tensordot(np.outer(outer[part], inner).ravel(), terms, axes=(0, 0))
        return total
