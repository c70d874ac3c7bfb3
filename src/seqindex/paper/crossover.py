"""Beyond the figures: the alternative target of appendix F.3, whose minimum moves without a transition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from seqindex.model.attention import Attention
from seqindex.model.encoded_target import READINGS, EncodedTarget
from seqindex.model.encoding import OppositeEncoding
from seqindex.model.problem import Problem, TargetLike
from seqindex.model.target import PositionalSemanticTarget
from seqindex.paper.claim import CONFIRMED, REFUTED, Claim
from seqindex.paper.jobs import Job
from seqindex.plotting.crossover import draw_crossover
from seqindex.plotting.style import figure, styled
from seqindex.sgd.start import Start
from seqindex.theory.risk import PopulationRisk

TITLE = "an encoding inside the target's softmax: a crossover without transition (appendix F.3)"
KINDS = (*READINGS, "positional-semantic")
_DIM, _RATE = 1000, 0.05
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Values of omega of the theory and of the runs, runs at each, and their time t = gamma step / d."""

    theory: int
    runs: int
    replicas: int
    horizon: float


FULL = Scale(theory=41, runs=11, replicas=32, horizon=150.0)
QUICK = Scale(theory=5, runs=1, replicas=8, horizon=40.0)


def _target(kind: str, omega: float) -> TargetLike:
    if kind == KINDS[-1]:
        return PositionalSemanticTarget(omega, alignment=1.0)
    return EncodedTarget(omega, kind)


def _problem(kind: str, omega: float) -> Problem:
    return Problem(_target(kind, omega), Attention(2, OppositeEncoding()))


def _omegas(count: int) -> Array:
    return np.linspace(0.0, 1.0, count)


def jobs(scale: Scale) -> list[Job]:
    """Runs from random starts for both readings."""
    steps = round(scale.horizon * _DIM / _RATE)
    return [
        Job(_problem(kind, float(omega)), _DIM, _RATE, steps, scale.replicas, index, Start.random(), 2)
        for kind in READINGS
        for index, omega in enumerate(_omegas(scale.runs + 2)[1:-1])
    ]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Angle of the global minimum from the m axis, in degrees, and those at which SGD ended."""
    omegas, chosen = _omegas(scale.theory), _omegas(scale.runs + 2)[1:-1]
    theory = [[_angle(_problem(kind, float(omega))) for omega in omegas] for kind in KINDS]
    at_runs = [[_angle(_problem(kind, float(omega))) for omega in chosen] for kind in READINGS]
    ends = np.array([_ended(runs) for runs in results]).reshape(len(READINGS), scale.runs, scale.replicas)
    return xr.Dataset(
        {
            "angle": (("kind", "omega"), theory, {"units": "degree"}),
            "angle_at_runs": (("reading", "omega_run"), at_runs, {"units": "degree"}),
            "end_angle": (("reading", "omega_run", "replica"), ends, {"units": "degree"}),
        },
        {"kind": list(KINDS), "omega": omegas, "reading": list(READINGS), "omega_run": chosen},
    )


def _angle(problem: Problem) -> float:
    """Where the risk is least on the quadrant m, e >= 0 of the circle."""
    risk = PopulationRisk(problem)
    grid = np.linspace(0.0, 0.5 * np.pi, 46)
    values = [float(risk(np.cos(angle), np.sin(angle))) for angle in grid]
    best = int(np.argmin(values))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])

    def value(angle: float) -> float:
        return float(risk.sketch(np.cos(angle), np.sin(angle), order=0))

    found = minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    # The ends of the quadrant are never tried by the bounded search.
    if best in (0, len(grid) - 1) and values[best] <= found.fun + 1e-9:
        return float(np.degrees(grid[best]))
    return float(np.degrees(found.x))


def _ended(runs: xr.Dataset) -> Array:
    """Angle of the last state; (m, e) and (-m, -e) are the same, and e against m is the other quadrant."""
    m, e = runs["overlap"].values[:, -1], runs["encoding_overlap"].values[:, -1]
    return np.asarray(np.degrees(np.arctan2(e * np.sign(m), np.abs(m))))


@styled
def draw(data: xr.Dataset) -> Figure:
    """Angle against omega."""
    drawing, axes = figure(6.0, 4.2)
    draw_crossover(axes, data)
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F3."""
    omega = data["omega"].values
    moves = np.abs(np.diff(data["angle"].values, axis=1))
    jumps = moves.max(1)
    spacing = float(omega[1] - omega[0])
    gap = np.abs(data["end_angle"].median("replica") - data["angle_at_runs"])
    listed = ", ".join(
        f"{kind}: {' '.join(f'{x:.1f}' for x in data['angle'].sel(kind=kind).interp(omega=[0.3, 0.5, 0.7]).values)}"
        for kind in READINGS
    )
    # The curves rise steeply only next to omega = 1, where the target no longer depends on the tokens.
    inner = moves[:2, omega[1:] < 0.91]
    smooth = (inner < 400.0 * spacing).all() and jumps[2] > 85.0
    return [
        Claim(
            "F3",
            "appendix F.3",
            "with the encoding inside the target's softmax the change is a smooth crossover, without transition",
            f"angle of the minimum from the m axis at omega = 0.3, 0.5, 0.7, in degrees: {listed}; that of the "
            f"positional-semantic target jumps by {jumps[2]:.0f}",
            f"SGD, d = {_DIM}: medians at most {float(gap.max()):.1f} degrees from the minimum, at "
            f"{data.sizes['omega_run']} values of omega for both readings",
            CONFIRMED if smooth and float(gap.max()) < 6.0 else REFUTED,
        )
    ]
