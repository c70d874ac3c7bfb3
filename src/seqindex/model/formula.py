"""Nodes of the SymPy trees into which link functions and activations are parsed.

A link function is an expression in the fields ``z1 .. zL``; an activation one in ``u``.  Sums and products over all
positions stay single nodes, whatever the length: their body is an expression in ``FIELD`` (the field of the current
position) and possibly in ``z1 .. zL``.
"""

from __future__ import annotations

import sympy

FIELD = sympy.Symbol("z", real=True)
"""Field of the current position inside ``PositionSum`` and ``PositionProduct``."""
INPUT = sympy.Symbol("u", real=True)
"""Argument of an activation."""


def field(position: int) -> sympy.Symbol:
    """The field z_l of a position, counted from 1."""
    return sympy.Symbol(f"z{position}", real=True)


class PositionSum(sympy.Function):  # type: ignore[misc]
    """sum_l body(z_l): arguments are the body and the length."""

    nargs = 2
    is_real = True


class PositionProduct(sympy.Function):  # type: ignore[misc]
    """prod_l body(z_l): arguments are the body and the length."""

    nargs = 2
    is_real = True


class Relu(sympy.Function):  # type: ignore[misc]
    """max(x, 0)."""

    nargs = 1
    is_nonnegative = True

    @classmethod
    def eval(cls, x: sympy.Expr) -> sympy.Expr | None:
        """The number that it is at a number."""
        return sympy.Max(x, 0) if x.is_number else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """The step function."""
        return sympy.Heaviside(self.args[0], 0)


class Sigmoid(sympy.Function):  # type: ignore[misc]
    """1 / (1 + exp(-x))."""

    nargs = 1
    is_positive = True

    @classmethod
    def eval(cls, x: sympy.Expr) -> sympy.Expr | None:
        """The number that it is at a number."""
        return (1 + sympy.tanh(x / 2)) / 2 if x.is_number else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """sigmoid (1 - sigmoid)."""
        return self * (1 - self)


class Softplus(sympy.Function):  # type: ignore[misc]
    """log(1 + exp(x))."""

    nargs = 1
    is_positive = True

    @classmethod
    def eval(cls, x: sympy.Expr) -> sympy.Expr | None:
        """The number that it is at a number."""
        return sympy.Max(x, 0) + sympy.log(1 + sympy.exp(-sympy.Abs(x))) if x.is_number else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """The sigmoid."""
        return Sigmoid(self.args[0])
