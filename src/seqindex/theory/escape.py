"""Flatness and escape order: what the Taylor series of the risk at the start says about leaving it.

The flatness index kappa of the paper (Proposition 1) is the lowest order of a derivative of the risk that does not
vanish at s = (m, e) = 0. It says how flat the start is, not whether the risk falls anywhere: a positive leading term
makes the start a minimum. The escape order is the lowest order at which the risk falls along some curve from the
start.

Where the Hessian is positive semidefinite with a kernel, its positive directions are eliminated as in the reduction
of a bifurcation: y_+(y_0) solves dR/dy_+ = 0 as a power series in the kernel's coordinates y_0, and the lowest term
of R_eff(y_0) = R(y_+(y_0), y_0) decides.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.order import Evidence, Order
from seqindex.theory.exponents import sequence_information_exponent
from seqindex.theory.never import constant, nothing
from seqindex.theory.origin import Exponents, TaylorSeries, product, taylor_series

Array = NDArray[np.float64]
Polynomial = dict[Exponents, float]

_TIMES = 1e3
"""A coefficient is not zero if it is so many times its error ..."""
_FLOOR = 1e-9
"""... and above this times the scale of the risk."""
_FLIP = " (SGD would leave it with the sign of the target, or of the learning rate, flipped)"
_USUAL, _HIGHEST = 8, 12
"""Orders of the series at the start that are looked at unless told otherwise, and at most."""
_ZERO = 1e-11
"""It is zero if it is below this times the scale and within 10 errors of zero."""


def flatness(problem: Problem, max_order: int | None = None) -> Order:
    """Flatness index kappa: the lowest order of a derivative of the risk in (m, e) that does not vanish at 0.

    Args:
        problem: target, student and loss.
        max_order: highest order looked at, at most 12; None for 8, or the target's exponent where that is higher.

    Returns:
        The order, with the largest coefficient of every order up to it as evidence; infinite where a finite series
        vanishes altogether; undecided where a coefficient is neither zero nor clearly different from it.

    Example:
        >>> target = sx.Target(lambda z: z[..., 0] * z[..., 1], length=2)
        >>> int(flatness(sx.Problem(target, sx.Attention(2, reduction="plain_trace"))))
        2
    """
    series = taylor_series(problem, _highest(problem, max_order))
    evidence: list[Evidence] = []
    for order in range(1, series.order + 1):
        found = _judge(series, order)
        evidence.append(found)
        if found.verdict == "not zero":
            reason = f"the derivatives of order {order} are the first that do not vanish at m = e = 0"
            return Order(order, (order,), tuple(evidence), reason)
        if found.verdict == "undecided":
            later = tuple(range(order, series.order + 1))
            reason = f"a derivative of order {order} is neither zero nor clearly different from it"
            return Order(None, later, tuple(evidence), reason)
    return nothing(problem, series, tuple(evidence))


def escape_order(problem: Problem, max_order: int | None = None) -> Order:
    """Lowest order at which the risk falls along some curve from m = e = 0, against the sign of the leading term.

    Args:
        problem: target, student and loss.
        max_order: highest order looked at, at most 12; None for 8, or the target's exponent where that is higher.

    Returns:
        The order, with ``direction`` (unit vector in (m, e) along which SGD leaves; where both signs of it do, the one
        whose first entry is positive) and ``coefficient`` (the derivative of that order along it); infinite with the
        reason where the start is a local minimum or nothing depends on the state.

    Example:
        >>> target = sx.Target(lambda z: z[..., 0] ** 2 + z[..., 1] ** 2, length=2)
        >>> order = escape_order(sx.Problem(target, sx.Attention(2, reduction="plain_trace")))
        >>> order.value, round(order.coefficient, 5)
        (2, -1.12783)
    """
    series = taylor_series(problem, _highest(problem, max_order))
    rank = problem.frame.rank
    evidence = []
    for order in range(1, series.order + 1):
        found = _judge(series, order)
        evidence.append(found)
        if found.verdict == "undecided":
            later = tuple(range(order, series.order + 1))
            reason = f"a derivative of order {order} is neither zero nor clearly different from it"
            return Order(None, later, tuple(evidence), reason)
        if found.verdict == "not zero":
            break
    else:
        return nothing(problem, series, tuple(evidence))
    lowest = len(evidence)
    if lowest == 2:
        return _from_hessian(problem, series, tuple(evidence))
    return _by_form(_chopped(series), np.eye(rank), lowest, series, tuple(evidence))


def _judge(series: TaylorSeries, order: int) -> Evidence:
    """Whether the homogeneous part of one order vanishes, by its largest coefficient."""
    part = series.of_order(order)
    verdict, worst = "zero", (0.0, 0.0, 0.0)
    for a, value in part.items():
        error = series.errors[a]
        if abs(value) > _TIMES * error and abs(value) > _FLOOR * series.scale:
            this = "not zero"
        elif abs(value) <= max(10.0 * error, 1e-300) and abs(value) < _ZERO * series.scale:
            this = "zero"
        else:
            this = "undecided"
        rank = ("zero", "undecided", "not zero").index
        times = float(math.prod(math.factorial(power) for power in a))  # the derivative, not the coefficient
        if rank(this) > rank(verdict) or (this == verdict and times * abs(value) > abs(worst[0])):
            verdict, worst = this, (times * value, times * error, times * _FLOOR * series.scale)
    return Evidence(order, *worst, verdict, exact=not part)


def _chopped(series: TaylorSeries) -> Polynomial:
    """The series without the coefficients that are zero within their errors."""
    return {a: c for a, c in series.coefficients.items() if abs(c) > max(10.0 * series.errors[a], _ZERO * series.scale)}


def _highest(problem: Problem, max_order: int | None) -> int:
    if max_order is not None:
        return check.integer("max_order", max_order, 1, _HIGHEST)
    value = sequence_information_exponent(problem.target).value
    return _USUAL if value is None or value > _HIGHEST else max(_USUAL, int(value))


def _from_hessian(problem: Problem, series: TaylorSeries, evidence: tuple[Evidence, ...]) -> Order:
    rank = problem.frame.rank
    hessian = np.zeros((rank, rank))
    slack = 0.0
    for a, c in series.of_order(2).items():
        axes = [axis for axis, power in enumerate(a) for _ in range(power)]
        hessian[axes[0], axes[1]] += c
        hessian[axes[1], axes[0]] += c
        slack += 2.0 * series.errors[a]
    values, vectors = np.linalg.eigh(hessian)
    threshold = max(_TIMES * slack, _FLOOR * series.scale)
    if values[0] < -threshold:
        direction = _oriented(vectors[:, 0])
        return Order(
            2,
            (2,),
            evidence,
            "the Hessian has a negative eigenvalue",
            direction=direction,
            coefficient=float(values[0]),
        )
    flat = np.abs(values) <= threshold
    if not flat.any():
        reason = "the Hessian is positive definite: the start is a local minimum" + _FLIP
        return Order(math.inf, (), evidence, reason, coefficient=float(values[0]))
    # Kernel first, then the positive directions.
    basis = np.column_stack([vectors[:, flat], vectors[:, ~flat]])
    kernel = int(flat.sum())
    effective = _eliminated(_rotated(_chopped(series), basis, series.order), values[~flat], kernel, series.order)
    tolerance = 1e-8 * series.scale
    for order in range(3, series.order + 1):
        if any(sum(a) == order and abs(c) > tolerance for a, c in effective.items()):
            return _by_form(effective, basis[:, :kernel], order, series, evidence)
    if kernel == 1 and abs(basis[0, 0]) > 1.0 - 1e-9 and constant(problem.target):
        reason = "the target does not depend on its fields, so the risk not on m; along the encoding it has a minimum"
        return Order(math.inf, (), evidence, reason)
    reason = f"the Hessian is positive semidefinite and nothing up to order {series.order} decides along its kernel"
    return Order(None, tuple(range(series.order + 1, series.order + 3)), evidence, reason)


def _rotated(polynomial: Polynomial, basis: Array, order: int) -> Polynomial:
    """The polynomial in y, s = basis @ y."""
    rank = len(basis)
    unit = [tuple(int(i == j) for j in range(rank)) for i in range(rank)]
    forms = [{unit[j]: float(x) for j, x in enumerate(row) if abs(x) > 1e-14} for row in basis]
    result: Polynomial = {}
    for a, c in polynomial.items():
        term: Polynomial = {(0,) * rank: c}
        for axis, power in enumerate(a):
            for _ in range(power):
                term = product(term, forms[axis], order)
        for key, value in term.items():
            result[key] = result.get(key, 0.0) + value
    return result


def _eliminated(polynomial: Polynomial, curvatures: Array, kernel: int, order: int) -> Polynomial:
    """R_eff in the kernel's coordinates: the positive ones solve dR/dy_+ = 0 as power series.

    Args:
        polynomial: the risk in (kernel, positive) coordinates.
        curvatures: eigenvalues of the positive ones.
        kernel: number of kernel coordinates.
        order: truncation.
    """
    positive = len(curvatures)
    follow: list[Polynomial] = [{} for _ in range(positive)]
    for _ in range(order):  # each turn fixes one more order
        follow = [
            {
                a: -c / curvatures[i]
                for a, c in _composed(_rest_of_gradient(polynomial, kernel + i), follow, kernel, order).items()
            }
            for i in range(positive)
        ]
    return _composed(polynomial, follow, kernel, order)


def _rest_of_gradient(polynomial: Polynomial, axis: int) -> Polynomial:
    """dR/dy_axis without its linear term in y_axis."""
    result: Polynomial = {}
    for a, c in polynomial.items():
        if a[axis] == 0 or (a[axis] == 2 and sum(a) == 2):
            continue
        key = tuple(power - int(i == axis) for i, power in enumerate(a))
        result[key] = result.get(key, 0.0) + a[axis] * c
    return result


def _composed(polynomial: Polynomial, follow: list[Polynomial], kernel: int, order: int) -> Polynomial:
    """The polynomial with its coordinates beyond the kernel replaced by polynomials in the kernel's."""
    result: Polynomial = {}
    for a, c in polynomial.items():
        term: Polynomial = {a[:kernel]: c}
        for series, power in zip(follow, a[kernel:], strict=True):
            for _ in range(power):
                term = product(term, series, order)
        for key, value in term.items():
            result[key] = result.get(key, 0.0) + value
    return result


