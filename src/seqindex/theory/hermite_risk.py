"""Population risk and gradient noise under the square loss, by Hermite series: the engine for short sequences."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqindex.model.problem import Problem
from seqindex.theory.mehler import Expansion, Integrand, Resolution, Series, TargetSide
from seqindex.theory.sampled_risk import SampledRisk

Array = NDArray[np.float64]

RESOLUTIONS = {
    1: Resolution(1 / 12, (12.0, 15.0), (48, 96, 192, 384), panel=(0.5, 12)),
    2: Resolution(1 / 12, (12.0, 15.0), (48, 96, 192, 384), panel=(0.5, 12)),
    3: Resolution(0.25, (7.5, 9.0), (24, 48), ratio=1.5, panel=(1.0, 8)),
    4: Resolution(0.4, (6.5, 7.2), (12, 24), ratio=1.4),
}
"""Working resolution by sequence length: the grid has nodes^L points."""
TOLERANCE = 1e-14
"""Truncation aimed at, relative to the scale of the risk."""
SKETCH = 1e-7
"""The same for a sketch."""
_LARGEST = 2**26
"""Numbers in the largest table of a target's side by panels."""
CACHE = 1024
"""Shifts whose series are kept."""


class MehlerSum:
    """An expectation over (z*, z) as a function of m and the shifts, with derivatives and errors.

    Args:
        integrand: what to average.
        length: number L of fields.
        reach: largest absolute shift of a field.
    """

    def __init__(self, integrand: Integrand, length: int, reach: float) -> None:
        self.length = length
        self._integrand = integrand
        self._reach = reach
        resolution = RESOLUTIONS[length]
        target, self._coarse_target = _target_sides(integrand, length, resolution)
        self._fine = Expansion(integrand, length, reach, resolution, target)
        self._cache: OrderedDict[tuple[bytes, int, int, bool], Series] = OrderedDict()
        self._orders = resolution.orders
        self._target_tails = {order: self._fine.target.tail(order) for order in self._orders}
        self._student_tails = {order: self._series(np.zeros(length), order, 0).tail for order in self._orders}

    @cached_property
    def _coarse(self) -> Expansion:
        """The same on a coarser grid, made when an error is first asked for."""
        coarser = RESOLUTIONS[self.length].coarser
        return Expansion(self._integrand, self.length, self._reach, coarser, self._coarse_target)

    def derivatives(
        self, m: Array, shifts: Array, order: int, coarse: bool = False, tolerance: float = TOLERANCE
    ) -> Array:
        """Derivatives of the given order in (m, shifts), shape (N,) + (1 + L,) * order."""
        result = np.empty((len(m), *(1 + self.length,) * order))
        for part, shift, highest in self._groups(m, shifts, order, tolerance):
            series = self._series(shift, highest, order, coarse)
            for by_m in range(order + 1):
                cross = series.cross[order - by_m]
                value = np.tensordot(_powers(m[part], cross.shape[-1] - 1, by_m), cross, axes=(1, -1))
                if by_m == 0:
                    value += series.constant[order]
                if order == 2 and by_m == 1:
                    result[part, 0, 1:] = result[part, 1:, 0] = value
                else:
                    result[(part, *((0 if by_m else slice(1, None),) * order))] = value
        if order == 0:
            result += (self._coarse if coarse else self._fine).target.mean
        return result

    def error(self, m: Array, shifts: Array, order: int) -> Array:
        """Truncation (Cauchy-Schwarz) plus twice the change on a grid of twice the spacing plus rounding."""
        change = np.abs(self.derivatives(m, shifts, order) - self.derivatives(m, shifts, order, coarse=True))
        rest = np.empty(len(m))
        for part, shift, highest in self._groups(m, shifts, order):
            series = self._series(shift, highest, order)
            # A derivative multiplies the term of degree k by at most k, and the student's tail dies within 2 orders.
            truncation = (2.0 * highest) ** order * self._target_tails[highest] * series.tail
            scale = 1.0 + self._fine.target.energy + abs(float(series.constant[0])) + abs(self._fine.target.mean)
            rest[part] = np.abs(m[part]) ** (highest + 1 - order) * truncation + 1e-15 * scale * 8.0**order
        return 2.0 * change + rest.reshape(-1, *(1,) * order)

    def origin(self, order: int) -> list[tuple[Array, Array, Array]]:
        """Coefficients up to an order an axis of G, F and B at zero shift, on the fine and on the coarse grid."""
        box = (slice(None), *(slice(order + 1),) * self.length)
        results = []
        for expansion in (self._fine, self._coarse):
            pair, constant = expansion.coefficients(np.zeros(self.length), order, order)
            results.append((expansion.target.coefficients[box], pair, constant[0]))
        return results

    @property
    def scale(self) -> float:
        """Size of the target's side."""
        return self._fine.target.energy

    def _series(self, shift: Array, order: int, derivatives: int, coarse: bool = False) -> Series:
        # One that was made for higher derivatives serves as well.
        keys = [(shift.tobytes(), order, more, coarse) for more in range(derivatives, 3)]
        key = next((key for key in keys if key in self._cache), keys[0])
        if key not in self._cache:
            self._cache[key] = (self._coarse if coarse else self._fine).series(shift, order, derivatives)
            if len(self._cache) > CACHE:
                self._cache.popitem(last=False)
        return self._cache[key]

    def _order(self, m: float, derivatives: int, tolerance: float) -> int:
        """The lowest Hermite order whose tail at |m| is below the tolerance; 100 leaves room for the shifts."""
        for order in self._orders[:-1]:
            tail = abs(m) ** (order + 1 - derivatives) * self._target_tails[order] * self._student_tails[order]
            if 100.0 * (order + 1.0) ** derivatives * tail < tolerance * self._fine.target.energy**0.5:
                return order
        return self._orders[-1]

    def _groups(
        self, m: Array, shifts: Array, derivatives: int, tolerance: float = TOLERANCE
    ) -> list[tuple[NDArray[np.intp], Array, int]]:
        """Points that share a shift, with the shift and the order that serves them all."""
        if not len(m):
            return []
        unique, inverse = np.unique(shifts + 0.0, axis=0, return_inverse=True)  # + 0.0 makes -0.0 the same as 0.0
        inverse = inverse.ravel()
        parts = np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1])
        return [
            (part, shift, self._order(float(np.abs(m[part]).max()), derivatives, tolerance))
            for part, shift in zip(parts, unique, strict=True)
        ]


