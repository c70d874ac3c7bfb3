"""Population risk of students that see one combination of the fields: the tied network at any length.

With u = v.z and the unit vector U = v / |v|, only x* = U.z* and x = U.z matter, a pair of standard normals with
covariance m, and x has mean t = U.shift. The target enters through its coefficients g_j = E[g h_j(x*)], contractions
of its Hermite tensors, so that a sequence of a thousand tokens costs a one-dimensional series:

    R(m, t) = E g^2 + E f^2(x + t) - 2 sum_j m^j g_j f_j(t),    f_j(t) = E[f(x + t) h_j(x)].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from seqindex.gaussian.hermite import normalised_hermite
from seqindex.gaussian.sobol import sobol_normals
from seqindex.model.problem import Problem
from seqindex.theory.hermite_series import HermiteSeries
from seqindex.theory.sampled_risk import SampledRisk

Array = NDArray[np.float64]

ORDER = 96
"""Highest order of the series of a target that is no polynomial."""
_PANELS = ((0.5, 12), (0.8, 10))
"""Width of a Gauss-Legendre panel and nodes in it, working and coarser; panels meet at u = 0, relu's kink."""
_EXTENT = 12.0


@dataclass(frozen=True)
class _Grid:
    """Nodes y of x + t with Lebesgue weights, and the student's f, f' and powers of them there."""

    nodes: Array
    weights: Array
    student: dict[str, Array] = field(repr=False)

    def coefficients(self, name: str, t: float, order: int) -> Array:
        """E[F(x + t) h_j(x)], j = 0..order."""
        centred = self.nodes - t
        density = np.exp(-0.5 * centred**2) / math.sqrt(2.0 * math.pi) * self.weights
        return np.asarray(normalised_hermite(centred, order) @ (density * self.student[name]))


