"""Exact real numbers: Python's rationals, and SymPy's numbers where there are roots or constants such as pi."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy

from seqindex import check

Number = Any
"""int, Fraction or a canonical SymPy number: zero is always the rational one."""
_DIGITS = 60


def exact(value: Any) -> Number:
    """A number in canonical form; a float stands for its exact binary value.

    Raises:
        TypeError: what is no number.
        ValueError: a number that is not real or not finite.

    Example:
        >>> exact(sympy.sqrt(8) - 2 * sympy.sqrt(2)), exact(sympy.Rational(1, 3)), exact(0.5)
        (0, Fraction(1, 3), Fraction(1, 2))
    """
    if isinstance(value, sympy.Expr):
        return _canonical(value)
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return value
    if isinstance(value, np.integer):
        return int(value)
    return Fraction(check.number("coefficient", value))


def add(a: Number, b: Number) -> Number:
    """Sum of a and b."""
    return _canonical(_symbolic(a) + _symbolic(b)) if _irrational(a) or _irrational(b) else a + b


def multiply(a: Number, b: Number) -> Number:
    """Product of a and b."""
    return _product(a, b) if _irrational(a) or _irrational(b) else a * b


def divide(a: Number, b: Number) -> Number:
    """Quotient of a and b, with a rational number where both are integers."""
    if _irrational(a) or _irrational(b):
        return _canonical(_symbolic(a) / _symbolic(b))
    return Fraction(a, b) if isinstance(a, int) and isinstance(b, int) else a / b


def to_float(value: Number) -> float:
    """The nearest float; infinity where it is too large.

    Example:
        >>> to_float(sympy.sqrt(2)), to_float(Fraction(1, 4))
        (1.4142135623730951, 0.25)
    """
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _irrational(value: Number) -> bool:
    return isinstance(value, sympy.Expr)


def _symbolic(value: Number) -> sympy.Expr:
    return sympy.Rational(value.numerator, value.denominator) if isinstance(value, int | Fraction) else value


@lru_cache(maxsize=4096)
def _product(a: Number, b: Number) -> Number:
    return _canonical(_symbolic(a) * _symbolic(b))


@lru_cache(maxsize=4096)
def _canonical(value: sympy.Expr) -> Number:
    if value.is_Integer:
        return int(value)
    if value.is_Rational:
        return Fraction(int(value.p), int(value.q))
    if value.is_Float:
        return Fraction(float(value))
    if value.free_symbols:
        raise TypeError(f"coefficient must be a number, got {check.shown(value)}")
    if value.is_finite is False or value.is_real is False:
        raise ValueError(f"coefficient must be real and finite, got {check.shown(value)}")
    value = sympy.expand(sympy.radsimp(value))
    if value.is_Rational or value.is_Float:
        return _canonical(value)
    size = value.evalf(_DIGITS)
    if size.is_real is not True and not size.is_Float:
        raise ValueError(f"coefficient must be real and finite, got {check.shown(value)}")
    # Roots that cancel without SymPy's noticing: ``equals`` looks at minimal polynomials.
    if abs(size) < sympy.Float(10) ** (10 - _DIGITS) and value.equals(0) is not False:
        return 0
    return value
