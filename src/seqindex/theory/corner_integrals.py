"""Gaussian integrals from which the boundaries of the positional-semantic phases follow (squared loss, any length).

With z* ~ N(0, I), z = zeta + Q e, Cov(z*, zeta) = m I, S = softmax(z z^T) and y = (1 - omega) S(z*) + omega A, the
risk is

    R(m, e) = const + E|S(zeta + Q e)|^2 - 2 (1 - omega) E[S(z*).S(zeta + Q e)] - 2 omega A.E S(zeta + Q e).

Its value and its derivatives up to second order at (0, 0), (1, 0) and (0, e) need L-dimensional integrals only, because
z* and z are independent at m = 0 and equal (up to the shift) at m = 1.  Derivatives in the fields are taken by Stein's
lemma: E[d_l F] = E[F zeta_l] and E[d_l d_l' F] = E[F (zeta_l zeta_l' - delta_ll')].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from seqindex.gaussian.quadrature import trapezoid
from seqindex.gaussian.simd import OPTIONS, exp
from seqindex.model.softmax import attention_matrix

Array = NDArray[np.float64]

GRIDS = {1: (0.1, 11.0, 1e-20), 2: (0.1, 11.0, 1e-20), 3: (0.2, 7.6, 1e-15), 4: (0.35, 7.0, 1e-13)}
"""Step and extent of the trapezoid rule by length, and the weight below which a node is dropped, which leaves a ball of
the box; errors about 1e-13, 1e-13, 1e-9 and 1e-6."""
SOBOL_BITS = 16
"""Longer sequences take 2**16 scrambled Sobol points with a fixed seed; errors about 1e-4."""
COARSE = {1: (0.25, 8.0, 1e-12), 2: (0.25, 8.0, 1e-12), 3: (0.5, 6.0, 1e-10), 4: (0.6, 6.0, 1e-9)}
"""The same for first guesses; errors about 1e-9, 1e-9, 1e-6 and 1e-5."""
COARSE_BITS = 12


@lru_cache(maxsize=4)
def field_nodes(length: int, step: float | None = None, coarse: bool = False) -> tuple[Array, Array]:
    """Nodes (n, L) and weights (n,) for expectations over N(0, I_L).

    Args:
        length: sequence length.
        step: step of the trapezoid rule up to length 4; None takes that of ``GRIDS`` or ``COARSE``.
        coarse: whether a few digits are enough.
    """
    if length not in GRIDS:
        points = qmc.Sobol(length, seed=2506).random_base2(COARSE_BITS if coarse else SOBOL_BITS)
        return ndtri(np.clip(points, 1e-16, 1.0 - 1e-16)), np.full(len(points), 1.0 / len(points))
    default, extent, negligible = (COARSE if coarse else GRIDS)[length]
    rule = trapezoid(default if step is None else step, extent)
    weights = rule.weights
    for _ in range(length - 1):
        weights = np.multiply.outer(weights, rule.weights)
    index = np.nonzero(weights > negligible)
    return np.stack([rule.nodes[i] for i in index], axis=-1), weights[index]


@njit(**OPTIONS)
def _value_and_gradient(nodes, weights, shift, label, gradient):  # type: ignore[no-untyped-def]
    """E|S|^2 - 2 label.E S at shifted nodes; adds its derivative in the shifts to ``gradient``."""
    length = shift.size
    z = np.empty(length)
    s = np.empty((length, length))
    value = 0.0
    for n in range(weights.size):
        for i in range(length):
            z[i] = nodes[n, i] + shift[i]
        for i in range(length):
            largest = z[i] * z[0]
            for j in range(1, length):
                largest = max(largest, z[i] * z[j])
            total = 0.0
            for j in range(length):
                s[i, j] = exp(z[i] * z[j] - largest)
                total += s[i, j]
            mean = 0.0
            for j in range(length):
                s[i, j] /= total
                value += weights[n] * s[i, j] * (s[i, j] - 2.0 * label[i, j])
                mean += s[i, j] * (s[i, j] - label[i, j])
            for j in range(length):  # derivative in the score z_i z_j
                score = 2.0 * weights[n] * s[i, j] * (s[i, j] - label[i, j] - mean)
                gradient[i] += score * z[j]
                gradient[j] += score * z[i]
    return value


def attention_jacobian(z: Array) -> Array:
    """Derivatives of S = softmax(z z^T) in the fields, shape (n, L) -> (n, L^2, L).

    Example:
        >>> attention_jacobian(np.array([[0.0, 1.0]])).shape
        (1, 4, 2)
    """
    n, length = z.shape
    s = attention_matrix(z)
    mean = np.einsum("nij,nj->ni", s, z)
    own = s * (z[:, None, :] - mean[:, :, None])  # the score z_i z_j seen from z_i
    other = s * z[:, :, None]  # and from z_j, before the mean over the row is taken off
    result = -other[..., None] * s[:, :, None, :]
    i = np.arange(length)
    result[:, i, :, i] += own[:, i, :].swapaxes(0, 1)
    result[:, :, i, i] += other
    return np.asarray(result.reshape(n, length * length, length))


@dataclass(frozen=True)
class Moments:
    """Expectations over zeta at one shift Q e.

    Attributes:
        matrix: E S, (L^2,).
        square: E|S|^2.
        matrix_gradient: derivative of E S along the encoding directions, (r, L^2).
        square_gradient: derivative of E|S|^2 along them, (r,).
        matrix_tensor: second derivatives of E S in the shifts of the fields, (L, L, L^2).
        square_tensor: those of E|S|^2, (L, L).
    """

    matrix: Array
    square: float
    matrix_gradient: Array
    square_gradient: Array
    matrix_tensor: Array
    square_tensor: Array


class Integrals:
    """Every integral that the boundaries of the squared loss need.

    Args:
        positions: Q, shape (L, r): coordinates of the rows of the encoding along r directions orthogonal to w*.
        step, coarse: the rule, see ``field_nodes``.

    Attributes:
        origin: moments without shift.
        jacobian_square: E[J^T J], (L, L), J the Jacobian of S.

    Example:
        >>> integrals = Integrals(np.array([[1.0], [-1.0]]))
        >>> round(integrals.origin.matrix[0].item(), 12), round(1 - 0.5 / np.sqrt(2), 12).item()
        (0.646446609407, 0.646446609407)
    """

    def __init__(self, positions: Array, step: float | None = None, coarse: bool = False) -> None:
        self.positions = positions
        self.length, self.directions = positions.shape
        self._nodes, self._weights = field_nodes(self.length, step, coarse)
        self._latest: tuple[bytes, Moments] | None = None
        self.origin = self.moments(np.zeros(self.directions))
        self.jacobian_square = np.zeros((self.length, self.length))
        for z, w in self._chunks():
            jacobian = attention_jacobian(z)
            self.jacobian_square += np.einsum("n,nkl,nkj->lj", w, jacobian, jacobian, optimize=True)

    def _chunks(self) -> Iterator[tuple[Array, Array]]:
        size = max(1, 2**20 // self.length**3)
        for start in range(0, len(self._weights), size):
            yield self._nodes[start : start + size], self._weights[start : start + size]

    def moments(self, e: Array) -> Moments:
        """Moments at the encoding overlaps e, shape (r,); those of the latest e are kept."""
        key = e.tobytes()
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._moments(e)
        return self._latest[1]

    def _moments(self, e: Array) -> Moments:
        length = self.length
        shift = self.positions @ e
        total = np.zeros((1 + length + length**2, length**2 + 1))
        for zeta, w in self._chunks():
            s = attention_matrix(zeta + shift).reshape(len(w), -1)
            values = np.concatenate([s, (s * s).sum(1, keepdims=True)], axis=1)
            second = zeta[:, :, None] * zeta[:, None, :] - np.eye(length)
            hermite = np.concatenate([np.ones((len(w), 1)), zeta, second.reshape(len(w), -1)], axis=1)
            total += (w[:, None] * hermite).T @ values
        first = self.positions.T @ total[1 : 1 + length]
        tensor = total[1 + length :].reshape(length, length, -1)
        return Moments(
            total[0, :-1], float(total[0, -1]), first[:, :-1], first[:, -1], tensor[..., :-1], tensor[..., -1]
        )

    def positional_risk(self, e: Array, label: Array) -> tuple[float, Array]:
        """E|S|^2 - 2 label.E S, the risk at m = 0 but for a constant, and its gradient in e, (r,)."""
        # Unlike Stein's lemma, this gives the derivative of the discrete sum, as a line search needs.
        gradient = np.zeros(self.length)
        square_label = label.reshape(self.length, self.length)
        value = _value_and_gradient(self._nodes, self._weights, self.positions @ e, square_label, gradient)
        return float(value), self.positions.T @ gradient

    def along(self, tensor: Array) -> Array:
        """Second derivatives along the encoding directions, (L, L, ...) -> (r, r, ...)."""
        result: Array = np.einsum("la,lm...,mb->ab...", self.positions, tensor, self.positions)
        return result
