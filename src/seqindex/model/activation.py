"""Activations of networks: names and expressions in u, with their derivatives."""

from __future__ import annotations

import difflib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]

HIGHEST = 12
"""Highest degree of a named Hermite polynomial."""
ACTIVATIONS: dict[str, str] = {
    "relu": "relu(u)",
    "tanh": "tanh(u)",
    "erf": "erf(u)",
    "sigmoid": "sigmoid(u)",
    "softplus": "softplus(u)",
    "square": "u**2",
    "identity": "u",
    **{f"He{k}": f"He{k}(u)" for k in range(1, HIGHEST + 1)},
    **{f"h{k}": f"h{k}(u)" for k in range(1, HIGHEST + 1)},
}
"""Short names; "H2" of the paper's released code is "h2", the "erf" of committee machines is "erf(u/sqrt(2))"."""
_PROBES = np.concatenate([-np.geomspace(6.0, 0.01, 24), np.geomspace(0.01, 6.0, 24)])


class Activation:
    """An activation sigma(u): a short name or any expression in u.

    A name means what it means in an expression, so "erf" is erf(u), not erf(u / sqrt(2)).  Derivatives are those almost
    everywhere, and 0 where a kink or a jump has none: relu'(0) = abs'(0) = 0.

    Args:
        text: "relu", "tanh", "erf", "sigmoid", "softplus", "square", "identity", "He1" to "He12" (probabilists'), "h1"
            to "h12" (the same over sqrt(k!)), or an expression in u such as "u + 0.1*u**2".

    Raises:
        TypeError: something that is no text.
        ValueError: an unknown name, an expression outside the grammar (with the place), one without u, or one that is
            not finite and real for |u| between 0.01 and 6.

    Example:
        >>> sigma = Activation("u + 0.1*u**2")
        >>> sigma([0.0, 2.0]).tolist(), sigma.slope([0.0, 2.0]).tolist()
        ([0.0, 2.4], [1.0, 1.4])
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"activation must be a name such as 'relu' or an expression in u, got {check.shown(text)}")
        self.text = " ".join(text.split())
        if self.text.isidentifier() and self.text not in (*ACTIVATIONS, "u"):
            near = difflib.get_close_matches(self.text, ACTIVATIONS, n=1)
            names = ", ".join(name for name in ACTIVATIONS if not name[-1].isdigit())
            raise ValueError(
                f"activation must be one of {names}, He1 to He{HIGHEST}, h1 to h{HIGHEST}, or an expression in u, "
                f"got {check.shown(text)}" + (f"; did you mean {near[0]!r}?" if near else "")
            )
        for name, values in (("activation", self(_PROBES)), ("slope of the activation", self.slope(_PROBES))):
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                where = _PROBES[bad[0]]
                raise ValueError(f"{name} must be finite, got {values[bad[0]]} at u = {where:.3g} in {self.text!r}")

    @cached_property
    def expression(self) -> sympy.Expr:
        """The tree in ``formula.INPUT``."""
        from seqindex.model.formula import INPUT
        from seqindex.model.grammar import parse_activation

        tree = parse_activation(ACTIVATIONS.get(self.text, self.text))
        if not tree.has(INPUT):
            raise ValueError(f"activation must depend on u, got {self.text!r}")
        return tree

    @cached_property
    def derivative(self) -> sympy.Expr:
        """The tree of the derivative."""
        import sympy

        from seqindex.model.formula import INPUT

        tree = self.expression.diff(INPUT).replace(sympy.DiracDelta, lambda *_: sympy.Integer(0))
        if tree.has(sympy.Derivative, sympy.Subs, sympy.re, sympy.im):
            raise ValueError(f"activation must have a derivative in elementary functions, got {self.text!r}")
        return tree

    def __call__(self, u: ArrayLike) -> Array:
        """sigma(u), of the shape of u."""
        return _values(self.expression, u)

    def slope(self, u: ArrayLike) -> Array:
        """sigma'(u), of the shape of u."""
        return _values(self.derivative, u)

    def __repr__(self) -> str:
        return f"Activation({self.text!r})"


def as_activation(value: str | Activation) -> Activation:
    """The activation that a text stands for; an ``Activation`` stays as it is."""
    return value if isinstance(value, Activation) else Activation(value)


def _values(tree: Any, u: ArrayLike) -> Array:
    from seqindex.model.evaluate import evaluate_at
    from seqindex.model.formula import INPUT

    return evaluate_at(tree, {INPUT: np.asarray(u, dtype=np.float64)})
