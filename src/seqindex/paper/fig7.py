"""Figure 7: gain of tying at equal learning rates for SIE 2: sum He2 / sqrt(2), relu, d = 1000, threshold 0.5.

Beside it the gains of other targets, from random starts (``gain_targets``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import xarray as xr
from matplotlib.figure import Figure

from seqindex.paper.claim import CONFIRMED, REFUTED, Claim
from seqindex.paper.gain_targets import target_claim, target_jobs, target_table
from seqindex.paper.gains import covers, draw_gain, gain_table, last_gain, time_jobs
from seqindex.paper.jobs import TimeJob
from seqindex.paper.networks import SECOND
from seqindex.paper.panels import together, unpacked
from seqindex.plotting.style import figure, styled

TITLE = "gain of tying at equal learning rates, SIE 2"


@dataclass(frozen=True)
class Scale:
    """Lengths, learning rate, largest number of steps, and replicas; dimension and replicas of the other targets."""

    lengths: tuple[int, ...]
    rate: float
    steps: int
    replicas: int
    targets: tuple[int, int]


FULL = Scale(lengths=tuple(range(1, 11)), rate=1e-3, steps=3 * 10**7, replicas=64, targets=(10_000, 256))
QUICK = Scale(lengths=(1, 2, 4), rate=1e-2, steps=10**7, replicas=64, targets=(1000, 64))


def jobs(scale: Scale) -> list[TimeJob]:
    """Both networks at the same rate, then the other targets."""

    def rate(length: int) -> float:
        return scale.rate

    own = time_jobs(SECOND, scale.lengths, (rate, rate), scale.steps, 0.5, scale.replicas)
    return [*own, *target_jobs(*scale.targets)]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """The gain at every length and its exponent; the gains of the other targets."""
    count = 2 * len(scale.lengths)
    return together({"length": gain_table(scale.lengths, results[:count]), "target": target_table(results[count:])})


@styled
def draw(data: xr.Dataset) -> Figure:
    """Gain against length."""
    drawing, axes = figure(4.8, 3.6)
    draw_gain(axes, unpacked(data, "length"), {"L": 1.0}, TITLE)
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F7 and T2a."""
    own = unpacked(data, "length")
    facts, measured = last_gain(SECOND, own)
    return [
        Claim(
            "F7",
            "figure 7, theorem 2",
            "equal rates, SIE 2: the gain is proportional to L",
            f"exponent 1, exactly: the untied network is the tied one slowed by L; {facts}",
            f"exponent {float(own['slope']):.3f} [{float(own['slope_low']):.3f}, {float(own['slope_high']):.3f}]; "
            f"{measured}",
            CONFIRMED if covers(own, 1.0, 0.02) else REFUTED,
        ),
        target_claim(unpacked(data, "target")),
    ]