class HermiteRisk:
    """Engine of ``PopulationRisk`` for the square loss at length up to 4.

    Risk: A = |g|^2, B = |f|^2, G = g, F = -2 f.  Noise E|c|^2, c = 2 J^T (f - g): A = 0, B = 4 |J^T f|^2, and the pairs
    g_i with -8 (J J^T f)_i and g_i g_j with 4 (J J^T)_ij.  At length 4 these are too many for the grid, and the noise
    comes from Sobol points.

    Args:
        problem: target and student.
        points: Sobol points over all scrambles.
        scrambles: independent scrambles.
        seed: their seed.
    """

    def __init__(self, problem: Problem, points: int = 2**18, scrambles: int = 16, seed: int = 0) -> None:
        self.problem = problem
        self._injection = problem.frame.injection
        self._sobol = (points, scrambles, seed)
        self._reach = float(np.linalg.norm(problem.frame.positions, axis=1).max())  # |shift_l| <= |Q_l| as |s| <= 1
        self._risk = MehlerSum(Integrand(self._target, self._student), problem.length, self._reach)

    @property
    def directions(self) -> Array:
        """The combinations of the fields in which ``origin`` is given: the fields themselves."""
        return np.eye(self.problem.length)

    @property
    def scale(self) -> float:
        """Size of the risk."""
        return self._risk.scale

    def origin(self, order: int) -> list[tuple[Array, Array, Array]]:
        """Coefficients of g, f and |f|^2 at s = 0, on the fine and on the coarse grid; see ``theory.origin``."""
        return [(g, -0.5 * pair, constant) for g, pair, constant in self._risk.origin(order)]

    def derivatives(self, m: Array, shifts: Array, order: int) -> Array:
        """Derivatives of the risk in (m, shifts), shape (N,) + (1 + L,) * order."""
        return self._risk.derivatives(m, shifts, order)

    def error(self, m: Array, shifts: Array, order: int) -> Array:
        """Their absolute errors, of the same shape."""
        return self._risk.error(m, shifts, order)

    def sketch(self, m: Array, shifts: Array, order: int) -> Array:
        """The derivatives to about 1e-6, faster."""
        return self._risk.derivatives(m, shifts, order, coarse=True, tolerance=SKETCH)

    def mean_square_gradient(self, m: Array, shifts: Array) -> Array:
        """V = E |c|^2, shape (N,)."""
        if self.problem.length == 4:
            return self._sampled.mean_square_gradient(m, shifts)
        return self._noise.derivatives(m, shifts, 0)

    def mean_square_gradient_error(self, m: Array, shifts: Array) -> Array:
        """Its absolute error, shape (N,)."""
        if self.problem.length == 4:
            return self._sampled.mean_square_gradient_error(m, shifts)
        return self._noise.error(m, shifts, 0)

    @cached_property
    def _sampled(self) -> SampledRisk:
        return SampledRisk(self.problem, *self._sobol)

    @cached_property
    def _noise(self) -> MehlerSum:
        integrand = Integrand(self._noise_target, self._noise_student)
        return MehlerSum(integrand, self.problem.length, self._reach)

    def _target(self, z: Array) -> tuple[Array, Array]:
        g = self.problem.target(z)
        return (g**2).sum(-1), g

    def _student(self, z: Array) -> tuple[Array, Array]:
        f = self.problem.student(z + self._injection)
        return (f**2).sum(-1), -2.0 * f

    def _noise_target(self, z: Array) -> tuple[Array, Array]:
        g = self.problem.target(z)
        i, j = np.triu_indices(g.shape[-1])
        return np.zeros(g.shape[:-1]), np.concatenate([g, g[..., i] * g[..., j]], axis=-1)

    def _noise_student(self, z: Array) -> tuple[Array, Array]:
        z = z + self._injection
        f, jacobian = self.problem.student(z), self.problem.student.jacobian(z)
        i, j = np.triu_indices(f.shape[-1])
        product = jacobian @ np.swapaxes(jacobian, -1, -2)
        pulled = np.einsum("...kl,...k->...l", jacobian, f)
        linear = -8.0 * np.einsum("...ij,...j->...i", product, f)
        quadratic = np.where(i == j, 4.0, 8.0) * product[..., i, j]
        return 4.0 * (pulled**2).sum(-1), np.concatenate([linear, quadratic], axis=-1)


