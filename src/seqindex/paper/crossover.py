"""Beyond the figures: the alternative target of appendix F.3, whose minimum moves without a transition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import brentq

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
_NEAR = 1.0
"""Degrees by which the noise may move the end points of SGD at this rate and dimension."""
_SCAN = 24
"""Angles a quadrant at which minima are looked for."""
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
    """Angle of the lowest minimum from the m axis, in degrees, and those at which SGD ended."""
    omegas, chosen = _omegas(scale.theory), _omegas(scale.runs + 2)[1:-1]
    theory = [[_minimum(_problem(kind, float(omega))) for omega in omegas] for kind in KINDS]
    at_runs = [[_minimum(_problem(kind, float(omega)))[0] for omega in chosen] for kind in READINGS]
    ends = np.array([_ended(runs) for runs in results]).reshape(len(READINGS), scale.runs, scale.replicas)
    return xr.Dataset(
        {
            "angle": (("kind", "omega"), [[angle for angle, _ in row] for row in theory], {"units": "degree"}),
            "minima": (
                ("kind", "omega"),
                [[count for _, count in row] for row in theory],
                {"long_name": "minima on the circle, m e and -m -e counted once"},
            ),
            "angle_at_runs": (("reading", "omega_run"), at_runs, {"units": "degree"}),
            "end_angle": (("reading", "omega_run", "replica"), ends, {"units": "degree"}),
        },
        {"kind": list(KINDS), "omega": omegas, "reading": list(READINGS), "omega_run": chosen},
    )


def _minimum(problem: Problem) -> tuple[float, int]:
    """Angle at which the risk on the circle is least, to 1e-8 degrees or so, and the number of its minima.

    The risk does not change from (m, e) to (-m, -e), so that angles from -90 to 90 degrees are all there are.
    """
    risk = PopulationRisk(problem)
    grid = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * _SCAN, endpoint=False)
    values = risk.sketch(np.cos(grid), np.sin(grid), order=0)
    count = int(((values < np.roll(values, 1)) & (values < np.roll(values, -1))).sum())
    best, width = grid[int(values.argmin())], grid[1] - grid[0]

    def slope(angle: float) -> float:
        by_m, by_e = risk.gradient(np.cos(angle), np.sin(angle))
        return float(np.cos(angle) * by_e - np.sin(angle) * by_m)

    angle = np.degrees(brentq(slope, best - width, best + width, xtol=1e-10))
    return float(angle + 180.0 if angle < -45.0 else angle), count


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
    inner = data.isel(omega=slice(1, -1))  # the target of omega = 0 has no encoding, that of omega = 1 no tokens
    single = bool((inner["minima"].sel(kind=list(READINGS)) == 1).all())
    other = inner.sel(kind=KINDS[-1])
    both = other["omega"].values[other["minima"].values > 1]
    where = f" at omega = {both.min():.3g} to {both.max():.3g}" if both.size else " somewhere"
    jump = float(np.abs(np.diff(other["angle"].values)).max())
    gap = np.abs(data["end_angle"].median("replica") - data["angle_at_runs"])
    error = 1.2533 * data["end_angle"].std("replica") / np.sqrt(data.sizes["replica"])  # of a median
    listed = "; ".join(
        f"{kind}: {', '.join(f'{float(x):.1f} at {float(omega):.2g}' for omega, x in zip(row.omega, row, strict=True))}"
        for kind, row in ((kind, data["angle"].sel(kind=kind)[:: max(1, len(data.omega) // 5)]) for kind in READINGS)
    )
    return [
        Claim(
            "F3",
            "appendix F.3",
            "with the encoding inside the target's softmax the change is a smooth crossover, without transition",
            f"{'one minimum' if single else 'several minima'} at every omega for both readings; its angle from the m "
            f"axis in degrees: {listed}; the positional-semantic target (a = 1) has two minima{where}, "
            f"and the lower one jumps by {jump:.0f}",
            f"SGD, d = {_DIM}: medians at most {float(gap.max()):.1f} +- {float(error.max()):.1f} degrees from the "
            f"minimum, at {data.sizes['omega_run']} values of omega for both readings",
            CONFIRMED if single and jump > 85.0 and float(gap.max()) < _NEAR + 5.0 * float(error.max()) else REFUTED,
        )
    ]
