"""Block layout and elementary functions for compiled loops that LLVM turns into SIMD code.

A block holds ``WIDTH`` replicas, one a lane.  Its arrays are shaped (row, WIDTH), float64 and contiguous, and compiled
loops index them flat, ``flat[row * WIDTH + lane]``: with the width known when compiling, LLVM sees that two rows of one
array never overlap.  With a width known only at run time it checks that once for all rows together, finds overlap, and
silently runs scalar code, three times slower.

Calls of libm (``exp``, ``log``, ``sin``) keep a loop scalar.  The polynomials here are branch-free, so a loop over
replicas that uses them becomes a SIMD loop.  They are correct to about two units in the last place on the ranges that
the package needs; ``tests/test_simd.py`` checks each against NumPy.
"""

import math
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

# ``reassoc`` is left out on purpose: it cancels the round-to-nearest additions below and the two-step range reductions.
# ``nnan`` and ``ninf`` are left out so that a NaN or an infinity in a state can still be seen.
FAST_FLAGS = {"nsz", "arcp", "contract", "afn"}
WIDTH = 64
"""Replicas a block; a multiple of every SIMD width, so that no lane is ever handled by a scalar tail."""
ROWS = types.float64[:, ::1]
ROW = types.float64[::1]


def _probe() -> None:
    """Stand for the package's compiled functions."""


def _can_cache() -> bool:
    """Whether Numba finds a folder that it can write compiled code to; it raises where it finds none."""
    try:
        njit(cache=True)(_probe)
    except RuntimeError:
        return False
    return True


OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": FAST_FLAGS, "nogil": True, "cache": _can_cache()}

_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the low bits
_LOG2E = 1.0 / math.log(2.0)
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_TWO_PI = 2.0 * math.pi
_ONE_BITS = 0x3FF0000000000000
_MANTISSA = 0x000FFFFFFFFFFFFF


@intrinsic
def bits_of(typingctx, value):  # type: ignore[no-untyped-def]
    """Reinterpret a float64 as an int64."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def float_of(typingctx, value):  # type: ignore[no-untyped-def]
    """Reinterpret an int64 as a float64."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def wide_vectors(typingctx):  # type: ignore[no-untyped-def]
    """Ask LLVM for the widest vectors that the processor has in the loops of the calling function.

    Left alone it takes 256-bit vectors on processors with 512-bit ones, since these once lowered the clock.
    """

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        # llvmlite knows no attributes that have a value; a set of them prints whatever it holds.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def flat(typingctx, array):  # type: ignore[no-untyped-def]
    """A contiguous array as one borrowed row: counting references, as ``reshape`` does, takes as long as a loop."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        source = make_array(signature.args[0])(context, builder, args[0])
        result = make_array(signature.return_type)(context, builder)
        shape, strides = [source.nitems], [source.itemsize]
        populate_array(result, source.data, shape=shape, strides=strides, itemsize=source.itemsize, meminfo=None)
        return result._getvalue()  # noqa: SLF001 - Numba's own way

    return types.Array(array.dtype, 1, "C")(array), codegen


@njit(**OPTIONS)
def exp(x):  # type: ignore[no-untyped-def]
    """Exponential; saturates at exp(-708) and exp(709), keeps NaN."""
    return exp_within(x, -708.0, 709.0)


@njit(**OPTIONS)
def exp_within(x, low, high):  # type: ignore[no-untyped-def]
    """Exponential of x cut to [low, high], a part of [-708, 709]; keeps NaN."""
    x = low if x < low else x
    x = high if x > high else x
    shifted = x * _LOG2E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    # Estrin's scheme: a Horner chain would wait for each multiplication and leave the processor idle.
    r2 = r * r
    r4 = r2 * r2
    bottom = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0))
    middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
    upper = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
    top = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
    p = (bottom + r4 * middle) + (r4 * r4) * (upper + r4 * top)
    # The low bits of ``shifted`` hold k; moved into the exponent field they multiply by 2**k.
    return p * float_of((bits_of(shifted) << 52) + _ONE_BITS)


@njit(**OPTIONS)
def log(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of a positive normal number."""
    bits = bits_of(x)
    mantissa = float_of((bits & _MANTISSA) | _ONE_BITS)
    large = mantissa > 1.4142135623730951
    mantissa = 0.5 * mantissa if large else mantissa
    # The biased exponent becomes a float through the same magic constant, since AVX2 converts no 64-bit integers.
    biased = float_of((bits >> 52) | 0x4330000000000000) - 4503599627370496.0
    k = biased - (1022.0 if large else 1023.0)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    f2 = f * f
    f4 = f2 * f2
    low = (1.0 / 3.0 + f2 * (1.0 / 5.0)) + f4 * (1.0 / 7.0 + f2 * (1.0 / 9.0))
    high = (1.0 / 11.0 + f2 * (1.0 / 13.0)) + f4 * (1.0 / 15.0 + f2 * (1.0 / 17.0))
    top = 1.0 / 19.0 + f2 * (1.0 / 21.0)
    p = low + (f4 * f4) * (high + (f4 * f4) * top)
    return k * _LN2_HIGH + (2.0 * f + (2.0 * f * f2 * p + k * _LN2_LOW))


@njit(**OPTIONS)
def sincos_turns(u):  # type: ignore[no-untyped-def]
    """``(sin(2 pi u), cos(2 pi u))`` for u in [0, 1]."""
    shifted = 4.0 * u + _ROUND
    quadrant = bits_of(shifted)
    x = (u - 0.25 * (shifted - _ROUND)) * _TWO_PI
    x2 = x * x
    x4 = x2 * x2
    x8 = x4 * x4
    s = (-1.0 / 6.0 + x2 * (1.0 / 120.0)) + x4 * (-1.0 / 5040.0 + x2 * (1.0 / 362880.0))
    s += x8 * ((-1.0 / 39916800.0 + x2 * (1.0 / 6227020800.0)) + x4 * (-1.0 / 1307674368000.0))
    s = x + (x * x2) * s
    c = (-0.5 + x2 * (1.0 / 24.0)) + x4 * (-1.0 / 720.0 + x2 * (1.0 / 40320.0))
    c += x8 * (
        (-1.0 / 3628800.0 + x2 * (1.0 / 479001600.0)) + x4 * (-1.0 / 87178291200.0 + x2 * (1.0 / 20922789888000.0))
    )
    c = 1.0 + x2 * c
    odd = (quadrant & 1) == 1
    sine = c if odd else s
    cosine = s if odd else c
    # Quadrants 2, 3 negate the sine, 1, 2 the cosine: a sign bit flipped without a branch.
    sine = float_of(bits_of(sine) ^ ((quadrant & 2) << 62))
    cosine = float_of(bits_of(cosine) ^ (((quadrant + 1) & 2) << 62))
    return sine, cosine
