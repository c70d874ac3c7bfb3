"""Learning rates of tied and untied networks: the largest that recovers, the one that needs fewest steps, the paper's.

With one weight vector for all positions, dm/dt = a m^{k-1} - (gamma / 2) V m from the start on, so that it must be

    gamma < 2 a / (V eta) (k = 1),   2 a / V (k = 2),   2 a m_0^{k-2} / V (k >= 3),

eta the threshold, m_0 the overlap at the start, a = 2 c_k L^{-k/2} <C_k, 1^{(x) k}> / (k - 1)! for the tied network.
Rows m = r sqrt(L) q, |q| = 1, feel 1/L of the gradient and of V that a tied network of weights sqrt(L) q feels,

    dr/dt = (1/L) (2 c_k <C_k, q^{(x) k}> / (k - 1)! r^{k-1} - (gamma / 2) V r),

so that the untied network is this tied one slowed by L and has its rates.  Of all q the one of the largest
<C_k, q^{(x) k}> grows fastest.

For k >= 3 this is the flow from the median start.  The noise of single steps spreads the overlaps more than the start
does, to a variance D / (V d) with D = E (z*.c)^2, and carries runs over the barrier: rates well above these recover
too, and faster.  Measured for -He3 / sqrt(6), tanh, d = 1600, threshold 0.5: the fewest steps, 1.0e6 against 1.8e7 of
the flow, at 9.7 [7.0, 11.7] times "largest"; see ``measured_best_rate``.

The paper's bounds are C L^{-k/2} |<C_k, 1^{(x) k}>| and C L^{-k/2} ||C_k|| (appendix E): the second leaves out the 1/L
of the noise, a factor sqrt(L) at k = 1 and L beyond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from seqindex.model.problem import Problem
from seqindex.model.rows import Rows
from seqindex.model.tied import TiedNetwork
from seqindex.theory.exponents import FLOOR, TIMES, sequence_information_exponent
from seqindex.theory.hermite_series import HermiteSeries, activation_coefficients
from seqindex.theory.recovery import predicted_recovery

Array = NDArray[np.float64]

_HIGHEST = 8
"""Highest order at which an activation that does not see C_SIE is asked for the next ones."""


@dataclass(frozen=True)
class Rates:
    """Learning rates for a random start, as the theory has them.

    Attributes:
        order: the order k at which SGD leaves the start; None where it does not.
        largest: rate beyond which the noise keeps SGD at the start (for k = 1: below the threshold).
        best: rate that needs fewest steps.
        paper: the largest rate by the paper's formula, its constant C chosen so that it is right for a tied network.
        power: the power of the dimension d that these grow with, 0 for k <= 2 and 1 - k/2 beyond.
        direction: unit vector q of the rows' overlaps on which the untied network leaves; None for one weight vector.
        reason: a sentence.
    """

    order: int | None
    largest: float | None
    best: float | None
    paper: float | None
    power: float | None
    direction: Array | None
    reason: str


def predicted_rates(problem: Problem, dim: int, threshold: float = 0.2) -> Rates:
    """Largest and best learning rates for recovery from a random start, with constants.

    Args:
        problem: any student with one weight vector, or an untied network under the square loss.
        dim: dimension d.
        threshold: size of the overlap at which a run counts as recovered, in (0, 1).

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> target = sx.Target("sum(He2(z))/sqrt(2)", length=4)
        >>> for student in (sx.TiedNetwork(4), sx.UntiedNetwork(4)):  # gamma_c = (2 / sqrt(pi)) / (L + 1) for both
        ...     rates = predicted_rates(sx.Problem(target, student), dim=1000, threshold=0.5)
        ...     print(round(rates.largest, 5), round(rates.best, 1), round(rates.paper, 5))
        0.22568 0.1 0.22568
        0.22568 0.1 0.05642
    """
    if isinstance(problem.student.frame, Rows):
        return _untied(problem, dim, threshold)
    return _shared(problem, dim, threshold)


def _shared(problem: Problem, dim: int, threshold: float) -> Rates:
    """One weight vector for all positions."""
    found = predicted_recovery(problem, dim, threshold=threshold)
    if found.largest_rate is None:
        return Rates(None, None, None, None, None, None, found.reason)
    k, largest = int(found.order), found.largest_rate
    best = _fewest(problem, dim, threshold, largest)
    power = min(0.0, 1.0 - 0.5 * k)
    reason = "rates do not depend on the dimension" if power == 0.0 else f"rates fall like d^{power:g}"
    return Rates(k, largest, best, largest, power, None, reason)


def _fewest(problem: Problem, dim: int, threshold: float, largest: float) -> float:
    """The rate at which the predicted number of steps is least."""

    def steps(share: float) -> float:
        found = predicted_recovery(problem, dim, share * largest, threshold).steps
        return 1e3 + share if found is None or found <= 0.0 else math.log(found)

    return float(minimize_scalar(steps, bounds=(0.02, 1.0), method="bounded", options={"xatol": 5e-3}).x) * largest


def _untied(problem: Problem, dim: int, threshold: float) -> Rates:
    """The tied network whose weights are along the fastest direction of the rows, slowed by L."""
    if problem.loss.name != "square":
        raise ValueError(f"loss must be 'square' for the rates of an untied network, got {problem.loss.name!r}")
    found = _fastest(problem)
    if isinstance(found, str):
        return Rates(None, None, None, None, None, None, found)
    k, direction, opposed = found
    length, core = problem.length, _core(problem)
    student = TiedNetwork(length, core.activation, math.sqrt(length) * direction)
    twin = _shared(Problem(problem.target, student), dim, threshold)
    if twin.order != k or twin.largest is None or twin.best is None:
        return Rates(
            None, None, None, None, None, direction, f"along the fastest direction of order {k}: {twin.reason}"
        )
    # At the start q.m is as large as the overlap of one vector, so r = q.m / sqrt(L) is smaller.
    start = length ** min(0.0, 1.0 - 0.5 * k)
    paper = twin.largest * opposed * length ** (-0.5 * k)
    reason = f"{twin.reason}; the paper's formula misses a factor {twin.largest * start / paper:.4g}"
    return Rates(k, start * twin.largest, start * twin.best, paper, twin.power, direction, reason)


def _core(problem: Problem) -> TiedNetwork:
    """sigma(u) of an untied network as a student of one field."""
    core = problem.student.core
    assert isinstance(core, TiedNetwork)
    return core


def _fastest(problem: Problem) -> tuple[int, Array, float] | str:
    """The lowest order k with c_k and C_k not zero, and the unit q of the largest c_k <C_k, q^k>; or why there is none.

    Last ||C_k|| over that of the right sign: 1, or more for even k where the largest entries push the wrong way.
    """
    order = sequence_information_exponent(problem.target)
    if order.value is None or math.isinf(order.value):
        return order.reason
    first = int(order)
    highest = max(first, _HIGHEST)
    series = HermiteSeries(problem.target, highest)
    c, errors = activation_coefficients(_core(problem).activation.expression, highest)
    sizes = np.abs(c) / np.sqrt([math.factorial(j) for j in range(highest + 1)])
    for k in range(first, highest + 1):
        if abs(c[k]) <= TIMES * errors[k] or sizes[k] <= FLOOR * sizes.max():
            continue
        (tensor,) = series.tensors(k)
        if tensor.frobenius_norm <= max(TIMES * tensor.error, FLOOR):
            continue
        value, q = tensor.steepest(math.copysign(1.0, c[k]))
        if value > 0.0:
            return k, q, tensor.operator_norm() / value
        return f"the risk rises at order {k} in every direction of the rows' overlaps, or does not fall"
    return f"no Hermite coefficient up to order {highest} is one of the target and of the activation"
