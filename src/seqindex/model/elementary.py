"""Functions of the grammar for compiled loops over replicas; absolute errors of a few units in the 16th digit."""

from __future__ import annotations

import math

from numba import njit

from seqindex.gaussian import simd
from seqindex.gaussian.simd import OPTIONS

_LN2 = math.log(2.0)

# Comparisons are written so that NaN passes through.


@njit(**OPTIONS)
def exp(x):  # type: ignore[no-untyped-def]
    """Exponential; infinite beyond 709, where that of ``simd`` saturates and would hide a divergence."""
    return math.inf if x > 709.0 else (0.0 if x < -708.0 else simd.exp(x))


@njit(**OPTIONS)
def cot(x):  # type: ignore[no-untyped-def]
    """1 / tan(x)."""
    return 1.0 / math.tan(x)


@njit(**OPTIONS)
def relu(x):  # type: ignore[no-untyped-def]
    """max(x, 0)."""
    return 0.0 if x < 0.0 else x


@njit(**OPTIONS)
def step(x):  # type: ignore[no-untyped-def]
    """1 for x > 0, else 0."""
    return 1.0 if x > 0.0 else (0.0 if x <= 0.0 else x)


@njit(**OPTIONS)
def sign(x):  # type: ignore[no-untyped-def]
    """-1, 0 or 1."""
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x)


@njit(**OPTIONS)
def sigmoid(x):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + simd.exp(-x))


@njit(**OPTIONS)
def softplus(x):  # type: ignore[no-untyped-def]
    """log(1 + exp(x)), without overflow."""
    t = simd.exp(x if x < 0.0 else -x)
    # log(1 + t) = 2 artanh(f), for t near 1 of (1 + t) / 2; the general logarithm would not become SIMD code here.
    large = t > 0.4142135623730951
    f = (t - 1.0) / (t + 3.0) if large else t / (t + 2.0)
    s = f * f
    s4 = s * s * s * s
    low = (1.0 + s * (1.0 / 3.0)) + (s * s) * (1.0 / 5.0 + s * (1.0 / 7.0))
    high = (1.0 / 9.0 + s * (1.0 / 11.0)) + (s * s) * (1.0 / 13.0 + s * (1.0 / 15.0))
    top = (1.0 / 17.0 + s * (1.0 / 19.0)) + (s * s) * (1.0 / 21.0)
    logarithm = 2.0 * f * (low + s4 * (high + s4 * top))
    return (0.0 if x < 0.0 else x) + (logarithm + (_LN2 if large else 0.0))


@njit(**OPTIONS)
def tanh(x):  # type: ignore[no-untyped-def]
    """Hyperbolic tangent."""
    size = -x if x < 0.0 else x
    t = simd.exp(-2.0 * size)
    value = (1.0 - t) / (1.0 + t)
    return -value if x < 0.0 else value