class LineRisk:
    """Engine of ``PopulationRisk`` for the square loss and students of one combination and one output.

    Args:
        problem: target and student.
        points: Sobol points, where the noise needs them.
        scrambles: their scrambles.
        seed: their seed.

    Raises:
        ValueError: a target that is not finite at a node or has no finite square mean.
    """

    def __init__(self, problem: Problem, points: int, scrambles: int, seed: int) -> None:
        self.problem = problem
        self._sobol = (points, scrambles, seed)
        v = problem.student.combinations[0]
        self._norm = float(np.linalg.norm(v))
        self.directions: Array = (v / self._norm if self._norm > 0.0 else v)[None]
        reach = float(np.abs(self.directions @ problem.frame.positions).sum())
        self._offset = float(self.directions[0] @ problem.frame.injection)
        reach += abs(self._offset)
        self._grids = [self._grid(width, count, _EXTENT + reach) for width, count in _PANELS]
        self._target = self._coefficients(problem.target)
        target: Any = problem.target
        self._square: tuple[float, float] = second_moment(target)

    def _grid(self, width: float, count: int, extent: float) -> _Grid:
        half = math.ceil(extent / width)
        inner, weights = np.polynomial.legendre.leggauss(count)
        nodes = ((np.arange(-half, half) + 0.5)[:, None] * width + 0.5 * width * inner).ravel()
        z = nodes[:, None] * self.directions
        f = self.problem.student(z)[:, 0]
        # J^T 1 = v f', and the length of v is in f' here, so that |c| = |d loss / d x|.
        slope = self.problem.student.pull_back(z, np.ones((len(z), 1))) @ self.directions[0]
        student = {"f": f, "ff": f * f, "fss": f * slope**2, "ffss": (f * slope) ** 2, "ss": slope**2}
        return _Grid(nodes, np.tile(0.5 * width * weights, 2 * half), student)

    def _coefficients(self, target: Any) -> tuple[Array, Array, bool]:
        """g_j, their errors, and whether there are no more."""
        series = series_of(target)
        order = min(series.degree, 150) if series.exact else ORDER
        values, errors = series.taylor(self.directions[0], order)
        roots = np.sqrt([float(math.factorial(j)) for j in range(order + 1)])
        return values[0] * roots, errors[0] * roots, series.exact

    @property
    def scale(self) -> float:
        """Size of the risk."""
        return self._square[0] + float(self._grids[0].coefficients("ff", 0.0, 0)[0])

    def origin(self, order: int) -> list[tuple[Array, Array, Array]]:
        """Coefficients of g, f and |f|^2 at s = 0, on the working and on the coarser grid; see ``theory.origin``."""
        t = self._offset
        g = np.zeros(order + 1)
        kept = min(order + 1, len(self._target[0]))
        g[:kept] = self._target[0][:kept]
        slack = np.zeros(order + 1)
        slack[:kept] = self._target[1][:kept]
        fine, coarse = ((grid.coefficients("f", t, order), grid.coefficients("ff", t, order)) for grid in self._grids)
        return [(g[None], fine[0][None], fine[1]), ((g + slack)[None], coarse[0][None], coarse[1])]

    def derivatives(self, m: Array, shifts: Array, order: int) -> Array:
        """Derivatives of the risk in (m, shifts), shape (N,) + (1 + L,) * order."""
        return self._spread(self._local(self._grids[0], m, self._means(shifts), order), order)

    def sketch(self, m: Array, shifts: Array, order: int) -> Array:
        """The derivatives themselves, which are cheap."""
        return self.derivatives(m, shifts, order)

    def error(self, m: Array, shifts: Array, order: int) -> Array:
        """Twice the change on a coarser grid, plus what the target's coefficients and the truncation leave open."""
        t = self._means(shifts)
        values, others = (self._local(grid, m, t, order) for grid in self._grids)
        open_ = np.array([self._open(float(x), float(y), order) for x, y in zip(m, t, strict=True)])
        local = 2.0 * np.abs(values - others) + open_.reshape(-1, *(1,) * order)
        return np.abs(self._spread(local, order, np.abs(self.directions)))

    def mean_square_gradient(self, m: Array, shifts: Array) -> Array:
        """V = E |c|^2, shape (N,)."""
        if np.any(m != 0.0) and self._squared is None:
            return self._sampled.mean_square_gradient(m, shifts)
        return self._noise(self._grids[0], m, self._means(shifts))

    def mean_square_gradient_error(self, m: Array, shifts: Array) -> Array:
        """Its absolute error, shape (N,)."""
        if np.any(m != 0.0) and self._squared is None:
            return self._sampled.mean_square_gradient_error(m, shifts)
        t = self._means(shifts)
        values, others = (self._noise(grid, m, t) for grid in self._grids)
        slopes = self._grids[0].coefficients("ss", 0.0, 0)[0]
        return np.asarray(2.0 * np.abs(values - others) + 4.0 * slopes * self._square[1] + 1e-14 * np.abs(values))

    def _means(self, shifts: Array) -> Array:
        return np.asarray(shifts @ self.directions[0] + self._offset)

    def _local(self, grid: _Grid, m: Array, t: Array, order: int) -> Array:
        """Derivatives in (m, t), shape (N,) + (2,) * order."""
        g = self._target[0]
        j = np.arange(len(g))
        result = np.empty((len(m), *(2,) * order))
        for index, (overlap, mean) in enumerate(zip(m, t, strict=True)):
            f = grid.coefficients("f", mean, len(g) + 1)
            b = grid.coefficients("ff", mean, 2)
            for by_t in range(order + 1):
                by_m = order - by_t
                raised = f[by_t : by_t + len(g)] * np.sqrt([math.perm(k + by_t, by_t) for k in j])
                falling = np.array([float(math.perm(k, by_m)) for k in j])
                value = -2.0 * float((g * raised * falling) @ overlap ** np.maximum(j - by_m, 0).astype(float))
                if by_m == 0:
                    value += b[by_t] * math.sqrt(math.factorial(by_t)) + (self._square[0] if order == 0 else 0.0)
                for axes in np.ndindex(*(2,) * order):
                    if sum(axes) == by_t:
                        result[(index, *axes)] = value
        return result

    def _open(self, m: float, t: float, order: int) -> float:
        """What the coefficients' errors and the terms left out may change (Cauchy-Schwarz)."""
        g, errors, complete = self._target
        grid = self._grids[0]
        f = grid.coefficients("f", t, len(g) - 1)
        powers = np.abs(m) ** np.arange(len(g)) * np.arange(1.0, len(g) + 1.0) ** order
        total = 2.0 * float(errors @ (powers * np.abs(f))) + (self._square[1] if order == 0 else 0.0)
        total += 1e-15 * (1.0 + self.scale)
        if not complete:
            energy = float(grid.coefficients("ff", t, 0)[0])
            tails = math.sqrt(max(self._square[0] - float(g @ g), 0.0) * max(energy - float(f @ f), 0.0))
            total += 2.0 * abs(m) ** (len(g) - order) * (2.0 * len(g)) ** order * tails
        return total

    def _noise(self, grid: _Grid, m: Array, t: Array) -> Array:
        g = self._target[0]
        only_mean = not np.any(m != 0.0) or self._squared is None
        squared = np.array([self._square[0]]) if only_mean else self._squared
        assert squared is not None
        result = np.empty(len(m))
        for index, (overlap, mean) in enumerate(zip(m, t, strict=True)):
            linear = grid.coefficients("fss", mean, len(g) - 1)
            quadratic = grid.coefficients("ss", mean, len(squared) - 1)
            total = float(grid.coefficients("ffss", mean, 0)[0])
            total -= 2.0 * float((g * linear) @ overlap ** np.arange(len(g)))
            total += float((squared * quadratic) @ overlap ** np.arange(len(squared)))
            result[index] = 4.0 * total
        return result

    @cached_property
    def _squared(self) -> Array | None:
        """Coefficients of g^2, where they can be had."""
        target: Any = self.problem.target
        try:
            values, _, _ = self._coefficients(squared_target(target))
        except ValueError:
            return None
        return values

    @cached_property
    def _sampled(self) -> SampledRisk:
        return SampledRisk(self.problem, *self._sobol)

    def _spread(self, local: Array, order: int, directions: Array | None = None) -> Array:
        """Derivatives in (m, shifts) from those in (m, t), t = U.shifts."""
        chain = np.zeros((2, 1 + self.problem.length))
        chain[0, 0] = 1.0
        chain[1, 1:] = self.directions[0] if directions is None else directions[0]
        if order == 1:
            return np.asarray(local @ chain)
        return np.asarray(np.einsum("ai,nab,bj->nij", chain, local, chain, optimize=True)) if order == 2 else local


