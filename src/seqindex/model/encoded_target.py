"""The target of appendix F.3: the encoding inside the softmax, so that no transition separates position and meaning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqindex import check
from seqindex.gaussian.simd import OPTIONS, WIDTH, flat, wide_vectors
from seqindex.model import blocks
from seqindex.model.softmax import attention_matrix, softmax_block

READINGS = ("sqrt", "linear")
"""How omega weighs the two parts; the paper says only that the encoding is added inside."""
_SIGNS = np.array([1.0, -1.0])


@njit(**OPTIONS)
def _encoded(z, parameters, y):  # type: ignore[no-untyped-def]
    wide_vectors()
    fields = np.empty((2, WIDTH))
    t = flat(fields)
    z = flat(z)
    y = flat(y)
    for lane in range(WIDTH):
        t[lane] = parameters[0] * z[lane] + parameters[1]
        t[WIDTH + lane] = parameters[0] * z[WIDTH + lane] - parameters[1]
    softmax_block(t, y, y, 2)


class EncodedTarget:
    """y = softmax(t t^T), t_l = b z*_l + c p_l with p = (1, -1): four outputs in row-major order, length 2.

    Args:
        omega: weight of the positions, in [0, 1].
        reading: "sqrt" for b = sqrt(1 - omega), c = sqrt(omega); "linear" for b = 1 - omega, c = omega.

    Raises:
        TypeError: omega that is no real number.
        ValueError: omega outside [0, 1], or an unknown reading.

    Example:
        >>> EncodedTarget(omega=1.0)(np.array([5.0, -3.0])).round(4).tolist()  # positions alone
        [0.8808, 0.1192, 0.1192, 0.8808]
    """

    length = 2
    outputs = 4

    def __init__(self, omega: float, reading: str = "sqrt") -> None:
        self.omega = check.number("omega", omega, 0.0, 1.0)
        self.reading = check.choice("reading", reading, READINGS)

    @property
    def weights(self) -> tuple[float, float]:
        """b and c."""
        if self.reading == "sqrt":
            return math.sqrt(1.0 - self.omega), math.sqrt(self.omega)
        return 1.0 - self.omega, self.omega

    def __call__(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels of fields, shape (..., 2) -> (..., 4).

        Raises:
            ValueError: fields of another length.
        """
        z = check.fields("z", z, self.length)
        own, encoded = self.weights
        inside = own * z + encoded * _SIGNS.astype(z.dtype)
        return attention_matrix(inside).reshape(*z.shape[:-1], self.outputs)

    @property
    def kernel(self) -> blocks.TargetKernel:
        """Compiled block function for the simulation."""
        return blocks.TargetKernel(blocks.compiled(_encoded, blocks.TARGET), np.array(self.weights))

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {"kind": "EncodedTarget", "omega": self.omega, "reading": self.reading}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> EncodedTarget:
        """Inverse of ``spec``."""
        return cls(spec["omega"], spec["reading"])

    def __repr__(self) -> str:
        return f"EncodedTarget(omega={self.omega:g}, reading={self.reading!r})"
