"""Trees of link functions taken apart: an exact polynomial plus products of functions of few fields each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import sympy

from seqindex.gaussian.exact import Number, exact, multiply
from seqindex.gaussian.hermite_polynomial import LARGEST, HermitePolynomial
from seqindex.model.formula import FIELD, PositionProduct, PositionSum, field
from seqindex.theory.forms import directions, linear_form, position_of, support

_TERMS = 20000
"""Products that a tree may be expanded to."""
_MULTIPLIED_OUT = 2000
"""Of these, by multiplying out."""


def polynomial_of(tree: sympy.Expr) -> HermitePolynomial | None:
    """The tree as an exact polynomial of the fields, or None where it is none.

    Raises:
        ValueError: a polynomial with more than 10^6 Hermite terms.

    Example:
        >>> polynomial_of(PositionSum(FIELD**2 - 1, 3)).terms == {((1, 2),): 1, ((2, 2),): 1, ((3, 2),): 1}
        True
        >>> polynomial_of(sympy.exp(field(1))) is None
        True
    """
    if not support(tree):
        return HermitePolynomial.constant(tree)
    if tree.is_Symbol:
        return HermitePolynomial.field(position_of(tree))
    if tree.is_Pow:
        base, power = tree.args
        if not (power.is_Integer and power >= 1):
            return None
        if base.is_Symbol:
            return HermitePolynomial.field(position_of(base), int(power))
        inner = polynomial_of(base)
        return None if inner is None else inner ** int(power)
    if isinstance(tree, PositionSum):
        return _added(polynomial_of(part) for part in _single(tree))
    if isinstance(tree, PositionProduct):
        body = polynomial_of(tree.args[0])
        if body is None or int(tree.args[1]) * math.log(max(len(body.terms), 1)) > math.log(LARGEST):
            return None
        return _multiplied(polynomial_of(part) for part in _single(tree))
    if tree.is_Add:
        return _added(map(polynomial_of, tree.args))
    if tree.is_Mul:
        return _multiplied(map(polynomial_of, tree.args))
    return None


def _added(parts: Iterable[HermitePolynomial | None]) -> HermitePolynomial | None:
    """Their sum, added pairwise so that long sums take no quadratic time."""
    todo = []
    for part in parts:
        if part is None:
            return None
        todo.append(part)
    while len(todo) > 1:
        pairs = zip(todo[::2], todo[1::2], strict=False)
        todo = [a + b for a, b in pairs] + ([todo[-1]] if len(todo) % 2 else [])
    return todo[0]


def _multiplied(parts: Iterable[HermitePolynomial | None]) -> HermitePolynomial | None:
    result = HermitePolynomial.constant(1)
    for part in parts:
        if part is None:
            return None
        result = result * part
    return result


def _single(tree: sympy.Expr) -> Iterator[sympy.Expr]:
    """The terms of a ``PositionSum`` or the factors of a ``PositionProduct``."""
    body, length = tree.args
    for position in range(1, int(length) + 1):
        yield body.xreplace({FIELD: field(position)})


Product = tuple[Number, tuple[sympy.Expr, ...]]
"""A number and factors on disjoint supports; a factor in ``FIELD`` alone never occurs."""


def products(tree: sympy.Expr) -> tuple[HermitePolynomial, list[Product]]:
    """The tree as an exact polynomial plus products of factors that share no field.

    Sums are taken term by term, exponentials of sums become products, and the factors of a product are multiplied only
    where they share fields.

    Raises:
        ValueError: more products than can be handled.

    Example:
        >>> z1, z2 = field(1), field(2)
        >>> products(z1 + 2 * sympy.tanh(z1) * sympy.exp(z2))
        (HermitePolynomial(1 He1(z1)), [(2, (tanh(z1), exp(z2)))])
    """
    polynomial = HermitePolynomial()
    found: list[Product] = []
    for term in _terms(tree):
        exact_part = None if is_long_power(term) else polynomial_of(term)
        if exact_part is not None:
            polynomial = polynomial + exact_part
            continue
        number, factors = _factors(term)
        groups = [sympy.Mul(*group) for group in _groups(factors)]
        too_wide = next((group for group in groups if _sum_in(group) is not None and _is_wide(group)), None)
        if too_wide is not None:
            rest = sympy.Mul(*(group for group in groups if group is not too_wide))
            for part in _distributed(too_wide):
                if len(found) > _MULTIPLIED_OUT:
                    raise ValueError(f"expression must multiply out to at most {_MULTIPLIED_OUT:,} products, got more")
                more, others = products(part * rest)
                polynomial = polynomial + more.scaled(number)
                found += [(multiply(number, factor), rest_factors) for factor, rest_factors in others]
        else:
            found.append((number, tuple(groups)))
        if len(found) > _TERMS:
            raise ValueError(f"expression must expand to at most {_TERMS:,} products, got more")
    return polynomial, found


def _is_wide(group: sympy.Expr) -> bool:
    return directions(group, sorted(support(group))) is None


def is_long_power(term: sympy.Expr) -> bool:
    """Whether a power of a linear form has too many terms; it is then a function of this one combination."""
    for factor in sympy.Mul.make_args(term):
        base, power = factor.as_base_exp()
        if power.is_Integer and power > 1:
            count = len(linear_form(base) or {})
            if math.comb(count + int(power), int(power)) > LARGEST:
                return True
    return False


def _terms(tree: sympy.Expr) -> Iterator[sympy.Expr]:
    for term in sympy.Add.make_args(tree):
        if isinstance(term, PositionSum) and polynomial_of_is_hopeless(term):
            for part in _single(term):
                yield from sympy.Add.make_args(part)
        elif term.is_Mul and any(isinstance(x, PositionSum) for x in term.args) and _is_scaled_sum(term):
            number, body = term.as_independent(*term.free_symbols, PositionSum)
            for part in _terms(body):
                yield number * part
        else:
            yield term


def polynomial_of_is_hopeless(tree: sympy.Expr) -> bool:
    """Whether the body of a ``PositionSum`` is no polynomial (so that its terms are looked at one by one)."""
    return polynomial_of(tree.args[0]) is None


def _is_scaled_sum(term: sympy.Expr) -> bool:
    fields = [x for x in term.args if support(x)]
    return len(fields) == 1 and isinstance(fields[0], PositionSum) and polynomial_of_is_hopeless(fields[0])


def _factors(term: sympy.Expr) -> tuple[Number, list[sympy.Expr]]:
    number: Number = 1
    factors: list[sympy.Expr] = []
    todo = list(sympy.Mul.make_args(term))
    while todo:
        factor = todo.pop()
        if not support(factor):
            number = multiply(number, exact(factor))
        elif isinstance(factor, PositionProduct):
            todo += _single(factor)
        elif isinstance(factor, sympy.exp) and (pieces := _exponents(factor.args[0])):
            todo += [sympy.exp(piece) for piece in pieces]
        elif isinstance(factor, sympy.Abs | sympy.sign) and factor.args[0].is_Mul:
            todo += [factor.func(x) for x in factor.args[0].args]
        elif factor.is_Pow and factor.args[0].is_Mul and factor.args[1].is_Integer:
            todo += [x ** factor.args[1] for x in factor.args[0].args]
        elif factor.is_Mul:
            todo += factor.args
        else:
            factors.append(factor)
    return number, factors


def _exponents(argument: sympy.Expr) -> list[sympy.Expr]:
    """Terms of a sum in an exponent, with multiples of ``PositionSum`` taken apart; empty where there is but one."""
    pieces: list[sympy.Expr] = []
    for piece in sympy.Add.make_args(argument):
        if piece.is_Mul and sum(bool(support(x)) for x in piece.args) == 1:
            inner = next(x for x in piece.args if support(x))
            number = sympy.Mul(*(x for x in piece.args if x is not inner))
        else:
            inner, number = piece, sympy.Integer(1)
        parts = list(_single(inner)) if isinstance(inner, PositionSum) else sympy.Add.make_args(inner)
        pieces += [number * part for part in parts]
    return pieces if len(pieces) > 1 else []


def _groups(factors: list[sympy.Expr]) -> list[list[sympy.Expr]]:
    """Factors that share fields, directly or through others, together."""
    owner: dict[int, int] = {}
    groups: dict[int, list[sympy.Expr]] = {}
    for label, factor in enumerate(factors):
        positions = support(factor)
        touched = {owner[p] for p in positions if p in owner}
        members = [factor]
        for other in sorted(touched):
            members = groups.pop(other) + members
        groups[label] = members
        for member in members if touched else [factor]:
            for p in support(member):
                owner[p] = label
    return list(groups.values())


def _sum_in(group: sympy.Expr) -> sympy.Expr | None:
    """A factor that is a sum, or a power of one, in a product of several factors or on its own as a power."""
    for factor in sympy.Mul.make_args(group):
        base, power = factor.as_base_exp()
        if power.is_Integer and power >= 1 and (base.is_Add or isinstance(base, PositionSum)):
            return factor
    return None


def _distributed(group: sympy.Expr) -> list[sympy.Expr]:
    """The group with one of its sums multiplied out."""
    factor = _sum_in(group)
    assert factor is not None
    base, power = factor.as_base_exp()
    rest = sympy.Mul(*(x for x in sympy.Mul.make_args(group) if x != factor)) * base ** (power - 1)
    parts = list(_single(base)) if isinstance(base, PositionSum) else base.args
    return [part * rest for part in parts]
