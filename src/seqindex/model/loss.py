"""Losses of the residual f - y.

``square`` is the paper's ||y - f||^2 (no factor 1/2).  ``norm`` is the un-squared Frobenius norm ||y - f||, which the
released code minimises in its phase-diagram runs; it moves the transition of the positional-semantic model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqindex.gaussian.simd import OPTIONS, WIDTH, flat, wide_vectors

Array = NDArray[Any]


@njit(**OPTIONS)
def _square(y, f, r):  # type: ignore[no-untyped-def]
    wide_vectors()
    y = flat(y)
    f = flat(f)
    r = flat(r)
    for row in range(r.size // WIDTH):
        for lane in range(WIDTH):
            i = row * WIDTH + lane
            r[i] = 2.0 * (f[i] - y[i])


@njit(**OPTIONS)
def _norm(y, f, r):  # type: ignore[no-untyped-def]
    wide_vectors()
    y = flat(y)
    f = flat(f)
    r = flat(r)
    rows = r.size // WIDTH
    norm = np.zeros(WIDTH)
    for row in range(rows):
        for lane in range(WIDTH):
            i = row * WIDTH + lane
            r[i] = f[i] - y[i]
            norm[lane] += r[i] * r[i]
    for lane in range(WIDTH):
        # A vanishing residual has no direction; its gradient is taken as 0 (a null event).
        norm[lane] = 1.0 / np.sqrt(norm[lane]) if norm[lane] != 0.0 else 0.0
    for row in range(rows):
        for lane in range(WIDTH):
            r[row * WIDTH + lane] *= norm[lane]


def _square_value(residual: Array) -> Array:
    return np.asarray((residual * residual).sum(-1))


def _square_gradient(residual: Array) -> Array:
    return 2.0 * residual


def _norm_value(residual: Array) -> Array:
    return np.sqrt(_square_value(residual))


def _norm_gradient(residual: Array) -> Array:
    norm = _norm_value(residual)[..., None]
    return residual / np.where(norm == 0.0, 1.0, norm)


@dataclass(frozen=True)
class Loss:
    """A loss: its name, its value and gradient in NumPy, and its compiled gradient.

    Attributes:
        name: short name, the key in ``LOSSES``.
        value: loss of residuals f - y, shape (..., k) -> (...).
        gradient: d loss / d f of residuals f - y, shape (..., k) -> (..., k); 0 where the norm loss has none.
        kernel: the gradient as a block function of type ``blocks.LOSS``.

    Example:
        >>> LOSSES["square"].value(np.array([3.0, 4.0])).item(), LOSSES["norm"].value(np.array([3.0, 4.0])).item()
        (25.0, 5.0)
    """

    name: str
    value: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    kernel: Any


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("square", _square_value, _square_gradient, _square),
        Loss("norm", _norm_value, _norm_gradient, _norm),
    )
}
"""Losses by name."""
