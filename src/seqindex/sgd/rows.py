"""The exact reduced chain of students with one weight vector a position, at a cost that does not depend on d.

The rows w_l lie on spheres, n of them on each (``Rows``); the output depends on u = L^{-1/2} sum_l w_l.x_l alone.  The
n rows of sphere j are one vector W_j of R^{nd}, and its frame holds the n copies of w*/sqrt(d), one a row:

    W_j = sqrt(d) (its overlaps m_l along the frame + nu_j V_j),  V_j a unit vector,  sum_{l on j} m_l^2 + nu_j^2 = n.

With z*_l and k_j independent standard normals, q = d loss / d u and a = gamma q / (d sqrt(L)), a step is

    u = L^{-1/2} (sum_l m_l z*_l + sum_j nu_j k_j),
    m_l -> (m_l - a z*_l) / N_j,   nu_j^2 -> ((nu_j - a k_j)^2 + a^2 chi^2_{n (d-1) - 1}) / N_j^2,

N_j^2 the mean over the rows of sphere j of what is then their squared norm.  So rows on spheres of their own (n = 1,
the paper) need a chi-square of d - 2 degrees of freedom each, rows on one sphere (n = L, the released code) one alone.
In a mini-batch the sums over samples of q z*_l, q k_j and q^2 enter, and again one chi-square a sphere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from seqindex.gaussian.simd import OPTIONS, ROW, ROWS, WIDTH, flat, wide_vectors
from seqindex.model import blocks
from seqindex.model.problem import Problem
from seqindex.sgd.random import WORDS, fill_chi_square, fill_normals, streams

STEPS = types.int64[::1]
_NOT_NEGATIVE = 2**40 - 1
"""A mask that shows LLVM the sign of an index; the check for a negative one would keep a loop scalar."""


@njit(**OPTIONS)
def _output(scale, state, normals, u):  # type: ignore[no-untyped-def]
    """u: every coordinate of the state times its normal."""
    wide_vectors()
    for lane in range(WIDTH):
        u[lane] = 0.0
    for row in range(state.shape[0] // WIDTH):
        for lane in range(WIDTH):
            u[lane] += state[row * WIDTH + lane] * normals[row * WIDTH + lane]
    for lane in range(WIDTH):
        u[lane] *= scale


@njit(**OPTIONS)
def _collect(q, normals, sums, square):  # type: ignore[no-untyped-def]
    """Add one sample's q z*_l, q k_j and q^2."""
    wide_vectors()
    for row in range(sums.shape[0] // WIDTH):
        for lane in range(WIDTH):
            sums[row * WIDTH + lane] += q[lane] * normals[row * WIDTH + lane]
    for lane in range(WIDTH):
        square[lane] += q[lane] * q[lane]


@njit(**OPTIONS)
def _move(length, together, scale, sums, square, chi, state, bad, total, size):  # type: ignore[no-untyped-def]
    """One step of the state, sphere by sphere, and the new ``size`` = ||m||^2; ``bad`` marks norms that are none."""
    wide_vectors()
    share = 1.0 / together
    for lane in range(WIDTH):
        size[lane] = 0.0
    for sphere in range(length // together):
        nu = ((length + sphere) * WIDTH) & _NOT_NEGATIVE
        for lane in range(WIDTH):
            kept = state[nu + lane] - scale * sums[nu + lane]
            rest = kept * kept + scale * scale * square[lane] * chi[sphere * WIDTH + lane]
            state[nu + lane] = rest
            total[lane] = rest
        for row in range(sphere * together, (sphere + 1) * together):
            m = (row * WIDTH) & _NOT_NEGATIVE
            for lane in range(WIDTH):
                new = state[m + lane] - scale * sums[m + lane]
                state[m + lane] = new
                total[lane] += new * new
        for lane in range(WIDTH):
            norm = total[lane] * share
            bad[lane] = bad[lane] if (norm > 0.0) & (norm < math.inf) else 1.0
            inverse = 1.0 / math.sqrt(norm)
            total[lane] = inverse
            state[nu + lane] = math.sqrt(state[nu + lane]) * inverse
        for row in range(sphere * together, (sphere + 1) * together):
            m = (row * WIDTH) & _NOT_NEGATIVE
            for lane in range(WIDTH):
                new = state[m + lane] * total[lane]
                state[m + lane] = new
                size[lane] += new * new


@njit(**OPTIONS)
def _watch(bad, size, threshold, diverged, crossed, step):  # type: ignore[no-untyped-def]
    """Keep the first steps at which a norm was no positive finite number and at which ||m||^2 >= threshold."""
    wide_vectors()
    for lane in range(WIDTH):
        diverged[lane] = step if (bad[lane] > 0.0) & (diverged[lane] < 0) else diverged[lane]
        crossed[lane] = step if (size[lane] >= threshold) & (crossed[lane] < 0) else crossed[lane]


@njit(
    types.void(
        types.FunctionType(blocks.TARGET), ROW, types.int64,
        types.FunctionType(blocks.FORWARD), types.FunctionType(blocks.BACKWARD), ROW, types.int64,
        types.FunctionType(blocks.LOSS), types.int64, types.int64, types.float64, types.float64, types.int64,
        ROWS, WORDS, types.float64, STEPS, STEPS, types.int64, types.int64,
    ),
    **OPTIONS,
)  # fmt: skip
def advance(  # type: ignore[no-untyped-def]
    target, target_parameters, outputs, forward, backward, student_parameters, work_rows, loss,
    length, together, delta, degrees, batch, state, words, threshold, diverged, crossed, first, steps,
):  # fmt: skip
    """Make ``steps`` steps of one block of WIDTH replicas in place.

    Args:
        target: block function, with its ``target_parameters`` and its number of ``outputs``.
        target_parameters: see there.
        outputs: see there.
        forward: block function of the student's core, a function of u, with ``student_parameters`` and ``work_rows``
            rows of scratch.
        backward: see there.
        student_parameters: see there.
        work_rows: see there.
        loss: block function.
        length: number L of rows.
        together: number n of rows on a sphere.
        delta: learning rate over dimension.
        degrees: degrees of freedom n (d - 1) - 1 of each chi-square.
        batch: mini-batch size.
        state: m_1, ..., m_L, nu_1, ..., nu_{L/n}, shape (L + L/n, WIDTH), changed in place.
        words: generators, (4, WIDTH), changed in place.
        threshold: value of ||m||^2 that is watched for.
        diverged: (WIDTH), the step at which a replica stopped being finite, or -1. Changed in place.
        crossed: (WIDTH), the first step with ||m||^2 >= threshold, or -1. Changed in place.
        first: number of steps made before.
        steps: number of steps to make.
    """
    wide_vectors()
    spheres = length // together
    rows = length + spheres
    normals = np.empty((rows + rows % 2, WIDTH))
    final = np.empty((spheres + spheres % 2, WIDTH))
    chi = np.empty((spheres, WIDTH))
    u = np.empty((1, WIDTH))
    q = np.empty((1, WIDTH))
    y = np.empty((outputs, WIDTH))
    f = np.empty((outputs, WIDTH))
    r = np.empty((outputs, WIDTH))
    student_work = np.zeros((work_rows, WIDTH))
    sums = np.empty(rows * WIDTH)
    square = np.empty(WIDTH)
    total = np.empty(WIDTH)
    bad = np.zeros(WIDTH)
    size = np.empty(WIDTH)
    coordinates = flat(state)
    zstar = normals[:length]
    share = 1.0 / math.sqrt(length)
    for step in range(first + 1, first + steps + 1):
        sums[:] = 0.0
        square[:] = 0.0
        for _ in range(batch):
            fill_normals(words, normals)
            _output(share, coordinates, flat(normals), flat(u))
            target(zstar, target_parameters, y)
            forward(u, student_parameters, student_work, f)
            loss(y, f, r)
            backward(u, student_parameters, student_work, r, q)
            _collect(flat(q), flat(normals), sums, square)
        fill_normals(words, final)
        for sphere in range(spheres):
            fill_chi_square(words, degrees, final[sphere], chi[sphere])
        _move(length, together, share * delta / batch, sums, square, flat(chi), coordinates, bad, total, size)
        _watch(bad, size, threshold, diverged, crossed, step)


class RowsEngine:
    """Replicas of the reduced chain of a student with one weight vector a position: their states and streams.

    Args:
        problem: what is learned, by a student whose ``frame`` is ``Rows``.
        dim: dimension d.
        learning_rate: gamma.
        batch: mini-batch size.
        s: starting overlaps m_l, (L, n).
        nu: norms of the rows' parts orthogonal to w*, over sqrt(d), (L, n).
        seed: seed of the streams; replica i has stream i.
        first: index of the first of these replicas.
        threshold: size of the overlap, ||m|| / sqrt(L), whose first crossing is kept in ``crossed``.
    """

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
        threshold: float = math.inf,
    ) -> None:
        rows = problem.rows
        n = rows.together
        self._length = rows.length
        self._constants = (
            *problem.block_functions(problem.student.core),
            rows.length,
            n,
            learning_rate / dim,
            float(n * (dim - 1) - 1),
            batch,
        )
        outside = np.sqrt((nu.reshape(rows.spheres, n, -1) ** 2).sum(1))
        self._state = np.concatenate([s, outside])
        self._threshold = threshold * threshold * rows.length
        self.crossed = np.full(s.shape[1], -1, dtype=np.int64)
        """The first step after which a replica had an overlap of that size, or -1; the start does not count."""
        self._words = np.hstack([streams(seed, first + replica) for replica in range(s.shape[1])])

    @property
    def memory(self) -> dict[str, NDArray[Any]]:
        """Everything that changes while it runs, to be saved or overwritten in place."""
        return {"state": self._state, "words": self._words, "crossed": self.crossed}

    @property
    def s(self) -> NDArray[np.float64]:
        """Overlaps m_l, (L, n)."""
        return self._state[: self._length]

    def advance(self, which: NDArray[np.int64], first: int, steps: int) -> NDArray[np.int64]:
        """Make ``steps`` steps of at most WIDTH replicas after ``first`` earlier ones.

        Returns:
            For each of them the step at which it stopped being finite, or -1.
        """
        lanes = np.resize(which, WIDTH)  # a block that is not full repeats its replicas; the copies are dropped
        state = np.ascontiguousarray(self._state[:, lanes])
        words = np.ascontiguousarray(self._words[:, lanes])
        diverged = np.full(WIDTH, -1, dtype=np.int64)
        crossed = self.crossed[lanes]
        advance(*self._constants, state, words, self._threshold, diverged, crossed, first, steps)
        n = len(which)
        self.crossed[which] = crossed[:n]
        self._state[:, which] = state[:, :n]
        self._words[:, which] = words[:, :n]
        return diverged[:n]
