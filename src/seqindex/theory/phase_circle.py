"""The risk of the positional-semantic model on the circle m^2 + e^2 = 1: a short Chebyshev series (length 2).

The risk is even in m and in e, so on the circle m = cos t, e = sin t it is a smooth function of x = m^2 - e^2 = cos 2t;
about 30 Chebyshev polynomials in x give it to 1e-12.  The semantic point is x = 1, the positional one x = -1.  Such a
point is a minimum on the circle where the slope in x has the right sign, and every other minimum on the circle is a
root of the slope.  For the squared loss the coefficients are quadratic in omega and linear in A.

No minimum lies strictly inside the disc.  For the squared loss the risk falls with |m| at fixed e, since
m^-1 d/dm E[S(z*).S(z)] > 0 on the whole disc, which depends on neither omega nor A; ``square_circle`` checks that.  For
the norm it does so but for a below about 0.6 and e near 0.9, where it rises steeply with e.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.special import expit

from seqindex.gaussian.quadrature import trapezoid
from seqindex.model.target import pair_alignment
from seqindex.theory.corner_integrals import Integrals
from seqindex.theory.phase_square import SquareConditions

Array = NDArray[np.float64]

NODES = 40
"""Chebyshev nodes on the circle; the coefficients fall below 1e-13 at about 30."""
ORDERS = 200
"""Hermite orders of the expansion in m; 8e-12 at the node next to m = 1, where it converges most slowly."""


class CircleRisk(Protocol):
    """What the classification of phases needs to know about a loss."""

    @property
    def power(self) -> float:
        """``series`` gives this power of the risk."""
        ...

    def series(self, alignment: float, omega: Array) -> Array:
        """Chebyshev coefficients in x of that power on the circle, shape (n, nodes) for n values of omega."""
        ...

    def curvatures(self, alignment: float, omega: Array) -> tuple[Array, Array]:
        """R_mm and R_ee at the origin, shapes (n,)."""
        ...

    def boundary(self, kind: str, alignment: float) -> float:
        """omega on the boundary ``kind``, see ``seqindex.theory.boundaries.phase_boundary``."""
        ...


def chebyshev_points(count: int) -> Array:
    """Chebyshev points of the first kind, descending."""
    return np.asarray(np.cos((np.arange(count) + 0.5) * np.pi / count))


def chebyshev_coefficients(values: Array) -> Array:
    """Coefficients of the interpolant through values at ``chebyshev_points`` (last axis).

    Example:
        >>> np.abs(chebyshev_coefficients(chebyshev_points(4) ** 2)).round(12).tolist()  # x^2 = (1 + T_2(x)) / 2
        [0.5, 0.0, 0.5, 0.0]
    """
    result = dct(values, axis=-1) / values.shape[-1]
    result[..., 0] *= 0.5
    return np.asarray(result)


def attention_diagonal(z1: Array, z2: Array) -> tuple[Array, Array]:
    """Entries S_11 and S_22 of softmax(z z^T) at length 2: two logistic functions, ten times faster than a softmax.

    Example:
        >>> attention_diagonal(np.zeros(1), np.ones(1))[0].tolist()
        [0.5]
    """
    return expit(z1 * (z1 - z2)), expit(z2 * (z2 - z1))


def _hermite(nodes: Array, weights: Array, orders: int) -> Array:
    """Weighted normalised Hermite polynomials, (orders, nodes)."""
    rows = np.empty((orders, nodes.size))
    rows[0], rows[1] = weights, weights * nodes
    for k in range(1, orders - 1):
        rows[k + 1] = (nodes * rows[k] - np.sqrt(k) * rows[k - 1]) / np.sqrt(k + 1)
    return rows


@dataclass(frozen=True)
class SquareCircle:
    """Circle risk of the squared loss with the opposite encoding.

    Attributes:
        mean: series of E S_11 + E S_22 at zeta + u e, u = (1, -1).
        square: series of E|S(zeta + u e)|^2.
        overlap: series of E[S(z*).S(zeta + u e)].
        origin: at zero overlaps E S_11 = E S_22, E|S|^2, |C_2(S)|^2 and the second derivatives in e of E|S|^2 and of
            E S_11 + E S_22.

    Example:
        >>> square_circle().series(1.0, np.array([0.67])).shape
        (1, 40)
    """

    mean: Array
    square: Array
    overlap: Array
    origin: tuple[float, float, float, float, float]

    power = 1.0
    """``series`` gives the risk itself."""

    def series(self, alignment: float, omega: Array) -> Array:
        """Chebyshev coefficients in x of the risk on the circle, shape (n, nodes) for n values of omega."""
        a = pair_alignment(alignment)
        mean, square = self.origin[:2]
        # A.E S: rows sum to one, so the diagonal entries carry everything.
        unaligned = self.mean * (a[0, 0] - a[0, 1])
        unaligned[0] += 2.0 * a[0, 1]
        w = omega[:, None]
        result = self.square - 2.0 * (1.0 - w) * self.overlap - 2.0 * w * unaligned
        label = (1.0 - w) ** 2 * square + w**2 * (a * a).sum()
        label += 2.0 * w * (1.0 - w) * 2.0 * (a[0, 0] * mean + a[0, 1] * (1.0 - mean))
        result[:, :1] += label
        return np.asarray(result)

    def curvatures(self, alignment: float, omega: Array) -> tuple[Array, Array]:
        """R_mm and R_ee at the origin, shapes (n,)."""
        a = pair_alignment(alignment)
        mean, _, overlap, square, trace = self.origin
        label = (1.0 - omega) * (2.0 * mean - 1.0) + omega * (a[0, 0] - a[0, 1])  # diagonal minus off-diagonal entry
        return -2.0 * (1.0 - omega) * overlap, square - 2.0 * label * trace

    def boundary(self, kind: str, alignment: float) -> float:
        """Boundary ``kind`` from its explicit formula."""
        return SquareConditions(opposite_integrals(), pair_alignment(alignment)).explicit(kind)


@lru_cache(maxsize=1)
def opposite_integrals() -> Integrals:
    """Integrals of the opposite encoding."""
    return Integrals(np.array([[1.0], [-1.0]]))


@lru_cache(maxsize=2)
def square_circle(nodes: int = NODES, orders: int = ORDERS, step: float = 0.07) -> SquareCircle:
    """Tabulate the integrals on the circle, a third of a second.

    Raises:
        ArithmeticError: the risk does not fall with |m| everywhere on the disc.
    """
    rule = trapezoid(step, 17.0)
    hermite = _hermite(rule.nodes, rule.weights, orders)
    weights = np.multiply.outer(rule.weights, rule.weights)
    total = np.add.outer(np.arange(orders), np.arange(orders)).ravel()
    grid = np.meshgrid(rule.nodes, rule.nodes, indexing="ij")

    def diagonal(shift: float) -> tuple[Array, Array]:
        return attention_diagonal(grid[0] + shift, grid[1] - shift)

    def expanded(values: Array) -> Array:
        return np.asarray(hermite @ values @ hermite.T)

    def mean_square(s: tuple[Array, Array]) -> Array:
        return sum((p * p + (1.0 - p) ** 2 for p in s), np.zeros_like(weights))

    start = diagonal(0.0)
    unshifted = [expanded(s) for s in start]
    angles = 0.5 * np.arccos(chebyshev_points(nodes))
    mean, square, overlap = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for i, t in enumerate(angles):
        e, m = np.sin(t), np.cos(t)
        s = diagonal(e)
        shifted = [expanded(values) for values in s]
        mean[i] = shifted[0][0, 0] + shifted[1][0, 0]
        square[i] = (weights * mean_square(s)).sum()
        # Entries and their complements 1 - S give the same Hermite coefficients but for the mean.
        products = sum(((g * f).ravel() for g, f in zip(unshifted, shifted, strict=True)), np.zeros(total.size))
        by_order = 2.0 * np.bincount(total, products)[:orders]
        overlap[i] = 2.0 - mean[i] - 2.0 * unshifted[0][0, 0] + by_order @ m ** np.arange(orders)
        inside = np.linspace(0.0, m, 65)[:, None] ** np.arange(0, orders - 2, 2)
        if (inside @ (by_order[2::2] * np.arange(2, orders, 2)) <= 0.0).any():
            raise ArithmeticError(f"the risk does not fall with |m| everywhere at e = {e:.4f}")

    def along_e(values: Array) -> float:
        c = expanded(values)
        return float(np.sqrt(2.0) * (c[2, 0] + c[0, 2]) - 2.0 * c[1, 1])

    q = 4.0 * sum(float(g[2, 0] ** 2 + g[0, 2] ** 2 + g[1, 1] ** 2) for g in unshifted)
    origin = (
        float(unshifted[0][0, 0]),
        float((weights * mean_square(start)).sum()),
        q,
        along_e(mean_square(start)),
        along_e(start[0] + start[1]),
    )
    return SquareCircle(
        chebyshev_coefficients(mean), chebyshev_coefficients(square), chebyshev_coefficients(overlap), origin
    )
