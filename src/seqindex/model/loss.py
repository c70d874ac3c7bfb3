"""Losses of the residual f - y.

``square`` is the paper's ||y - f||^2 (no factor 1/2).  ``norm`` is the un-squared Frobenius norm ||y - f||, which the
released code minimises in its phase-diagram runs; it moves the transition of the positional-semantic model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqindex.gaussian.simd import OPTIONS, WIDTH


@njit(**OPTIONS)
def _square(y, f, r):  # type: ignore[no-untyped-def]
    y = y.reshape(-1)
    f = f.reshape(-1)
    r = r.reshape(-1)
    for row in range(r.size // WIDTH):
        for lane in range(WIDTH):
            i = row * WIDTH + lane
            r[i] = 2.0 * (f[i] - y[i])


@njit(**OPTIONS)
def _norm(y, f, r):  # type: ignore[no-untyped-def]
    y = y.reshape(-1)
    f = f.reshape(-1)
    r = r.reshape(-1)
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


@dataclass(frozen=True)
class Loss:
    """A loss: its name and its compiled gradient (type ``blocks.LOSS``).

    Example:
        >>> LOSSES["square"].value(np.array([3.0, 4.0])).item(), LOSSES["norm"].value(np.array([3.0, 4.0])).item()
        (25.0, 5.0)
    """

    name: str
    kernel: Any

    def value(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Loss of residuals f - y, shape (..., k) -> (...)."""
        square = np.asarray((residual * residual).sum(-1))
        return square if self.name == "square" else np.sqrt(square)

    def gradient(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient d loss / d f of residuals f - y, shape (..., k); 0 where the norm loss has none."""
        if self.name == "square":
            return 2.0 * residual
        norm = np.linalg.norm(residual, axis=-1, keepdims=True)
        return residual / np.where(norm == 0.0, 1.0, norm)


LOSSES = {"square": Loss("square", _square), "norm": Loss("norm", _norm)}
"""Losses by name."""
