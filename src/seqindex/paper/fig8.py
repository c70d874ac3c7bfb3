"""Figure 8: gain of tying at equal learning rates for SIE 1: sum z / sqrt(L), relu, d = 1000, threshold 0.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import xarray as xr
from matplotlib.figure import Figure

from seqindex.paper.claim import CONFIRMED, REFUTED, Claim
from seqindex.paper.gains import covers, draw_gain, gain_table, time_jobs
from seqindex.paper.jobs import TimeJob
from seqindex.paper.networks import FIRST
from seqindex.plotting.style import figure, styled

TITLE = "gain of tying at equal learning rates, SIE 1"


@dataclass(frozen=True)
class Scale:
    """Lengths, learning rate, largest number of steps, and replicas."""

    lengths: tuple[int, ...]
    rate: float
    steps: int
    replicas: int


FULL = Scale(lengths=(1, 2, 5, 10, 20, 50, 100, 200), rate=0.015, steps=10**7, replicas=64)
QUICK = Scale(lengths=(1, 3, 10), rate=0.015, steps=10**6, replicas=64)


def jobs(scale: Scale) -> list[TimeJob]:
    """Both networks at the same rate."""

    def rate(length: int) -> float:
        return scale.rate

    return time_jobs(FIRST, scale.lengths, (rate, rate), scale.steps, 0.2, scale.replicas)


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
    """F8 and the part of T2a for SIE 1."""
    return [
        Claim(
            "F8",
            "figure 8, theorem 2",
            "equal rates, SIE 1: the gain is proportional to L",
            "exponent 1, exactly: the untied network is the tied one slowed by L",
            f"exponent {float(data['slope']):.3f} [{float(data['slope_low']):.3f}, {float(data['slope_high']):.3f}]",
            CONFIRMED if covers(data, 1.0, 0.02) else REFUTED,
        )
    ]
