"""Figure 4: the phase diagram of the positional-semantic model over (a, omega), for both losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import brentq

from seqindex.paper.claim import CONDITION, CONFIRMED, REFUTED, Claim
from seqindex.paper.jobs import Job
from seqindex.paper.transition import problem
from seqindex.plotting.phases import draw_phase_diagram
from seqindex.plotting.style import styled
from seqindex.theory.boundaries import phase_boundary
from seqindex.theory.critical import critical_points
from seqindex.theory.phases import PHASES, phase_diagram
from seqindex.theory.risk import PopulationRisk

TITLE = "phase diagram over alignment and omega"


@dataclass(frozen=True)
class Scale:
    """Points an axis of the diagram, and points at which it is checked by direct search for minima."""

    points: int
    checks: int


FULL = Scale(points=200, checks=40)
QUICK = Scale(points=60, checks=2)
SMALLEST, LARGEST = 0.6, 1.4
"""Range of a: all phases occur in it."""


def jobs(scale: Scale) -> list[Job]:
    """No simulations."""
    return []


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """The diagram of the square loss, boundaries of the norm loss, special alignments, and an independent check."""
    alignment = np.linspace(SMALLEST, LARGEST, scale.points)
    data = phase_diagram(alignment, np.linspace(0.0, 1.0, scale.points))
    agree, points = _check(scale.checks)
    coarse = np.linspace(0.8, LARGEST, 7)
    norm = np.array([[phase_boundary(kind, a, loss="norm") for a in coarse] for kind in _NORM])
    return data.assign(
        norm_boundary=(("kind", "norm_alignment"), norm, {"long_name": "boundary for the norm loss"}),
        coexistence_from=brentq(lambda a: _gap(a, "semantic", "positional"), 0.762, 0.8),
        switch_from=brentq(lambda a: 1.0 - 1e-12 - _steepest(a), 0.70, 0.76),
        steepest_at_one=phase_boundary("steepest", 1.0),
        equal_risk_at_one=phase_boundary("equal_risk", 1.0),
        checks_agreeing=agree,
        checks=points,
    ).assign_coords(kind=list(_NORM), norm_alignment=coarse)


_NORM = ("steepest", "equal_risk")


_MARGIN = 2e-3


def _steepest(a: float) -> float:
    omega = phase_boundary("steepest", a)
    return 1.0 if np.isnan(omega) else omega


def _gap(a: float, upper: str, lower: str) -> float:
    return phase_boundary(upper, a) - phase_boundary(lower, a)


def _check(count: int) -> tuple[int, int]:
    """How often the minima of the diagram are those that a search over the whole disc of the risk finds.

    Points closer than ``_MARGIN`` to a boundary are left out: there a minimum and a saddle are about to merge.
    """
    rng = np.random.default_rng(4)
    agree = made = 0
    while made < count:
        a, omega = float(rng.uniform(SMALLEST, LARGEST)), float(rng.uniform(0.02, 0.98))
        edges = [phase_boundary("semantic", a), phase_boundary("positional", a)]
        if any(abs(omega - edge) < _MARGIN for edge in edges):
            continue
        made += 1
        diagram = phase_diagram([a], [omega])
        angles = diagram["minimum_angle"].values[0, 0]
        wanted = sorted(float(angle) for angle in angles[np.isfinite(angles)])
        found = [
            point for point in critical_points(PopulationRisk(problem(omega, "square", a))) if point.kind == "minimum"
        ]
        inside = [point for point in found if not point.boundary]
        quadrant = {round(float(np.degrees(np.arctan2(abs(p.e[0]), abs(p.m)))), 3) for p in found}
        same = len(quadrant) == len(wanted) and np.allclose(sorted(quadrant), wanted, atol=2e-3)
        agree += int(same and not inside)
    return agree, count


@styled
def draw(data: xr.Dataset) -> Figure:
    """The map, with the two norm-loss boundaries that can be compared as points."""
    drawing = draw_phase_diagram(data)
    axes = drawing.axes[0]
    handles = []
    for kind, marker in zip(_NORM, "os", strict=True):
        one = data["norm_boundary"].sel(kind=kind)
        label = f"norm loss: {kind.replace('_', ' ')}"
        style: dict[str, Any] = {"color": "white", "markeredgecolor": "black", "markersize": 5}
        handles += axes.plot(one["norm_alignment"], one, marker, label=label, **style)
    axes.legend(handles=handles, loc="lower right", frameon=True, facecolor="white")
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F4, F1b and the boundaries."""
    present = [name for index, name in enumerate(PHASES) if (data["phase"].values == index).any()]
    six = all(name in present for name in PHASES[:6])
    other = data["phase"] == PHASES.index("other")
    slivers = f"{100 * float(other.mean()):.2f} % of the diagram other: a semantic minimum beside one inside the arc"
    agree, checks = int(data["checks_agreeing"]), int(data["checks"])
    curvature = data["curvature_overlap"].where(data["omega"] < 1.0, drop=True)
    negative = bool((curvature < 0.0).all())
    norm = data["norm_boundary"].sel(norm_alignment=1.0, method="nearest")
    return [
        Claim(
            "F4",
            "figure 4",
            "six regions over (a, omega)",
            "four explicit boundaries; the two corners coexist as minima only for a > "
            f"{float(data['coexistence_from']):.4f}; the steepest direction switches only for a > "
            f"{float(data['switch_from']):.4f}",
            f"regions found: {', '.join(name.replace('_', ' ') for name in present)}; minima agree with a search over "
            f"the whole disc at {agree} of {checks} random points; {slivers}",
            f"{CONDITION}: below a = {float(data['coexistence_from']):.4f} there is a seventh region, where the single "
            "minimum slides along the circle"
            if six and agree == checks
            else REFUTED,
        ),
        Claim(
            "F4-values",
            "figure 4, a = 1",
            "the steepest direction switches before the global minimum does",
            f"square loss: steepest {float(data['steepest_at_one']):.6f}, equal risk "
            f"{float(data['equal_risk_at_one']):.6f}",
            f"norm loss (released runs): steepest {float(norm.sel(kind='steepest')):.4f}, equal risk "
            f"{float(norm.sel(kind='equal_risk')):.4f}",
            CONFIRMED if data["steepest_at_one"] < data["equal_risk_at_one"] else REFUTED,
        ),
        Claim(
            "F1b",
            "appendix F.1",
            "SIE 2: the gradient vanishes at the origin, the Hessian does not and always has a negative eigenvalue",
            "curvature along m negative if and only if omega < 1",
            f"largest curvature along m over the diagram with omega < 1: {float(curvature.max()):.2e}",
            CONFIRMED if negative else REFUTED,
        ),
    ]
