"""Which combinations of the fields a tree depends on, and where it may have kinks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import sympy
from numpy.typing import NDArray

from seqindex.model.formula import FIELD, PositionProduct, PositionSum, Relu, field

Array = NDArray[np.float64]
Form = dict[int, float]
"""A linear combination of fields, by position."""

VARIABLES = 4
"""Most combinations of fields that are integrated over on a grid."""
_KINKS = (sympy.Abs, sympy.sign, Relu, sympy.Heaviside)


def position_of(symbol: sympy.Symbol) -> int:
    """l of z_l, and 0 for the field of the current position."""
    return 0 if symbol == FIELD else int(symbol.name[1:])


@lru_cache(maxsize=2**14)
def support(tree: sympy.Expr) -> frozenset[int]:
    """Positions of the fields in a tree, counted from 1; 0 stands for the field of the current position."""
    if isinstance(tree, PositionSum | PositionProduct):
        return (support(tree.args[0]) - {0}) | frozenset(range(1, int(tree.args[1]) + 1))
    if tree.is_Symbol:
        return frozenset([position_of(tree)])
    return frozenset().union(*map(support, tree.args))


def directions(tree: sympy.Expr, positions: Sequence[int]) -> Array | None:
    """Orthonormal rows (r, n) that span what the tree depends on, r <= 4, or None where that is more.

    They are the fields themselves where that is possible without turning a kink off the axes.
    """
    forms = _forms(tree)
    if forms is None:
        return np.eye(len(positions)) if len(positions) <= VARIABLES else None
    kinks = [row for argument in kink_arguments(tree) if (row := single_form(argument, positions)) is not None]
    aligned = all(np.count_nonzero(row) == 1 for row in kinks)
    basis: list[Array] = []
    for row in [*kinks, *(row_of(form, positions) for form in forms)]:
        rest = row - sum((q * (q @ row) for q in basis), np.zeros(len(row)))
        if np.linalg.norm(rest) > 1e-10 * np.linalg.norm(row):
            basis.append(rest / np.linalg.norm(rest))
            if len(basis) > VARIABLES:
                return None
    if len(basis) == len(positions) and aligned:
        return np.eye(len(positions))
    return np.array(basis)


def row_of(form: Form, positions: Sequence[int]) -> Array:
    """The form as an array over the positions."""
    return np.array([form.get(position, 0.0) for position in positions])


def linear_form(tree: sympy.Expr) -> Form | None:
    """The coefficients of an affine function of the fields, or None where it is not affine."""
    if not support(tree):
        return {}
    if tree.is_Symbol:
        return {position_of(tree): 1.0}
    if tree.is_Add:
        parts = [linear_form(x) for x in tree.args]
        if any(part is None for part in parts):
            return None
        result: Form = {}
        for part in parts:
            for position, x in (part or {}).items():
                result[position] = result.get(position, 0.0) + x
        return result
    if tree.is_Mul:
        inner = [x for x in tree.args if support(x)]
        part = linear_form(inner[0]) if len(inner) == 1 else None
        number = float(sympy.Mul(*(x for x in tree.args if not support(x))))
        return None if part is None else {position: number * x for position, x in part.items()}
    if isinstance(tree, PositionSum) and 0 in support(tree.args[0]) and len(support(tree.args[0])) == 1:
        body = linear_form(tree.args[0])
        return None if body is None else {p: body.get(0, 0.0) for p in range(1, int(tree.args[1]) + 1)}
    return None


def _forms(tree: sympy.Expr) -> list[Form] | None:
    """Linear forms through which the tree depends on the fields; None where these are the fields themselves."""
    form = linear_form(tree)
    if form is not None:
        return [form] if any(form.values()) else []
    if isinstance(tree, PositionSum | PositionProduct):
        return None
    found: list[Form] = []
    affine = [x for x in tree.args if linear_form(x) is not None] if tree.is_Add else []
    pieces = [x for x in tree.args if x not in affine]
    if affine:
        pieces.append(sympy.Add(*affine))
    for piece in pieces:
        if support(piece):
            inner = _forms(piece)
            if inner is None:
                return None
            found += [form for form in inner if form not in found]
    return found


def kink_arguments(tree: sympy.Expr) -> list[sympy.Expr]:
    """Expressions at whose zeros the tree may have a kink or a jump."""
    found: list[sympy.Expr] = []
    for node in sympy.preorder_traversal(tree):
        if isinstance(node, _KINKS) or (node.is_Pow and not node.args[1].is_Integer):
            found += [factor for factor in sympy.Mul.make_args(node.args[0]) if support(factor)]
    return found


def single_form(tree: sympy.Expr, positions: Sequence[int]) -> Array | None:
    """The direction on which a tree depends alone, if there is only one."""
    forms = _forms(tree)
    if not forms:
        return None
    rows = [row_of(form, positions) for form in forms]
    first = rows[0] / np.linalg.norm(rows[0])
    return first if all(np.linalg.norm(row - first * (first @ row)) < 1e-10 for row in rows) else None


def unrolled(tree: sympy.Expr) -> sympy.Expr:
    """The tree with its sums and products over positions written out."""
    for node in sorted(tree.atoms(PositionSum, PositionProduct), key=str):
        body, length = node.args
        parts = [body.xreplace({FIELD: field(position)}) for position in range(1, int(length) + 1)]
        tree = tree.xreplace({node: (sympy.Add if isinstance(node, PositionSum) else sympy.Mul)(*parts)})
    return tree
