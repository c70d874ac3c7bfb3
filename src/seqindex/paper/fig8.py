"""Figure 8: gain of tying at equal learning rates for SIE 1: sum z / sqrt(L), relu, d = 1000, threshold 0.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from seqindex.paper.claim import CONFIRMED, REFUTED, Claim
from seqindex.paper.gains import DIM, covers, draw_gain, gain_table, last_gain, time_jobs
from seqindex.paper.jobs import TimeJob
from seqindex.paper.networks import FIRST, tied
from seqindex.paper.panels import together, unpacked
from seqindex.plotting.style import BLUE, figure, styled
from seqindex.sgd.start import Start
from seqindex.sgd.survival import median_time

TITLE = "gain of tying at equal learning rates, SIE 1"
_THRESHOLD = 0.2


@dataclass(frozen=True)
class Scale:
    """Lengths of both networks, further ones of the tied network; learning rate, largest number of steps, replicas."""

    lengths: tuple[int, ...]
    longer: tuple[int, ...]
    rate: float
    steps: int
    replicas: int


FULL = Scale((1, 2, 5, 10, 20, 50, 100, 200), longer=(500, 1000), rate=0.015, steps=10**7, replicas=64)
QUICK = Scale((1, 3, 10), longer=(100,), rate=0.015, steps=10**6, replicas=64)


def jobs(scale: Scale) -> list[TimeJob]:
    """Both networks at the same rate, then the tied one alone."""

    def rate(length: int) -> float:
        return scale.rate

    settings = (DIM, scale.rate, scale.steps, _THRESHOLD, scale.replicas, 3, Start.released())
    both = time_jobs(FIRST, scale.lengths, (rate, rate), scale.steps, _THRESHOLD, scale.replicas)
    return [*both, *(TimeJob(tied(FIRST, n), *settings) for n in scale.longer)]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """The gain at every length and its exponent; median steps of the tied network at all lengths."""
    count = len(scale.lengths)
    medians = [median_time(times) for times in [*results[:count], *results[2 * count :]]]
    steps = xr.Dataset(
        {
            "median": ("length", [median.value for median in medians]),
            "low": ("length", [median.low for median in medians]),
            "high": ("length", [median.high for median in medians]),
        },
        {"length": [*scale.lengths, *scale.longer]},
    )
    return together({"gain": gain_table(scale.lengths, results[: 2 * count]), "tied": steps})


@styled
def draw(data: xr.Dataset) -> Figure:
    """Gain against length, and steps of the tied network."""
    drawing, (left, right) = figure(9.6, 3.6, columns=2)
    draw_gain(left, unpacked(data, "gain"), {"L": 1.0}, TITLE)
    steps = unpacked(data, "tied")
    spread = np.array([steps["median"] - steps["low"], steps["high"] - steps["median"]])
    right.errorbar(steps["length"], steps["median"], yerr=np.maximum(spread, 0.0), fmt="o-", color=BLUE, capsize=2)
    right.set(
        xscale="log",
        xlabel="sequence length L",
        ylabel=f"median steps to overlap {_THRESHOLD}",
        title="tied network",
        ylim=(0.0, 1.2 * float(steps["high"].max())),
    )
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F8."""
    own, steps = unpacked(data, "gain"), unpacked(data, "tied")
    facts, measured = last_gain(FIRST, own)
    spread = float(steps["median"].max() / steps["median"].min())
    longest = int(steps["length"][-1])
    return [
        Claim(
            "F8",
            "figure 8, theorem 2",
            "equal rates, SIE 1: the gain is proportional to L",
            "exponent 1, exactly: the untied network is the tied one slowed by L, whose time does not depend on L; "
            f"{facts}",
            f"exponent {float(own['slope']):.3f} [{float(own['slope_low']):.3f}, {float(own['slope_high']):.3f}]; "
            f"{measured}; tied medians up to L = {longest} within a factor {spread:.3f}",
            CONFIRMED if covers(own, 1.0, 0.02) and spread < 1.1 else REFUTED,
        )
    ]
