"""Explicit SGD in d dimensions: real tokens, a real gradient, no reduction.  The plain truth for the reduced chain."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from seqindex.gaussian.simd import FAST_FLAGS, OPTIONS, ROW, ROWS, WIDTH
from seqindex.model import blocks
from seqindex.model.problem import Problem
from seqindex.sgd.random import COMPONENT, FRAME, TOKENS, fill_normals, sequence, streams

_STREAMS = types.uint64[:, :, ::1]


# Sums may be reordered here: without that a scalar product is one long chain of additions.
_SUMS: dict[str, Any] = {**OPTIONS, "fastmath": FAST_FLAGS | {"reassoc"}}


@njit(**_SUMS)
def dot(a, b):  # type: ignore[no-untyped-def]
    """Scalar product of two rows."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit(
    types.void(
        types.FunctionType(blocks.TARGET), ROW, types.int64,
        types.FunctionType(blocks.FORWARD), types.FunctionType(blocks.BACKWARD), ROW, types.int64,
        types.FunctionType(blocks.LOSS), ROW, ROWS, ROW, types.int64, types.float64, types.int64,
        ROWS, _STREAMS, types.int64[::1], types.int64, types.int64,
    ),
    **OPTIONS,
)  # fmt: skip
def advance(  # type: ignore[no-untyped-def]
    target, target_parameters, outputs, forward, backward, student_parameters, work_rows, loss,
    wstar, encoding, injection, dim, learning_rate, batch, weights, words, diverged, first, steps,
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
        encoding: rows P_l, (L, padded).
        injection: constant shifts of the fields, (L,).
        dim: d.
        learning_rate: gamma.
        batch: mini-batch size.
        weights: students, (n, padded), changed in place.
        words: generators, (n, 4, WIDTH), changed in place.
        diverged: (n), the step at which a replica stopped being finite, or -1.
        first: number of steps made before.
        steps: number of steps to make.
    """
    count, padded = weights.shape
    length = encoding.shape[0]
    root = math.sqrt(dim)
    rows = length * padded // WIDTH
    tokens = np.empty((count, rows + rows % 2, WIDTH))
    gradient = np.empty((count, padded))
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
                    shifted = (dot(token, weights[i]) + dot(encoding[position], weights[i])) / root
                    z[position, i] = shifted + injection[position]
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
                row = gradient[i]
                for position in range(length):
                    value = c[position, i] / (root * batch)
                    token = x[position * padded : (position + 1) * padded]
                    shift = encoding[position]
                    for j in range(dim):
                        row[j] += value * (token[j] + shift[j])
        for i in range(count):
            w = weights[i]
            row = gradient[i]
            for j in range(dim):
                w[j] -= learning_rate * row[j]
            scale = root / math.sqrt(dot(w, w))
            for j in range(dim):
                w[j] *= scale
            if not (0.0 < scale < math.inf) and diverged[i] < 0:
                diverged[i] = step


def refuse_more_than_memory(wanted: float, dim: int) -> None:
    """Raise ValueError where arrays of ``wanted`` bytes would not fit."""
    if not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if wanted > memory:
        sizes = f"{wanted / 2**30:.3g} GiB of {memory / 2**30:.3g} GiB"
        raise ValueError(f"dim must fit into memory, got {dim}, which takes {sizes}; the reduced engine takes any dim")


class ExplicitEngine:
    """Replicas of explicit SGD; same interface and starts as ``ReducedEngine``."""

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
        frame = problem.frame
        replicas = len(nu)
        padded = -(-dim // WIDTH) * WIDTH
        refuse_more_than_memory(8.0 * padded * (replicas + min(replicas, WIDTH) * (problem.length + 2)), dim)
        self._basis = frame.basis(dim, np.random.default_rng(sequence(seed, 0, FRAME)))
        wstar = np.zeros(padded)
        wstar[:dim] = math.sqrt(dim) * self._basis[:, 0]
        encoding = np.zeros((problem.length, padded))
        encoding[:, :dim] = frame.positions @ self._basis.T
        self._weights = np.zeros((replicas, padded))
        self._words = np.empty((replicas, 4, WIDTH), dtype=np.uint64)
        for replica in range(replicas):
            v = np.random.default_rng(sequence(seed, first + replica, COMPONENT)).standard_normal(dim)
            v -= self._basis @ (self._basis.T @ v)
            v /= np.linalg.norm(v)
            self._weights[replica, :dim] = math.sqrt(dim) * (self._basis @ s[:, replica] + nu[replica] * v)
            self._words[replica] = streams(seed, first + replica, TOKENS, lanes=WIDTH)
        self._dim = dim
        self._constants = (
            *problem.block_functions(problem.student),
            wstar,
            encoding,
            np.array(frame.injection),
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
        """States (m, e), shape (R, n)."""
        # Sums, not products of matrices, whose rounding depends on how many replicas there are.
        w = self._weights[:, : self._dim]
        result = np.array([(w * column).sum(-1) for column in np.ascontiguousarray(self._basis.T)])
        result /= math.sqrt(self._dim)
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
