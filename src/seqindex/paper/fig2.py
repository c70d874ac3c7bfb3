"""Figure 2: a target of SIE 4 whose landscape an encoding makes effectively of order 2, for which trace?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from seqindex.model.attention import Attention
from seqindex.model.encoding import OppositeEncoding
from seqindex.model.link import Target
from seqindex.model.problem import Problem
from seqindex.paper.claim import CONDITION, CONFIRMED, REFUTED, Claim
from seqindex.paper.jobs import Job
from seqindex.paper.panels import packed, shown, unpacked
from seqindex.plotting.landscape import draw_contours, share_legend
from seqindex.plotting.style import figure, styled
from seqindex.sgd.start import Start

TITLE = "4/3 + He4 + 2 He4: an encoding makes SIE 4 effectively 2, with one of the two traces"
_TEXT = "4/3 + He4(z1) + 2*He4(z2)"
_NAMES = {"plain_trace": "Tr, as in the paper", "trace": "Tr / sqrt(2), as released"}
_RATE = 5e-3
"""About half of the largest rate at which SGD leaves along the encoding with the released trace at d = 1000."""


@dataclass(frozen=True)
class Scale:
    """Points on an axis of a landscape, whether critical points are searched; dimension and steps of SGD."""

    points: int
    critical: bool
    dim: int
    steps: int


FULL = Scale(points=81, critical=True, dim=1000, steps=8 * 10**6)
QUICK = Scale(points=25, critical=False, dim=100, steps=6 * 10**5)


def _problems() -> dict[str, Problem]:
    target = Target(_TEXT, 2)
    opposite = OppositeEncoding()
    with_encoding = {name: Problem(target, Attention(2, opposite, name)) for name in _NAMES}
    return {**with_encoding, "bare": Problem(target, Attention(2, None, "trace"))}


def jobs(scale: Scale) -> list[Job]:
    """SGD from a random start with either trace."""
    problems = _problems()
    return [
        Job(problems[name], scale.dim, _RATE, scale.steps, 64, 2, Start.random(), 101, history=True) for name in _NAMES
    ]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Landscapes with their orders, and |e| along the runs."""
    data = packed(_problems(), scale.points, scale.critical)
    size = np.array([np.abs(runs["encoding_overlap"].values) for runs in results])
    return data.assign(
        size=(("reduction", "replica", "record"), size), step=("record", results[0]["step"].values)
    ).assign_coords(reduction=list(_NAMES))


@styled
def draw(data: xr.Dataset) -> Figure:
    """The two landscapes, and how SGD moves along the encoding in each."""
    drawing, axes = figure(13.0, 4.4, columns=3, width_ratios=[1.0, 1.0, 0.9])
    for panel, (name, words) in zip(axes[:2], _NAMES.items(), strict=True):
        one = unpacked(data, name)
        draw_contours(panel, one, flow=True, legend=False)
        panel.set_title(f"{words}\nflatness {shown(one['flatness'])}, escape order {shown(one['escape'])}")
    for name, words in _NAMES.items():
        some = data["size"].sel(reduction=name)
        lines = axes[2].plot(data["step"], some.median("replica"), label=words)
        axes[2].plot(data["step"], some.values[:12].T, color=lines[0].get_color(), alpha=0.25, linewidth=0.6)
    axes[2].ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
    axes[2].set(xlabel="steps", ylabel="|e|", ylim=(0.0, 1.02), title="SGD from random starts")
    axes[2].legend(loc="upper left")
    share_legend(drawing)
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F2."""
    paper, released = (unpacked(data, name) for name in _NAMES)
    bare = unpacked(data, "bare")
    along = [float(one["curvatures"][int(np.argmax(np.abs(one["direction_e"].values)))]) for one in (paper, released)]
    stays, leaves = (float(data["size"].sel(reduction=name).isel(record=-1).median()) for name in _NAMES)
    ok = along[0] > 0.0 > along[1] and stays < 0.3 and leaves > 0.5
    return [
        Claim(
            "F2",
            "figure 2",
            "4/3 + He4(z1) + 2 He4(z2) has SIE 4, and an encoding makes it effectively 2",
            f"SIE {shown(bare['exponent'])}; flatness {shown(bare['flatness'])} without encoding and "
            f"{shown(paper['flatness'])} with it; curvature in e {along[0]:+.5f} with the trace (no escape), "
            f"{along[1]:+.5f} with the trace over sqrt(2) (escape at order {shown(released['escape'])})",
            f"median |e| at the end of SGD: {stays:.3f} with the trace, {leaves:.3f} with the trace over sqrt(2)",
            f"{CONDITION}: with the released trace over sqrt(L); with the trace as written the start is a local minimum"
            if ok
            else (CONFIRMED if along[0] < 0.0 else REFUTED),
        )
    ]
