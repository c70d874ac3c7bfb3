"""The exact reduced chain: one step of SGD in d dimensions at a cost that does not depend on d.

Tokens are Gaussian, so a step moves w only through its fields, its projections on the frame and one chi-square.
With w = sqrt(d) (B s + nu v) and g, k independent standard normals in R^L,

    z* = g,   z = s_1 g + q k + Q s + injection,   q^2 = nu^2 + s_2^2 + ... + s_R^2,   c = d loss / d z.

Given c, the projections of the gradient on B and v depend on the tokens only through k and R - 1 further normals eta:
with the unit vector u = (nu, s_2, ..., s_R) / q,

    (v, b_2, ..., b_R) part = u (k.c) + |c| (the reflection that takes e_1 to -u, applied to (0, eta)),

and the rest of the gradient, orthogonal to all of these, has squared norm |c|^2 chi^2_{d-R-1}.  In a mini-batch c's are
independent given their fields, so their sums need one eta and one chi-square.

A student that sees p < L combinations V z alone, with orthonormal rows in V, has c = V^T (d loss / d (V z)).  All this
then holds with V z, V z*, V k, V Q and V injection in place of z, g, k, Q and the injection, and V k is p new normals.
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


@njit(**OPTIONS)
def _combine(mixing, normals, xstar):  # type: ignore[no-untyped-def]
    """V z*, row by row; nothing where there are no rows."""
    wide_vectors()
    for i in range(mixing.shape[0]):
        for lane in range(WIDTH):
            xstar[i * WIDTH + lane] = 0.0
        for position in range(mixing.shape[1]):
            weight = mixing[i, position]
            for lane in range(WIDTH):
                xstar[i * WIDTH + lane] += weight * normals[position * WIDTH + lane]


@njit(**OPTIONS)
def _fields(positions, injection, s, xstar, k, q, z):  # type: ignore[no-untyped-def]
    """z_l = s_1 g_l + q k_l + (Q s)_l + injection_l."""
    wide_vectors()
    length = positions.shape[0]
    for position in range(length):
        row = position * WIDTH
        for lane in range(WIDTH):
            z[row + lane] = s[lane] * xstar[row + lane] + q[lane] * k[row + lane]
        for j in range(positions.shape[1]):
            value = positions[position, j]
            if value != 0.0:
                for lane in range(WIDTH):
                    z[row + lane] += value * s[j * WIDTH + lane]
        constant = injection[position]
        if constant != 0.0:
            for lane in range(WIDTH):
                z[row + lane] += constant


@njit(**OPTIONS)
def _collect(positions, xstar, k, c, sums):  # type: ignore[no-untyped-def]
    """Add one sample's z*.c, k.c, |c|^2 and Q^T c to the rows of ``sums``."""
    wide_vectors()
    length = positions.shape[0]
    for position in range(length):
        row = position * WIDTH
        for lane in range(WIDTH):
            value = c[row + lane]
            sums[lane] += xstar[row + lane] * value
            sums[WIDTH + lane] += k[row + lane] * value
            sums[2 * WIDTH + lane] += value * value
        for j in range(positions.shape[1]):
            weight = positions[position, j]
            if weight != 0.0:
                for lane in range(WIDTH):
                    sums[(3 + j) * WIDTH + lane] += weight * c[row + lane]


_TINY = 1e-290
# Rows of the workspace of ``_move``.
_Q, _ALONG, _PULL, _SPREAD, _TOTAL = (row * WIDTH for row in range(5))


@njit(**OPTIONS)
def _radius(s, nu, rank, work):  # type: ignore[no-untyped-def]
    """q = |(nu, s_2, ..., s_R)|."""
    wide_vectors()
    for lane in range(WIDTH):
        work[_Q + lane] = nu[lane] * nu[lane]
    for j in range(1, rank):
        for lane in range(WIDTH):
            work[_Q + lane] += s[j * WIDTH + lane] * s[j * WIDTH + lane]
    for lane in range(WIDTH):
        work[_Q + lane] = math.sqrt(work[_Q + lane])


