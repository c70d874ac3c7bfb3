"""Signatures of the compiled block functions through which the simulation calls targets, students and losses.

A block function works on one block of ``WIDTH`` replicas; all its arrays are (rows, WIDTH) but for the parameters.  The
main loops take block functions as arguments of Numba's first-class function types: they compile once, are cached, and
take a new target without compiling again.  Numbers that vary (omega, A, ...) travel in ``parameters``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from seqindex.gaussian.simd import ROW, ROWS

TARGET = types.void(ROWS, ROW, ROWS)
"""``(zstar (L), parameters, y (k))``: fills y."""
FORWARD = types.void(ROWS, ROW, ROWS, ROWS)
"""``(z (L), parameters, work, f (k))``: fills f, and ``work`` with what ``BACKWARD`` needs."""
BACKWARD = types.void(ROWS, ROW, ROWS, ROWS, ROWS)
"""``(z (L), parameters, work, r (k), c (L))``: fills c = J^T r, J the Jacobian of f."""
LOSS = types.void(ROWS, ROWS, ROWS)
"""``(y (k), f (k), r (k))``: fills r = d loss / d f."""


def compiled(function: Any, signature: Any) -> Callable[..., None]:
    """Compile a block function for its signature when first needed (importing a model compiles nothing)."""
    if signature.args not in function.signatures:
        function.compile(signature)
    result: Callable[..., None] = function
    return result


@dataclass(frozen=True)
class TargetKernel:
    """Compiled link function: ``function`` of type ``TARGET`` with its parameters."""

    function: Any
    parameters: NDArray[np.float64]


@dataclass(frozen=True)
class StudentKernel:
    """Compiled student: ``forward`` and ``backward`` with their parameters and the rows of scratch they share."""

    forward: Any
    backward: Any
    parameters: NDArray[np.float64]
    work_rows: int
