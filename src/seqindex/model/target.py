"""The positional-semantic target (the paper, eq. 18)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.gaussian.simd import OPTIONS, WIDTH, flat, wide_vectors
from seqindex.model import blocks
from seqindex.model.softmax import attention_matrix, softmax_block


@njit(**OPTIONS)
def _positional_semantic(z, parameters, y):  # type: ignore[no-untyped-def]
    wide_vectors()
    length = z.shape[0]
    z = flat(z)
    y = flat(y)
    if length == 2:  # an allocation a call would take as long as the exponentials
        softmax_block(z, y, y, length)
    else:
        softmax_block(z, y, np.empty(WIDTH), length)
    semantic = 1.0 - parameters[0]
    for row in range(length * length):
        positional = parameters[0] * parameters[1 + row]
        for lane in range(WIDTH):
            y[row * WIDTH + lane] = semantic * y[row * WIDTH + lane] + positional


class PositionalSemanticTarget:
    """y = (1 - omega) softmax(z* z*^T) + omega A (the paper, eq. 18): L^2 outputs in row-major order.

    Args:
        omega: weight of the positional part, in [0, 1].
        alignment: a, for A = softmax([[a^2, -a^2], [-a^2, a^2]]) at length 2.
        alignment_matrix: A itself, any row-stochastic L x L matrix.
        length: sequence length; 2 with ``alignment``, else the size of the matrix.

    Raises:
        TypeError: an argument that is no real number or array of them.
        ValueError: omega outside [0, 1], both or neither of alignment and alignment_matrix, a matrix that is not
            row-stochastic, or lengths that disagree.

    Example:
        >>> target = PositionalSemanticTarget(omega=0.5, alignment=1.0)
        >>> target(np.zeros(2)).round(4).tolist()
        [0.6904, 0.3096, 0.3096, 0.6904]
    """

    def __init__(
        self,
        omega: float,
        alignment: float | None = None,
        alignment_matrix: ArrayLike | None = None,
        length: int | None = None,
    ) -> None:
        self.omega = check.number("omega", omega, 0.0, 1.0)
        if (alignment is None) == (alignment_matrix is None):
            raise ValueError(
                "give either alignment or alignment_matrix, got " + ("neither" if alignment is None else "both")
            )
        if alignment is not None:
            alignment_matrix = pair_alignment(check.number("alignment", alignment))
        self.alignment_matrix = row_stochastic("alignment_matrix", alignment_matrix)
        self.length = len(self.alignment_matrix)
        if length is not None and check.integer("length", length, 1) != self.length:
            wanted = "2 with alignment" if alignment is not None else f"{self.length}, the size of alignment_matrix"
            raise ValueError(f"length must be {wanted}, got {length}")

    @property
    def outputs(self) -> int:
        """Number k = L^2 of outputs."""
        return self.length**2

    def __call__(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels of fields, shape (..., L) -> (..., L^2).

        Raises:
            ValueError: fields of another length.
        """
        z = check.fields("z", z, self.length)
        y = (1.0 - self.omega) * attention_matrix(z) + self.omega * self.alignment_matrix.astype(z.dtype)
        return y.reshape(*z.shape[:-1], self.outputs)

    @property
    def kernel(self) -> blocks.TargetKernel:
        """Compiled block function for the simulation."""
        parameters = np.concatenate([[self.omega], self.alignment_matrix.ravel()])
        return blocks.TargetKernel(blocks.compiled(_positional_semantic, blocks.TARGET), parameters)

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {
            "kind": "PositionalSemanticTarget",
            "omega": self.omega,
            "alignment_matrix": self.alignment_matrix.tolist(),
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> PositionalSemanticTarget:
        """Inverse of ``spec``."""
        return cls(spec["omega"], alignment_matrix=spec["alignment_matrix"])

    def __repr__(self) -> str:
        return f"PositionalSemanticTarget(omega={self.omega:g}, alignment_matrix={self.alignment_matrix.tolist()})"


def pair_alignment(a: float) -> NDArray[np.float64]:
    """A = softmax([[a^2, -a^2], [-a^2, a^2]]), so that A_11 = 1 / (1 + exp(-2 a^2)).

    Example:
        >>> pair_alignment(0.0).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    other = 1.0 / (1.0 + math.exp(min(2.0 * a * a, 700.0)))
    return np.array([[1.0 - other, other], [other, 1.0 - other]])


def row_stochastic(name: str, value: Any) -> NDArray[np.float64]:
    """Return ``value`` as a square row-stochastic matrix, or raise ValueError naming ``name``."""
    matrix = check.array(name, value, (None, None))
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"{name} must be square, got shape {matrix.shape}")
    if (matrix < 0).any():
        raise ValueError(f"{name} must be row-stochastic, got the negative entry {matrix.min():g}")
    sums = matrix.sum(1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > 1e-9:
        raise ValueError(f"{name} must be row-stochastic, got row {worst + 1} with sum {sums[worst]:.12g}")
    return matrix
