"""Random streams: one xoshiro256++ generator a lane, normals by Box and Muller, exact chi-squares.

A stream is four 64-bit words derived by ``numpy.random.SeedSequence`` from (seed, replica) alone, so a replica draws the
same numbers whatever the number of workers, the blocks or the stops in between.  Arrays are shaped (field, lane) with
the lane innermost; every loop over lanes is a SIMD loop.

Sources: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021); G. Marsaglia,
W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).
"""

import math

import numpy as np
from numba import njit, types

from seqindex.gaussian.simd import OPTIONS, ROW, ROWS, WIDTH, float_of, log, sincos_turns

STREAM_VERSION = 1
"""Changes whenever the same seed gives other numbers."""

WORDS = types.uint64[:, ::1]


def streams(seed: int, replica: int, lanes: int = 1) -> np.ndarray:
    """Initial words of the generators of one replica, shape (4, lanes), dtype uint64.

    Args:
        seed: seed of the run, a non-negative integer.
        replica: index of the replica.
        lanes: number of generators; the reduced chain uses one a replica, explicit SGD one a SIMD lane.

    Example:
        >>> streams(0, 3).shape
        (4, 1)
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(replica,))
    return np.ascontiguousarray(sequence.generate_state(4 * lanes, np.uint64).reshape(lanes, 4).T)


@njit(types.void(WORDS, ROWS), **OPTIONS)
def fill_normals(words, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (an even number of rows, lanes) with independent standard normals."""
    flat = out.reshape(-1)
    w = words.reshape(-1)
    for pair in range(out.shape[0] // 2):
        for lane in range(WIDTH):
            s0 = w[0 * WIDTH + lane]
            s1 = w[1 * WIDTH + lane]
            s2 = w[2 * WIDTH + lane]
            s3 = w[3 * WIDTH + lane]
            a = s0 + s3
            first = ((a << np.uint64(23)) | (a >> np.uint64(41))) + s0
            t = s1 << np.uint64(17)
            s2 ^= s0
            s3 ^= s1
            s1 ^= s2
            s0 ^= s3
            s2 ^= t
            s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
            a = s0 + s3
            second = ((a << np.uint64(23)) | (a >> np.uint64(41))) + s0
            t = s1 << np.uint64(17)
            s2 ^= s0
            s3 ^= s1
            s1 ^= s2
            s0 ^= s3
            s2 ^= t
            s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
            w[0 * WIDTH + lane] = s0
            w[1 * WIDTH + lane] = s1
            w[2 * WIDTH + lane] = s2
            w[3 * WIDTH + lane] = s3
            u = float_of(np.int64((first >> np.uint64(12)) | np.uint64(0x3FF0000000000000))) - (1.0 - 2.0**-53)
            v = float_of(np.int64((second >> np.uint64(12)) | np.uint64(0x3FF0000000000000))) - 1.0
            radius = math.sqrt(-2.0 * log(u))
            sine, cosine = sincos_turns(v)
            flat[2 * pair * WIDTH + lane] = radius * cosine
            flat[2 * pair * WIDTH + WIDTH + lane] = radius * sine
