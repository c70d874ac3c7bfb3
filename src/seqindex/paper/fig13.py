"""Figure 13: where only the semantic minimum exists, SGD first goes to the positional point and lingers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from seqindex.outcome import Outcome
from seqindex.paper.claim import CONDITION, CONFIRMED, REFUTED, UNDECIDED, Claim
from seqindex.paper.jobs import Job
from seqindex.paper.transition import DISTANCE, problem
from seqindex.plotting.lingering import draw_overlaps
from seqindex.plotting.style import figure, styled
from seqindex.sgd.start import Start
from seqindex.sgd.stop import Near
from seqindex.theory.phases import PHASES, phase_diagram

TITLE = "misaligned dynamics at a = 0.76, omega = 0.95"
ALIGNMENT, OMEGA, DIM, RATE = 0.76, 0.95, 1000, 0.05


@dataclass(frozen=True)
class Scale:
    """Largest number of steps and number of runs."""

    steps: int
    replicas: int


FULL = Scale(steps=10**8, replicas=20)
QUICK = Scale(steps=2 * 10**6, replicas=20)


def jobs(scale: Scale) -> list[Job]:
    """All runs, recorded at geometric and at equal steps; a run stops near the semantic minimum."""
    early = np.geomspace(100, scale.steps, 400).astype(int)
    steps = sorted({0, *early.tolist(), *np.linspace(0, scale.steps, 1601).astype(int).tolist()})
    return [
        Job(
            problem=problem(OMEGA, "square", ALIGNMENT),
            dim=DIM,
            learning_rate=RATE,
            steps=scale.steps,
            replicas=scale.replicas,
            seed=13,
            start=Start.random(),
            records=tuple(steps),
            stop=Near([(1.0, 0.0), (-1.0, 0.0)], DISTANCE),
            history=True,
        )
    ]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Overlaps of all runs, and the phase."""
    (runs,) = results
    diagram = phase_diagram([ALIGNMENT], [OMEGA])
    phase = PHASES[int(diagram["phase"].values[0, 0])]
    names = ["overlap", "encoding_overlap", "outcome", "end_step"]
    return runs[names].assign_attrs(phase=phase, alignment=ALIGNMENT, omega=OMEGA)


@styled
def draw(data: xr.Dataset) -> Figure:
    """Overlaps against the steps."""
    drawing, axes = figure(6.4, 3.6)
    draw_overlaps(axes, data)
    axes.set_title(f"a = {ALIGNMENT}, $\\omega$ = {OMEGA}, d = {DIM}, learning rate {RATE}")
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F13."""
    m, e = np.abs(data["overlap"].values), np.abs(data["encoding_overlap"].values)
    runs = len(m)
    # The first of the two overlaps to pass 1/2 says where a run went first.
    first_e = _first(e > 0.5) < _first(m > 0.5)
    arrived = data["outcome"].values == Outcome.CONVERGED
    end = data["end_step"].values
    steps = int(data["step"].values[-1])
    went = int(first_e.sum())
    median = f", median {np.median(end[arrived & first_e]):.2g} steps" if (arrived & first_e).any() else ""
    held = data.attrs["phase"] == "unique_semantic_misaligned"
    if not held:
        verdict = REFUTED
    elif not arrived.all():
        verdict = f"{UNDECIDED} for the runs that had not ended"
    elif went < runs:
        verdict = f"{CONDITION}: most runs take the detour, not all"
    else:
        verdict = CONFIRMED
    return [
        Claim(
            "F13",
            "figure 13",
            "the semantic minimum is the only one, but SGD first goes to the positional point, lingers, then turns",
            f"phase {data.attrs['phase']}; steepest descent at the origin is positional",
            f"in {went} of {runs} runs |e| passed 1/2 before |m| did; {int(arrived.sum())} of {runs} had reached the "
            f"semantic minimum after {steps:.0e} steps{median}",
            verdict,
        )
    ]


def _first(above: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Index of the first True in each row, or the number of columns."""
    result: NDArray[np.int64] = np.where(above.any(1), above.argmax(1), above.shape[1])
    return result
