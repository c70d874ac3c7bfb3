"""Hermite polynomials that are orthonormal under the standard normal weight, and coefficients of functions in them.

h_k = He_k / sqrt(k!), so E[h_j h_k] = delta_jk; in L variables h_alpha(z) = prod_l h_{alpha_l}(z_l).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.gaussian.quadrature import Rule


def normalised_hermite(x: ArrayLike, degree: int) -> NDArray[np.float64]:
    """Values h_0(x), ..., h_degree(x), shape (degree + 1, *x.shape).

    Args:
        x: points, any shape.
        degree: highest degree, at least 0.

    Raises:
        ValueError: a negative degree.
        TypeError: a degree that is not an integer.

    Example:
        >>> normalised_hermite(2.0, 3).round(6).tolist()  # 1, x, (x^2 - 1) / sqrt(2), (x^3 - 3 x) / sqrt(6)
        [1.0, 2.0, 2.12132, 0.816497]
    """
    degree = check.integer("degree", degree, 0)
    points = np.asarray(x, dtype=np.float64)
    values = np.ones((degree + 1, *points.shape))
    if degree >= 1:
        values[1] = points
    for k in range(1, degree):  # sqrt(k + 1) h_{k+1} = x h_k - sqrt(k) h_{k-1}
        values[k + 1] = (points * values[k] - np.sqrt(k) * values[k - 1]) / np.sqrt(k + 1)
    return values


def hermite_factor(rule: Rule, degree: int) -> NDArray[np.float64]:
    """Matrix (degree + 1, nodes) whose product with values at the nodes gives E[F h_k], k = 0..degree.

    Example:
        >>> from seqindex.gaussian.quadrature import gauss_hermite
        >>> rule = gauss_hermite(20)
        >>> abs(float(hermite_factor(rule, 2)[2] @ rule.nodes**2) - 2**0.5) < 1e-13
        True
    """
    return normalised_hermite(rule.nodes, degree) * rule.weights


def shifted_factor(nodes: NDArray[np.float64], step: float, shift: float, degree: int) -> NDArray[np.float64]:
    """The factor of E[F(zeta + shift) h_k(zeta)] for values of F on a fixed uniform grid, shape (degree + 1, nodes).

    Moving the Gaussian instead of the grid lets F be tabulated once for all shifts.

    Args:
        nodes: uniform grid, wide enough for the Gaussian centred at ``shift``.
        step: its spacing.
        shift: mean of the argument of F.
        degree: highest degree.

    Example:
        >>> x = np.arange(-110, 111) * 0.1
        >>> bool(np.allclose(shifted_factor(x, 0.1, 0.5, 1) @ x**2, [1.25, 1.0]))  # E (zeta+.5)^2, E 2 (zeta+.5)
        True
    """
    centred = nodes - shift
    weights = np.exp(-0.5 * centred**2) * (step / np.sqrt(2.0 * np.pi))
    return np.asarray(normalised_hermite(centred, degree) * weights)


def tensor_coefficients(table: NDArray[np.float64], factors: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Contract every axis of a table but the first with its factor.

    Args:
        table: values of shape (k, n_1, ..., n_L).
        factors: L matrices of shapes (K_l, n_l).

    Returns:
        Array (k, K_1, ..., K_L), e.g. the coefficients E[F h_alpha] where the factors are ``hermite_factor``.

    Raises:
        ValueError: shapes that disagree.

    Example:
        >>> tensor_coefficients(np.ones((1, 3, 4)), [np.ones((2, 3)), np.ones((5, 4))]).shape
        (1, 2, 5)
    """
    if table.ndim != len(factors) + 1 or any(f.shape[1] != n for f, n in zip(factors, table.shape[1:], strict=True)):
        shapes = [f.shape for f in factors]
        raise ValueError(f"factors must match the axes of a table of shape {table.shape}, got shapes {shapes}")
    result = table
    for factor in reversed(factors):  # contract the last axis and bring it to the front; after L turns all are in place
        result = np.moveaxis(result @ factor.T, -1, 1)
    return result


def degrees(shape: Sequence[int]) -> NDArray[np.int64]:
    """Total degree |alpha| of every entry of an array of coefficients of this shape.

    Example:
        >>> degrees((2, 3)).tolist()
        [[0, 1, 2], [1, 2, 3]]
    """
    result = np.zeros(tuple(shape), dtype=np.int64)
    for axis, size in enumerate(shape):
        result += np.arange(size).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return result
