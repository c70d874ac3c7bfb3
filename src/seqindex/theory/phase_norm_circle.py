"""The un-squared norm on the circle m^2 + e^2 = 1, tabulated over (x, omega, A) (opposite encoding, length 2).

The norm is neither quadratic in omega nor linear in A, so its risk is interpolated.  The square of the risk is: near
m = 1 and omega = 0 the risk itself looks like a cone, its square like a paraboloid.  Interpolation is polynomial in
x = m^2 - e^2 (values, and the slope at e = 1), and Chebyshev in omega and, on two panels, in
u = (2 A_11 - 1)^(1/2), which grows like a at small a.

Given z*, z is Gaussian with width e, which two fixed grids resolve once e exceeds their step.  Then the label at each
z*, and S at each z, are the same for every point of the circle: one pass over the pairs of nodes evaluates each norm
once and adds it to all points.  Nearer to m = 1 a few nodes of z follow z*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from seqindex.gaussian.simd import OPTIONS, WIDTH
from seqindex.model.target import pair_alignment
from seqindex.theory.phase_circle import attention_diagonal, chebyshev_coefficients, chebyshev_points
from seqindex.theory.phase_norm import SemanticCorner, hermite_pairs, planar_grid
from seqindex.theory.phase_square import first_root

Array = NDArray[np.float64]

STEP = 0.2
"""Step of the planar grids."""
NEAR_STEP, NOISE_STEP = 0.125, 0.6
"""The same for the points near m = 1: of z*, and of (z - m z* - Q e) / e."""
INTERVALS = 24
"""Points of the circle are x = cos(k pi / INTERVALS)."""
NEAR = 3
"""Points so near m = 1 (e = 0.065, 0.13, 0.2) that the grids do not resolve the width e."""
OMEGAS = 20
ALIGNMENTS = 12
"""Chebyshev nodes in omega, and in each panel of u."""
LAYER = (0.1, 0.25)
"""From the first omega to the second the exact slope at m = 1 is faded in: below, it belongs to a layer thinner than
the distance of the nodes, and would bend the polynomial far away."""
PANELS = (0.0, 0.4, 1.0)
"""Ends of the panels of u.  The risk is not smooth at u = 0, where no boundary is near."""
NEGLIGIBLE = 1e-30
"""Smaller weights become zero."""
FIELD_RADIUS = 7.5
"""Radius of the grid of z, which is shifted by the encoding."""
ENCODING = np.array([1.0, -1.0])


@dataclass(frozen=True)
class NormCircle:
    """Circle risk of the un-squared norm.

    Attributes:
        table: coefficients of the squared risk, Chebyshev in x, omega and u: (panel, x, omega, u).
        origin: the same for R_mm / (1 - omega) and R_ee at the origin, (panel, 2, omega, u).
        corner: value, pull and drift of ``SemanticCorner``, Chebyshev in u on the last panel, (3, u).
        bump: polynomial in x that keeps what is interpolated and has slope 1 at m = 1.
    """

    table: Array
    origin: Array
    corner: Array
    bump: Array

    power = 2.0
    """``series`` gives this power of the risk."""

    def series(self, alignment: float, omega: Array) -> Array:
        """Chebyshev coefficients in x of the squared risk on the circle, shape (n, nodes) for n values of omega."""
        result = np.zeros((omega.size, self.bump.size))
        result[:, :-1] = _interpolate(self.table, alignment, omega).T
        panel, within = _panel(alignment)
        if panel == len(PANELS) - 2:
            # With x = cos 2t, d^2/dt^2 = -4 d/dx at m = 1.
            value, pull, drift = self.corner @ chebyshev.chebvander(np.array([within]), self.corner.shape[1] - 1)[0]
            exact = -0.5 * value * (pull * (1.0 - omega) + drift * omega)
            share = np.clip((omega - LAYER[0]) / (LAYER[1] - LAYER[0]), 0.0, 1.0)
            missing = exact - chebyshev.chebval(1.0, chebyshev.chebder(result, axis=1).T)
            result += (share * missing)[:, None] * self.bump
        return result

    def curvatures(self, alignment: float, omega: Array) -> tuple[Array, Array]:
        """R_mm and R_ee at the origin, shapes (n,)."""
        along_m, along_e = _interpolate(self.origin, alignment, omega)
        return (1.0 - omega) * along_m, along_e

    def boundary(self, kind: str, alignment: float) -> float:
        """Boundary ``kind`` of the table, see ``phase_boundary``."""

        def condition(omega: float) -> float:
            w = np.array([omega])
            if kind == "steepest":
                along_m, along_e = self.curvatures(alignment, w)
                return float(along_m[0] - along_e[0])
            series = self.series(alignment, w)[0]
            if kind == "equal_risk":
                return float(chebyshev.chebval(-1.0, series) - chebyshev.chebval(1.0, series))
            slope = chebyshev.chebder(series)
            return float(chebyshev.chebval(-1.0 if kind == "positional" else 1.0, slope))

        return first_root(condition, 33, tolerance=1e-10)


def _panel(alignment: float) -> tuple[int, float]:
    """Panel of u, and place in it as a number in [-1, 1]."""
    u = math.sqrt(max(2.0 * pair_alignment(alignment)[0, 0] - 1.0, 0.0))
    panel = int(u >= PANELS[1])
    low, high = PANELS[panel : panel + 2]
    return panel, (2.0 * u - low - high) / (high - low)


def _interpolate(table: Array, alignment: float, omega: Array) -> Array:
    """Values of a table (panel, k, omega, u) at n values of omega, (k, n)."""
    panel, within = _panel(alignment)
    over_omega = table[panel] @ chebyshev.chebvander(np.array([within]), table.shape[3] - 1)[0]
    return np.asarray(over_omega @ chebyshev.chebvander(2.0 * omega - 1.0, table.shape[2] - 1).T)


@lru_cache(maxsize=1)
def norm_circle(step: float = STEP, omegas: int = OMEGAS, alignments: int = ALIGNMENTS) -> NormCircle:
    """Tabulate the integrals on the circle, some seconds."""
    omega = 0.5 * (1.0 + chebyshev_points(omegas))
    unit = 0.5 * (1.0 + chebyshev_points(alignments))
    diagonal = np.concatenate([0.5 + 0.5 * (a + (b - a) * unit) ** 2 for a, b in pairwise(PANELS)])
    x = np.cos(np.arange(INTERVALS) * math.pi / INTERVALS)
    near, x = x[1 : NEAR + 1], x[NEAR + 1 :]
    first, second = (v.ravel() for v in np.meshgrid(omega, diagonal, indexing="ij"))
    sums = np.concatenate([_near_sums(near, first, second), _pair_sums(x, first, second, step)]).reshape(
        -1, omegas, len(diagonal)
    )
    inside, (positional, slope, along_m, along_e) = sums[:-4], sums[-4:]

    corners = [SemanticCorner(np.full(2, d), ENCODING) for d in diagonal]
    corner = np.array([[c.value, c.pull, c.drift] for c in corners]).T
    w = omega[:, None]
    # With x = cos 2t, d^2/dt^2 = 4 d/dx at e = 1; d/dx of the square is 2 R d/dx R.
    left = positional**2, 0.5 * positional * slope
    conditions = np.stack([*inside**2, (w * corner[0]) ** 2, *left])
    points = np.concatenate([near, x])
    table = np.linalg.solve(_conditions(points), conditions.reshape(len(conditions), -1)).reshape(conditions.shape)
    return NormCircle(
        _over_parameters(table),
        _over_parameters(np.stack([along_m / (1.0 - w), along_e])),
        chebyshev_coefficients(corner[:, -alignments:]),
        _bump(points),
    )


def _bump(x: Array) -> Array:
    """Coefficients of the polynomial that meets zero ``_conditions`` and has slope 1 at x = 1."""
    nodal = chebyshev.chebmul(chebyshev.chebfromroots(np.concatenate([x, [1.0, -1.0]])), [1.0, 1.0])
    return np.asarray(nodal / chebyshev.chebval(1.0, chebyshev.chebder(nodal)))


def _conditions(x: Array) -> Array:
    """Rows that map Chebyshev coefficients to values at x, at 1 and at -1, then to the slope at -1."""
    degree = len(x) + 2
    values = chebyshev.chebvander(np.concatenate([x, [1.0, -1.0]]), degree)
    return np.vstack([values, chebyshev.chebval(-1.0, chebyshev.chebder(np.eye(degree + 1)))])


def _over_parameters(values: Array) -> Array:
    """Chebyshev coefficients over omega and each panel of u, (k, omega, all u) -> (panel, k, omega, u)."""
    panels = np.stack(np.split(values, len(PANELS) - 1, axis=2))
    return chebyshev_coefficients(chebyshev_coefficients(panels).swapaxes(2, 3)).swapaxes(2, 3)


def _quarter_plane(step: float) -> tuple[Array, Array]:
    """Nodes of z* and their weights.

    The norms are unchanged by z* -> -z*, and by (z*_1, z*_2, z_1, z_2) -> -(z*_2, z*_1, z_2, z_1), which also leaves
    the law of (z*, z) as it is: a quarter of the plane of z* stands for the whole.
    """
    star, weights = planar_grid(step)
    total, difference = star.sum(1), star[:, 0] - star[:, 1]
    kept = (total > -1e-9) & (difference > -1e-9)
    on_edges = (np.abs(total) < 1e-9).astype(float) + (np.abs(difference) < 1e-9)
    return star[kept], (weights * 4.0 * 0.5**on_edges)[kept]


def _padded_labels(omega: Array, diagonal: Array) -> Array:
    """1 - omega and omega A_11, (2, n) with n a multiple of the block width."""
    return np.pad(np.stack([1.0 - omega, omega * diagonal]), ((0, 0), (0, -len(omega) % WIDTH)))


def _near_sums(x: Array, omega: Array, diagonal: Array) -> Array:
    """Risk at points x near 1, for n labels: (x, n)."""
    star, weights = _quarter_plane(NEAR_STEP)
    noise, measure = planar_grid(NOISE_STEP)
    labels = _padded_labels(omega, diagonal)
    result = np.zeros((len(x), labels.shape[1]))
    star_s = np.stack(attention_diagonal(star[:, 0], star[:, 1]), axis=-1)
    for row, e, m in zip(result, np.sqrt(0.5 * (1.0 - x)), np.sqrt(0.5 * (1.0 + x)), strict=True):
        for sign in (1.0, -1.0):
            z = sign * m * star[:, None] + e * (noise + ENCODING)
            field_s = np.stack(attention_diagonal(z[..., 0], z[..., 1]), axis=-1)
            _accumulate_near(0.5 * weights, star_s, measure, field_s, labels, row)
    return result[:, : len(omega)]


@njit(**OPTIONS)
def _accumulate_near(weights, star_s, measure, field_s, labels, result):  # type: ignore[no-untyped-def]
    for i in range(weights.size):
        for j in range(measure.size):
            weight = weights[i] * measure[j]
            for lane in range(labels.shape[1]):
                dp = labels[0, lane] * star_s[i, 0] + labels[1, lane] - field_s[i, j, 0]
                dq = labels[0, lane] * star_s[i, 1] + labels[1, lane] - field_s[i, j, 1]
                result[lane] += weight * np.sqrt(2.0 * (dp * dp + dq * dq))


def _pair_sums(x: Array, omega: Array, diagonal: Array, step: float) -> Array:
    """Risk at each x, then R, R_mm - R_e at (0, e = 1), then R_mm and R_ee at the origin; for n labels, (x + 4, n)."""
    star, weights = _quarter_plane(step)
    field, _ = planar_grid(step, FIELD_RADIUS)
    index = np.rint(field / step).astype(np.int64)
    area = step**2 / (2.0 * math.pi)
    shifted = field - ENCODING
    at_origin = area * np.exp(-0.5 * (field**2).sum(1))
    at_positional = area * np.exp(-0.5 * (shifted**2).sum(1))
    # Columns: what multiplies (1, He_2(z*)) in the rows behind those of the circle.
    zero = np.zeros((len(field), 3))
    fixed = np.stack(
        [
            np.column_stack([at_positional, zero]),
            at_positional[:, None] * np.column_stack([-shifted @ ENCODING, hermite_pairs(shifted)]),
            at_origin[:, None] * np.column_stack([np.zeros(len(field)), hermite_pairs(field)]),
            np.column_stack([at_origin * ((field @ ENCODING) ** 2 - 2.0), zero]),
        ],
        axis=1,
    )
    labels = _padded_labels(omega, diagonal)
    result = np.zeros((len(x) + len(fixed[0]), labels.shape[1]))
    _accumulate(
        star,
        weights[:, None] * np.column_stack([np.ones(len(star)), hermite_pairs(star)]),
        np.stack(attention_diagonal(star[:, 0], star[:, 1]), axis=-1),
        index,
        np.stack(attention_diagonal(field[:, 0], field[:, 1]), axis=-1),
        fixed,
        np.stack([np.sqrt(0.5 * (1.0 + x)), np.sqrt(0.5 * (1.0 - x))], axis=-1),
        step,
        labels,
        result,
    )
    return result[:, : len(omega)]


@njit(**OPTIONS)
def _accumulate(star, left, star_s, index, field_s, fixed, circle, step, labels, result):  # type: ignore[no-untyped-def]
    """Add weight times norm over all pairs: labels innermost, in blocks that stay in the fastest memory."""
    points = circle.shape[0]
    rows = result.shape[0]
    count = index.shape[0]
    reach = np.max(np.abs(index))
    weight = np.empty(count * rows)
    table = np.empty((points, 2, 2, 2 * reach + 1))  # point, sign of z*, component, node
    norm = np.empty(WIDTH)
    total = np.empty(rows * WIDTH)
    for i in range(star.shape[0]):
        for k in range(points):
            m, e = circle[k, 0], circle[k, 1]
            for sign in range(2):
                for component in range(2):
                    centre = m * star[i, component] * (1.0 - 2.0 * sign) + e * (1.0 - 2.0 * component)
                    for node in range(2 * reach + 1):
                        apart = ((node - reach) * step - centre) / e
                        table[k, sign, component, node] = math.exp(-0.5 * apart * apart) * step / e
        for j in range(count):
            first, second = index[j, 0] + reach, index[j, 1] + reach
            for k in range(points):
                both = table[k, 0, 0, first] * table[k, 0, 1, second] + table[k, 1, 0, first] * table[k, 1, 1, second]
                value = left[i, 0] * both / (4.0 * math.pi)  # the mean of both signs
                # Denormal numbers would slow the loop below down many times.
                weight[j * rows + k] = value if value > NEGLIGIBLE else 0.0
            for k in range(rows - points):
                value = 0.0
                for a in range(4):
                    value += left[i, a] * fixed[j, k, a]
                weight[j * rows + points + k] = value if abs(value) > NEGLIGIBLE else 0.0
        for start in range(0, labels.shape[1], WIDTH):
            total[:] = 0.0
            for j in range(count):
                for lane in range(WIDTH):
                    dp = labels[0, start + lane] * star_s[i, 0] + labels[1, start + lane] - field_s[j, 0]
                    dq = labels[0, start + lane] * star_s[i, 1] + labels[1, start + lane] - field_s[j, 1]
                    norm[lane] = np.sqrt(2.0 * (dp * dp + dq * dq))
                for k in range(rows):
                    value = weight[j * rows + k]
                    for lane in range(WIDTH):
                        total[k * WIDTH + lane] += value * norm[lane]
            for k in range(rows):
                for lane in range(WIDTH):
                    result[k, start + lane] += total[k * WIDTH + lane]
