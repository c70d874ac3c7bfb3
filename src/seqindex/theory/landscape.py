"""The population risk over the disc of overlaps: values, gradient flow, critical points and the steepest direction."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.theory.risk import PopulationRisk

Array = NDArray[np.float64]


def landscape(problem: Problem, plane: ArrayLike | None = None, points: int = 61, critical: bool = True) -> xr.Dataset:
    """Risk and spherical gradient over m^2 + e^2 <= 1, or over m alone where there is no encoding.

    Args:
        problem: target, student and loss.
        plane: direction in the space of encoding coordinates that e is measured along, (r,); None for the first.  Other
            coordinates are 0.
        points: points on each axis.
        critical: whether to search the critical points (of the whole ball; those off the plane are left out).

    Returns:
        Dataset with "risk", "risk_m", "risk_e" over (row, column), rows of constant e that end on the circle, and the
        direction of descent on the sphere "flow_m", "flow_e" over (row, column); "critical_m", "critical_e",
        "critical_risk", "critical_kind" over (critical); "risk_error", the largest error on the axes; "direction_m",
        "direction_e" and "curvatures", eigenvectors and eigenvalues of the Hessian at 0 in ascending order.

    Raises:
        TypeError, ValueError: an argument out of range, or a plane where there is no encoding.

    Example:
        >>> target = sx.PositionalSemanticTarget(0.67, alignment=1.0)
        >>> data = landscape(sx.Problem(target, sx.Attention(2, sx.OppositeEncoding())), points=11)
        >>> data.sizes["row"], bool(data["risk"].min() < 0.2)
        (11, True)
    """
    points = check.integer("points", points, 3)
    risk = PopulationRisk(problem)
    directions = problem.frame.directions
    axis = _axis(plane, directions)
    # Rows of constant e: the risk is a polynomial in m at each e.
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, points)
    e = np.sin(angles if directions else np.zeros(1))[:, None]
    m = np.sqrt(1.0 - e**2) * np.sin(angles)
    e = np.broadcast_to(e, m.shape)
    s = e[..., None] * axis
    where: Any = None if directions == 0 else e * axis[0] if directions == 1 else s
    gradient = risk.gradient(m, where)
    state = np.concatenate([m[..., None], s], axis=-1)
    values = risk(m, where)  # after the gradient, whose integrals serve here too
    flow = -(gradient - state * (state * gradient).sum(-1, keepdims=True))
    ends = np.array([0.0, 0.7, 1.0])
    hessian = risk.hessian(0.0, None if directions == 0 else 0.0 if directions == 1 else 0.0 * axis)
    curvatures, vectors = np.linalg.eigh(hessian)
    grid = ("row", "column")
    data = xr.Dataset(
        {
            "risk": (grid, values, {"long_name": "population risk"}),
            "risk_m": (grid, m),
            "risk_e": (grid, e),
            "flow_m": (grid, flow[..., 0]),
            "flow_e": (grid, flow[..., 1:] @ axis if directions else np.zeros_like(m)),
            "risk_error": float(np.max(risk.error(ends))),
            "direction_m": ("eigenvalue", vectors[0]),
            "direction_e": ("eigenvalue", axis @ vectors[1:] if directions else np.zeros(1)),
            "curvatures": ("eigenvalue", curvatures),
            "plane": ("direction", axis),
        },
        attrs=problem.to_attrs(),
    )
    return data.merge(_critical(risk, axis)) if critical else data


def _axis(plane: ArrayLike | None, directions: int) -> Array:
    if plane is None:
        return np.eye(1, directions)[0] if directions else np.zeros(0)
    if directions == 0:
        raise ValueError("plane must be None, as there is no encoding")
    vector = check.array("plane", plane, (directions,))
    norm = float(np.linalg.norm(vector))
    if norm == 0.0:
        raise ValueError("plane must be a direction other than zero")
    return vector / norm


def _critical(risk: PopulationRisk, axis: Array) -> xr.Dataset:
    from seqindex.theory.critical import critical_points  # with SciPy's optimizers, which import slowly

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # for a picture a search that may have missed some will do
        found = critical_points(risk)
    found = [p for p in found if np.linalg.norm(p.e - axis * float(axis @ p.e)) < 1e-6]
    return xr.Dataset(
        {
            "critical_m": ("critical", np.array([p.m for p in found])),
            "critical_e": ("critical", np.array([float(axis @ p.e) for p in found])),
            "critical_risk": ("critical", np.array([p.value for p in found])),
            "critical_kind": ("critical", np.array([p.kind for p in found], dtype=str)),
            "critical_degenerate": ("critical", np.array([p.degenerate for p in found], dtype=bool)),
        }
    )
