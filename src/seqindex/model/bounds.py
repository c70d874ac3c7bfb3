"""Bounds on the trees of link functions, so that reading a text never takes long and gives real numbers only."""

from __future__ import annotations

import math

import sympy

from seqindex.model.formula import PositionProduct, PositionSum

HIGHEST_DEGREE = 60
"""Degree of a polynomial in each field, and the largest power of anything that is no number."""
MOST_BITS = 8192
"""Bits of the numerator and of the denominator of an exact number."""
_LARGEST, _SMALLEST = 1e300, 1e-100
MOST_NODES = 20_000
"""Nodes of a tree written out in full."""
_NUMBER_NODES = 40
"""The same of a tree that is a number: SymPy may take exponential time over its sign."""


class OutOfBoundsError(ValueError):
    """A tree that is too large, or holds a number that is not real and finite."""


class Bounds:
    """Checks of trees, each part of which is looked at once."""

    def __init__(self) -> None:
        self._known: dict[sympy.Expr, tuple[int, dict[sympy.Symbol, int]]] = {}

    def check(self, tree: sympy.Expr) -> tuple[int, dict[sympy.Symbol, int]]:
        """Number of nodes of a tree and its degree in each symbol.

        Raises:
            OutOfBoundsError: a tree beyond the bounds.

        Example:
            >>> from seqindex.model.formula import INPUT
            >>> Bounds().check(INPUT**3 - 3 * INPUT)
            (7, {u: 3})
        """
        if tree in self._known:
            return self._known[tree]
        if tree.is_number:
            size = 1 if tree.is_Rational else 1 + sum(self.check(part)[0] for part in tree.args)
            if size > _NUMBER_NODES:
                raise OutOfBoundsError("holds a number of too many parts")
            _check_number(tree)
            result: tuple[int, dict[sympy.Symbol, int]] = (size, {})
        elif tree.is_Symbol:
            result = (1, {tree: 1})
        else:
            parts = [self.check(part) for part in tree.args]
            size = 1 + sum(count for count, _ in parts)
            if size > MOST_NODES:
                raise OutOfBoundsError("grows too large when written out")
            result = (size, _degrees(tree, [degrees for _, degrees in parts]))
            if max(result[1].values(), default=0) > HIGHEST_DEGREE:
                raise OutOfBoundsError(f"has a degree above {HIGHEST_DEGREE}")
        self._known[tree] = result
        return result


def bits(number: sympy.Rational) -> int:
    """Bits of the numerator or the denominator, whichever has more."""
    return max(int(number.p).bit_length(), int(number.q).bit_length())


def vanishes(tree: sympy.Expr) -> bool:
    """Whether a tree is a number that is zero, or cannot be told from zero."""
    if tree.is_Rational:
        return bool(tree == 0)
    return bool(tree.is_number and (tree.is_zero or abs(float(tree)) < _SMALLEST))


def _check_number(tree: sympy.Expr) -> None:
    if tree.is_Rational and bits(tree) > MOST_BITS:
        raise OutOfBoundsError("makes too large a number")
    try:
        value = math.nan if tree.has(sympy.oo, -sympy.oo, sympy.zoo, sympy.nan) else float(tree)
    except OverflowError:
        value = math.inf
    except (TypeError, ValueError):  # SymPy's answer to a complex number
        value = math.nan
    if math.isnan(value):
        raise OutOfBoundsError("must be real and finite, which it is not")
    if abs(value) > _LARGEST:
        raise OutOfBoundsError("makes too large a number")


def _degrees(tree: sympy.Expr, parts: list[dict[sympy.Symbol, int]]) -> dict[sympy.Symbol, int]:
    """Degree in each symbol; what is no polynomial counts as 0, a sum or product over positions as its body."""
    if tree.is_Pow:
        n = int(tree.exp) if tree.exp.is_Integer else 0
        return {symbol: n * degree for symbol, degree in parts[0].items()} if n > 0 else {}
    if not (tree.is_Add or tree.is_Mul):
        return parts[0] if isinstance(tree, PositionSum | PositionProduct) else {}
    result: dict[sympy.Symbol, int] = {}
    for part in parts:
        for symbol, degree in part.items():
            old = result.get(symbol, 0)
            result[symbol] = old + degree if tree.is_Mul else max(old, degree)
    return result
