"""Hermite series of a target: exact where it is polynomial, numerical with errors otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.gaussian.adaptive import line_coefficients
from seqindex.gaussian.exact import to_float
from seqindex.gaussian.hermite_polynomial import HermitePolynomial
from seqindex.model.evaluate import evaluate_at
from seqindex.model.formula import INPUT, field
from seqindex.theory.expansion import is_long_power, polynomial_of, products
from seqindex.theory.factors import Entries, Entry, Factor, PolynomialFactor, Term, merged
from seqindex.theory.hermite_tensor import HermiteTensor
from seqindex.theory.leaf import callable_factors, leaf

Array = NDArray[np.float64]

HIGHEST = 150
"""Highest order: k! must be a float."""


class LinkFunction(Protocol):
    """What a target must have here; its ``expression``, a tuple of trees, is used where it is there."""

    length: int

    def __call__(self, z: Array, /) -> Array:
        """Labels of fields, (..., L) -> (..., k)."""


class HermiteSeries:
    """Hermite tensors of a target up to an order, without listing their entries.

    Every output is an exact polynomial plus products of functions of few combinations of the fields each; where this
    is not possible (a callable or a function of more than four combinations) scrambled Sobol points are averaged.

    Args:
        target: any target; one with an expression is taken apart.
        order: highest total order of what is not polynomial.

    Attributes:
        length: L.
        outputs: k.
        order: as given.

    Raises:
        ValueError: a target that is not finite at a node or has no finite square mean, or one that expands to too many
            terms.

    Example:
        >>> series = HermiteSeries(sx.Target(lambda z: z[..., 0] * np.tanh(z[..., 1]), length=2), order=4)
        >>> values, errors = series.contractions([1, 1])
        >>> values.round(6).tolist(), bool(errors.max() < 1e-10)  # 2 E tanh(z) z and 4 E tanh(z) He3(z)
        ([[0.0, 0.0, 1.211411, 0.0, -1.454382]], True)
    """

    def __init__(self, target: LinkFunction, order: int = 12) -> None:
        self.order = check.integer("order", order, 0, HIGHEST)
        self.length = target.length
        trees = getattr(target, "expression", None)
        if trees is None:
            factors = callable_factors(lambda z: np.asarray(target(z)), self.length, self.order)
            parts = [(HermitePolynomial(), [Term(1, (factor,))]) for factor in factors]
        else:
            parts = [_parts(tree, self.order) for tree in trees]
        self._target = target
        self._polynomials = [PolynomialFactor(polynomial) for polynomial, _ in parts]
        self._terms = [terms for _, terms in parts]
        self.outputs = len(parts)

    @property
    def exact(self) -> bool:
        """Whether everything is polynomial, and so exact at every order."""
        return all(term.exact for terms in self._terms for term in terms)

    @property
    def sampled(self) -> bool:
        """Whether some part comes from random points, whose errors are then statistical."""
        return any(factor.sampled for terms in self._terms for term in terms for factor in term.factors)

    @property
    def scale(self) -> Array:
        """Sum of the root mean squares of the parts of every output, (k,)."""
        pairs = zip(self._polynomials, self._terms, strict=True)
        return np.array([p.norm + sum(term.norm for term in terms) for p, terms in pairs])

    @property
    def degree(self) -> int:
        """Highest order of an exact series."""
        pairs = zip(self._polynomials, self._terms, strict=True)
        return max(max([*p.polynomial.orders, *(term.degree for term in terms)], default=0) for p, terms in pairs)

    @property
    def constant(self) -> bool:
        """Whether the target is constant: exactly, or within 1e-12 of its size at random points."""
        if self.exact:
            return self.degree == 0
        labels = np.asarray(self._target(np.random.default_rng(0).standard_normal((256, self.length))))
        return bool((np.ptp(labels, axis=0) <= 1e-12 * np.abs(labels).max(0)).all())

    def taylor(self, vector: ArrayLike, order: int | None = None) -> tuple[Array, Array]:
        """Taylor coefficients <C_j(g), v^{(x) j}> / j! of t -> E[g(z + t v)], j = 0..order.

        Args:
            vector: v, one number a position.
            order: highest j; None for that of the series.

        Returns:
            Values and absolute errors, both (k, order + 1).

        Raises:
            ValueError: a vector of another length, or a higher order than that of the series.
        """
        values, errors, _ = self.taylor_with_sizes(vector, order)
        return values, errors

    def taylor_with_sizes(self, vector: ArrayLike, order: int | None = None) -> Array:
        """Values, errors and the sums of the sizes of the parts that make up the values, (3, k, order + 1)."""
        v = check.array("vector", vector, (self.length,))
        top = self._checked(order)
        results = np.zeros((3, self.outputs, top + 1))
        for output, (polynomial, terms) in enumerate(zip(self._polynomials, self._terms, strict=True)):
            results[:2, output] = polynomial.taylor(v, top)
            results[2, output] = np.abs(results[0, output])
            for term in terms:
                value, error = term.taylor(v, top)
                results[:, output] += value, error + 2e-16 * np.abs(value), np.abs(value)
        return results

    def contractions(self, vector: ArrayLike, order: int | None = None) -> tuple[Array, Array]:
        """<C_j(g), v^{(x) j}>, j = 0..order, and absolute errors; see ``taylor``."""
        values, errors = self.taylor(vector, order)
        factorials = _factorials(values.shape[1] - 1)
        return values * factorials, errors * factorials

    def tensors(self, order: int) -> tuple[HermiteTensor, ...]:
        """C_order(g), one tensor an output.

        Raises:
            ValueError: an order below 1, beyond that of a series that is not exact, or a tensor with too many entries.
        """
        order = check.integer("order", order, 1)
        results = []
        for entries in self.entries(order):
            exact = all(term.exact for terms in self._terms for term in terms)
            kept = {index: entry for index, entry in entries.items() if entry.value != 0 or entry.error > 0.0}
            errors = None if exact else {index: entry.error for index, entry in kept.items()}
            results.append(HermiteTensor(self.length, order, {i: e.value for i, e in kept.items()}, errors))
        return tuple(results)

    def entries(self, order: int) -> list[Entries]:
        """The coefficients g_alpha, |alpha| = order, of every output."""
        results = []
        for polynomial, terms in zip(self._polynomials, self._terms, strict=True):
            own = polynomial.entries(order)
            found = merged([own, *(term.entries(order) for term in terms)])
            if not all(term.exact for term in terms):
                found = {i: Entry(to_float(e.value), e.error, e.gross) for i, e in found.items()}
            results.append(found)
        return results

    def _checked(self, order: int | None) -> int:
        highest = HIGHEST if self.exact else self.order
        return self.order if order is None else check.integer("order", order, 0, highest)


def _parts(tree: sympy.Expr, order: int) -> tuple[HermitePolynomial, list[Term]]:
    polynomial, found = products(tree)
    terms = []
    for number, trees in found:
        factors: list[Factor] = []
        for part in trees:
            exact = None if is_long_power(part) else polynomial_of(part)
            factors.append(leaf(part, order) if exact is None else PolynomialFactor(exact))
        terms.append(Term(number, tuple(factors)))
    return polynomial, terms


def _factorials(order: int) -> Array:
    return np.array([float(math.factorial(j)) for j in range(order + 1)])


def contractions(target: LinkFunction, vector: ArrayLike, order: int) -> tuple[Array, Array]:
    """<C_j(g), v^{(x) j}> for j = 0..order: values (k, order + 1) and their absolute errors.

    Args:
        target: any target.
        vector: v, one number a position.
        order: highest order, at most 150.

    Raises:
        ValueError: see ``HermiteSeries``.

    Example:
        >>> values, errors = contractions(sx.Target(lambda z: np.sin(z).sum(-1), length=3), [1.0, 1.0, 1.0], 3)
        >>> bool(np.allclose(values / 3, np.exp(-0.5) * np.array([[0, 1, 0, -1]])))
        True
    """
    return HermiteSeries(target, order).contractions(vector)


def hermite_tensors(target: LinkFunction, order: int) -> tuple[HermiteTensor, ...]:
    """C_order(g), one tensor an output.

    Raises:
        ValueError: see ``HermiteSeries``; a tensor with more entries than are listed.

    Example:
        >>> hermite_tensors(sx.Target(lambda z: z[..., 0] * z[..., 1], length=2), 2)[0].contract([1, 1]).__round__(9)
        2.0
    """
    return HermiteSeries(target, order).tensors(order)


def activation_coefficients(
    activation: sympy.Expr | Callable[[Array], Array], order: int, scale: float = 1.0
) -> tuple[Array, Array]:
    """E[sigma(scale x) He_j(x)] for j = 0..order, x ~ N(0, 1), and absolute errors, both (order + 1,).

    Args:
        activation: a SymPy expression in ``INPUT``, or a function of arrays.
        order: highest order, at most 150.
        scale: factor of x.

    Raises:
        ValueError: a function that is not finite at a node or has no finite square mean.

    Example:
        >>> activation_coefficients(np.tanh, 3)[0].round(9).tolist()[1::2]
        [0.60570551, -0.363595376]
        >>> activation_coefficients(INPUT**2, 2, scale=2.0)[0].tolist()
        [4.0, 0.0, 8.0]
    """
    order = check.integer("order", order, 0, HIGHEST)
    scale = check.number("scale", scale)
    if isinstance(activation, sympy.Expr):
        polynomial = polynomial_of(activation.xreplace({INPUT: sympy.Rational(scale) * field(1)}))
        if polynomial is not None:
            return np.array(polynomial.taylor([1], order)[0]) * _factorials(order), np.zeros(order + 1)
    found = _activation(activation, order, scale)
    factors = np.sqrt(_factorials(order))
    return found[0] * factors, found[1] * factors


@lru_cache(maxsize=256)
def _activation(activation: Any, order: int, scale: float) -> tuple[Array, Array]:
    def function(x: Array) -> Array:
        if isinstance(activation, sympy.Expr):
            return evaluate_at(activation, {INPUT: scale * x})[None]
        return np.broadcast_to(np.asarray(activation(scale * x), dtype=np.float64), x.shape)[None]

    try:
        found = line_coefficients(function, order)
    except ValueError as error:
        raise ValueError(f"activation {error}") from None
    return found.values[0], found.errors[0]
