"""Expectations over two correlated Gaussian vectors by a Hermite (Mehler) series.

z* and zeta are standard normal in R^L with Cov(z*_l, zeta_l') = m delta_{ll'}, so that
E[h_alpha(z*) h_beta(zeta)] = m^|alpha| delta_{alpha beta}, and for z = zeta + shift

    E[A(z*) + B(z) + G(z*).F(z)]
        = E A + E B(zeta + shift) + sum_alpha m^|alpha| E[G h_alpha].E[F(zeta + shift) h_alpha]:

a polynomial in m for every shift, from integrals over L instead of 2 L variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.hermite import degrees, hermite_factor, shifted_factor, tensor_coefficients
from seqindex.gaussian.quadrature import Rule, panels, trapezoid

Array = NDArray[np.float64]
_CHUNK = 2**15
"""Grid points evaluated together."""


@dataclass(frozen=True)
class Resolution:
    """Grid and series of one sequence length.

    Attributes:
        step: spacing of the trapezoid rule.
        extents: distance from the mean of the Gaussian to the end of the grid, for the student (attention grows at most
            quadratically) and for the target (which may be a polynomial of high degree).
        orders: increasing highest Hermite orders an axis; the lowest that suffices is used.
        ratio: spacing of the coarser grid, whose result shows the error of this one, over ``step``.
        panel: width of the Gauss-Legendre panels that serve targets with kinks, and the nodes in each; None where the
            grid would be too large.
    """

    step: float
    extents: tuple[float, float]
    orders: tuple[int, ...]
    ratio: float = 2.0
    panel: tuple[float, int] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Rules on offer for the target's side."""
        return ("trapezoid",) if self.panel is None else ("trapezoid", "panels")

    @property
    def coarser(self) -> Resolution:
        """A coarser and shorter grid."""
        panel = None if self.panel is None else (self.panel[0], (self.panel[1] + 1) // 2)
        extents = self.extents[0] - 0.5, self.extents[1] - 0.5
        return Resolution(self.ratio * self.step, extents, self.orders, self.ratio, panel)

    def rule(self, kind: str) -> Rule:
        """The one-dimensional rule of a kind, "trapezoid" or "panels"."""
        if kind == "panels" and self.panel is not None:
            return panels(*self.panel, extent=self.extents[1])
        return trapezoid(self.step, self.extents[1])


@dataclass(frozen=True)
class Integrand:
    """A(z*) + B(z) + G(z*).F(z), as functions of fields (..., L): A and B have one output, G and F have K.

    Attributes:
        target: z* -> (A, G), shapes (...), (..., K).
        student: z -> (B, F), shapes (...), (..., K).
    """

    target: Callable[[Array], tuple[Array, Array]]
    student: Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class TargetSide:
    """Coefficients of the target's side: E A, E[G h_alpha] (K, n, ..., n), and E|G|^2."""

    mean: float
    coefficients: Array
    energy: float

    @classmethod
    def of(cls, integrand: Integrand, length: int, resolution: Resolution, kind: str) -> TargetSide:
        """Integrals over one rule.

        Raises:
            ValueError: a target that is not finite on a node.
        """
        rule = resolution.rule(kind)
        constant, pair = _tabulate(integrand.target, rule.nodes, length)
        require_finite(np.concatenate([constant, pair]), rule.nodes)
        factor = hermite_factor(rule, resolution.orders[-1])
        ground = [factor[:1]] * length
        energy = tensor_coefficients((pair**2).sum(0, keepdims=True), ground)
        return cls(
            float(tensor_coefficients(constant, ground).sum()),
            tensor_coefficients(pair, [factor] * length),
            float(energy.sum()),
        )

    def distance(self, other: TargetSide) -> float:
        """How far two rules are apart, relative to the size of the target."""
        scale = 1e-300 + np.sqrt(self.energy) + abs(self.mean)
        low = (slice(None), *[slice(13)] * (self.coefficients.ndim - 1))
        change = np.abs(self.coefficients[low] - other.coefficients[low]).max() + abs(self.mean - other.mean)
        return float((change + abs(self.energy - other.energy) / scale) / scale)

    def tail(self, order: int) -> float:
        """Square root of the energy of G beyond an order."""
        kept = self.coefficients[_box(self.coefficients.ndim, order + 1)]
        # Rounding of the difference must not pass for an empty tail.
        return float(np.sqrt(max(self.energy - float((kept**2).sum()), 1e-15 * self.energy)))


@dataclass(frozen=True)
class Series:
    """Expansion in m at one shift, with derivatives in the shifts of order 0, 1, ...

    Attributes:
        cross: for each order of derivatives, coefficients of the polynomial in m, shape (L,) * order + (degree + 1,).
        constant: for each order of derivatives, what does not depend on m, shape (L,) * order.
        tail: square root of the energy of F beyond the orders used.
    """

    cross: list[Array]
    constant: list[Array]
    tail: float


class Expansion:
    """The series of one integrand on one grid.

    Args:
        integrand: what to average.
        length: number L of fields.
        reach: largest absolute shift of a field.
        resolution: grid and orders.
        target: the target's side of the integrand, by any rule (the student's is always a trapezoid rule).
    """

    def __init__(
        self, integrand: Integrand, length: int, reach: float, resolution: Resolution, target: TargetSide
    ) -> None:
        self.length = length
        self.resolution = resolution
        self.target = target
        # F is tabulated once: a shift moves the Gaussian, not the grid.
        self._nodes = trapezoid(resolution.step, resolution.extents[0] + reach).nodes
        self._constant, self._pair = _tabulate(integrand.student, self._nodes, length)

    def coefficients(self, shift: Array, order: int, constant_order: int) -> tuple[Array, Array]:
        """E[F(zeta + shift) h_alpha], shape (K, n, ..., n), and E[B(zeta + shift) h_alpha], (1, n', ..., n').

        Orders an axis run up to ``order`` for F and up to ``constant_order``, at most that, for B.
        """
        factors = [shifted_factor(self._nodes, self.resolution.step, float(x), order) for x in shift]
        constant = tensor_coefficients(self._constant, [factor[: constant_order + 1] for factor in factors])
        return tensor_coefficients(self._pair, factors), constant

    def series(self, shift: Array, order: int, derivatives: int) -> Series:
        """The expansion at one shift, shape (L,), with Hermite orders up to ``order`` an axis.

        Args:
            shift: means of the fields z.
            order: one of ``resolution.orders``, or any lower one.
            derivatives: highest order of derivatives in the shifts.
        """
        pair, constant = self.coefficients(shift, order + derivatives, derivatives)
        target = self.target.coefficients[_box(self.length + 1, order + 1)]
        degree = degrees(target.shape[1:]).ravel()
        series = Series([], [], _analytic_tail(pair[_box(pair.ndim, order + 1)]))
        for level in range(derivatives + 1):
            shape = (self.length,) * level
            cross, moments = np.empty((*shape, int(degree[-1]) + 1)), np.empty(shape)
            for axes in np.ndindex(*shape):
                if axes > axes[::-1]:  # mixed derivatives commute
                    cross[axes], moments[axes] = cross[axes[::-1]], moments[axes[::-1]]
                    continue
                raised = _derivative(pair, axes)[_box(pair.ndim, order + 1)]
                product = np.einsum("k...,k...->...", target, raised)
                cross[axes] = np.bincount(degree, product.ravel())
                moments[axes] = _derivative(constant, axes).ravel()[0]
            series.cross.append(cross)
            series.constant.append(moments)
        return series


def _tabulate(function: Callable[[Array], tuple[Array, Array]], nodes: Array, length: int) -> tuple[Array, Array]:
    """Values on the grid, shapes (1, n, ..., n) and (K, n, ..., n)."""
    grid = np.stack(np.meshgrid(*[nodes] * length, indexing="ij"), axis=-1).reshape(-1, length)
    outputs = function(grid[:1])[1].shape[-1]
    constant, pair = np.empty(len(grid)), np.empty((outputs, len(grid)))
    for start in range(0, len(grid), _CHUNK):
        part = slice(start, start + _CHUNK)
        constant[part], values = function(grid[part])
        pair[:, part] = values.T
    shape = (len(nodes),) * length
    return constant.reshape(1, *shape), pair.reshape(outputs, *shape)


def _box(dimensions: int, size: int) -> tuple[slice, ...]:
    """Index of the lowest ``size`` coefficients on every axis but the first."""
    return (slice(None), *[slice(size)] * (dimensions - 1))


def _analytic_tail(coefficients: Array) -> float:
    """Square root of an energy: F is analytic, so more than all beyond the last order lies in the last quarter."""
    total = float((coefficients**2).sum())
    bulk = float((coefficients[_box(coefficients.ndim, 3 * (coefficients.shape[-1] - 1) // 4 + 1)] ** 2).sum())
    return float(np.sqrt(max(total - bulk, 1e-30 * total)))


def _derivative(coefficients: Array, axes: tuple[int, ...]) -> Array:
    """Coefficients of derivatives in the shifts, sqrt(alpha + 1) F_{alpha + 1}; each costs an axis one entry."""
    for axis in axes:
        size = coefficients.shape[axis + 1]
        root = np.sqrt(np.arange(1.0, size)).reshape([-1 if i == axis + 1 else 1 for i in range(coefficients.ndim)])
        coefficients = np.take(coefficients, range(1, size), axis=axis + 1) * root
    return coefficients


def require_finite(values: Array, nodes: Array) -> None:
    """Raise ValueError naming a node where a target, shape (K, n, ..., n), is not finite."""
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        # The node nearest to the origin says most about where the target breaks.
        first = bad[np.argmin((nodes[bad[:, 1:]] ** 2).sum(1))]
        z = ", ".join(f"{x:.4g}" for x in nodes[first[1:]])
        raise ValueError(f"target must be finite for every z*, got {values[tuple(first)]} at z* = ({z})")