@njit(**OPTIONS)
def _move(rank, scale, sums, eta, chi, s, nu, work):  # type: ignore[no-untyped-def]
    """One step of the state and its rescaling to the sphere; ``work[_TOTAL]`` keeps the squared norm before it."""
    wide_vectors()
    for lane in range(WIDTH):
        work[_ALONG + lane] = 0.0
    for j in range(1, rank):
        for lane in range(WIDTH):
            work[_ALONG + lane] += s[j * WIDTH + lane] * eta[(j - 1) * WIDTH + lane]
    for lane in range(WIDTH):
        # One division gives 1/q and 1/(q (q + nu)).  At q = 0 nothing depends on k, so any u will do: (1, 0, ...); it
        # also does where the division would overflow.
        ahead = work[_Q + lane] + nu[lane]
        product = work[_Q + lane] * ahead
        known = not (product <= _TINY)  # keeps NaN
        both = 1.0 / product if known else 0.0
        inverse = ahead * both
        u = nu[lane] * inverse if known else 1.0
        kc = sums[WIDTH + lane]
        cc = sums[2 * WIDTH + lane]
        spread = math.sqrt(cc)
        nu_new = nu[lane] - scale * (u * kc - spread * work[_ALONG + lane] * inverse)
        s_new = s[lane] - scale * (sums[lane] + sums[3 * WIDTH + lane])
        rest = nu_new * nu_new + scale * scale * cc * chi[lane]
        nu[lane] = rest
        s[lane] = s_new
        work[_PULL + lane] = kc * inverse - spread * work[_ALONG + lane] * both
        work[_SPREAD + lane] = spread
        work[_TOTAL + lane] = rest + s_new * s_new
    for j in range(1, rank):
        for lane in range(WIDTH):
            old = s[j * WIDTH + lane]
            part = old * work[_PULL + lane] + work[_SPREAD + lane] * eta[(j - 1) * WIDTH + lane]
            new = old - scale * (part + sums[(3 + j) * WIDTH + lane])
            s[j * WIDTH + lane] = new
            work[_TOTAL + lane] += new * new
    for lane in range(WIDTH):
        inverse = 1.0 / math.sqrt(work[_TOTAL + lane])
        nu[lane] = math.sqrt(nu[lane]) * inverse
        s[lane] *= inverse
        work[_ALONG + lane] = inverse
    for j in range(1, rank):
        for lane in range(WIDTH):
            s[j * WIDTH + lane] *= work[_ALONG + lane]


@njit(**OPTIONS)
def _watch(work, s, threshold, diverged, crossed, step):  # type: ignore[no-untyped-def]
    """Keep the first steps at which the squared norm is not a positive finite number and at which |m| >= threshold."""
    wide_vectors()
    for lane in range(WIDTH):
        total = work[_TOTAL + lane]
        fine = (total > 0.0) & (total < math.inf)
        diverged[lane] = step if (not fine) & (diverged[lane] < 0) else diverged[lane]
        crossed[lane] = step if (abs(s[lane]) >= threshold) & (crossed[lane] < 0) else crossed[lane]


