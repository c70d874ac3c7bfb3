"""Hermite coefficients of functions of one normal variable by adaptive quadrature.

Panels are halved where a Gauss-Legendre rule and its two halves disagree, so that kinks and jumps are found wherever
they are, and a function without a finite square mean is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.hermite import normalised_hermite

Array = NDArray[np.float64]

EXTENT = 16.0
"""Beyond it the normal weight is below 1e-56."""
_WIDTH = 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_DEPTH = 64
_TOLERANCE = 1e-15
"""Of a panel, relative to the root mean square of the function."""
_LOST = 1e-6
"""Part of the square mean that may be left unresolved at the smallest panels or sit at the ends of the range."""
ROUNDING = 1e-14
"""Least error of a coefficient, relative to the root mean square."""


@dataclass(frozen=True)
class Coefficients:
    """Coefficients E[f h_beta] in the normalised basis.

    Attributes:
        values: (k, K + 1, ..., K + 1), k outputs.
        errors: their absolute errors, the same shape.
        norm: sqrt(E f^2), (k,).
    """

    values: Array
    errors: Array
    norm: Array


def line_coefficients(function: Callable[[Array], Array], order: int) -> Coefficients:
    """E[f(x) h_j(x)], x ~ N(0, 1), j = 0..order, for a function that maps points (n,) to values (k, n).

    Raises:
        ValueError: a function that is not finite at a point, or whose square mean is not.

    Example:
        >>> result = line_coefficients(lambda x: np.maximum(x - 1.0, 0.0)[None], 1)
        >>> bool(abs(result.values[0, 1] - 0.158655253931457051) < 1e-14)  # P(x > 1)
        True
    """
    left = np.arange(-EXTENT, EXTENT, _WIDTH)
    right = left + _WIDTH
    whole = _integrals(function, left, right, order)
    norm = np.sqrt(whole[:, -1].sum(-1))
    total: Array = np.zeros(whole.shape[:2])
    error = np.zeros_like(total)
    outer = whole[:, -1, [0, 1, -2, -1]].sum(-1)
    for depth in range(_DEPTH + 1):
        middle = 0.5 * (left + right)
        first, second = _integrals(function, left, middle, order), _integrals(function, middle, right, order)
        change = np.abs(first + second - whole)
        scale = np.concatenate([np.repeat(norm[:, None], order + 1, 1), norm[:, None] ** 2], axis=1)
        good = (change <= _TOLERANCE * scale[..., None]).all((0, 1))
        # Panels between neighbouring floats cannot be halved: all that they hold is in doubt.
        last = (right - left <= 4.0 * np.spacing(np.maximum(np.abs(left), np.abs(right)))) & ~good
        change[..., last] = np.abs(first + second)[..., last]
        good |= last
        if depth == _DEPTH:
            good[:] = True
        total += (first + second)[..., good].sum(-1)
        error += change[..., good].sum(-1)
        if good.all():
            break
        bad = ~good
        left, right = np.concatenate([left[bad], middle[bad]]), np.concatenate([middle[bad], right[bad]])
        whole = np.concatenate([first[..., bad], second[..., bad]], axis=-1)
        # Where the square mean diverges the panels next to the pole soon hold more than everything seen before.
        norm = np.maximum(norm, np.sqrt(total[:, -1] + whole[:, -1].sum(-1)))
    square = total[:, -1]
    if (error[:, -1] > _LOST * square).any() or (outer > _LOST * square).any():
        raise ValueError("must have a finite square mean over normal fields, got one that does not converge")
    norm = np.sqrt(square)
    return Coefficients(total[:, :-1], error[:, :-1] + ROUNDING * norm[:, None], norm)


def _integrals(function: Callable[[Array], Array], left: Array, right: Array, order: int) -> Array:
    """Integrals of f h_j phi, j = 0..order, and of f^2 phi over panels: (k, order + 2, panels)."""
    half = 0.5 * (right - left)
    x = 0.5 * (left + right)[:, None] + half[:, None] * _NODES
    values = finite_values(function, x.ravel()).reshape(-1, *x.shape)
    weights = half[:, None] * _WEIGHTS * np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
    h = normalised_hermite(x, order)
    weighted = values * weights
    linear = np.einsum("kpn,jpn->kjp", weighted, h, optimize=True)
    square = (weighted * values).sum(-1)[:, None]
    return np.concatenate([linear, square], axis=1)


def finite_values(function: Callable[[Array], Array], points: Array) -> Array:
    """Values (k, n) at points (n,) or (n, r), or ValueError naming the first point where one is not finite."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(points), dtype=np.float64)
    bad = ~np.isfinite(values).all(0)
    if bad.any():
        where = np.atleast_1d(points[int(np.argmax(bad))])
        value = values[:, int(np.argmax(bad))]
        shown = ", ".join(f"{x:.4g}" for x in where)
        raise ValueError(f"must be finite, got {value[~np.isfinite(value)][0]} at the point ({shown})")
    return values
