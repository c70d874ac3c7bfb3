"""Taylor series of the population risk at the start of the dynamics, s = (m, e) = 0.

With normalised Hermite coefficients g_beta = E[g h_beta], f_gamma and b_gamma those of f and |f|^2 at zero shift, the
risk at overlap m and shifts t of the fields is, order by order,

    R(m, t) = const + sum_alpha t^alpha b_alpha / sqrt(alpha!)
              - 2 sum_{alpha, beta} m^|beta| t^alpha g_beta.f_{beta + alpha} sqrt((beta + alpha)! / beta!) / alpha!,

and the shifts are linear in s, t = Q s: a polynomial in s whose lowest terms decide how SGD leaves the origin.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from seqindex.model.problem import Problem
from seqindex.theory.risk import PopulationRisk

Array = NDArray[np.float64]
Exponents = tuple[int, ...]


@dataclass(frozen=True)
class TaylorSeries:
    """Coefficients of s^a by exponents a = (power of m, powers of e), with their absolute errors.

    Attributes:
        order: total order up to which all terms are held.
        coefficients: by exponents; terms that vanish identically are left out.
        errors: by the same exponents.
        scale: size of the risk, against which zero is judged.
    """

    order: int
    coefficients: dict[Exponents, float]
    errors: dict[Exponents, float]
    scale: float

    def of_order(self, order: int) -> dict[Exponents, float]:
        """The homogeneous part of one total order."""
        return {a: c for a, c in self.coefficients.items() if sum(a) == order}


@runtime_checkable
class Expanded(Protocol):
    """An engine of the risk that knows Hermite coefficients at s = 0.

    Attributes:
        directions: the p combinations of the fields that it expands in, orthonormal rows (p, L).
        scale: size of the risk.
    """

    directions: Array
    scale: float

    def origin(self, order: int) -> list[tuple[Array, Array, Array]]:
        """Normalised coefficients of g (k, n, ..., n), of f (the same) and of |f|^2 (n, ..., n).

        They come twice: the second set, on a coarser grid, shows the error of the first.
        """
        ...


@lru_cache(maxsize=32)
def taylor_series(problem: Problem, order: int = 8) -> TaylorSeries:
    """Taylor series of the risk in s = (m, e) at 0.

    Short sequences and students of one combination of the fields are expanded to the given order; others (the norm
    loss, attention beyond length 4) by the gradient and the Hessian of the risk, to order 2.

    Args:
        problem: target, student and loss.
        order: highest total order.

    Example:
        >>> target = sx.Target(lambda z: z[..., 0] ** 2 + z[..., 1] ** 2, length=2)
        >>> series = taylor_series(sx.Problem(target, sx.Attention(2, reduction="plain_trace")), order=4)
        >>> round(2 * series.coefficients[(2,)], 6)  # R_mm
        -1.127827
    """
    engine = PopulationRisk(problem).engine
    if isinstance(engine, Expanded):
        return _from_coefficients(problem, engine, order)
    return _from_derivatives(problem)


def _from_derivatives(problem: Problem) -> TaylorSeries:
    risk = PopulationRisk(problem)
    rank = problem.frame.rank
    zeros = np.zeros(rank - 1) if rank > 2 else 0.0 if rank == 2 else None
    coefficients: dict[Exponents, float] = {}
    errors: dict[Exponents, float] = {}
    unit = np.eye(rank, dtype=int)
    gradient, slack = risk.gradient(0.0, zeros), risk.error(0.0, zeros, of="gradient")
    hessian, spread = risk.hessian(0.0, zeros), risk.error(0.0, zeros, of="hessian")
    for i in range(rank):
        coefficients[tuple(unit[i])], errors[tuple(unit[i])] = float(gradient[i]), float(slack[i])
        for j in range(i, rank):
            key, share = tuple(unit[i] + unit[j]), 0.5 if i == j else 1.0
            coefficients[key], errors[key] = share * float(hessian[i, j]), share * float(spread[i, j])
    return TaylorSeries(2, coefficients, errors, 1.0 + abs(float(risk(0.0, zeros))))


def _from_coefficients(problem: Problem, engine: Expanded, order: int) -> TaylorSeries:
    fine, coarse = engine.origin(order)
    shifts = engine.directions @ problem.frame.positions  # t = shifts @ s
    values = _substituted(_local_terms(*fine, order), shifts, order)
    others = _substituted(_local_terms(*coarse, order), shifts, order)
    scale = 1.0 + engine.scale
    errors = {
        a: 2.0 * abs(values[a] - others.get(a, 0.0)) + 1e-15 * scale * math.sqrt(math.factorial(sum(a))) for a in values
    }
    return TaylorSeries(order, values, errors, scale)


def _local_terms(g: Array, f: Array, b: Array, order: int) -> dict[tuple[int, Exponents], float]:
    """Coefficients of m^j t^alpha from those of g (k, n, ..., n), f (the same) and |f|^2 (n, ..., n)."""
    axes = g.ndim - 1
    terms: dict[tuple[int, Exponents], float] = {}
    indices = [a for a in itertools.product(range(order + 1), repeat=axes) if sum(a) <= order]
    for alpha in indices:
        if sum(alpha) > 0:
            terms[0, alpha] = float(b[alpha]) / math.sqrt(_factorial(alpha))
    for beta in indices:
        label = _entry(g, beta)
        if not label.any():
            continue
        for alpha in indices:
            total = sum(alpha) + sum(beta)
            if not 0 < total <= order:
                continue
            both = tuple(x + y for x, y in zip(alpha, beta, strict=True))
            weight = math.sqrt(_factorial(both) / _factorial(beta)) / _factorial(alpha)
            key = (sum(beta), alpha)
            terms[key] = terms.get(key, 0.0) - 2.0 * weight * float(label @ _entry(f, both))
    return terms


def _entry(coefficients: Array, alpha: Exponents) -> Array:
    """One coefficient of every output, (k,)."""
    index: tuple[Any, ...] = (slice(None), *alpha)
    return np.asarray(coefficients[index])


def _factorial(alpha: Exponents) -> int:
    return math.prod(math.factorial(x) for x in alpha)


def _substituted(terms: dict[tuple[int, Exponents], float], shifts: Array, order: int) -> dict[Exponents, float]:
    """The polynomial in s, after t = shifts @ s, with m = s_0."""
    rank = shifts.shape[1]
    unit = [tuple(int(i == j) for j in range(rank)) for i in range(rank)]
    linear = [{unit[i]: float(x) for i, x in enumerate(row) if x != 0.0} for row in shifts]
    powers: dict[tuple[int, int], dict[Exponents, float]] = {}
    for axis, form in enumerate(linear):
        powers[axis, 0] = {(0,) * rank: 1.0}
        for power in range(1, order + 1):
            powers[axis, power] = product(powers[axis, power - 1], form)
    result: dict[Exponents, float] = {}
    for (j, alpha), value in terms.items():
        monomial: dict[Exponents, float] = {(j, *(0,) * (rank - 1)): value}
        for axis, power in enumerate(alpha):
            if power and monomial:
                monomial = product(monomial, powers[axis, power])
        for a, c in monomial.items():
            result[a] = result.get(a, 0.0) + c
    return result


def product(p: dict[Exponents, float], q: dict[Exponents, float], order: int | None = None) -> dict[Exponents, float]:
    """Product of two polynomials, without the terms beyond ``order``."""
    result: dict[Exponents, float] = {}
    for (a, x), (b, y) in itertools.product(p.items(), q.items()):
        key = tuple(i + j for i, j in zip(a, b, strict=True))
        if order is None or sum(key) <= order:
            result[key] = result.get(key, 0.0) + x * y
    return result
