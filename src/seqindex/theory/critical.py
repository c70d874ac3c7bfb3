"""Critical points of the population risk on the sphere |s|^2 + nu^2 = 1 on which SGD moves.

The risk depends on s = (m, e) only.  Inside the ball |s| < 1, s is a chart of the sphere, so a point is critical where
the gradient in s vanishes, and its kind is that of the Hessian.  On the boundary |s| = 1 the sphere is tangent to the
directions of nu, along which R(sqrt(1 - nu^2) s) has no first derivative: a point is critical as soon as the derivative
along the boundary vanishes.  The second derivatives there are t.H.t - dR/dradius along the boundary and -dR/dradius
along every direction of nu, so a minimum needs the risk to fall outwards.

Completeness has a check: with one direction of nu, the indices of all critical points of a function on the sphere S^R
add up to its Euler characteristic (Poincare and Hopf), where a point inside counts twice, for nu and -nu.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar, root

from seqindex.theory.risk import PopulationRisk

Array = NDArray[np.float64]

DEGENERATE = 1e-6
"""Eigenvalues below this, relative to the largest derivative on the search grid, are taken as undecided."""
_SAME = 1e-5
_GRID = (40, 64)  # even: no node lies on a symmetry axis, where a root would be met by accident
_ANGLES = 96
_STARTS = 48


@dataclass(frozen=True)
class CriticalPoint:
    """A critical point of the risk on the sphere.

    Attributes:
        m: overlap with the target.
        e: encoding coordinates, shape (r,).
        value: risk.
        kind: "minimum", "saddle" or "maximum", by the eigenvalues that are not degenerate.
        boundary: whether m^2 + |e|^2 = 1.
        eigenvalues: inside, of the Hessian in (m, e); on the boundary, of the spherical Hessian along it, followed by
            minus the radial derivative (the second derivative along nu).  Ascending inside and along the boundary.
        degenerate: whether an eigenvalue is too close to zero for ``kind`` to be certain.
    """

    m: float
    e: Array
    value: float
    kind: str
    boundary: bool
    eigenvalues: Array
    degenerate: bool = False


def critical_points(risk: PopulationRisk) -> list[CriticalPoint]:
    """All critical points in the closed ball m^2 + |e|^2 <= 1, by ascending risk; mirror images are all listed.

    With at most one direction of the encoding the search is over a grid, with more from random starts; Newton steps or
    bisection polish each point.  Unless some are degenerate, the sum of the indices is checked, and the search repeated
    more finely where it shows that points are missing.  Where the risk is flat along a curve, points of the curve are
    listed as degenerate.

    Args:
        risk: the population risk.

    Returns:
        The points, each with its kind.

    Raises:
        TypeError: ``risk`` is not a PopulationRisk.

    Warns:
        RuntimeWarning: points are still missing after the finest search.

    Example:
        >>> from seqindex import Attention, PositionalSemanticTarget, Problem
        >>> target = PositionalSemanticTarget(omega=0.67, alignment=1.0)
        >>> [(p.m, p.kind, p.boundary) for p in critical_points(PopulationRisk(Problem(target, Attention(2))))]
        [(-1.0, 'minimum', True), (1.0, 'minimum', True), (0.0, 'maximum', False)]
    """
    if not isinstance(risk, PopulationRisk):
        raise TypeError(f"risk must be a PopulationRisk, got {risk!r}")
    landscape = _Landscape(risk)
    search = {1: _search_line, 2: _search_disc}.get(landscape.rank, _search_ball)
    points: list[CriticalPoint] = []
    for effort in (1, 2, 4):
        for s in search(landscape, effort):
            point = landscape.classify(s)
            # Along a curve of critical points every start gives another one: keep them a cell apart.
            apart = 0.05 if point.degenerate else _SAME
            if all(np.hypot(point.m - q.m, np.linalg.norm(point.e - q.e)) > apart for q in points):
                points.append(point)
        if any(p.degenerate for p in points) or _euler(points) == 1 + (-1) ** landscape.rank:
            break
    else:
        warnings.warn("some critical points are missing: the sum of their indices is wrong", RuntimeWarning, 2)
    return sorted(points, key=lambda p: (round(p.value, 10), p.boundary, p.m, *p.e))


def _euler(points: list[CriticalPoint]) -> int:
    """Sum of the indices on the sphere S^R, on which a point inside the ball stands for two."""
    signs = [(1 if p.boundary else 2) * (-1) ** int((p.eigenvalues < 0).sum()) for p in points]
    return sum(signs)


class _Landscape:
    """Gradient and Hessian of the risk as functions of the state s, by a sketch while searching."""

    def __init__(self, risk: PopulationRisk) -> None:
        self.risk = risk
        self.rank = risk.problem.frame.rank
        size = 1.0 + abs(float(risk(0.0)))
        self.flat = 1e-10 * size
        """Gradients below this are taken as zero."""
        self.scale = 1e-8 * size
        """Largest component of the gradient met."""

    def _arguments(self, s: Array) -> tuple[Array, Array | None]:
        if self.rank == 1:
            return s[..., 0], None
        return s[..., 0], s[..., 1] if self.rank == 2 else s[..., 1:]

    def gradient(self, s: Array, sketch: bool = False) -> Array:
        """Gradient at states (..., R); the largest one met sets the scale."""
        m, e = self._arguments(s)
        result = self.risk.sketch(m, e) if sketch else self.risk.gradient(m, e)
        self.scale = max(self.scale, float(np.abs(result).max()))
        return result

    def hessian(self, s: Array, sketch: bool = False) -> Array:
        """Hessian at states (..., R)."""
        m, e = self._arguments(s)
        return self.risk.sketch(m, e, 2) if sketch else self.risk.hessian(m, e)

    def along_circle(self, angle: Array | float, sketch: bool = False) -> Array:
        """dR/dangle at s = (cos, sin)."""
        s = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        g = self.gradient(_inside(s), sketch)
        return np.asarray(s[..., 0] * g[..., 1] - s[..., 1] * g[..., 0])

    def classify(self, s: Array) -> CriticalPoint:
        """The critical point at a state, with its kind."""
        s = np.where(np.abs(s) < 1e-12, 0.0, s)
        boundary = bool(s @ s > 1.0 - 1e-10)
        if boundary:
            s = s / np.linalg.norm(s)
        hessian = self.hessian(_inside(s))
        if boundary:
            radial = float(s @ self.gradient(_inside(s)))
            tangent = np.linalg.svd(s[None])[2][1:]
            along = np.linalg.eigvalsh(tangent @ hessian @ tangent.T - radial * np.eye(len(tangent)))
            eigenvalues = np.concatenate([along, [-radial]])
        else:
            eigenvalues = np.linalg.eigvalsh(hessian)
        small = np.abs(eigenvalues) < DEGENERATE * self.scale
        decided = eigenvalues[~small]
        kind = "saddle"
        if (decided > 0).all():
            kind = "minimum"
        elif (decided < 0).all():
            kind = "maximum"
        value = float(self.risk(*self._arguments(_inside(s))))
        return CriticalPoint(float(s[0]), s[1:], value, kind, boundary, eigenvalues, bool(small.any()))


def _inside(s: Array) -> Array:
    """States with rounding beyond the unit sphere removed."""
    norm = np.linalg.norm(s, axis=-1, keepdims=True)
    return np.asarray(s / np.maximum(norm, 1.0))


def _roots(function: Callable[[float], float], grid: Array, values: Array, floor: float) -> list[float]:
    """Roots of a function from rough values on a grid: sign changes, and extrema that touch zero within ``floor``."""
    found = []
    for i, (left, right) in enumerate(itertools.pairwise(values)):
        if left * right < 0 and function(grid[i]) * function(grid[i + 1]) < 0:
            found.append(float(brentq(function, grid[i], grid[i + 1], xtol=1e-14, rtol=1e-14)))
    size = np.abs(values)
    for i in range(1, len(grid) - 1):
        same_sign = values[i - 1] * values[i] > 0 and values[i] * values[i + 1] > 0
        if same_sign and size[i] <= min(size[i - 1], size[i + 1]) and size[i] < 0.05 * size.max():
            touch = minimize_scalar(
                lambda x: abs(function(x)), bounds=(grid[i - 1], grid[i + 1]), method="bounded", options={"xatol": 1e-7}
            )
            if touch.fun < floor:
                found.append(float(touch.x))
    return found


def _search_line(landscape: _Landscape, effort: int) -> list[Array]:
    """No encoding: m in [-1, 1]; both ends are critical on the sphere."""
    grid = np.linspace(-1.0, 1.0, 200 * effort)
    values = landscape.gradient(grid[:, None])[:, 0]
    ends = [np.array([-1.0]), np.array([1.0])]
    if np.abs(values).max() < landscape.flat:
        return [np.zeros(1), *ends]
    roots = _roots(lambda m: float(landscape.gradient(np.array([m]))[0]), grid, values, DEGENERATE**2 * landscape.scale)
    return [*(np.array([m]) for m in roots), *ends]


def _search_disc(landscape: _Landscape, effort: int) -> list[Array]:
    """One direction: a grid over the disc for the inside, one over the angle for its circle."""
    rows, columns = effort * _GRID[0], effort * _GRID[1]
    # Rows share e, hence often the shifts of the fields, which is what costs; their points reach from side to side.
    e = np.sin(np.linspace(-0.5, 0.5, rows) * np.pi)[:, None]
    width = np.sqrt(np.maximum(1.0 - e * e, 0.0))
    m = width * np.sin(np.linspace(-0.5, 0.5, columns) * np.pi)
    states = np.stack([m, np.broadcast_to(e, m.shape)], axis=-1)
    gradient = landscape.gradient(_inside(states), sketch=True)
    flat = 1e-6 * landscape.scale
    if np.abs(gradient).max() < landscape.flat:
        return [np.zeros(2), *(np.array(s, dtype=np.float64) for s in ((1, 0), (-1, 0), (0, 1), (0, -1)))]
    corners = np.stack([states[:-1, :-1], states[:-1, 1:], states[1:, :-1], states[1:, 1:]])
    slopes = np.stack([gradient[:-1, :-1], gradient[:-1, 1:], gradient[1:, :-1], gradient[1:, 1:]])
    crossing = ((slopes.min(0) <= flat) & (slopes.max(0) >= -flat)).all(-1)
    starts = list(corners.mean(0)[crossing])
    size = np.linalg.norm(gradient, axis=-1)  # a degenerate point may leave no sign change, but a small gradient
    for i, j in np.ndindex(rows - 2, columns - 2):
        if size[i + 1, j + 1] <= size[i : i + 3, j : j + 3].min():
            starts.append(states[i + 1, j + 1])
    count = effort * _ANGLES
    angles = np.asarray((np.arange(count + 1) + 0.5) * (2.0 * np.pi / count))
    around = landscape.along_circle(angles, sketch=True)
    if np.abs(around).max() < flat:
        circle = [0.0, 0.5 * np.pi, np.pi, 1.5 * np.pi]
    else:
        floor = DEGENERATE**2 * landscape.scale
        circle = _roots(lambda x: float(landscape.along_circle(x)), angles, around, floor)
    return [*_polished(landscape, starts), *(np.array([np.cos(x), np.sin(x)]) for x in circle)]


def _polished(landscape: _Landscape, starts: Sequence[Array]) -> list[Array]:
    """The zeros of the gradient inside the ball that Newton steps reach, first on the sketch, then on the risk."""
    rough: list[Array] = []
    for start in starts:
        s = _newton(landscape, start, sketch=True)
        if s is not None and all(np.linalg.norm(s - other) > 1e-3 for other in rough):
            rough.append(s)
    found = (_newton(landscape, s, sketch=False) for s in rough)
    return [s for s in found if s is not None and s @ s < 1.0 - 1e-10]


def _newton(landscape: _Landscape, start: Array, sketch: bool) -> Array | None:
    """The zero of the gradient that Newton steps from a start reach in the ball, or None."""
    s = start
    finest = 1e-5 if sketch else 1e-13
    outside = 0
    for _ in range(40):
        gradient = landscape.gradient(s, sketch)
        # The pseudo-inverse stays put along a direction in which the risk is flat.
        step = -np.linalg.pinv(landscape.hessian(s, sketch), rcond=1e-7 if sketch else 1e-9) @ gradient
        length = float(np.linalg.norm(step))
        s = s + step * min(1.0, 0.1 / max(length, 1e-300))
        outside = outside + 1 if s @ s > 1.0 else 0
        s = _inside(s)
        if length < finest or outside > 3:
            break
    settled = float(np.abs(landscape.gradient(s, sketch)).max())
    return s if settled < (1e-4 if sketch else 1e-9) * landscape.scale else None


def _search_ball(landscape: _Landscape, effort: int) -> list[Array]:
    """Several directions: many starts, inside and on the boundary."""
    rng = np.random.default_rng(effort)
    count = effort * _STARTS
    starts = rng.standard_normal((count, landscape.rank))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    axes = np.concatenate([np.eye(landscape.rank), -np.eye(landscape.rank)])
    radii = rng.uniform(size=(count, 1)) ** (1.0 / landscape.rank)
    found = _polished(landscape, [np.zeros(landscape.rank), *(0.5 * axes), *(radii * starts)])

    def balance(x: Array, sketch: bool) -> Array:  # grad R = multiplier * s on the unit sphere
        s, multiplier = x[:-1], x[-1]
        return np.append(landscape.gradient(s / np.linalg.norm(s), sketch) - multiplier * s, 0.5 * (s @ s - 1.0))

    rough: list[Array] = []
    for s in np.concatenate([axes, starts]):
        x = np.append(s, s @ landscape.gradient(s, True))
        x = root(balance, x, args=(True,), method="hybr", tol=1e-6).x
        solved = np.abs(balance(x, True)).max() < 1e-4 * landscape.scale
        if solved and all(np.linalg.norm(x[:-1] - other[:-1]) > 1e-3 for other in rough):
            rough.append(x)
    for x in rough:
        x = root(balance, x, args=(False,), method="hybr", tol=1e-13).x
        if np.abs(balance(x, False)).max() < 1e-9 * landscape.scale:
            found.append(x[:-1] / np.linalg.norm(x[:-1]))
    return found
