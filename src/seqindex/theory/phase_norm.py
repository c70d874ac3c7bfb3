"""Boundaries of the positional-semantic phases for the un-squared Frobenius norm (length 2, one encoding direction).

Rows of S, of A and of the label sum to one, so ||y - f|| = sqrt(2) |d| with the two entries
d = (1 - omega) (S_11, S_22)(z*) + omega (A_11, A_22) - (S_11, S_22)(z).  At m = 0, z* and z are independent and every
derivative is a double sum over two planar grids, E[d_m^2 ||y - f||] = sum_ll' E[||y - f|| He_ll'(z*) He_ll'(zeta)]
and E[d_e ||y - f||] = E[||y - f|| (Q.zeta)].  At m = 1 the residual is omega (A - S): with m = cos t, e = sin t,

    R = omega E||A - S||,   d^2 R / dt^2 = Y (1 - omega) / omega + D,
    D = E[||A - S|| ((Q.z)^2 - |Q|^2)],   Y = E[tr((I + Q Q^T) J^T (I - n n^T) J) / ||A - S||],

where n = (A - S) / ||A - S|| and J is the Jacobian of S.  The integrand of Y is singular, like an inverse distance, at
the two points +-z0 where S(z0) = A.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqindex.gaussian.quadrature import trapezoid
from seqindex.gaussian.simd import OPTIONS
from seqindex.theory.phase_circle import attention_diagonal
from seqindex.theory.phase_square import first_root

Array = NDArray[np.float64]

STEP = 0.2
"""Step of the planar grids; the norm has a kink, so the error falls like a power of it: about 1e-5 here."""
RADIUS = 6.0
"""Radius of the grids; the weight beyond is 2e-8."""
RADIAL, ANGULAR = 24, 240
"""Gauss-Legendre nodes a radial panel, and angles, around the singular point."""


@njit(**OPTIONS)
def fill_norms(label, p, q, out):  # type: ignore[no-untyped-def]
    """out[i, j] = sqrt(2) |label[i] - (p[j], q[j])|."""
    for i in range(label.shape[0]):
        first = label[i, 0]
        second = label[i, 1]
        for j in range(p.size):
            dp = first - p[j]
            dq = second - q[j]
            out[i, j] = np.sqrt(2.0 * (dp * dp + dq * dq))


def planar_grid(step: float, radius: float = RADIUS) -> tuple[Array, Array]:
    """Nodes (n, 2) in a disc and weights (n,) for expectations over N(0, I_2)."""
    rule = trapezoid(step, radius)
    x, y = (v.ravel() for v in np.meshgrid(rule.nodes, rule.nodes, indexing="ij"))
    weights = np.multiply.outer(rule.weights, rule.weights).ravel()
    inside = x**2 + y**2 <= radius**2
    weights = weights[inside]
    return np.stack([x[inside], y[inside]], axis=-1), weights / weights.sum()


def hermite_pairs(z: Array) -> Array:
    """He_11, sqrt(2) He_12, He_22, (n, 3): products summed over them contract second-order tensors."""
    return np.stack([z[:, 0] ** 2 - 1.0, math.sqrt(2.0) * z[:, 0] * z[:, 1], z[:, 1] ** 2 - 1.0], axis=-1)


class SemanticCorner:
    """Value and curvature of the risk at m = 1.

    Args:
        diagonal: A_11 and A_22.
        encoding: Q, (2,).
        refine: factor on the numbers of nodes.

    Attributes:
        value: E||A - S||, the risk over omega.
        pull: Y of the module docstring.
        drift: D.

    Example:
        >>> corner = SemanticCorner(np.array([0.88, 0.88]), np.array([1.0, -1.0]))
        >>> bool(0 < corner.root < 1)
        True
    """

    def __init__(self, diagonal: Array, encoding: Array, refine: float = 1.0) -> None:
        z, weights = _nodes_around_zero_residual(diagonal, refine)
        p, q = attention_diagonal(z[:, 0], z[:, 1])
        d = np.stack([diagonal[0] - p, diagonal[1] - q], axis=-1)
        distance = np.sqrt((d * d).sum(1))
        slope_p, slope_q = p * (1.0 - p), q * (1.0 - q)
        jacobian = np.stack(
            [
                slope_p[:, None] * np.stack([2.0 * z[:, 0] - z[:, 1], -z[:, 0]], axis=-1),
                slope_q[:, None] * np.stack([-z[:, 1], 2.0 * z[:, 1] - z[:, 0]], axis=-1),
            ],
            axis=1,
        )
        # In the plane, I - n n^T projects on the direction across n.
        distance = np.maximum(distance, 1e-300)  # a node may hit S = A exactly where A_11 = A_22 = 1/2
        across = (jacobian[:, 0] * d[:, 1:] - jacobian[:, 1] * d[:, :1]) / distance[:, None]
        quadratic = (across * across).sum(1) + (across @ encoding) ** 2
        root2 = math.sqrt(2.0)
        self.value = root2 * float(weights @ distance)
        self.drift = root2 * float(weights @ (distance * ((z @ encoding) ** 2 - encoding @ encoding)))
        self.pull = root2 * float(weights @ (quadratic / distance))

    @property
    def root(self) -> float:
        """omega at which the point stops being a minimum, in [0, 1] or NaN."""
        return self.pull / (self.pull - self.drift) if self.drift <= 0.0 else float("nan")


def _nodes_around_zero_residual(diagonal: Array, refine: float) -> tuple[Array, Array]:
    """Nodes and weights for expectations, over N(0, I_2), of even functions with a kink or a pole where S = A."""
    logits = np.log(diagonal) - np.log1p(-diagonal)
    total = float(logits.sum())
    if not (np.isfinite(logits).all() and total > 0.0):  # S = A nowhere: S_11 and S_22 have logits z_1 v and -z_2 v
        return planar_grid(0.05 / refine, 9.0)
    v = math.sqrt(total)
    centre = np.array([logits[0], -logits[1]]) / v
    scale = max(float(np.linalg.norm(centre)), 1e-3)
    edge = scale + 9.0
    breaks = [0.0, scale]
    while breaks[-1] < edge:
        breaks.append(min(edge, breaks[-1] + max(min(breaks[-1], 1.0), 1e-3)))
    x, w = np.polynomial.legendre.leggauss(round(RADIAL * refine))
    half = 0.5 * np.diff(breaks)[:, None]
    radius = (np.array(breaks[:-1])[:, None] + half * (1.0 + x)).ravel()
    count = round(ANGULAR * refine)
    angle = np.arange(count) * (2.0 * math.pi / count)
    offset = np.stack(
        [np.multiply.outer(radius, np.cos(angle)).ravel(), np.multiply.outer(radius, np.sin(angle)).ravel()], axis=-1
    )
    z = centre + offset
    near, far = (offset**2).sum(1) ** 2, ((z + centre) ** 2).sum(1) ** 2
    # An even function has equal poles at z0 and -z0: weigh each point by how much nearer z0 it is, and double.
    share = 2.0 * far**2 / (far**2 + near**2)
    measure = np.repeat((half * w).ravel() * radius, count) / count
    return z, measure * share * np.exp(-0.5 * (z * z).sum(1))


class NormConditions:
    """Conditions on omega whose sign changes at a boundary, for one encoding direction and any A.

    Args:
        encoding: Q, (2,).
        matrix: A, (2, 2), row-stochastic.
        step: step of the planar grids.

    Example:
        >>> conditions = NormConditions(np.array([1.0, -1.0]), np.array([[0.88, 0.12], [0.12, 0.88]]), step=0.4)
        >>> bool(conditions.steepest(0.4) < 0 < conditions.steepest(0.9))
        True
    """

    def __init__(self, encoding: Array, matrix: Array, step: float = STEP) -> None:
        self.encoding = encoding
        self.diagonal = np.diag(matrix).copy()
        z, weights = planar_grid(step)
        # S(-z) = S(z): half of the plane holds every value of S(z*).
        upper = (z[:, 0] > 1e-9) | ((np.abs(z[:, 0]) < 1e-9) & (z[:, 1] > -1e-9))
        star = z[upper]
        doubled = weights[upper] * np.where((np.abs(star) < 1e-9).all(1), 1.0, 2.0)
        self._star = np.stack(attention_diagonal(star[:, 0], star[:, 1]), axis=-1)
        self._left = doubled[:, None] * np.column_stack([np.ones(len(star)), hermite_pairs(star)])
        self._right = {}
        for name, field, weight, shift in (("origin", star, doubled, 0.0), ("positional", z, weights, 1.0)):
            s = attention_diagonal(field[:, 0] + shift * encoding[0], field[:, 1] + shift * encoding[1])
            along = field @ encoding
            features = [np.ones(len(field)), hermite_pairs(field), along, along**2 - encoding @ encoding]
            self._right[name] = (*s, weight[:, None] * np.column_stack(features))

    @property
    def corner(self) -> SemanticCorner:
        """Integrals at m = 1."""
        return _corner(tuple(self.diagonal.tolist()), tuple(self.encoding.tolist()))

    def _sums(self, point: str, omega: float) -> Array:
        """E[||y - f|| a(z*) b(zeta)], a = (1, He_2), b = (1, He_2, Q.zeta, (Q.zeta)^2 - |Q|^2), shape (4, 6)."""
        label = (1.0 - omega) * self._star + omega * self.diagonal
        p, q, right = self._right[point]
        result = np.zeros((self._left.shape[1], right.shape[1]))
        rows = 128
        norms = np.empty((rows, p.size))
        for start in range(0, len(label), rows):
            part = label[start : start + rows]
            fill_norms(part, p, q, norms)
            result += self._left[start : start + rows].T @ (norms[: len(part)] @ right)
        return result

    def origin_curvatures(self, omega: float) -> tuple[float, float]:
        """R_mm and R_ee at the origin."""
        sums = self._sums("origin", omega)
        return float(np.trace(sums[1:, 1:4])), float(sums[0, 5])

    def positional_point(self, omega: float) -> tuple[float, float]:
        """R at (0, e = 1), and its curvature on the circle there, R_mm - R_e."""
        sums = self._sums("positional", omega)
        return float(sums[0, 0]), float(np.trace(sums[1:, 1:4]) - sums[0, 4])

    def steepest(self, omega: float) -> float:
        """R_mm - R_ee at the origin: negative where m grows faster than e."""
        along_m, along_e = self.origin_curvatures(omega)
        return along_m - along_e

    def equal_risk(self, omega: float) -> float:
        """R at the positional point minus R(m = 1)."""
        return self.positional_point(omega)[0] - omega * self.corner.value

    def positional(self, omega: float) -> float:
        """Curvature on the circle at the positional point: positive where it is a local minimum."""
        return self.positional_point(omega)[1]

    def solve(self, kind: str) -> float:
        """Smallest root of the condition ``kind`` in [0, 1], NaN without one."""
        if kind == "semantic":
            return self.corner.root
        return first_root(getattr(self, kind), 6, tolerance=1e-9)


@lru_cache(maxsize=64)
def _corner(diagonal: tuple[float, float], encoding: tuple[float, float]) -> SemanticCorner:
    return SemanticCorner(np.array(diagonal), np.array(encoding))
