"""The phase diagram of the positional-semantic model (the paper, figure 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model.loss import LOSSES
from seqindex.theory.boundaries import KINDS
from seqindex.theory.phase_circle import CircleRisk, square_circle
from seqindex.theory.phase_norm_circle import norm_circle

Array = NDArray[np.float64]
Flags = NDArray[np.int8]

PHASES = (
    "unique_semantic",
    "global_semantic",
    "global_semantic_positional_dynamic",
    "unique_semantic_misaligned",
    "global_positional",
    "unique_positional",
    "mixed",
    "other",
)
"""Phases in the order of their flag values."""
DIRECTIONS = ("semantic", "positional")
"""Directions of steepest descent at the origin, in the order of their flag values."""
ANGLES = 257
"""Angles on the circle at which signs of the slope are compared before roots are refined."""
MINIMA = 2
"""Minima kept a point of the diagram, the lowest first."""
BOUNDARIES = {
    "steepest": "switch of the direction of steepest descent at the origin",
    "equal_risk": "equal risk of the semantic and the positional point",
    "semantic": "the semantic point stops being a local minimum",
    "positional": "the positional point becomes a local minimum",
}


@dataclass(frozen=True)
class Minima:
    """Minima at n values of omega: x = m^2 - e^2 and value of the series, (n, MINIMA), lowest first, NaN-padded."""

    x: Array
    risk: Array
    count: Flags
    semantic: NDArray[np.bool_]
    positional: NDArray[np.bool_]


def _values(series: Array, x: Array) -> Array:
    """Chebyshev series (n, k), each at its own point x (n,)."""
    orders = np.arange(series.shape[1])
    return np.asarray((series * np.cos(orders * np.arccos(np.clip(x, -1.0, 1.0))[:, None])).sum(1))


def find_minima(series: Array) -> Minima:
    """All minima of the risk on the circle, from its Chebyshev series in x, shape (n, k).

    Example:
        >>> minima = find_minima(np.array([[0.0, 0.0, 1.0]]))  # 2 x^2 - 1
        >>> round(minima.x[0, 0].item(), 9) == 0.0, minima.count.item()
        (True, 1)
    """
    n = len(series)
    grid: Array = -np.cos(np.linspace(0.0, np.pi, ANGLES))
    slope: Array = np.asarray(chebyshev.chebder(series, axis=1), dtype=np.float64)
    signs = slope @ chebyshev.chebvander(grid, slope.shape[1] - 1).T
    semantic, positional = signs[:, -1] < 0.0, signs[:, 0] > 0.0
    row, cell = np.nonzero((signs[:, :-1] < 0.0) & (signs[:, 1:] >= 0.0))
    # A sign change up to the very end of the circle is the corner itself, not a minimum beside it.
    low, high = grid[cell], grid[cell + 1]
    below, above = signs[row, cell], signs[row, cell + 1]
    root: Array = low - below * (high - low) / (above - below)
    curvature: Array = np.asarray(chebyshev.chebder(slope, axis=1)[row], dtype=np.float64)
    for _ in range(6):
        value = _values(slope[row], root)
        low, high = np.where(value < 0.0, root, low), np.where(value < 0.0, high, root)
        step = root - value / _values(curvature, root)
        root = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))

    rows = np.concatenate([np.nonzero(semantic)[0], np.nonzero(positional)[0], row])
    x = np.concatenate([np.ones(semantic.sum()), -np.ones(positional.sum()), root])
    risk = _values(series[rows], x)
    order = np.lexsort((risk, rows))
    rows, x, risk = rows[order], x[order], risk[order]
    count = np.bincount(rows, minlength=n)
    rank = np.arange(len(rows)) - (np.cumsum(count) - count)[rows]
    kept = rank < MINIMA
    where, what = np.full((n, MINIMA), np.nan), np.full((n, MINIMA), np.nan)
    where[rows[kept], rank[kept]] = x[kept]
    what[rows[kept], rank[kept]] = risk[kept]
    return Minima(where, what, count.astype(np.int8), semantic, positional)


def classify(minima: Minima, direction: Flags) -> Flags:
    """Phases, flag values of ``PHASES``, shape (n,), from the minima and the flags of ``DIRECTIONS``."""
    corners = minima.semantic.astype(np.int8) + minima.positional
    sliding = minima.count - corners
    towards_e = direction == DIRECTIONS.index("positional")
    lowest_semantic = minima.x[:, 0] == 1.0
    both = minima.semantic & minima.positional
    rules = {
        "unique_semantic": minima.semantic & ~both & ~towards_e,
        "unique_semantic_misaligned": minima.semantic & ~both & towards_e,
        "global_semantic": both & lowest_semantic & ~towards_e,
        "global_semantic_positional_dynamic": both & lowest_semantic & towards_e,
        "global_positional": both & ~lowest_semantic & towards_e,
        "unique_positional": minima.positional & ~both & towards_e,
    }
    phase = np.full(len(direction), PHASES.index("other"), dtype=np.int8)
    for name, holds in rules.items():
        phase[holds & (sliding == 0)] = PHASES.index(name)
    phase[(corners == 0) & (sliding == 1)] = PHASES.index("mixed")
    return phase


CIRCLES: dict[str, Callable[[], CircleRisk]] = {"square": square_circle, "norm": norm_circle}
"""Tables of the risk on the circle, by loss."""
ACCURACIES = {"square": 1e-9, "norm": 1e-4}
"""Accuracies of risks and boundaries, by loss."""


def phase_diagram(
    alignment: ArrayLike | None = None, omega: ArrayLike | None = None, loss: str = "square"
) -> xr.Dataset:
    """Phases of the positional-semantic model over (alignment, omega), with its minima (the paper, figure 4).

    Length 2, opposite encoding.  A point is semantic where m = 1, e = 0 and positional where m = 0, e = 1; overlaps are
    given in the quadrant m, e >= 0, since the risk is even in each.  The phases are

    - unique_semantic: one minimum, semantic, and steepest descent at the origin points to it;
    - global_semantic: both minima, the semantic one lower, steepest descent semantic;
    - global_semantic_positional_dynamic: both minima, the semantic one lower, steepest descent positional;
    - unique_semantic_misaligned: one minimum, semantic, steepest descent positional;
    - global_positional: both minima, the positional one lower, steepest descent positional;
    - unique_positional: one minimum, positional, steepest descent positional;
    - mixed: one minimum, on the circle m^2 + e^2 = 1 between the two points;
    - other: anything else, such as a positional minimum that steepest descent does not point to.

    "Other" occurs where a minimum between the two points coexists with one at a point: for the squared loss with the
    semantic one in a sliver around a = 0.76, omega = 0.97; for the norm also with the positional one, for a above about
    0.9 beyond the semantic boundary.  All minima lie on the circle m^2 + e^2 = 1, none inside the disc.  At omega = 1
    the risk does not depend on m; the limit omega -> 1 is given.

    Args:
        alignment: values of a, 1-D; None for 200 values in [0, 1.5].
        omega: values of omega in [0, 1], 1-D; None for 200 values.
        loss: "square" (the paper), or "norm" for the un-squared Frobenius norm of its released runs.

    Returns:
        Dataset over (alignment, omega): "phase" and "direction" (CF flags), "minima_count", and, with dimension
        "minimum", lowest first and padded with NaN, "minimum_overlap", "minimum_encoding_overlap", "minimum_angle" and
        "minimum_risk"; "curvature_overlap" and "curvature_encoding_overlap" at the origin; over (alignment)
        "boundary_steepest", "boundary_equal_risk", "boundary_semantic" and "boundary_positional", see
        ``phase_boundary``.

    Raises:
        ValueError: arrays that are empty or not 1-D, omega outside [0, 1], or an unknown loss.
        TypeError: arrays that do not hold numbers.

    Example:
        >>> diagram = phase_diagram(alignment=[1.0], omega=[0.5, 0.67, 0.9])
        >>> [diagram.phase.attrs["flag_meanings"].split()[k] for k in diagram.phase.values[0]]
        ['unique_semantic', 'global_semantic_positional_dynamic', 'unique_positional']
    """
    loss = check.choice("loss", loss, LOSSES)
    a_values = _axis("alignment", np.linspace(0.0, 1.5, 200) if alignment is None else alignment)
    w_values = _axis("omega", np.linspace(0.0, 1.0, 200) if omega is None else omega)
    outside = (w_values < 0.0) | (w_values > 1.0)
    if outside.any():
        raise ValueError(f"omega must be in [0, 1], got {w_values[outside][0]:g} in it")

    circle = CIRCLES[loss]()
    columns: dict[str, list[Array | Flags]] = {name: [] for name in _VARIABLES}
    for a in a_values:
        along_m, along_e = circle.curvatures(a, w_values)
        direction = (along_e < along_m).astype(np.int8)
        minima = find_minima(circle.series(a, w_values))
        angle = 0.5 * np.arccos(minima.x)
        row = {
            "phase": classify(minima, direction),
            "direction": direction,
            "minima_count": minima.count,
            "minimum_overlap": np.sqrt(0.5 * (1.0 + minima.x)),
            "minimum_encoding_overlap": np.sqrt(0.5 * (1.0 - minima.x)),
            "minimum_angle": np.degrees(angle),
            "minimum_risk": np.maximum(minima.risk, 0.0) ** (1.0 / circle.power),
            "curvature_overlap": along_m,
            "curvature_encoding_overlap": along_e,
        }
        for name, value in row.items():
            columns[name].append(value)
    dims = ("alignment", "omega", "minimum")
    variables = {
        name: (dims[: np.ndim(rows[0]) + 1], np.stack(rows), _VARIABLES[name]) for name, rows in columns.items()
    }
    for kind in KINDS:
        roots = np.array([circle.boundary(kind, a) for a in a_values])
        variables[f"boundary_{kind}"] = (("alignment",), roots, {"long_name": BOUNDARIES[kind], "units": "1"})
    return xr.Dataset(variables, _coordinates(a_values, w_values), _attributes(loss))


_VARIABLES: dict[str, dict[str, object]] = {
    "phase": {
        "long_name": "phase of the positional-semantic model",
        "flag_values": np.arange(len(PHASES), dtype=np.int8),
        "flag_meanings": " ".join(PHASES),
    },
    "direction": {
        "long_name": "direction of steepest descent at the origin",
        "flag_values": np.arange(len(DIRECTIONS), dtype=np.int8),
        "flag_meanings": " ".join(DIRECTIONS),
    },
    "minima_count": {"long_name": "number of local minima with m, e >= 0", "units": "1"},
    "minimum_overlap": {"long_name": "overlap m with the target at the minimum", "units": "1"},
    "minimum_encoding_overlap": {"long_name": "overlap e with the encoding at the minimum", "units": "1"},
    "minimum_angle": {"long_name": "angle of the minimum from the m axis", "units": "degree"},
    "minimum_risk": {"long_name": "population risk at the minimum", "units": "1"},
    "curvature_overlap": {"long_name": "second derivative of the risk in m at the origin", "units": "1"},
    "curvature_encoding_overlap": {"long_name": "second derivative of the risk in e at the origin", "units": "1"},
}


def _axis(name: str, values: ArrayLike) -> Array:
    result = check.array(name, values, (None,))
    if result.size == 0:
        raise ValueError(f"{name} must hold at least one value, got none")
    return result


def _coordinates(alignment: Array, omega: Array) -> dict[str, object]:
    return {
        "alignment": ("alignment", alignment, {"long_name": "alignment a of the positional part", "units": "1"}),
        "omega": ("omega", omega, {"long_name": "weight of the positional part", "units": "1"}),
        "minimum": ("minimum", np.arange(MINIMA), {"long_name": "rank of the minimum, lowest risk first"}),
    }


def _attributes(loss: str) -> dict[str, object]:
    from seqindex import __version__

    return {
        "title": "Phase diagram of the positional-semantic model",
        "seqindex_version": __version__,
        "loss": loss,
        "length": 2,
        "encoding": "opposite",
        "angles": ANGLES,
        "accuracy": ACCURACIES[loss],
    }