def _target_sides(integrand: Integrand, length: int, resolution: Resolution) -> tuple[TargetSide, TargetSide]:
    """The target's side on the fine and the coarse grid of the rule that serves it best.

    That is the trapezoid rule, unless kinks or jumps at z*_l = 0 spoil it: panels with a boundary there do not mind.
    """
    best: tuple[float, TargetSide, TargetSide] | None = None
    for kind in resolution.kinds:
        size = len(resolution.rule(kind).nodes) ** length
        if best is not None and size * best[1].coefficients.shape[0] > _LARGEST:
            continue
        fine = TargetSide.of(integrand, length, resolution, kind)
        coarse = TargetSide.of(integrand, length, resolution.coarser, kind)
        change = fine.distance(coarse)
        if best is None or change < 0.1 * best[0]:
            best = change, fine, coarse
        if change < 1e-9:
            break
    assert best is not None
    return best[1], best[2]


def _powers(m: Array, degree: int, by_m: int) -> Array:
    """Derivatives of m^k, k = 0..degree, shape (N, degree + 1)."""
    k = np.arange(degree + 1.0)
    factor = np.ones(degree + 1)
    for j in range(by_m):
        factor *= np.maximum(k - j, 0.0)
    return np.asarray(m[:, None] ** np.maximum(k - by_m, 0.0) * factor)
