"""Boundaries between the phases of the positional-semantic model (the paper, section 4 and figure 4)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seqindex import check
from seqindex.model.encoding import Encoding, OppositeEncoding
from seqindex.model.loss import LOSSES
from seqindex.model.target import pair_alignment, row_stochastic
from seqindex.theory.corner_integrals import Integrals
from seqindex.theory.phase_norm import NormConditions
from seqindex.theory.phase_square import SquareConditions

KINDS = ("steepest", "equal_risk", "semantic", "positional")
"""Boundaries by name."""


@lru_cache(maxsize=4)
def _integrals(length: int, flat: tuple[float, ...], coarse: bool) -> Integrals:
    return Integrals(np.array(flat).reshape(length, -1), coarse=coarse)


def integrals_of(encoding: Encoding, coarse: bool = False) -> Integrals:
    """Integrals of an encoding, kept for the last few encodings."""
    return _integrals(encoding.length, tuple(encoding.matrix.ravel().tolist()), coarse)


def phase_boundary(
    kind: str,
    alignment: float = 1.0,
    alignment_matrix: ArrayLike | None = None,
    loss: str = "square",
    encoding: Encoding | None = None,
) -> float:
    """The weight omega of the positional part at which a property of the risk changes (the paper, section 4).

    - "steepest": the direction of steepest descent at the origin switches from m (below) to e (above);
    - "equal_risk": the semantic point m = 1 and the positional point |e| = 1 have the same risk, whether or not they
      are minima there, so that this marks a transition only between "positional" and "semantic";
    - "semantic": the semantic point stops being a local minimum of the unit ball (it is one below);
    - "positional": the positional point becomes one (it is one above).

    With several encoding directions, "steepest" compares m with the fastest of them and the positional point is the
    e of norm 1 with the lowest risk at m = 0.  Where there are several roots the smallest one is returned.

    Args:
        kind: one of the four names above.
        alignment: a of the paper's A = softmax([[a^2, -a^2], [-a^2, a^2]]); not used where ``alignment_matrix`` is
            given.
        alignment_matrix: any row-stochastic (L, L) matrix A.
        loss: "square", or "norm" for the un-squared Frobenius norm of the paper's released runs (length 2 and one
            encoding direction).
        encoding: positional encoding orthogonal to w*; None for P_1 = -P_2, at length 2 only.

    Returns:
        omega in [0, 1], or NaN where the root lies outside.  Accuracy for the squared loss: about 1e-12 at length 2,
        1e-8 at length 3, 1e-6 at length 4, 1e-3 beyond; for the norm about 3e-5, and 1e-9 for "semantic".

    Raises:
        ValueError: an unknown name, a matrix that is not row-stochastic, lengths that disagree, or an encoding that
            is not orthogonal to w*.
        TypeError: an argument of the wrong type.

    Example:
        >>> round(phase_boundary("steepest", alignment=1.0), 10)
        0.6409626179
        >>> phase_boundary("steepest", alignment=0.5)
        nan
    """
    kind = check.choice("kind", kind, KINDS)
    loss = check.choice("loss", loss, LOSSES)
    if alignment_matrix is None:
        matrix = pair_alignment(check.number("alignment", alignment))
    else:
        matrix = row_stochastic("alignment_matrix", alignment_matrix)
    encoding = _checked_encoding(encoding, len(matrix))
    if loss == "norm":
        if encoding.matrix.shape != (2, 1):
            raise ValueError(
                "loss='norm' needs length 2 and one encoding direction, got an encoding of shape "
                f"{encoding.matrix.shape}; use loss='square'"
            )
        return NormConditions(encoding.matrix[:, 0], matrix).solve(kind)
    if encoding.directions == 1:
        return SquareConditions(integrals_of(encoding), matrix).explicit(kind)
    return SquareConditions(integrals_of(encoding), matrix, integrals_of(encoding, coarse=True)).solve(kind)


def _checked_encoding(encoding: Any, length: int) -> Encoding:
    if encoding is None:
        if length != 2:
            raise ValueError(f"encoding must be given at length {length}, the size of alignment_matrix, got None")
        return OppositeEncoding()
    if not isinstance(encoding, Encoding):
        raise TypeError(f"encoding must be an Encoding such as OppositeEncoding(), got {encoding!r}")
    if encoding.length != length:
        raise ValueError(f"encoding must have length {length}, the size of alignment_matrix, got {encoding.length}")
    if encoding.injection.any() or encoding.directions == 0:
        raise ValueError(f"encoding must have directions and no injection, got {encoding!r}")
    if encoding.target_component.any():
        raise ValueError(
            "encoding must be orthogonal to w*, since m = 1 is otherwise no critical point, "
            f"got target_component {encoding.target_component.tolist()}"
        )
    return encoding
