"""Why no derivative of the risk differs from zero at the start: what can be proved and what stays open."""

from __future__ import annotations

import itertools
import math

import numpy as np

from seqindex.model.problem import Problem, TargetLike
from seqindex.order import Evidence, Order
from seqindex.theory.hermite_series import HermiteSeries
from seqindex.theory.origin import TaylorSeries

_SWAPS = 200
"""Exchanges of two positions that are tried."""


def nothing(problem: Problem, series: TaylorSeries, evidence: tuple[Evidence, ...]) -> Order:
    """The verdict where every derivative up to the order of the series vanishes.

    Infinite where a symmetry or the degree of the target shows that all the others vanish too, else undecided.
    """
    reason = None if problem.frame.rank > 1 else _proof(problem, series.order)
    so_far = f"no derivative up to order {series.order} differs from zero at m = e = 0"
    if reason is None:
        return Order(None, (series.order + 1,), evidence, f"{so_far}; higher ones were not looked at")
    return Order(math.inf, (), evidence, f"{so_far}, nor does any other: {reason}")


def constant(target: TargetLike) -> bool:
    """Whether a target is the same for all fields.

    Example:
        >>> constant(sx.PositionalSemanticTarget(1.0, alignment=0.5)), constant(sx.Target("z1", 1))
        (True, False)
    """
    labels = target(np.random.default_rng(0).standard_normal((64, target.length)))
    return bool(np.ptp(labels, axis=0).max() == 0.0)


def _proof(problem: Problem, order: int) -> str | None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((64, problem.length))
    offset = problem.frame.injection

    def label(z: np.ndarray) -> np.ndarray:
        return problem.target(z)

    def output(z: np.ndarray) -> np.ndarray:
        return problem.student(z + offset)

    def same(a: np.ndarray, b: np.ndarray) -> bool:
        return bool(np.allclose(a, b, rtol=1e-11, atol=1e-11))

    if same(output(z), output(-z)) and same(label(-z), -label(z)):
        return "the student is even in its fields and the target odd, so the odd orders that it needs are missing"
    pairs = itertools.islice(itertools.combinations(range(problem.length), 2), _SWAPS)
    for i, j in pairs:
        swapped = z.copy()
        swapped[:, [i, j]] = z[:, [j, i]]
        if same(output(z), output(swapped)) and same(label(swapped), -label(z)):
            return f"exchanging positions {i + 1} and {j + 1} changes the sign of the target but not the student"
        both = z.copy()
        both[:, [i, j]] = -z[:, [j, i]]
        if same(output(z), output(both)) and same(label(both), -label(z)):
            return (
                f"exchanging positions {i + 1} and {j + 1} with a change of sign flips the target but not the student"
            )
    found = HermiteSeries(problem.target, 0)
    if found.exact and found.degree <= order:
        return f"the target is a polynomial of degree {found.degree}, orthogonal to the student order by order"
    return None
