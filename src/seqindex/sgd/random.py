"""Random streams: one xoshiro256++ generator a lane, normals by Box and Muller, exact chi-squares.

A stream is four 64-bit words derived by ``numpy.random.SeedSequence`` from (seed, replica, what it is for) alone, so a
replica draws the same numbers whatever the number of workers, the blocks or the stops in between, and the two engines
start from the same states but then draw independently.

Sources: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021); G. Marsaglia,
W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from seqindex.gaussian.simd import OPTIONS, ROW, ROWS, WIDTH, flat, float_of, log, sincos_turns, wide_vectors

STREAM_VERSION = 1
"""Changes whenever the same seed gives other numbers."""
START, COMPONENT, FRAME, TOKENS = range(4)
"""What the draws of a replica are for besides the reduced chain: its start, v, the frame (replica 0), its tokens."""
WORDS = types.uint64[:, ::1]
"""State of the generators, (4, WIDTH)."""


def sequence(seed: int, replica: int, *purpose: int) -> np.random.SeedSequence:
    """The source of everything that a replica draws for one purpose; none for the reduced chain."""
    return np.random.SeedSequence(seed, spawn_key=(replica, *purpose))


def streams(seed: int, replica: int, *purpose: int, lanes: int = 1) -> NDArray[np.uint64]:
    """Initial words of the generators of one replica.

    Args:
        seed: seed of the run, a non-negative integer.
        replica: index of the replica.
        purpose: none for the reduced chain, ``TOKENS`` for explicit SGD.
        lanes: number of generators; the reduced chain uses one a replica, explicit SGD one a SIMD lane.

    Returns:
        Array (4, lanes).

    Example:
        >>> streams(0, 3).shape
        (4, 1)
    """
    words = sequence(seed, replica, *purpose).generate_state(4 * lanes, np.uint64)
    return np.ascontiguousarray(words.reshape(lanes, 4).T)


@njit(**OPTIONS)
def _step(s0, s1, s2, s3):  # type: ignore[no-untyped-def]
    """One number of xoshiro256++ and the next state."""
    a = s0 + s3
    number = ((a << np.uint64(23)) | (a >> np.uint64(41))) + s0
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return number, s0, s1, s2, s3


@njit(**OPTIONS)
def _unit(number):  # type: ignore[no-untyped-def]
    """A float in [1, 2) from the 52 high bits (AVX2 cannot convert 64-bit integers)."""
    return float_of(np.int64((number >> np.uint64(12)) | np.uint64(0x3FF0000000000000)))


@njit(types.void(WORDS, ROWS), **OPTIONS)
def fill_normals(words, out):  # type: ignore[no-untyped-def]
    """Fill ``out``, an even number of rows of WIDTH lanes, with independent standard normals."""
    wide_vectors()
    w = flat(words)
    x = flat(out)
    for pair in range(out.shape[0] // 2):
        row = 2 * pair * WIDTH
        for lane in range(WIDTH):
            s0 = w[lane]
            s1 = w[WIDTH + lane]
            s2 = w[2 * WIDTH + lane]
            s3 = w[3 * WIDTH + lane]
            first, s0, s1, s2, s3 = _step(s0, s1, s2, s3)
            second, s0, s1, s2, s3 = _step(s0, s1, s2, s3)
            w[lane] = s0
            w[WIDTH + lane] = s1
            w[2 * WIDTH + lane] = s2
            w[3 * WIDTH + lane] = s3
            # u in (0, 1) is the middle of its cell, so the logarithm is finite and the tail reaches 8.5 sigma.
            radius = math.sqrt(-2.0 * log(_unit(first) - (1.0 - 2.0**-53)))
            sine, cosine = sincos_turns(_unit(second) - 1.0)
            x[row + lane] = radius * cosine
            x[row + WIDTH + lane] = radius * sine


@njit(**OPTIONS)
def _draw(words, lane):  # type: ignore[no-untyped-def]
    """One uniform in (0, 1) from one lane."""
    number, s0, s1, s2, s3 = _step(words[0, lane], words[1, lane], words[2, lane], words[3, lane])
    words[0, lane] = s0
    words[1, lane] = s1
    words[2, lane] = s2
    words[3, lane] = s3
    return _unit(number) - (1.0 - 2.0**-53)


@njit(**OPTIONS)
def _accepted(x, u, shape, scale):  # type: ignore[no-untyped-def]
    """The exact test of Marsaglia and Tsang."""
    root = 1.0 + scale * x
    if root <= 0.0:
        return False
    cube = root * root * root
    return math.log(u) < 0.5 * x * x + shape * (1.0 - cube + math.log(cube))


@njit(types.void(WORDS, types.float64, ROW, ROW), **OPTIONS)
def fill_chi_square(words, degrees, normals, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (WIDTH) with exact chi-squares of ``degrees`` (a whole number, 0 included).

    Args:
        words: generators, (4, WIDTH).
        degrees: number of degrees of freedom.
        normals: (WIDTH) standard normals to use up.
        out: (WIDTH), filled.
    """
    wide_vectors()
    if degrees < 2.0:
        for lane in range(WIDTH):
            out[lane] = degrees * normals[lane] * normals[lane]
        return
    shape = 0.5 * degrees - 1.0 / 3.0
    scale = 1.0 / math.sqrt(9.0 * shape)
    w = flat(words)
    doubtful = 0
    for lane in range(WIDTH):
        number, s0, s1, s2, s3 = _step(w[lane], w[WIDTH + lane], w[2 * WIDTH + lane], w[3 * WIDTH + lane])
        w[lane] = s0
        w[WIDTH + lane] = s1
        w[2 * WIDTH + lane] = s2
        w[3 * WIDTH + lane] = s3
        u = _unit(number) - (1.0 - 2.0**-53)
        t = scale * normals[lane]
        root = 1.0 + t
        # With |t| < 1/2 the exact test's exponent is 3 shape (log(1+t) - t + t^2/2 - t^3/3) > -1.5 shape t^4, so this
        # squeeze never accepts wrongly; it settles all but about one draw in 18 shape.
        bound = 1.0 - 1.5 * shape * t * t * t * t
        sure = (t < 0.5) & (t > -0.5) & (u < bound)
        # What is left open keeps its uniform, with a minus sign to tell it from a chi-square.
        out[lane] = 2.0 * shape * root * root * root if sure else -u
        doubtful += 0 if sure else 1
    if doubtful == 0:
        return
    for lane in range(WIDTH):
        if out[lane] >= 0.0:
            continue
        x = normals[lane]
        u = -out[lane]
        while not _accepted(x, u, shape, scale):
            radius = math.sqrt(-2.0 * math.log(_draw(words, lane)))
            x = radius * math.cos(2.0 * math.pi * _draw(words, lane))
            u = _draw(words, lane)
        root = 1.0 + scale * x
        out[lane] = 2.0 * shape * root * root * root