@njit(
    types.void(
        types.FunctionType(blocks.TARGET), ROW, types.int64,
        types.FunctionType(blocks.FORWARD), types.FunctionType(blocks.BACKWARD), ROW, types.int64,
        types.FunctionType(blocks.LOSS), ROWS, ROWS, ROW, types.float64, types.float64, types.int64,
        ROWS, ROW, WORDS, types.float64, STEPS, STEPS, types.int64, types.int64,
    ),
    **OPTIONS,
)  # fmt: skip
def advance(  # type: ignore[no-untyped-def]
    target, target_parameters, outputs, forward, backward, student_parameters, work_rows, loss,
    mixing, positions, injection, delta, degrees, batch, s, nu, words, threshold, diverged, crossed, first, steps,
):  # fmt: skip
    """Make ``steps`` steps of one block of WIDTH replicas in place.

    Args:
        target: block function, with its ``target_parameters`` and its number of ``outputs``.
        target_parameters: see there.
        outputs: see there.
        forward: block function of the student's core, with ``student_parameters`` and ``work_rows`` rows of scratch.
        backward: see there.
        student_parameters: see there.
        work_rows: see there.
        loss: block function.
        mixing: V, (p, L), or (0, L) where the student sees the fields themselves and p = L.
        positions: V Q, (p, R).
        injection: V times the constant shifts of the fields, (p,).
        delta: learning rate over dimension.
        degrees: degrees of freedom d - R - 1 of the chi-square.
        batch: mini-batch size.
        s: state, (R, WIDTH), changed in place.
        nu: (WIDTH), changed in place.
        words: generators, (4, WIDTH), changed in place.
        threshold: size of the overlap that is watched for.
        diverged: (WIDTH), the step at which a replica stopped being finite, or -1. Changed in place.
        crossed: (WIDTH), the first step with |m| >= threshold, or -1. Changed in place.
        first: number of steps made before.
        steps: number of steps to make.
    """
    wide_vectors()
    count, rank = positions.shape
    length = mixing.shape[1]
    normals = np.empty((length + count + (length + count) % 2, WIDTH))
    final = np.empty((rank + rank % 2, WIDTH))  # R - 1 normals eta, one for the chi-square, made even
    z = np.empty((count, WIDTH))
    c = np.empty((count, WIDTH))
    y = np.empty((outputs, WIDTH))
    f = np.empty((outputs, WIDTH))
    r = np.empty((outputs, WIDTH))
    student_work = np.zeros((work_rows, WIDTH))
    sums = np.empty((3 + rank) * WIDTH)
    chi = np.empty(WIDTH)
    work = np.empty(5 * WIDTH)
    s_flat = flat(s)
    zstar = normals[:length]
    own = normals[length:]
    xstar = np.empty((count, WIDTH)) if mixing.shape[0] > 0 else zstar
    for step in range(first + 1, first + steps + 1):
        _radius(s_flat, nu, rank, work)
        sums[:] = 0.0
        for _ in range(batch):
            fill_normals(words, normals)
            _combine(mixing, flat(zstar), flat(xstar))
            _fields(positions, injection, s_flat, flat(xstar), flat(own), work, flat(z))
            target(zstar, target_parameters, y)
            forward(z, student_parameters, student_work, f)
            loss(y, f, r)
            backward(z, student_parameters, student_work, r, c)
            _collect(positions, flat(xstar), flat(own), flat(c), sums)
        fill_normals(words, final)
        fill_chi_square(words, degrees, final[rank - 1], chi)
        # With the mean over the batch every sum carries 1 / batch, and |c|^2 its square through ``scale``.
        _move(rank, delta / batch, sums, flat(final), chi, s_flat, nu, work)
        _watch(work, s_flat, threshold, diverged, crossed, step)


class ReducedEngine:
    """Replicas of the reduced chain: their states and streams.

    Args:
        problem: what is learned.
        dim: dimension d.
        learning_rate: gamma.
        batch: mini-batch size.
        s: starting states, (R, n).
        nu: (n,).
        seed: seed of the streams; replica i has stream i.
        first: index of the first of these replicas.
        threshold: size of the overlap, |m|, whose first crossing is kept in ``crossed``.
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
        frame, mixing = problem.frame, np.array(problem.student.combinations, order="C")
        own = np.array_equal(mixing, np.eye(problem.length))
        self._constants = (
            *problem.block_functions(problem.student.core),
            mixing[:0] if own else mixing,
            np.ascontiguousarray(mixing @ frame.positions),
            mixing @ frame.injection,
            learning_rate / dim,
            float(dim - frame.rank - 1),
            batch,
        )
        self.s = s.copy()
        self._nu = nu.copy()
        self._threshold = threshold
        self.crossed = np.full(len(nu), -1, dtype=np.int64)
        """The first step after which a replica had an overlap of that size, or -1; the start does not count."""
        self._words = np.hstack([streams(seed, first + replica) for replica in range(len(nu))])

    @property
    def memory(self) -> dict[str, NDArray[Any]]:
        """Everything that changes while it runs, to be saved or overwritten in place."""
        return {"s": self.s, "nu": self._nu, "words": self._words, "crossed": self.crossed}

    def advance(self, which: NDArray[np.int64], first: int, steps: int) -> NDArray[np.int64]:
        """Make ``steps`` steps of at most WIDTH replicas after ``first`` earlier ones.

        Returns:
            For each of them the step at which it stopped being finite, or -1.
        """
        lanes = np.resize(which, WIDTH)  # a block that is not full repeats its replicas; the copies are dropped
        s = np.ascontiguousarray(self.s[:, lanes])
        nu = np.ascontiguousarray(self._nu[lanes])
        words = np.ascontiguousarray(self._words[:, lanes])
        diverged = np.full(WIDTH, -1, dtype=np.int64)
        crossed = self.crossed[lanes]
        advance(*self._constants, s, nu, words, self._threshold, diverged, crossed, first, steps)
        n = len(which)
        self.crossed[which] = crossed[:n]
        self.s[:, which] = s[:, :n]
        self._nu[which] = nu[:n]
        self._words[:, which] = words[:, :n]
        return diverged[:n]
