"""The loss and its derivatives in the overlaps along given Gaussian variables: what sampled expectations average.

With z = m z* + sigma xi + shift, sigma = sqrt(1 - m^2), and c = d loss / d z,

    d/dm = c.(z* - m xi / sigma),    d/dshift = c,

and second derivatives follow with D = d c / d z.  Where sigma is small the terms in 1/sigma cancel between xi and -xi
only, so the variables must come in such pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from seqindex.gaussian.simd import OPTIONS, ROW, WIDTH
from seqindex.model import blocks
from seqindex.model.problem import Problem

Array = NDArray[np.float64]

SMALLEST_SIGMA = (0.0, 1e-3, 0.03)
"""Derivatives of order 1 and 2 at |m| -> 1 are those at this sigma."""
SPREADS = {"square": 1e-4, "norm": 0.05}
"""Half steps of the central differences that give D: wide for the norm loss, whose c jumps where the residual is 0."""
_SAMPLES = types.Array(types.float64, 2, "C", readonly=True)
_EVALUATE = types.void(
    types.FunctionType(blocks.FORWARD), types.FunctionType(blocks.BACKWARD), ROW, types.int64,
    types.FunctionType(blocks.LOSS), _SAMPLES, _SAMPLES, types.float64[::1], types.float64[:, ::1],
)  # fmt: skip
_CHUNK = 2**18


@njit(**OPTIONS)
def _evaluate(forward, backward, parameters, work_rows, loss, labels, fields, squares, gradients):  # type: ignore[no-untyped-def]
    """|f - y|^2 and c of every sample, a block of WIDTH samples at a time."""
    count, length = fields.shape
    outputs = labels.shape[1]
    z = np.empty((length, WIDTH))
    c = np.empty((length, WIDTH))
    y = np.empty((outputs, WIDTH))
    f = np.empty((outputs, WIDTH))
    r = np.empty((outputs, WIDTH))
    work = np.zeros((work_rows, WIDTH))
    for start in range(0, count, WIDTH):
        for lane in range(WIDTH):
            sample = min(start + lane, count - 1)  # the last block repeats the last sample
            for row in range(length):
                z[row, lane] = fields[sample, row]
            for row in range(outputs):
                y[row, lane] = labels[sample, row]
        forward(z, parameters, work, f)
        loss(y, f, r)
        backward(z, parameters, work, r, c)
        for lane in range(min(WIDTH, count - start)):
            total = 0.0
            for row in range(outputs):
                total += (f[row, lane] - y[row, lane]) ** 2
            squares[start + lane] = total
            for row in range(length):
                gradients[start + lane, row] = c[row, lane]


class FieldLoss:
    """Loss and field gradient of many samples with known labels, by the compiled student.

    Example:
        >>> from seqindex import Attention, PositionalSemanticTarget
        >>> problem = Problem(PositionalSemanticTarget(0.5, alignment=1.0), Attention(2))
        >>> z = np.array([[0.3, -0.2], [1.0, 2.0]])
        >>> value, c = FieldLoss(problem)(problem.target(z), z)
        >>> bool(np.allclose(value, problem.loss_at(z, z)) and np.allclose(c, problem.field_gradient(z, z)))
        True
    """

    def __init__(self, problem: Problem) -> None:
        self._loss = problem.loss
        self._student = problem.student.kernel
        self._kernel = blocks.compiled(problem.loss.kernel, blocks.LOSS)
        if not _evaluate.signatures:
            _evaluate.compile(_EVALUATE)
            _evaluate.disable_compile()  # so that every student shares the one compiled loop

    def __call__(self, labels: Array, z: Array) -> tuple[Array, Array]:
        """Loss (n,) and its gradient c in the fields (n, L), of labels (n, k) and fields (n, L)."""
        squares, c = np.empty(len(z)), np.empty(z.shape)
        student = self._student
        _evaluate(
            student.forward, student.backward, student.parameters, student.work_rows, self._kernel,
            np.ascontiguousarray(labels), np.ascontiguousarray(z), squares, c,
        )  # fmt: skip
        return self._loss.value(np.sqrt(squares)[:, None]), c


def clamped(m: float, order: int, factor: float = 1.0) -> float:
    """m, moved off +-1 by as much as derivatives of the given order need."""
    limit = np.sqrt(1.0 - (factor * SMALLEST_SIGMA[order]) ** 2)
    return float(np.clip(m, -limit, limit))


def path_terms(
    loss: FieldLoss, labels: Array, zstar: Array, xi: Array, m: float, shift: Array, order: int, spread: float
) -> Array:
    """Derivatives of the loss in (m, shift) for every sample, shape (n,) + (1 + L,) * order.

    Args:
        loss: of the problem.
        labels: y, shape (n, k).
        zstar: fields of the target, shape (n, L).
        xi: independent part of the fields of the student, shape (n, L).
        m: overlap; |m| < 1 for derivatives.
        shift: means of the fields of the student, shape (L,).
        order: 0, 1 or 2.
        spread: half step of the differences in D.
    """
    sigma = np.sqrt(max(1.0 - m * m, 0.0))
    z = m * zstar + sigma * xi + shift
    value, c = loss(labels, z)
    if order == 0:
        return value
    by_m = zstar - (m / sigma) * xi
    if order == 1:
        return np.concatenate([(c * by_m).sum(-1, keepdims=True), c], axis=-1)
    length = z.shape[1]
    result = np.empty((len(z), 1 + length, 1 + length))
    for axis in range(length):
        step = spread * np.eye(length)[axis]
        result[:, 1 + axis, 1:] = (loss(labels, z + step)[1] - loss(labels, z - step)[1]) / (2.0 * spread)
    inner = result[:, 1:, 1:]
    inner[:] = 0.5 * (inner + np.swapaxes(inner, 1, 2))
    result[:, 0, 1:] = result[:, 1:, 0] = np.einsum("nij,nj->ni", inner, by_m)
    result[:, 0, 0] = (result[:, 0, 1:] * by_m).sum(-1) - (c * xi).sum(-1) / sigma**3
    return result


def noise_terms(loss: FieldLoss, labels: Array, zstar: Array, xi: Array, m: float, shift: Array) -> Array:
    """|c|^2 for every sample, shape (n,)."""
    z = m * zstar + np.sqrt(max(1.0 - m * m, 0.0)) * xi + shift
    return np.asarray((loss(labels, z)[1] ** 2).sum(-1))


def chunks(count: int, width: int) -> Iterator[slice]:
    """Slices of samples whose arrays of ``width`` numbers a sample stay small."""
    size = max(1, 4 * _CHUNK // width)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
