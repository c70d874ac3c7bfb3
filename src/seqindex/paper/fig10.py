"""Figure 10: softmax attention against the square network, recovery times over the sequence length.

Target sum He2 / sqrt(2), d = 1000, rate 5e-4, threshold 0.5; attention has the released trace over sqrt(L).  The
caption speaks of a tied square network, but the released configuration trains the untied one: both are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from seqindex.model.attention import Attention
from seqindex.model.link import Target
from seqindex.model.problem import Problem
from seqindex.paper.claim import CONDITION, REFUTED, Claim
from seqindex.paper.gains import DIM
from seqindex.paper.jobs import TimeJob
from seqindex.paper.networks import SECOND, tied, untied
from seqindex.plotting.style import BLUE, GREEN, ORANGE, figure, styled
from seqindex.sgd.start import Start
from seqindex.sgd.survival import median_time

TITLE = "softmax attention against the square network"
_STUDENTS = {"attention": GREEN, "tied square": BLUE, "untied square": ORANGE}
_THRESHOLD = 0.5


@dataclass(frozen=True)
class Scale:
    """Lengths, learning rate and largest number of steps."""

    lengths: tuple[int, ...]
    rate: float
    steps: int


FULL = Scale(lengths=(3, 4, 5, 6, 7, 8, 9), rate=5e-4, steps=2 * 10**7)
QUICK = Scale(lengths=(3, 6), rate=2e-2, steps=5 * 10**5)


def _problems(length: int) -> list[Problem]:
    attention = Problem(Target(SECOND, length), Attention(length, reduction="trace"))
    return [attention, tied(SECOND, length, "square"), untied(SECOND, length, "square")]


def jobs(scale: Scale) -> list[TimeJob]:
    """By length, then student."""
    settings = (DIM, scale.rate, scale.steps, _THRESHOLD, 64, 10, Start.released())
    return [TimeJob(problem, *settings) for length in scale.lengths for problem in _problems(length)]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Median recovery times with intervals."""
    medians = [median_time(times) for times in results]
    shape = (len(scale.lengths), len(_STUDENTS))
    dims = ("length", "student")
    return xr.Dataset(
        {
            "time": (dims, np.reshape([median.value for median in medians], shape)),
            "time_low": (dims, np.reshape([median.low for median in medians], shape)),
            "time_high": (dims, np.reshape([median.high for median in medians], shape)),
        },
        {"length": list(scale.lengths), "student": list(_STUDENTS)},
    )


@styled
def draw(data: xr.Dataset) -> Figure:
    """Recovery times against the length."""
    drawing, axes = figure(5.0, 3.7)
    for student, colour in _STUDENTS.items():
        one = data.sel(student=student)
        spread = [one["time"] - one["time_low"], one["time_high"] - one["time"]]
        axes.errorbar(
            one["length"], one["time"], yerr=np.array(spread), fmt="o-", color=colour, capsize=2, label=student
        )
    axes.set(yscale="log", xlabel="sequence length L", ylabel="median steps to overlap 0.5", title=TITLE)
    axes.legend()
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F10."""
    time = {student: data["time"].sel(student=student).values for student in _STUDENTS}
    last = int(data["length"][-1])
    growth = {student: float(values[-1] / values[0]) for student, values in time.items()}
    shown = "; ".join(
        f"{student} {values[-1]:.2e} steps at L = {last}, {growth[student]:.2f} times those at L = "
        f"{int(data['length'][0])}"
        for student, values in time.items()
    )
    ok = growth["attention"] < 1.5 and growth["tied square"] < 1.5 < growth["untied square"]
    return [
        Claim(
            "F10",
            "figure 10",
            "softmax attention and the square network learn at the same rate in L with different constants; softmax is "
            "better for long sequences",
            "times of attention and of the tied network tend to constants in L, those of the untied one grow like L",
            shown,
            f"{CONDITION}: the same rate in L for the tied network, which is faster by a constant; attention overtakes "
            "only the untied network, which the released configuration trains"
            if ok
            else REFUTED,
        )
    ]
