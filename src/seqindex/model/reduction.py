"""Linear reductions of the L x L attention matrix: f_k = sum_ij R_{k,ij} S_ij."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check


class Reduction:
    """Any linear map of the attention matrix.

    Args:
        coefficients: R, shape (k, L, L); subclasses may derive it from the length instead.

    Raises:
        TypeError: coefficients that are no array of real numbers.
        ValueError: a wrong shape, or an entry that is not finite.

    Example:
        >>> Reduction(np.ones((1, 2, 2))).coefficients(2).shape
        (1, 2, 2)
    """

    def __init__(self, coefficients: ArrayLike) -> None:
        self._coefficients = check.array("coefficients", coefficients, (None, None, None))
        if 0 in self._coefficients.shape or self._coefficients.shape[1] != self._coefficients.shape[2]:
            raise ValueError(f"coefficients must have shape (k, L, L), got {self._coefficients.shape}")

    def coefficients(self, length: int) -> NDArray[np.float64]:
        """Coefficients R at sequence length L, shape (k, L, L).

        Raises:
            ValueError: the coefficients are made for another length.
        """
        return check.array("coefficients", self._coefficients, (None, length, length))

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {"coefficients": self._coefficients.tolist()}


class Identity(Reduction):
    """The whole matrix, k = L^2 outputs in row-major order (the paper, section 4)."""

    def __init__(self) -> None:
        """Take no argument: the coefficients follow from the length."""

    def coefficients(self, length: int) -> NDArray[np.float64]:
        """Unit matrices, shape (L^2, L, L)."""
        return np.eye(length * length).reshape(-1, length, length)

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {"name": "identity"}


class PlainTrace(Identity):
    """Tr S, as the paper writes it."""

    def coefficients(self, length: int) -> NDArray[np.float64]:
        """Identity matrix, shape (1, L, L)."""
        return np.eye(length)[None]

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {"name": "plain_trace"}


class Trace(Identity):
    """L^{-1/2} Tr S, as the released code of the paper has it."""

    def coefficients(self, length: int) -> NDArray[np.float64]:
        """Identity matrix over sqrt(L), shape (1, L, L)."""
        return np.eye(length)[None] / math.sqrt(length)

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {"name": "trace"}


class Projection(Reduction):
    """a_left^T S a_right.

    Args:
        a_left: (L,) weights of the rows.
        a_right: (L,) weights of the columns.

    Raises:
        TypeError: weights that are no array of real numbers.
        ValueError: lengths that disagree, or an entry that is not finite.

    Example:
        >>> Projection([1, 0], [0, 1]).coefficients(2).tolist()
        [[[0.0, 1.0], [0.0, 0.0]]]
    """

    def __init__(self, a_left: ArrayLike, a_right: ArrayLike) -> None:
        left = check.array("a_left", a_left, (None,))
        right = check.array("a_right", a_right, (len(left),))
        super().__init__(np.outer(left, right)[None])


REDUCTIONS: dict[str, Callable[[], Reduction]] = {"identity": Identity, "trace": Trace, "plain_trace": PlainTrace}
"""Reductions that have a short name."""


def as_reduction(value: str | Reduction) -> Reduction:
    """The reduction that a short name stands for; a ``Reduction`` stays as it is."""
    if isinstance(value, Reduction):
        return value
    return REDUCTIONS[check.choice("reduction", value, REDUCTIONS)]()


def from_spec(spec: dict[str, Any]) -> Reduction:
    """Inverse of ``Reduction.spec``."""
    return as_reduction(spec["name"]) if "name" in spec else Reduction(spec["coefficients"])
