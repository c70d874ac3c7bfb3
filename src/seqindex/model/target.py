"""Targets: link functions g of the fields z* = X w* (the paper, eq. 2 and 18)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, objmode
from numba.core.errors import NumbaWarning
from numba.extending import is_jitted
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


class Target:
    """Any link function, given as a callable on arrays of fields.

    Args:
        function: maps fields of shape (n, L) to labels of shape (n,) or (n, k), each row on its own.  It is compiled
            where Numba can, once; otherwise the simulation calls it through Python on whole blocks, more slowly, and
            warns.
        length: sequence length L.

    Raises:
        TypeError: ``function`` cannot be called, or its labels are no real numbers.
        ValueError: labels of a wrong shape, or labels that depend on other rows.

    Example:
        >>> target = Target(lambda z: z[..., 0] * z[..., 1], length=2)
        >>> target(np.array([[2.0, 3.0]])).tolist()
        [[6.0]]
    """

    def __init__(self, function: Callable[..., Any], length: int) -> None:
        self.length = check.integer("length", length, 1)
        if not callable(function):
            raise TypeError(f"function must be callable on fields z[..., L], got {check.shown(function)}")
        self.function = function
        self._kernel: blocks.TargetKernel | None = None
        # More rows than the length, so that exchanged axes show; no round numbers, where links have poles.
        z = np.cos(np.arange(1.0, self.length * (self.length + 1) + 1.0)).reshape(self.length + 1, self.length)
        with np.errstate(all="ignore"):
            y = self._labels(z)
            self.outputs = y.shape[1]
            alone = np.concatenate([self._labels(z[i : i + 1]) for i in range(len(z))])
        if not np.allclose(y, alone, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise ValueError(
                f"function must map each row of fields (n, {self.length}) on its own, got labels that mix them"
            )

    @property
    def name(self) -> str:
        """Module and name of the callable."""
        module = getattr(self.function, "__module__", "?")
        return f"{module}:{getattr(self.function, '__qualname__', type(self.function).__name__)}"

    def _labels(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels (n, k) of fields (n, L)."""
        try:
            y = np.asarray(self.function(z))
        except Exception as error:  # whatever a function of the user raises
            about = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ValueError(f"function must take fields of shape (n, {self.length}), got {about}") from error
        if y.dtype.kind not in "biuf":
            raise TypeError(f"function must give real labels, got {y.dtype}")
        wanted = f"function must map fields (n, {self.length}) to labels (n,) or (n, k)"
        if y.ndim not in (1, 2) or y.shape[0] != len(z) or 0 in y.shape[1:]:
            raise ValueError(f"{wanted}, got {y.shape} for n = {len(z)}")
        y = y.astype(np.float64).reshape(len(z), -1 if len(z) else self.outputs)
        if hasattr(self, "outputs") and y.shape[1] != self.outputs:
            raise ValueError(f"{wanted} of one k, got k = {y.shape[1]} after {self.outputs}")
        return y

    def __call__(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels of fields, shape (..., L) -> (..., k).

        Raises:
            ValueError: fields of another length, or labels of a wrong shape.
        """
        z = check.fields("z", z, self.length).astype(np.float64, copy=False)
        return self._labels(z.reshape(-1, self.length)).reshape(*z.shape[:-1], self.outputs)

    @property
    def kernel(self) -> blocks.TargetKernel:
        """Block function for the simulation, compiled where Numba can."""
        if self._kernel is None:
            self._kernel = blocks.TargetKernel(self._block(), np.empty(0))
        return self._kernel

    def _block(self) -> Any:
        try:
            function = self.function if is_jitted(self.function) else njit(self.function)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore", NumbaWarning)
                block = blocks.compiled(_compiled_block(function, self.outputs), blocks.TARGET)
                z = np.linspace(-2.0, 2.0, self.length * WIDTH).reshape(self.length, WIDTH)
                y = np.empty((self.outputs, WIDTH))
                block(z, np.empty(0), y)
                if np.allclose(y.T, self(z.T), rtol=1e-9, atol=1e-12, equal_nan=True):
                    return block
            reason = "its compiled form gives other numbers"
        except Exception as error:  # noqa: BLE001 - whatever stops Numba, NumPy still works
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        warnings.warn(
            f"target {self.name} runs through NumPy, several times slower: {reason}", RuntimeWarning, stacklevel=4
        )
        return blocks.compiled(_python_block(self), blocks.TARGET)

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types: the callable only by its name."""
        return {"kind": "Target", "function": self.name, "length": self.length}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Target:
        """Refuse: a callable cannot be rebuilt from its name.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"target must be passed again, since a callable is stored only by its name, got {spec['function']!r}"
        )

    def __repr__(self) -> str:
        return f"Target({self.name}, length={self.length})"


def _compiled_block(function: Any, outputs: int) -> Any:
    if outputs == 1:

        @njit(error_model="numpy", nogil=True)
        def scalar(z, parameters, y):  # type: ignore[no-untyped-def]
            labels = np.ascontiguousarray(function(np.ascontiguousarray(z.T)))
            y[0, :] = labels.reshape(-1)

        return scalar

    @njit(error_model="numpy", nogil=True)
    def vector(z, parameters, y):  # type: ignore[no-untyped-def]
        y[:, :] = function(np.ascontiguousarray(z.T)).T

    return vector


def _python_block(target: Target) -> Any:
    def fill(z: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        y[:] = target(np.ascontiguousarray(z.T)).T

    @njit
    def block(z, parameters, y):  # type: ignore[no-untyped-def]
        with objmode():
            fill(z, y)

    return block