@lru_cache(maxsize=16)
def series_of(target: Any) -> HermiteSeries:
    """Series of a target, by identity: the risk, the orders and the predictions of one problem all ask for it."""
    return HermiteSeries(target, ORDER)


@lru_cache(maxsize=16)
def squared_target(target: Any) -> Any:
    """g_i g_i of every output, as a target for ``HermiteSeries``."""
    if getattr(target, "expression", None) is not None:
        trees = tuple(sympy.expand(tree**2) for tree in target.expression)
        return _Squared(target, trees)
    return _Squared(target, None)


class _Squared:
    def __init__(self, target: Any, trees: tuple[sympy.Expr, ...] | None) -> None:
        self.length = target.length
        self.expression = trees
        self._target = target

    def __call__(self, z: Array) -> Array:
        return np.asarray(self._target(z)) ** 2


@lru_cache(maxsize=16)
def second_moment(target: Any, points: int = 2**18) -> tuple[float, float]:
    """E |g|^2 and its absolute error: exact for polynomials, by quadrature or Sobol points otherwise.

    Example:
        >>> second_moment(sx.Target("sum(He2(z))", length=1000))
        (2000.0, 0.0)
    """
    series = HermiteSeries(target, 0)
    if series.exact:  # Parseval, in exact numbers until the last sum
        parts = [entries.items() for order in range(series.degree + 1) for entries in series.entries(order)]
        squares = (float(e.value) ** 2 / math.prod(math.factorial(k) for _, k in i) for part in parts for i, e in part)
        return math.fsum(squares), 0.0
    try:
        values, errors = HermiteSeries(squared_target(target), 0).taylor(np.ones(target.length), 0)
        return float(values.sum()), float(errors.sum())
    except ValueError:
        z = sobol_normals(target.length, points)
        means = np.array([(np.asarray(target(part)) ** 2).sum(-1).mean() for part in z])
        return float(means.mean()), float(4.0 * means.std(ddof=1) / math.sqrt(len(means)))
