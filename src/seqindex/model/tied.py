"""The tied network: one weight vector for all positions (the paper, section 3 and appendix E)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.gaussian.simd import OPTIONS, WIDTH, flat, wide_vectors
from seqindex.model import blocks
from seqindex.model.activation import Activation, as_activation
from seqindex.model.encoding import Encoding, of_length
from seqindex.model.frame import Frame

Array = NDArray[np.float64]

# Parameters of the kernels: the L weights a_l / sqrt(L).  The one row of scratch holds sigma'(u).
_FORWARD = """

@njit(**OPTIONS)
def forward(z, parameters, work, f):
    wide_vectors()
    length = z.shape[0]
    z = flat(z)
    slope = flat(work)
    f = flat(f)
    for lane in range(WIDTH):
        f[lane] = 0.0
    for position in range(length):
        weight = parameters[position]
        for lane in range(WIDTH):
            f[lane] += weight * z[position * WIDTH + lane]
    for lane in range(WIDTH):
        u = f[lane]
"""


def _forward(activation: Activation) -> Any:
    """Block function of an activation, of type ``blocks.FORWARD``."""
    from seqindex.model.formula import INPUT
    from seqindex.model.source import HEADER, module_from_source, statements

    values = {"f[lane]": activation.expression, "slope[lane]": activation.derivative}
    text = HEADER + _FORWARD + statements(values, {INPUT: "u"}, " " * 8) + "\n"
    return module_from_source(text).forward


@njit(**OPTIONS)
def _backward(z, parameters, work, r, c):  # type: ignore[no-untyped-def]
    wide_vectors()
    length = z.shape[0]
    slope = flat(work)
    r = flat(r)
    c = flat(c)
    for position in range(length):
        weight = parameters[position]
        for lane in range(WIDTH):
            c[position * WIDTH + lane] = weight * slope[lane] * r[lane]


def random_weights(length: int, seed: int = 0) -> Array:
    """Weights a for a ``TiedNetwork``, shape (L,): uniform on the sphere |a|^2 = L, so that u keeps the variance 1.

    Where a target has a Hermite tensor C_k(g) at all, <C_k(g), a x ... x a> is not zero with probability one.

    Args:
        length: sequence length L.
        seed: a non-negative integer; the same one gives the same weights.

    Raises:
        TypeError: an argument that is no integer.
        ValueError: a length below 1, or a negative seed.

    Example:
        >>> a = random_weights(5, seed=1)
        >>> a.shape, float(round(a @ a, 12))
        ((5,), 5.0)
    """
    length = check.integer("length", length, 1)
    a = np.random.default_rng(check.integer("seed", seed, 0)).standard_normal(length)
    return np.asarray(a * math.sqrt(length / (a @ a)))


class TiedNetwork:
    """f(X) = sigma(u), u = L^{-1/2} sum_l a_l z_l, z_l = (x_l + P_l / sqrt(d)).w, one output (the paper, section 3).

    Args:
        length: sequence length L.
        activation: sigma, a name such as "relu" or an expression in u; see ``Activation``.
        weights: a, shape (L,); None for ones, as in the paper.  Unequal weights, such as ``random_weights(L)``, are
            the cure that the paper proposes for targets of which the plain network sees nothing, such as z1 - z2.
        encoding: positional encoding; None for none.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: a length below 1, an activation outside the grammar, weights or an encoding of another length,
            or weights that all vanish.

    Example:
        >>> student = TiedNetwork(length=4, activation="relu")
        >>> student([1.0, 2.0, 3.0, -1.0]).tolist(), student(np.zeros((5, 4))).shape
        ([2.5], (5, 1))
    """

    outputs = 1

    def __init__(
        self,
        length: int,
        activation: str | Activation = "relu",
        weights: ArrayLike | None = None,
        encoding: Encoding | None = None,
    ) -> None:
        self.length = check.integer("length", length, 1)
        self.activation = as_activation(activation)
        self._plain = weights is None
        given = np.ones(self.length) if weights is None else weights
        self.weights: Array = check.array("weights", given, (self.length,))
        if not self.weights.any():
            raise ValueError("weights must not all be zero")
        self.encoding = of_length(encoding, self.length)
        self._scaled = self.weights / math.sqrt(self.length)

    @property
    def frame(self) -> Frame:
        """Coordinates of the encoding."""
        return Frame.of(self.length, self.encoding)

    @property
    def combinations(self) -> Array:
        """a / |a|, shape (1, L): the output depends on u alone."""
        return self._scaled[None] / np.linalg.norm(self._scaled)

    @property
    def core(self) -> TiedNetwork:
        """sigma(|a| x / sqrt(L)) of one token x."""
        return TiedNetwork(1, self.activation, [np.linalg.norm(self._scaled)])

    def __call__(self, z: ArrayLike) -> Array:
        """Outputs of fields, shape (..., L) -> (..., 1).

        Raises:
            ValueError: fields of another length.
        """
        return self.activation(self._input(z))

    def pull_back(self, z: ArrayLike, r: ArrayLike) -> Array:
        """J^T r, J the Jacobian of the output in the fields: shapes (..., L), (..., 1) -> (..., L).

        Raises:
            ValueError: fields of another length, or r of more than one output.
        """
        c: Array = self.activation.slope(self._input(z)) * check.fields("r", r, 1) * self._scaled
        return c

    def jacobian(self, z: ArrayLike) -> Array:
        """Jacobian of the output in the fields, shape (..., L) -> (..., 1, L)."""
        return self.pull_back(z, np.ones(1))[..., None, :]

    def _input(self, z: ArrayLike) -> Array:
        u: Array = (check.fields("z", z, self.length) @ self._scaled)[..., None]
        return u

    @property
    def kernel(self) -> blocks.StudentKernel:
        """Compiled block functions for the simulation."""
        return blocks.StudentKernel(
            forward=blocks.compiled(_forward(self.activation), blocks.FORWARD),
            backward=blocks.compiled(_backward, blocks.BACKWARD),
            parameters=self._scaled.copy(),
            work_rows=1,
        )

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {
            "kind": "TiedNetwork",
            "length": self.length,
            "activation": self.activation.text,
            "weights": None if self._plain else self.weights.tolist(),
            "encoding": None if self.encoding is None else self.encoding.spec(),
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> TiedNetwork:
        """Inverse of ``spec``."""
        encoding = None if spec["encoding"] is None else Encoding(**spec["encoding"])
        return cls(spec["length"], spec["activation"], spec["weights"], encoding)

    def __repr__(self) -> str:
        weights = "" if self._plain else f", weights={check.shown(self.weights.tolist())}"
        return (
            f"TiedNetwork(length={self.length}, activation={self.activation.text!r}{weights}, encoding={self.encoding})"
        )
