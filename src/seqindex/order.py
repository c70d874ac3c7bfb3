"""The answer to "at which order": a number, the evidence for it, and what stays undecided."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Evidence:
    """What was found at one order.

    Attributes:
        order: the order k.
        coefficient: the coefficient of largest size there.
        error: its absolute error; 0 where it is exact.
        tolerance: what a coefficient must exceed to count as not zero; 0 where it is exact.
        verdict: "zero", "not zero" or "undecided".
        exact: whether this was decided in exact arithmetic.
    """

    order: int
    coefficient: float
    error: float
    tolerance: float
    verdict: str
    exact: bool

    def __str__(self) -> str:
        number = f"{self.coefficient:.10g}" + ("" if self.exact else f" +- {self.error:.1g}")
        return f"order {self.order}: {self.verdict} ({number}{', exact' if self.exact else ''})"


@dataclass(frozen=True, eq=False, repr=False)
class Order:
    """An order: of the first Hermite tensor, of the first derivative, or of the escape from the origin.

    Attributes:
        value: the order, math.inf where there is none, None where it is undecided.
        candidates: the orders that are possible, ``(value,)`` where it is decided.
        evidence: one record an order that was looked at.
        reason: why, in a sentence.
        direction: direction of the escape, None where it means nothing.
        coefficient: leading coefficient, None where it means nothing.

    Raises:
        ValueError: ``int(order)`` of an order that is infinite or undecided.

    Example:
        >>> order = Order(2, (2,), (), "C_2 is not zero")
        >>> int(order)
        2
        >>> print(Order(None, (3, 4), (), "C_3 may vanish"))
        undecided between 3 and 4: C_3 may vanish
    """

    value: int | float | None
    candidates: tuple[int | float, ...]
    evidence: tuple[Evidence, ...]
    reason: str
    direction: NDArray[np.float64] | None = None
    coefficient: float | None = None

    def __int__(self) -> int:
        if self.value is None or math.isinf(self.value):
            raise ValueError(f"order must be decided and finite to be an integer, got {self}")
        return int(self.value)

    def __str__(self) -> str:
        return f"{self._head()}: {self.reason}"

    def __repr__(self) -> str:
        return f"Order({self._head()}: {self.reason})"

    def _head(self) -> str:
        if self.value is not None:
            return "infinite" if math.isinf(self.value) else f"{self.value}"
        if len(self.candidates) < 2:
            return "undecided"
        *first, last = (f"{order}" for order in self.candidates)
        return f"undecided between {', '.join(first)} and {last}"
