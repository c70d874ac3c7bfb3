"""What a simulation takes from the geometry of a student's weights: starts, engines, and the shape of the result.

A student says what its weights are by the type of its ``frame``: a ``Frame`` is one weight vector for all positions,
``Rows`` are one a position.  Both start from the same laws of a single vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqindex.model.frame import Frame
from seqindex.model.problem import Problem
from seqindex.model.rows import Rows
from seqindex.sgd.explicit import ExplicitEngine
from seqindex.sgd.reduced import ReducedEngine
from seqindex.sgd.rows import RowsEngine
from seqindex.sgd.rows_explicit import RowsExplicitEngine
from seqindex.sgd.start import Start

Array = NDArray[np.float64]
_DIMS = ("replica", "record")


@dataclass(frozen=True)
class Geometry:
    """One kind of weights in a simulation.

    Attributes:
        rank: of a frame, the number of directions that a single weight vector must leave room for.
        draw: starting state (s, nu) of one replica, from (frame, start, dim, generator).
        norm: size of the overlap with w*, "overlap_norm", of states (coordinate, ...).
        reach: largest size that learning leads to.
        variables: overlaps of a Dataset from states (coordinate, replica, record).
        engines: by name.
    """

    rank: Callable[[Any], int]
    draw: Callable[[Any, Start, int, np.random.Generator], tuple[Array, Any]]
    norm: Callable[[Array], Array]
    reach: Callable[[Problem], float]
    variables: Callable[[Array], dict[str, Any]]
    engines: dict[str, Any]


def _draw_shared(frame: Frame, start: Start, dim: int, rng: np.random.Generator) -> tuple[Array, float]:
    return start.draw(frame, dim, rng)


def _draw_rows(rows: Rows, start: Start, dim: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Every row by itself, in both cases on the sphere of radius sqrt(d)."""
    row = rows.row
    draws = [start.draw(row, dim, rng) for _ in range(rows.length)]
    return np.array([s[0] for s, _ in draws]), np.array([nu for _, nu in draws])


def _shared_norm(states: Array) -> Array:
    norm: Array = np.abs(states[0])
    return norm


def _row_norm(states: Array) -> Array:
    norm: Array = np.sqrt((states * states).mean(0))
    return norm


def _row_reach(problem: Problem) -> float:
    """The rows of a sphere can all turn to w* only if the target reads one of their tokens; else they stay random."""
    rows: Any = problem.student.frame
    z, other = np.random.default_rng(0).standard_normal((2, 16, rows.length))
    y = problem.target(z)
    read = np.empty(rows.length, dtype=bool)
    for position in range(rows.length):
        changed = z.copy()
        changed[:, position] = other[:, position]
        read[position] = not np.array_equal(problem.target(changed), y, equal_nan=True)
    return math.sqrt(read.reshape(rows.spheres, rows.together).any(1).mean())


def _shared_variables(states: Array) -> dict[str, Any]:
    m, e = states[0], states[1:]
    variables: dict[str, Any] = {
        "overlap": (_DIMS, m, {"long_name": "overlap m = w.w*/d", "units": "1"}),
        "overlap_norm": (_DIMS, _shared_norm(states), {"long_name": "|m|", "units": "1"}),
    }
    about = {"long_name": "encoding overlap e, coordinates of w/sqrt(d) along the encoding directions", "units": "1"}
    if len(e) == 1:
        variables["encoding_overlap"] = (_DIMS, e[0], about)
    elif len(e) > 1:
        variables["encoding_overlap"] = ((*_DIMS, "direction"), np.moveaxis(e, 0, -1), about)
    return variables


def _row_variables(states: Array) -> dict[str, Any]:
    m = np.moveaxis(states, 0, -1)
    return {
        "overlap": ((*_DIMS, "position"), m, {"long_name": "overlaps m_l = w_l.w*/d", "units": "1"}),
        "overlap_norm": (_DIMS, _row_norm(states), {"long_name": "||m|| / sqrt(L)", "units": "1"}),
        "position": np.arange(1, m.shape[-1] + 1),
    }


SHARED = Geometry(
    rank=lambda frame: int(frame.rank),
    draw=_draw_shared,
    norm=_shared_norm,
    reach=lambda problem: 1.0,
    variables=_shared_variables,
    engines={"reduced": ReducedEngine, "explicit": ExplicitEngine},
)
"""One weight vector for all positions."""
PER_POSITION = Geometry(
    rank=lambda rows: int(rows.row.rank),
    draw=_draw_rows,
    norm=_row_norm,
    reach=_row_reach,
    variables=_row_variables,
    engines={"reduced": RowsEngine, "explicit": RowsExplicitEngine},
)
"""One weight vector a position."""
_GEOMETRIES = {Frame: SHARED, Rows: PER_POSITION}


def geometry_of(problem: Problem) -> Geometry:
    """The geometry of a problem's student.

    Example:
        >>> target = sx.Target("z1*z2", length=2)
        >>> geometry_of(sx.Problem(target, sx.UntiedNetwork(2))) is PER_POSITION
        True
    """
    return _GEOMETRIES[type(problem.student.frame)]
