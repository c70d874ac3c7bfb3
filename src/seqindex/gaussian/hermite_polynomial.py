"""Exact polynomials of the fields in the Hermite basis."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex.gaussian.exact import Number, add, exact, multiply, to_float

MultiIndex = tuple[tuple[int, int], ...]
"""Sparse multi-index alpha: pairs (position counted from 1, degree >= 1) in the order of the positions."""
LARGEST = 10**6
"""Terms that a polynomial may have."""
_WORK = 4 * 10**6
"""Products of terms in one multiplication."""


def total_degree(index: MultiIndex) -> int:
    """|alpha|."""
    return sum(degree for _, degree in index)


def factorial(index: MultiIndex) -> int:
    """alpha!."""
    return math.prod(math.factorial(degree) for _, degree in index)


class HermitePolynomial:
    """g(z) = sum_alpha a_alpha He_alpha(z), a sparse sum with exact numbers a_alpha.

    Args:
        terms: a_alpha by multi-index; ints, Fractions or SymPy numbers.

    Attributes:
        terms: a_alpha, zeros left out.

    Raises:
        ValueError: more than 10^6 terms, here or in a sum, product or power.

    Example:
        >>> z1, z2 = HermitePolynomial.field(1), HermitePolynomial.field(2)
        >>> ((z1 + z2) ** 2).terms == {(): 2, ((1, 2),): 1, ((2, 2),): 1, ((1, 1), (2, 1)): 2}
        True
    """

    def __init__(self, terms: Mapping[MultiIndex, Any] | None = None) -> None:
        pairs = ((index, exact(value)) for index, value in (terms or {}).items())
        self.terms: dict[MultiIndex, Number] = _limited({index: value for index, value in pairs if value != 0})

    @classmethod
    def _of(cls, terms: dict[MultiIndex, Number]) -> HermitePolynomial:
        """From numbers in canonical form."""
        result = cls.__new__(cls)
        result.terms = _limited({index: value for index, value in terms.items() if value != 0})
        return result

    @classmethod
    def constant(cls, value: Any) -> HermitePolynomial:
        """The polynomial of one number."""
        return cls({(): value})

    @classmethod
    def field(cls, position: int, power: int = 1) -> HermitePolynomial:
        """z_l^n = sum_m n! / (2^m m! (n - 2 m)!) He_{n - 2m}(z_l).

        Example:
            >>> HermitePolynomial.field(1, 4).terms == {((1, 4),): 1, ((1, 2),): 6, (): 3}
            True
        """
        terms: dict[MultiIndex, Number] = {}
        for m in range(power // 2 + 1):
            degree = power - 2 * m
            index: MultiIndex = ((position, degree),) if degree else ()
            terms[index] = math.factorial(power) // (2**m * math.factorial(m) * math.factorial(degree))
        return cls._of(terms)

    @functools.cached_property
    def coefficients(self) -> dict[MultiIndex, Number]:
        """g_alpha = E[g He_alpha] = alpha! a_alpha, exact.

        Example:
            >>> HermitePolynomial.field(1, 4).coefficients == {((1, 4),): 24, ((1, 2),): 12, (): 3}
            True
        """
        return {index: multiply(value, factorial(index)) for index, value in self.terms.items()}

    def of_order(self, order: int) -> dict[MultiIndex, Number]:
        """The g_alpha with |alpha| = order that are not zero."""
        return {index: value for index, value in self.coefficients.items() if total_degree(index) == order}

    @property
    def orders(self) -> list[int]:
        """The |alpha| that occur, ascending."""
        return sorted({total_degree(index) for index in self.terms})

    @property
    def support(self) -> set[int]:
        """Positions that occur."""
        return {position for index in self.terms for position, _ in index}

    @property
    def square_mean(self) -> float:
        """E g^2 = sum_alpha a_alpha^2 alpha!."""
        return math.fsum(to_float(value) ** 2 * factorial(index) for index, value in self.terms.items())

    def __add__(self, other: HermitePolynomial) -> HermitePolynomial:
        large, small = (self, other) if len(self.terms) >= len(other.terms) else (other, self)
        terms = dict(large.terms)
        for index, value in small.terms.items():
            terms[index] = add(terms[index], value) if index in terms else value
        return self._of(terms)

    def __mul__(self, other: HermitePolynomial) -> HermitePolynomial:
        if len(self.terms) * len(other.terms) > _WORK:
            raise ValueError(_too_long(len(self.terms) * len(other.terms)))
        terms: dict[MultiIndex, Number] = {}
        work = 0
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                xy = multiply(x, y)
                for index, count in _linearised(a, b):
                    value = xy if count == 1 else multiply(xy, count)
                    terms[index] = add(terms[index], value) if index in terms else value
                    work += 1
            if work > 2 * _WORK or len(terms) > LARGEST:
                raise ValueError(_too_long(len(terms)))
        return self._of(terms)

    def __pow__(self, power: int) -> HermitePolynomial:
        result, base = self.constant(1), self
        while power:
            if power & 1:
                result = result * base
            power >>= 1
            if power:
                base = base * base
        return result

    def scaled(self, factor: Any) -> HermitePolynomial:
        """Factor times g."""
        factor = exact(factor)
        return self._of({index: multiply(value, factor) for index, value in self.terms.items()})

    def __call__(self, z: ArrayLike) -> NDArray[np.float64]:
        """Values at fields, shape (..., L) -> (...)."""
        z = np.asarray(z, dtype=np.float64)
        degree = max((d for index in self.terms for _, d in index), default=0)
        he = [np.ones_like(z), z]
        for k in range(1, degree):
            he.append(z * he[k] - k * he[k - 1])
        result = np.zeros(z.shape[:-1])
        for index, value in self.terms.items():
            result += to_float(value) * math.prod(he[degree][..., position - 1] for position, degree in index)
        return result

    def taylor(self, vector: ArrayLike, order: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Taylor coefficients of t -> E[g(z + t v)]: <C_k(g), v^k> / k! = sum_{|alpha| = k} a_alpha v^alpha.

        Args:
            vector: v, one number a position.
            order: highest k.

        Returns:
            Values and bounds of their rounding errors, both (order + 1,); no error where v has integer entries, since
            the sums are then exact.

        Example:
            >>> z = [HermitePolynomial.field(l) for l in (1, 2)]
            >>> (z[0] * z[1]).taylor([1, 1], 2)[0].tolist()
            [0.0, 0.0, 1.0]
        """
        v = np.asarray(vector, dtype=np.float64)
        if (v == np.round(v)).all() and (np.abs(v) < 2**53).all():
            return self._exact_taylor([int(x) for x in v], order), np.zeros(order + 1)
        values, sizes = np.zeros((2, order + 1))
        for index, a in self.terms.items():
            k = total_degree(index)
            if k <= order:
                term = to_float(a) * math.prod(float(v[position - 1]) ** degree for position, degree in index)
                values[k] += term
                sizes[k] += abs(term)
        count = max(len(self.terms), 1)
        return values, np.finfo(float).eps * (np.arange(order + 1) + 2.0 + math.sqrt(count)) * sizes

    def _exact_taylor(self, v: list[int], order: int) -> NDArray[np.float64]:
        # Few numbers a_alpha differ, and sums of integers are quick where sums of roots are not.
        powers: list[dict[Number, int]] = [{} for _ in range(order + 1)]
        for index, a in self.terms.items():
            k = total_degree(index)
            if k <= order:
                power = math.prod(v[position - 1] ** degree for position, degree in index)
                powers[k][a] = powers[k].get(a, 0) + power
        totals = [functools.reduce(add, (multiply(a, power) for a, power in part.items()), 0) for part in powers]
        return np.array([to_float(total) for total in totals])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HermitePolynomial) and self.terms == other.terms

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [
            " ".join([f"{value}", *(f"He{degree}(z{position})" for position, degree in index)])
            for index, value in itertools.islice(self.terms.items(), 6)
        ]
        rest = [f"... ({len(self.terms)} terms)"] if len(self.terms) > 6 else []
        return f"HermitePolynomial({' + '.join(shown + rest) or '0'})"


