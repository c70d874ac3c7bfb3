"""Products of functions of disjoint fields: their Taylor coefficients along a vector and their Hermite coefficients.

Both are products over the factors, of power series in t -> E[g(z + t v)] and of coefficients, so that the L^k entries
of a tensor are not needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.adaptive import Coefficients
from seqindex.gaussian.exact import Number, add, divide, multiply, to_float
from seqindex.gaussian.hermite import degrees
from seqindex.gaussian.hermite_polynomial import HermitePolynomial, MultiIndex

Array = NDArray[np.float64]

LARGEST = 6 * 10**5
"""Entries of a tensor that are listed."""
_ROTATED = 3 * 10**4
"""Entries that are computed from a series in rotated fields at orders above two."""


class TooManyEntriesError(ValueError):
    """A tensor with more entries than are listed."""


class Entry(NamedTuple):
    """A coefficient g_alpha, its absolute error, and the sum of the sizes of what it was added up from."""

    value: Number
    error: float
    gross: float


Entries = dict[MultiIndex, Entry]


class Factor(Protocol):
    """A function of a few fields."""

    exact: bool
    sampled: bool

    @property
    def norm(self) -> float:
        """sqrt(E f^2)."""

    def taylor(self, vector: Array, order: int) -> tuple[Array, Array]:
        """Taylor coefficients of t -> E[f(z + t v)] up to an order, and their errors."""

    def entries(self, order: int) -> Entries:
        """The coefficients f_alpha, |alpha| = order, that are not known to be zero."""


class PolynomialFactor:
    """An exact polynomial."""

    exact = True
    sampled = False

    def __init__(self, polynomial: HermitePolynomial) -> None:
        self.polynomial = polynomial
        self.norm = math.sqrt(polynomial.square_mean)

    @cached_property
    def _by_order(self) -> dict[int, Entries]:
        result: dict[int, Entries] = {}
        for index, value in self.polynomial.coefficients.items():
            order = sum(degree for _, degree in index)
            result.setdefault(order, {})[index] = Entry(value, 0.0, abs(to_float(value)))
        return result

    def taylor(self, vector: Array, order: int) -> tuple[Array, Array]:
        """See ``Factor``."""
        return self.polynomial.taylor(vector, order)

    def entries(self, order: int) -> Entries:
        """See ``Factor``."""
        return self._by_order.get(order, {})


class DenseFactor:
    """A function of r <= 4 orthonormal combinations y = Q z of fields, by its coefficients in y.

    Args:
        positions: the n positions, counted from 1.
        directions: Q, (r, n), orthonormal rows.
        coefficients: of f(y), one output.
        output: which output.
    """

    exact = False
    sampled = False

    def __init__(
        self, positions: Sequence[int], directions: Array, coefficients: Coefficients, output: int = 0
    ) -> None:
        self.positions = tuple(positions)
        self._places = np.array(self.positions) - 1
        self._directions = directions
        self.norm = float(coefficients.norm[output])
        values, errors = coefficients.values[output], coefficients.errors[output]
        # What is zero within the error and far below the function is taken for zero (or was forced by a symmetry).
        zero = (np.abs(values) <= 10.0 * errors) & (np.abs(values) <= 1e-11 * self.norm)
        self._values, self._errors = np.where(zero, 0.0, values), np.where(zero, 0.0, errors)
        clear = (np.abs(values) > 1e3 * errors) & (np.abs(values) > 1e-9 * self.norm)
        self._gross = np.where(clear | zero, np.abs(self._values), self.norm)
        self._total = degrees(values.shape)
        self._local: dict[int, Entries] = {}
        self._entries: dict[int, Entries] = {}
        self.order = values.shape[0] - 1

    def moved(self, position: int) -> DenseFactor:
        """The same function of one field at another position."""
        result = object.__new__(DenseFactor)
        result.__dict__.update(self.__dict__, positions=(position,), _places=np.array([position - 1]), _entries={})
        return result

    def taylor(self, vector: Array, order: int) -> tuple[Array, Array]:
        """See ``Factor``; zero beyond the order of the coefficients."""
        w = self._directions @ vector[self._places]
        top = min(order, self.order)
        scale = np.exp(-0.5 * np.array([math.lgamma(j + 1.0) for j in range(self.order + 1)]))
        weight = np.ones(())
        for x in w:
            weight = np.multiply.outer(weight, x ** np.arange(self.order + 1) * scale)
        results = np.zeros((2, order + 1))
        for row, table in zip(results, (self._values * weight, self._errors * np.abs(weight)), strict=True):
            row[: top + 1] = np.bincount(self._total.ravel(), table.ravel(), minlength=top + 1)[: top + 1]
        return results[0], results[1]

    def entries(self, order: int) -> Entries:
        """See ``Factor``."""
        if order not in self._entries:
            self._entries[order] = self._at_positions(order)
        return self._entries[order]

    def _at_positions(self, order: int) -> Entries:
        if order not in self._local:
            self._local[order] = self._of_order(order)
        local = self._local[order]
        if len(self.positions) == len(self._directions) and (self._directions == np.eye(len(self.positions))).all():
            return {tuple((self.positions[a], b) for a, b in index): entry for index, entry in local.items()}
        return self._rotated(local, order)

    def _of_order(self, order: int) -> Entries:
        """Coefficients in y; the axes are counted from 0."""
        if order > self.order:
            raise ValueError(f"order must be at most {self.order}, to which the series goes, got {order}")
        local: Entries = {}
        for beta in np.argwhere((self._total == order) & (self._gross > 0.0)):
            scale = math.exp(0.5 * math.fsum(math.lgamma(b + 1.0) for b in beta))
            index = tuple((axis, int(b)) for axis, b in enumerate(beta) if b)
            at = tuple(beta)
            local[index] = Entry(*(float(table[at]) * scale for table in (self._values, self._errors, self._gross)))
        return local

    def _rotated(self, local: Entries, order: int) -> Entries:
        """From y = Q z to z: sum_alpha f_alpha x^alpha / alpha! = sum_beta f_beta (Q x)^beta / beta!."""
        if not local:
            return {}
        n = len(self.positions)
        count, largest = math.comb(n + order - 1, order), LARGEST if order <= 2 else _ROTATED
        if count > largest:
            raise TooManyEntriesError(f"C_{order} has {count:,} entries; at most {largest:,} are computed")
        if order == 2:
            return self._matrix(local)
        form: list[dict[MultiIndex, float]] = [
            {((p, 1),): float(x) for p, x in zip(self.positions, row, strict=True)} for row in self._directions
        ]
        totals: dict[MultiIndex, list[float]] = {}
        for index, entry in local.items():
            power: dict[MultiIndex, float] = {(): 1.0}
            for axis, degree in index:
                for factor in range(1, degree + 1):
                    power = _monomials(power, form[axis], 1.0 / factor)
            for alpha, x in power.items():
                x *= math.prod(math.factorial(degree) for _, degree in alpha)
                sums = totals.setdefault(alpha, [0.0, 0.0, 0.0])
                sums[0] += entry.value * x
                sums[1] += entry.error * abs(x)
                sums[2] += entry.gross * abs(x)
        return {alpha: Entry(*sums) for alpha, sums in totals.items()}

    def _matrix(self, local: Entries) -> Entries:
        """C_2 = Q^T T Q."""
        r = len(self._directions)
        tables = np.zeros((3, r, r))
        for index, entry in local.items():
            a, b = index[0][0], index[-1][0]
            tables[:, a, b] = tables[:, b, a] = entry
        size = np.abs(self._directions)
        values = self._directions.T @ tables[0] @ self._directions
        errors, gross = (size.T @ table @ size for table in tables[1:])
        return {
            ((p, 2),) if i == j else ((p, 1), (self.positions[j], 1)): Entry(*map(float, triple))
            for i, p in enumerate(self.positions)
            for j, triple in enumerate(zip(values[i, i:], errors[i, i:], gross[i, i:], strict=True), start=i)
        }


def _monomials(
    p: Mapping[MultiIndex, float], linear: Mapping[MultiIndex, float], factor: float
) -> dict[MultiIndex, float]:
    """Product of a polynomial in x and a linear form, times a number."""
    result: dict[MultiIndex, float] = {}
    for index, a in p.items():
        degree = dict(index)
        for ((position, _),), b in linear.items():
            key = tuple(sorted({**degree, position: degree.get(position, 0) + 1}.items()))
            result[key] = result.get(key, 0.0) + a * b * factor
    return result


@dataclass(frozen=True)
class Term:
    """A number times factors on disjoint positions."""

    coefficient: Number
    factors: tuple[Factor, ...]

    @property
    def exact(self) -> bool:
        """Whether all factors are exact."""
        return all(factor.exact for factor in self.factors)

    @property
    def degree(self) -> int:
        """Highest order of a product of exact factors."""
        polynomials = [factor.polynomial for factor in self.factors if isinstance(factor, PolynomialFactor)]
        return sum(max(polynomial.orders, default=0) for polynomial in polynomials)

    @property
    def norm(self) -> float:
        """sqrt(E f^2)."""
        return abs(to_float(self.coefficient)) * math.prod(factor.norm for factor in self.factors)

    def taylor(self, vector: Array, order: int) -> tuple[Array, Array]:
        """Taylor coefficients of t -> E[f(z + t v)], and their errors."""
        values, errors = np.zeros((2, order + 1))
        values[0] = to_float(self.coefficient)
        for factor in self.factors:
            a, e = factor.taylor(vector, order)
            errors = (np.convolve(np.abs(values) + errors, e) + np.convolve(errors, np.abs(a)))[: order + 1]
            values = np.convolve(values, a)[: order + 1]
        return values, errors

    def entries(self, order: int) -> Entries:
        """The coefficients f_alpha, |alpha| = order.

        Raises:
            TooManyEntriesError: more of them than are listed.
        """
        if len(self.factors) == 1:
            number = self._number(self.coefficient)
            return {i: _product(e, number) for i, e in self._numbers(self.factors[0].entries(order)).items()}
        means = [factor.entries(0).get(()) for factor in self.factors]
        without = [factor for factor, mean in zip(self.factors, means, strict=True) if mean is None]
        if len(without) > order or not self._count(order):
            return {}
        common = self._number(self.coefficient)
        state: list[Entries] = [{(): Entry(1, 0.0, 1.0)}, *({} for _ in range(order))]
        for factor in without:
            state = self._times(state, [{}, *(self._numbers(factor.entries(k)) for k in range(1, order + 1))])
        for factor, mean in zip(self.factors, means, strict=True):
            if mean is not None:
                parts = [self._numbers(factor.entries(k)) for k in range(order + 1)]
                # With the mean divided out, what is there already stays as it is.
                inverse = self._number(divide(1, mean.value))
                rest = [{}, *({i: _product(e, inverse) for i, e in part.items()} for part in parts[1:])]
                for k, new in enumerate(self._times(state, rest)):
                    state[k].update(new)
                common = _product(common, self._numbers({(): mean})[()])
        return {tuple(sorted(index)): _product(entry, common) for index, entry in state[order].items()}

    def _count(self, order: int) -> float:
        counts = np.eye(1, order + 1)[0]
        for factor in self.factors:
            counts = np.convolve(counts, [float(len(factor.entries(k))) for k in range(order + 1)])[: order + 1]
        if counts[-1] > LARGEST:
            raise TooManyEntriesError(f"C_{order} has {counts[-1]:.3g} entries; at most {LARGEST:,} are listed")
        return float(counts[-1])

    def _number(self, value: Number) -> Entry:
        size = abs(to_float(value))
        return Entry(value if self.exact else to_float(value), 0.0, size)

    def _numbers(self, entries: Entries) -> Entries:
        if self.exact:
            return entries
        return {index: Entry(to_float(value), error, gross) for index, (value, error, gross) in entries.items()}

    @staticmethod
    def _times(state: list[Entries], parts: Sequence[Entries]) -> list[Entries]:
        result: list[Entries] = [{} for _ in state]
        for i, old in enumerate(state):
            for j, part in enumerate(parts[: len(state) - i]):
                for b, y in part.items():
                    result[i + j].update({a + b: _product(x, y) for a, x in old.items()})
        return result


def _product(x: Entry, y: Entry) -> Entry:
    return Entry(
        multiply(x.value, y.value),
        abs(to_float(x.value)) * y.error + x.error * abs(to_float(y.value)) + x.error * y.error,
        x.gross * y.gross,
    )


def merged(parts: Sequence[Entries]) -> Entries:
    """Sum of entries."""
    result: Entries = {}
    for part in parts:
        for index, entry in part.items():
            old = result.get(index)
            result[index] = (
                entry
                if old is None
                else Entry(add(old.value, entry.value), old.error + entry.error, old.gross + entry.gross)
            )
    return result
