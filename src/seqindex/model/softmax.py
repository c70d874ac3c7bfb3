"""Softmax of the scores z z^T: the shared piece of attention and of the positional-semantic target."""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray
from scipy.special import softmax

from seqindex.gaussian.simd import OPTIONS, WIDTH, exp, exp_within, wide_vectors


def attention_matrix(z: NDArray[Any]) -> NDArray[Any]:
    """Row-wise softmax of z z^T.

    Args:
        z: local fields, shape (..., L).

    Returns:
        Array (..., L, L) whose last axis sums to 1.

    Example:
        >>> attention_matrix(np.array([60.0, 0.0])).tolist()
        [[1.0, 0.0], [0.5, 0.5]]
    """
    result: NDArray[Any] = softmax(z[..., :, None] * z[..., None, :], axis=-1)
    return result


@njit(**OPTIONS)
def softmax_block(z, out, scratch, length):  # type: ignore[no-untyped-def]
    """Flat block version of ``attention_matrix``: z (L rows), out (L*L rows), scratch (one row; unused at length 2)."""
    wide_vectors()
    if length == 2:  # two logistic functions instead of four exponentials, and one division for both
        for lane in range(WIDTH):
            z1 = z[lane]
            z2 = z[WIDTH + lane]
            difference = z1 - z2
            # Beyond exp(+-300) an entry is 0 or 1 to all digits, and the product below cannot overflow.
            first = 1.0 + exp_within(z1 * difference, -300.0, 300.0)
            second = 1.0 + exp_within(-z2 * difference, -300.0, 300.0)
            both = 1.0 / (first * second)
            s12 = second * both
            s21 = first * both
            out[lane] = 1.0 - s12
            out[WIDTH + lane] = s12
            out[2 * WIDTH + lane] = s21
            out[3 * WIDTH + lane] = 1.0 - s21
        return
    for i in range(length):
        for lane in range(WIDTH):
            scratch[lane] = z[i * WIDTH + lane] * z[lane]
        for j in range(1, length):
            for lane in range(WIDTH):
                score = z[i * WIDTH + lane] * z[j * WIDTH + lane]
                scratch[lane] = score if score > scratch[lane] else scratch[lane]
        for j in range(length):
            row = (i * length + j) * WIDTH
            for lane in range(WIDTH):
                out[row + lane] = exp(z[i * WIDTH + lane] * z[j * WIDTH + lane] - scratch[lane])
        for lane in range(WIDTH):
            scratch[lane] = 0.0
        for j in range(length):
            row = (i * length + j) * WIDTH
            for lane in range(WIDTH):
                scratch[lane] += out[row + lane]
        for lane in range(WIDTH):
            scratch[lane] = 1.0 / scratch[lane]
        for j in range(length):
            row = (i * length + j) * WIDTH
            for lane in range(WIDTH):
                out[row + lane] *= scratch[lane]
