"""The loss and its derivatives in the overlaps along given Gaussian variables: what sampled expectations average.

With z = m z* + sigma xi + shift, sigma = sqrt(1 - m^2), and c = d loss / d z,

    d/dm = c.(z* - m xi / sigma),    d/dshift = c,

and second derivatives follow with D = d c / d z.  Where sigma is small the terms in 1/sigma cancel between xi and -xi
only, so the variables must come in such pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqindex.model.problem import Problem

Array = NDArray[np.float64]

SMALLEST_SIGMA = (0.0, 1e-3, 0.03)
"""Derivatives of order 1 and 2 at |m| -> 1 are those at this sigma."""
SPREADS = {"square": 1e-4, "norm": 0.05}
"""Half steps of the central differences that give D: wide for the norm loss, whose c jumps where the residual is 0."""
_ENTRIES = 2**21


def clamped(m: float, order: int, factor: float = 1.0) -> float:
    """m, moved off +-1 by as much as derivatives of the given order need."""
    limit = np.sqrt(1.0 - (factor * SMALLEST_SIGMA[order]) ** 2)
    return float(np.clip(m, -limit, limit))


def path_terms(
    problem: Problem, zstar: Array, xi: Array, m: float, shift: Array, order: int, spread: float | None = None
) -> Array:
    """Derivatives of the loss in (m, shift) for every sample, shape (n,) + (1 + L,) * order.

    Args:
        problem: target, student and loss.
        zstar: fields of the target, shape (n, L).
        xi: independent part of the fields of the student, shape (n, L).
        m: overlap; |m| < 1 for derivatives.
        shift: means of the fields of the student, shape (L,).
        order: 0, 1 or 2.
        spread: half step of the differences in D; None for the default of the loss.
    """
    sigma = np.sqrt(max(1.0 - m * m, 0.0))
    z = m * zstar + sigma * xi + shift
    if order == 0:
        return problem.loss_at(zstar, z)
    by_m = zstar - (m / sigma) * xi
    c = problem.field_gradient(zstar, z)
    if order == 1:
        return np.concatenate([(c * by_m).sum(-1, keepdims=True), c], axis=-1)
    length = problem.length
    half = SPREADS[problem.loss.name] if spread is None else spread
    result = np.empty((len(z), 1 + length, 1 + length))
    for axis in range(length):
        step = half * np.eye(length)[axis]
        result[:, 1 + axis, 1:] = (
            problem.field_gradient(zstar, z + step) - problem.field_gradient(zstar, z - step)
        ) / (2.0 * half)
    inner = result[:, 1:, 1:]
    inner[:] = 0.5 * (inner + np.swapaxes(inner, 1, 2))
    result[:, 0, 1:] = result[:, 1:, 0] = np.einsum("nij,nj->ni", inner, by_m)
    result[:, 0, 0] = (result[:, 0, 1:] * by_m).sum(-1) - (c * xi).sum(-1) / sigma**3
    return result


def noise_terms(problem: Problem, zstar: Array, xi: Array, m: float, shift: Array) -> Array:
    """|c|^2 for every sample, shape (n,)."""
    z = m * zstar + np.sqrt(max(1.0 - m * m, 0.0)) * xi + shift
    return np.asarray((problem.field_gradient(zstar, z) ** 2).sum(-1))


def chunks(count: int, length: int) -> Iterator[slice]:
    """Slices of samples whose attention matrices fit in memory."""
    size = max(1, _ENTRIES // length**2)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
