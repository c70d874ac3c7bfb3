"""Functions of the grammar for compiled loops over replicas; absolute errors of a few units in the 16th digit."""

from __future__ import annotations

from numba import njit

from seqindex.gaussian.simd import OPTIONS, exp, log

# Comparisons are written so that NaN passes through.


@njit(**OPTIONS)
def relu(x):  # type: ignore[no-untyped-def]
    """max(x, 0)."""
    return 0.0 if x < 0.0 else x


@njit(**OPTIONS)
def step(x):  # type: ignore[no-untyped-def]
    """1 for x > 0, else 0."""
    return 1.0 if x > 0.0 else 0.0 * x


@njit(**OPTIONS)
def sign(x):  # type: ignore[no-untyped-def]
    """-1, 0 or 1."""
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x)


@njit(**OPTIONS)
def sigmoid(x):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + exp(-x))


@njit(**OPTIONS)
def softplus(x):  # type: ignore[no-untyped-def]
    """log(1 + exp(x)), without overflow."""
    size = -x if x < 0.0 else x
    return (0.0 if x < 0.0 else x) + log(1.0 + exp(-size))


@njit(**OPTIONS)
def tanh(x):  # type: ignore[no-untyped-def]
    """Hyperbolic tangent."""
    size = -x if x < 0.0 else x
    t = exp(-2.0 * size)
    value = (1.0 - t) / (1.0 + t)
    return -value if x < 0.0 else value
