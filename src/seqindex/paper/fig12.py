"""Figure 12: the transition at d = 100, smoother than at d = 1000."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from seqindex.paper.claim import Claim, verdict_of
from seqindex.paper.jobs import Job
from seqindex.paper.transition import ALIGNMENT, OMEGAS, Series, series_jobs, summarise, switches, theory_claim
from seqindex.plotting.style import figure, styled
from seqindex.plotting.transition import draw_transition, mark_omega
from seqindex.sgd.start import Start
from seqindex.theory.boundaries import phase_boundary

TITLE = "probability of the semantic minimum at d = 100"


@dataclass(frozen=True)
class Scale:
    """Indices of the paper's 41 values of omega, and runs at each."""

    omegas: tuple[int, ...]
    replicas: int


FULL = Scale(tuple(range(41)), replicas=256)
QUICK = Scale((7, 10, 13, 16, 19, 22, 26), replicas=64)
RATE = 0.5
"""Large enough that d alone limits the sharpness and the runs are short; the same at both dimensions."""


def _series(scale: Scale) -> list[Series]:
    """d = 100 with the released settings and both losses, then d = 100 and 1000 alike but for d."""
    omegas, runs = OMEGAS[list(scale.omegas)], scale.replicas
    return [
        Series("square", 100, 0.05, Start.orthogonal(), omegas, runs),
        Series("norm", 100, 0.05, Start.orthogonal(), omegas, runs),
        Series("square", 100, RATE, Start.random(), omegas, runs),
        Series("square", 1000, RATE, Start.random(), omegas, runs),
    ]


def jobs(scale: Scale) -> list[Job]:
    """The simulations."""
    return series_jobs(_series(scale))


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Shares over omega for every series."""
    data = summarise(_series(scale), results)
    return data.assign(transition=phase_boundary("steepest", ALIGNMENT))


@styled
def draw(data: xr.Dataset) -> Figure:
    """Shares with error bars."""
    drawing, axes = figure(6.4, 4.6)
    draw_transition(axes, data, [str(label) for label in data["series"].values])
    mark_omega(axes, float(data["transition"]), r"$\omega_{trans}$ (square loss)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1)
    axes.set_title("Finite dimension smooths the transition (a = 1)")
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F12."""
    found = list(switches(data).values())
    small, large = found[2], found[3]
    error = float(np.hypot(small.width_error, large.width_error))
    return [
        Claim(
            "F12",
            "figure 12, section 4",
            "at d = 100 the switch between the minima is smoother than at d = 1000",
            "width in omega falls with d, like 1/log d",
            f"width {small.width:.3f} +- {small.width_error:.3f} at d = 100, "
            f"{large.width:.3f} +- {large.width_error:.3f} at d = 1000 (square loss, uniform start, rate {RATE})",
            verdict_of(small.width - large.width, error),
        ),
        theory_claim(data, "F12-theory", "figure 12"),
    ]
