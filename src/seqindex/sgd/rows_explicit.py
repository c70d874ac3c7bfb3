"""Explicit SGD in d dimensions with one weight vector a position: the plain truth for its reduced chain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from seqindex.gaussian.simd import OPTIONS, ROW, WIDTH
from seqindex.model import blocks
from seqindex.model.problem import Problem
from seqindex.sgd.explicit import dot, refuse_more_than_memory
from seqindex.sgd.random import COMPONENT, FRAME, TOKENS, fill_normals, sequence, streams

_WEIGHTS = types.float64[:, :, ::1]
_STREAMS = types.uint64[:, :, ::1]


@njit(**OPTIONS)
def _rescale(w, together, dim):  # type: ignore[no-untyped-def]
    """Put rows (L, padded) back on their spheres; whether every norm was a positive finite number."""
    fine = True
    for begin in range(0, w.shape[0], together):
        square = 0.0
        for row in range(begin, begin + together):
            square += dot(w[row], w[row])
        scale = math.sqrt(together * dim / square)
        fine = fine and (0.0 < scale < math.inf)
        for row in range(begin, begin + together):
            for j in range(dim):
                w[row, j] *= scale
    return fine


@njit(
    types.void(
        types.FunctionType(blocks.TARGET), ROW, types.int64,
        types.FunctionType(blocks.FORWARD), types.FunctionType(blocks.BACKWARD), ROW, types.int64,
        types.FunctionType(blocks.LOSS), ROW, types.int64, types.int64, types.float64, types.int64,
        _WEIGHTS, _STREAMS, types.int64[::1], types.int64, types.int64,
    ),
    **OPTIONS,
)  # fmt: skip
def advance(  # type: ignore[no-untyped-def]
    target, target_parameters, outputs, forward, backward, student_parameters, work_rows, loss,
    wstar, together, dim, learning_rate, batch, weights, words, diverged, first, steps,
):  # fmt: skip
    """Make ``steps`` steps of at most WIDTH replicas in place, in step with each other.

    Args:
        target: block function, with its ``target_parameters`` and its number of ``outputs``.
        target_parameters: see there.
        outputs: see there.
        forward: block function of the student, with ``student_parameters`` and ``work_rows`` rows of scratch.
        backward: see there.
        student_parameters: see there.
        work_rows: see there.
        loss: block function.
        wstar: w*, padded with zeros to a multiple of WIDTH.
        together: number of rows on a sphere.
        dim: d.
        learning_rate: gamma.
        batch: mini-batch size.
        weights: students, (n, L, padded), changed in place.
        words: generators, (n, 4, WIDTH), changed in place.
        diverged: (n), the step at which a replica stopped being finite, or -1.
        first: number of steps made before.
        steps: number of steps to make.
    """
    count, length, padded = weights.shape
    root = math.sqrt(dim)
    blocks_of_normals = length * padded // WIDTH
    tokens = np.empty((count, blocks_of_normals + blocks_of_normals % 2, WIDTH))
    gradient = np.empty((count, length, padded))
    zstar = np.zeros((length, WIDTH))
    z = np.zeros((length, WIDTH))
    c = np.zeros((length, WIDTH))
    y = np.zeros((outputs, WIDTH))
    f = np.zeros((outputs, WIDTH))
    r = np.zeros((outputs, WIDTH))
    work = np.zeros((work_rows, WIDTH))
    for step in range(first + 1, first + steps + 1):
        gradient[:] = 0.0
        for _ in range(batch):
            for i in range(count):
                fill_normals(words[i], tokens[i])
                x = tokens[i].reshape(-1)
                for position in range(length):
                    token = x[position * padded : (position + 1) * padded]
                    zstar[position, i] = dot(token, wstar) / root
                    z[position, i] = dot(token, weights[i, position]) / root
            for position in range(length):  # a block that is not full repeats its first replica's fields
                for i in range(count, WIDTH):
                    zstar[position, i] = zstar[position, 0]
                    z[position, i] = z[position, 0]
            target(zstar, target_parameters, y)
            forward(z, student_parameters, work, f)
            loss(y, f, r)
            backward(z, student_parameters, work, r, c)
            for i in range(count):
                x = tokens[i].reshape(-1)
                for position in range(length):
                    value = c[position, i] / (root * batch)
                    token = x[position * padded : (position + 1) * padded]
                    row = gradient[i, position]
                    for j in range(dim):
                        row[j] += value * token[j]
        for i in range(count):
            for position in range(length):
                w = weights[i, position]
                row = gradient[i, position]
                for j in range(dim):
                    w[j] -= learning_rate * row[j]
            if not _rescale(weights[i], together, dim) and diverged[i] < 0:
                diverged[i] = step


class RowsExplicitEngine:
    """Replicas of explicit SGD with one weight vector a position; same interface and starts as ``RowsEngine``."""

    def __init__(
        self,
        problem: Problem,
        dim: int,
        learning_rate: float,
        batch: int,
        s: NDArray[np.float64],
        nu: NDArray[np.float64],
        seed: int,
        first: int = 0,
    ) -> None:
        rows = problem.rows
        length, replicas = s.shape
        padded = -(-dim // WIDTH) * WIDTH
        wanted = 8.0 * padded * (length * (replicas + 3 * min(replicas, WIDTH)) + 1)
        refuse_more_than_memory(wanted, dim)
        direction = rows.row.basis(dim, np.random.default_rng(sequence(seed, 0, FRAME)))[:, 0]
        self._wstar = np.zeros(padded)
        self._wstar[:dim] = math.sqrt(dim) * direction
        self._weights = np.zeros((replicas, length, padded))
        self._words = np.empty((replicas, 4, WIDTH), dtype=np.uint64)
        for replica in range(replicas):
            v = np.random.default_rng(sequence(seed, first + replica, COMPONENT)).standard_normal((length, dim))
            v -= np.outer(v @ direction, direction)
            v /= np.linalg.norm(v, axis=1, keepdims=True)
            w = np.outer(s[:, replica], direction) + nu[:, replica, None] * v
            self._weights[replica, :, :dim] = math.sqrt(dim) * w
            self._words[replica] = streams(seed, first + replica, TOKENS, lanes=WIDTH)
        self._dim = dim
        self._constants = (
            *problem.block_functions(problem.student),
            self._wstar,
            rows.together,
            dim,
            learning_rate,
            batch,
        )

    @property
    def memory(self) -> dict[str, NDArray[Any]]:
        """Everything that changes while it runs, to be saved or overwritten in place."""
        return {"weights": self._weights, "words": self._words}

    @property
    def s(self) -> NDArray[np.float64]:
        """Overlaps m_l, (L, n)."""
        # A sum, not a product of matrices, whose rounding depends on how many replicas there are.
        result: NDArray[np.float64] = (self._weights * self._wstar).sum(-1).T / self._dim
        return result

    def advance(self, which: NDArray[np.int64], first: int, steps: int) -> NDArray[np.int64]:
        """Make ``steps`` steps of at most WIDTH replicas; returns the steps of divergence, or -1."""
        weights = self._weights[which]
        words = self._words[which]
        diverged = np.full(len(which), -1, dtype=np.int64)
        advance(*self._constants, weights, words, diverged, first, steps)
        self._weights[which] = weights
        self._words[which] = words
        return diverged
