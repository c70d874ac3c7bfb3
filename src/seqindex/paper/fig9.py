"""Figure 9: an untied network whose learning rate grows like L stops learning beyond some length.

Target L^{-1/2} sum z (SIE 1), relu, d = 3000, rate 0.05 for the tied network and 0.05 L for the untied one.
The flow of the untied network with equal rows ends at r = 1 while gamma <= 1 and at r = 1 / (2 gamma - 1) beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from seqindex.paper.claim import CONFIRMED, REFUTED, Claim
from seqindex.paper.jobs import Job
from seqindex.paper.networks import FIRST, tied, untied
from seqindex.plotting.style import BLUE, ORANGE, figure, styled
from seqindex.sgd.start import Start

TITLE = "an untied learning rate that grows like L fails beyond some length"
_DIM, _RATE, _THRESHOLD = 3000, 0.05, 0.2


@dataclass(frozen=True)
class Scale:
    """Lengths, steps and replicas."""

    lengths: tuple[int, ...]
    steps: int
    replicas: int


FULL = Scale(lengths=(1, 10, 20, 50, 75, 100, 150, 200), steps=30_000, replicas=64)
QUICK = Scale(lengths=(1, 20, 50, 100), steps=30_000, replicas=64)


def jobs(scale: Scale) -> list[Job]:
    """For every length the tied network at a constant rate, then the untied one at a rate that grows like L."""
    start = Start.released()
    settings = (scale.steps, scale.replicas, 9, start, 31)
    return [Job(tied(FIRST, n), _DIM, _RATE, *settings, history=True) for n in scale.lengths] + [
        Job(untied(FIRST, n), _DIM, _RATE * n, *settings, history=True) for n in scale.lengths
    ]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Size of the overlap at every record and the ceiling that the flow predicts."""
    size = np.array([runs["overlap_norm"].values for runs in results])
    count = len(scale.lengths)
    rate = _RATE * np.array(scale.lengths, dtype=float)
    ceiling = np.where(rate > 1.0, 1.0 / np.maximum(2.0 * rate - 1.0, 1e-12), 1.0)
    dims = ("network", "length", "replica", "record")
    return xr.Dataset(
        {"overlap_norm": (dims, size.reshape(2, count, *size.shape[1:])), "ceiling": ("length", ceiling)},
        {
            "network": ["tied", "untied"],
            "length": list(scale.lengths),
            "step": ("record", results[0]["step"].values),
        },
    )


@styled
def draw(data: xr.Dataset) -> Figure:
    """Overlap along the runs, and at their end against the length."""
    drawing, (left, right) = figure(9.5, 3.8, columns=2)
    for length in data["length"].values:
        one = data["overlap_norm"].sel(length=length, network="untied").mean("replica")
        left.plot(data["step"], one, label=f"L = {length}")
    left.set(xlabel="steps", ylabel=r"$\|m\| / \sqrt{L}$", title="untied, rate 0.05 L", ylim=(0.0, None))
    left.legend(ncols=2)
    final = data["overlap_norm"].isel(record=-1)
    for network, colour in (("tied", BLUE), ("untied", ORANGE)):
        one = final.sel(network=network)
        right.errorbar(
            data["length"], one.mean("replica"), one.std("replica"), fmt="o-", color=colour, label=network, capsize=2
        )
    right.plot(data["length"], data["ceiling"], "k--", label="untied: where its flow ends")
    right.axhline(_THRESHOLD, color="0.6", linestyle=":", linewidth=0.9)
    right.set(xlabel="sequence length L", title="at the end", ylim=(0.0, 1.02))
    right.legend()
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F9."""
    final = data["overlap_norm"].isel(record=-1)
    highest = data["overlap_norm"].sel(network="untied").max("record").mean("replica")
    last = float(data["length"][-1])
    mean, error = final.mean("replica"), final.std("replica") / np.sqrt(final.sizes["replica"])
    beyond = data["length"].values[data["ceiling"].values < _THRESHOLD]
    stuck = [length for length in beyond if float(highest.sel(length=length)) < _THRESHOLD]
    learns = float(mean.sel(network="tied").min())
    ok = len(stuck) == len(beyond) > 0 and learns > _THRESHOLD
    measured = ", ".join(
        f"L = {length}: {float(mean.sel(network='untied', length=length)):.3f}" for length in data["length"].values
    )
    return [
        Claim(
            "F9",
            "figure 9",
            "an untied rate that grows like L fails beyond some length, where the gain diverges",
            f"the flow ends at 1 / (2 gamma - 1) for gamma = {_RATE} L > 1: below {_THRESHOLD} beyond L = "
            f"{(1.0 + 1.0 / _THRESHOLD) / (2.0 * _RATE):.0f}",
            f"untied overlap at the end: {measured} (errors up to {float(error.max()):.4f}, predicted at "
            f"L = {last:.0f}: {float(data['ceiling'][-1]):.3f}); tied at least {learns:.2f}",
            CONFIRMED if ok else REFUTED,
        )
    ]
