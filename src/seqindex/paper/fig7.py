"""Figure 7: gain of tying at equal learning rates for SIE 2: sum He2 / sqrt(2), relu, d = 1000, threshold 0.5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import xarray as xr
from matplotlib.figure import Figure

from seqindex.paper.claim import CONFIRMED, REFUTED, Claim
from seqindex.paper.gains import covers, draw_gain, gain_table, time_jobs
from seqindex.paper.jobs import TimeJob
from seqindex.paper.networks import SECOND
from seqindex.plotting.style import figure, styled

TITLE = "gain of tying at equal learning rates, SIE 2"


@dataclass(frozen=True)
class Scale:
    """Lengths, learning rate, largest number of steps, and replicas."""

    lengths: tuple[int, ...]
    rate: float
    steps: int
    replicas: int


FULL = Scale(lengths=tuple(range(1, 11)), rate=1e-3, steps=3 * 10**7, replicas=64)
QUICK = Scale(lengths=(1, 2, 4), rate=1e-2, steps=10**7, replicas=64)


def jobs(scale: Scale) -> list[TimeJob]:
    """Both networks at the same rate."""

    def rate(length: int) -> float:
        return scale.rate

    return time_jobs(SECOND, scale.lengths, (rate, rate), scale.steps, 0.5, scale.replicas)


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """The gain at every length and its exponent."""
    return gain_table(scale.lengths, results)


@styled
def draw(data: xr.Dataset) -> Figure:
    """Gain against length."""
    drawing, axes = figure(4.8, 3.6)
    draw_gain(axes, data, {"L": 1.0}, TITLE)
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F7 and the part of T2a for SIE 2."""
    return [
        Claim(
            "F7",
            "figure 7, theorem 2",
            "equal rates, SIE 2: the gain is proportional to L",
            "exponent 1, exactly: the untied network is the tied one slowed by L",
            f"exponent {float(data['slope']):.3f} [{float(data['slope_low']):.3f}, {float(data['slope_high']):.3f}]",
            CONFIRMED if covers(data, 1.0, 0.02) else REFUTED,
        )
    ]