def _by_form(
    polynomial: Polynomial, basis: Array, order: int, series: TaylorSeries, evidence: tuple[Evidence, ...]
) -> Order:
    """Decide by the sign of a homogeneous form in the coordinates along the columns of ``basis``."""
    form = {a: c for a, c in polynomial.items() if sum(a) == order}
    size = max(abs(c) for c in form.values())
    points = _sphere(basis.shape[1])
    values = sum(c * np.prod(points ** np.array(a), axis=1) for a, c in form.items())
    best = int(np.argmin(values))
    lowest, highest = float(values[best]), float(np.max(values))
    factor = float(math.factorial(order))
    if lowest < -1e-6 * size:
        direction = basis @ points[best]
        if order % 2 == 0:
            direction = _oriented(direction)
        along = "" if order % 2 == 0 else ", from one side only"
        reason = f"the leading term is of order {order} and negative along a direction{along}"
        return Order(order, (order,), evidence, reason, direction=direction, coefficient=factor * lowest)
    if lowest > 1e-6 * size:
        reason = f"the leading term, of order {order}, is positive: the start is a local minimum" + _FLIP
        return Order(math.inf, (), evidence, reason, coefficient=factor * lowest)
    later = tuple(range(order + 1, series.order + 1))
    reason = f"the leading form, of order {order}, is positive except along directions on which it vanishes"
    return Order(None, later, evidence, reason, coefficient=factor * highest)


def _sphere(dimension: int) -> Array:
    """Directions that resolve a form of low degree."""
    if dimension == 1:
        return np.array([[1.0], [-1.0]])
    if dimension == 2:
        angle = 2.0 * np.pi * np.arange(7200) / 7200
        return np.column_stack([np.cos(angle), np.sin(angle)])
    points = np.random.default_rng(0).standard_normal((200_000, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def _oriented(direction: Array) -> Array:
    """The one of +-direction whose first clearly non-zero entry is positive."""
    kept = np.where(np.abs(direction) < 1e-12, 0.0, direction)
    first = kept[np.argmax(kept != 0.0)]
    return np.asarray(kept * (1.0 if first >= 0 else -1.0) + 0.0)
