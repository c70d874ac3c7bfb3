"""Targets given by a link function g of the fields z* = X w*: as text or as a callable (the paper, eq. 2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit, objmode
from numba.core.errors import NumbaWarning
from numba.extending import is_jitted
from numpy.typing import NDArray

from seqindex import check
from seqindex.gaussian.simd import WIDTH
from seqindex.model import blocks

if TYPE_CHECKING:
    import sympy


class Target:
    """Any link function, as text or as a callable on arrays of fields.

    Text is an expression in z1..zL, or a list of them for several labels: numbers, + - * / **, pi, L, sum(...) and
    prod(...) over all positions of an expression in z, He0..He12 (probabilists' Hermite polynomials), h0..h12 (the
    same over sqrt(k!)), exp log sqrt abs sign sin cos tan sinh cosh tanh erf relu sigmoid softplus, and names whose
    values are passed as keywords.  Only text can be stored with a result, taken apart by the theory and run at speed.

    Args:
        link: text; or a callable that maps fields of shape (n, L) to labels of shape (n,) or (n, k), each row on its
            own.  A callable is compiled where Numba can, once; otherwise the simulation calls it through Python on
            whole blocks, more slowly, and warns.
        length: sequence length L.
        parameters: values of further names in the text.

    Raises:
        TypeError: a link that is neither, a parameter that is no number, or labels that are no real numbers.
        ValueError: text outside the grammar, with the place; labels of a wrong shape, or that depend on other rows.

    Example:
        >>> target = Target("a*z1*z2 + sum(He2(z))", length=2, a=0.5)
        >>> target(np.array([[2.0, 3.0]])).tolist()
        [[14.0]]
        >>> Target(lambda z: z[..., 0] * z[..., 1], length=2)(np.array([2.0, 3.0])).tolist()
        [6.0]
    """

    length: int
    outputs: int
    expression: tuple[sympy.Expr, ...] | None
    """One tree a label, or None for a callable."""

    def __new__(cls, link: Any = None, length: int = 0, **parameters: float) -> Target:
        """The kind of target that the link asks for; a kind itself is made as such, without arguments, by pickle."""
        kind = _ExpressionTarget if isinstance(link, str) else _CallableTarget
        return super().__new__(kind if cls is Target else cls)

    def __call__(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels of fields, shape (..., L) -> (..., k).

        Raises:
            ValueError: fields of another length, or labels of a wrong shape.
        """
        raise NotImplementedError

    @property
    def kernel(self) -> blocks.TargetKernel:
        """Compiled block function for the simulation."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The text, or module and name of the callable."""
        raise NotImplementedError

    def gradient(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivatives of the labels in the fields, shape (..., L) -> (..., k, L); of text only.

        Raises:
            ValueError: fields of another length, or a callable.
        """
        raise ValueError(f"target must be given as text to have a gradient, got the callable {self.name}")

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        raise NotImplementedError

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Target:
        """Inverse of ``spec``.

        Raises:
            ValueError: a callable, which cannot be rebuilt from its name.
        """
        if "text" in spec:
            return cls(spec["text"], spec["length"], **spec["parameters"])
        raise ValueError(
            f"target must be passed again, since a callable is stored only by its name, got {spec['function']!r}"
        )

    def __repr__(self) -> str:
        return f"Target({self.name}, length={self.length})"


class _ExpressionTarget(Target):
    def __init__(self, link: str, length: int, **parameters: float) -> None:
        from seqindex.model.grammar import parse_link  # SymPy takes long to import

        self.length = check.integer("length", length, 1)
        self.expression = parse_link(link, self.length, parameters)
        self.outputs = len(self.expression)
        self._text = " ".join(link.split())
        self._parameters = {name: float(value) for name, value in parameters.items()}

    def __call__(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        from seqindex.model.evaluate import evaluate

        assert self.expression is not None
        return evaluate(self.expression, check.fields("z", z, self.length))

    def gradient(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        from seqindex.model.evaluate import derivative

        assert self.expression is not None
        return derivative(self.expression, check.fields("z", z, self.length))

    @property
    def kernel(self) -> blocks.TargetKernel:
        from seqindex.model.source import link_kernel

        assert self.expression is not None
        return link_kernel(self.expression, self.length)

    @property
    def name(self) -> str:
        return self._text

    def spec(self) -> dict[str, Any]:
        return {"kind": "Target", "text": self._text, "length": self.length, "parameters": self._parameters}

    def __repr__(self) -> str:
        values = "".join(f", {name}={value!r}" for name, value in self._parameters.items())
        return f"Target({self._text!r}, length={self.length}{values})"


class _CallableTarget(Target):
    expression = None

    def __init__(self, link: Callable[..., Any], length: int, **parameters: float) -> None:
        self.length = check.integer("length", length, 1)
        if not callable(link):
            raise TypeError(
                f"target must be text such as 'z1*z2', or callable on fields z[..., L], got {check.shown(link)}"
            )
        if parameters:
            raise TypeError(f"parameters go with a target given as text, got {', '.join(parameters)} with a callable")
        self.function = link
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
        z = check.fields("z", z, self.length).astype(np.float64, copy=False)
        return self._labels(z.reshape(-1, self.length)).reshape(*z.shape[:-1], self.outputs)

    @property
    def kernel(self) -> blocks.TargetKernel:
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
        return {"kind": "Target", "function": self.name, "length": self.length}


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


def _python_block(target: _CallableTarget) -> Any:
    def fill(z: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        y[:] = target(np.ascontiguousarray(z.T)).T

    @njit
    def block(z, parameters, y):  # type: ignore[no-untyped-def]
        with objmode():
            fill(z, y)

    return block