def _limited(terms: dict[MultiIndex, Number]) -> dict[MultiIndex, Number]:
    if len(terms) > LARGEST:
        raise ValueError(_too_long(len(terms)))
    return terms


def _too_long(count: int) -> str:
    return (
        f"expression must expand to at most {LARGEST:,} Hermite terms, got more than that (at least {count:,} products)"
    )


def _linearised(a: MultiIndex, b: MultiIndex) -> Iterator[tuple[MultiIndex, int]]:
    """He_a He_b = sum_k prod_l k_l! C(a_l, k_l) C(b_l, k_l) He_{a + b - 2k}: the indices and their counts."""
    if not a or not b:
        yield (a or b), 1
        return
    if a[-1][0] < b[0][0]:
        yield a + b, 1
        return
    degrees = dict(a)
    shared = [(position, degree, degrees[position]) for position, degree in b if position in degrees]
    if not shared:
        yield tuple(sorted(a + b)), 1
        return
    common = {position for position, *_ in shared}
    rest = [pair for pair in a + b if pair[0] not in common]
    for choice in itertools.product(*(_pair_products(m, n) for _, m, n in shared)):
        new = [(position, degree) for (position, *_), (degree, _) in zip(shared, choice, strict=True) if degree]
        yield tuple(sorted(rest + new)), math.prod(count for _, count in choice)


@functools.lru_cache(maxsize=1024)
def _pair_products(m: int, n: int) -> tuple[tuple[int, int], ...]:
    """Degrees and counts of He_m He_n."""
    return tuple((m + n - 2 * k, math.factorial(k) * math.comb(m, k) * math.comb(n, k)) for k in range(min(m, n) + 1))
