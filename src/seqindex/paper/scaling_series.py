"""The problems, starts and rates with which Theorem 1 is measured, one tied neuron each.

SIE 1 and 2 start at random; SIE 3 and 4 at an overlap of a few d^{-1/2} of the right sign, at a fixed share of the rate
at which the noise outweighs the pull there, which falls like d^{1 - SIE/2}.  For SIE 2 two schedules are compared: a
constant rate below gamma_c, and the paper's, proportional to 1 / log d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from seqindex.model.problem import Problem
from seqindex.paper.networks import tied
from seqindex.sgd.start import Start
from seqindex.theory.recovery import predicted_recovery

_CRITICAL = 1.0 / math.sqrt(math.pi)
"""gamma_c = K / (L + 1) of the SIE 2 problem, K = 2 / sqrt(pi)."""


@dataclass(frozen=True)
class Series:
    """One curve: a problem, the start and the rate at each dimension, and the exponent that Theorem 1 gives.

    ``horizon`` and ``replicas`` are functions of the dimension; few replicas suffice where the law is narrow.
    """

    sie: int
    label: str
    problem: Problem
    threshold: float
    start: Callable[[int], Start]
    rate: Callable[[int], float]
    horizon: Callable[[int], float]
    replicas: Callable[[int], int]


def _ahead(multiple: float) -> Callable[[int], Start]:
    return lambda dim: Start.overlaps(m=multiple / math.sqrt(dim))


def _prescribed(problem: Problem, start: Callable[[int], Start], share: float) -> Callable[[int], float]:
    """A share of the rate at which the noise outweighs the pull at the start."""

    def rate(dim: int) -> float:
        largest = predicted_recovery(problem, dim, threshold=0.5, start=start(dim)).largest_rate
        assert largest is not None
        return share * largest

    return rate


def all_series() -> dict[str, Series]:
    """By name, in the order of the figure."""
    first, second = tied("z1", 1), tied("He2(z1)/sqrt(2)", 1)
    third, fourth = tied("-He3(z1)/sqrt(6)", 1, "tanh"), tied("h4(z1)", 1, "h4")

    def random(dim: int) -> Start:
        return Start.random()

    def many(dim: int) -> int:
        return 1024 if dim <= 10**4 else 256 if dim <= 10**5 else 64

    return {
        "SIE 1": Series(1, "rate 1/4", first, 0.5, random, lambda d: 0.25, lambda d: 50.0 * d, lambda d: 256),
        "SIE 2": Series(
            2,
            r"constant rate $\gamma_c/4$",
            second,
            0.5,
            random,
            lambda d: _CRITICAL / 4.0,
            lambda d: 60.0 * d * math.log(d),
            many,
        ),
        "SIE 2, schedule": Series(
            2,
            r"rate $\propto 1/\log d$",
            second,
            0.5,
            random,
            lambda d: _CRITICAL / 2.0 * math.log(100.0) / math.log(d),
            lambda d: 15.0 * d * math.log(d) ** 2,
            many,
        ),
        "SIE 3": Series(
            3,
            r"$m_0 = 3\,d^{-1/2}$, rate $\propto d^{-1/2}$",
            third,
            0.8,
            _ahead(3.0),
            _prescribed(third, _ahead(3.0), 0.5),
            lambda d: 0.8 * d**2,
            lambda d: 256 if d <= 3000 else 64,
        ),
        "SIE 4": Series(
            4,
            r"$m_0 = 2\,d^{-1/2}$, rate $\propto d^{-1}$",
            fourth,
            0.7,
            _ahead(2.0),
            _prescribed(fourth, _ahead(2.0), 0.5),
            lambda d: 4.8 * d**3,
            lambda d: 256 if d <= 100 else 64,
        ),
    }
