"""Monte Carlo means beside the risk, the law of a random start, and the flatness index beside the exponent."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from seqindex.plotting.style import BLACK, BLUE, ORANGE

_NONE = 7.0
"""Where an infinite order is drawn."""


def draw_risks(axes: Axes, data: xr.Dataset) -> None:
    """Deviation of explicit means from the risk, in standard errors, at every state.

    Args:
        axes: where to draw.
        data: "explicit" and "explicit_error" over (state, vector), "risk" over state.
    """
    gap = (data["explicit"] - data["risk"]) / data["explicit_error"]
    for vector, (colour, marker) in enumerate(((BLUE, "o"), (ORANGE, "s"))):
        label = f"weight vector {vector + 1}"
        axes.errorbar(
            data["risk"], gap.isel(vector=vector), np.ones(gap.sizes["state"]), fmt=marker, color=colour, label=label
        )
    axes.axhline(0.0, color=BLACK, linewidth=0.7)
    axes.set(ylim=(-5.0, 5.0), xlabel="population risk by Hermite series", ylabel="explicit mean - risk, std. errors")
    axes.set_title("explicit data in dimension 200")
    axes.legend(loc="upper left")


def draw_start(axes: Axes, data: xr.Dataset) -> None:
    """Histograms of sqrt(d) m at random starts, and the normal density.

    Args:
        axes: where to draw.
        data: "start_overlap" over (dim, draw).
    """
    edges = np.linspace(-4.0, 4.0, 33)
    for dim, colour, style in zip(data["dim"].values, (BLUE, ORANGE), ("-", "--"), strict=True):
        values = data["start_overlap"].sel(dim=dim).values
        height, _ = np.histogram(values, edges, density=True)
        axes.stairs(height, edges, color=colour, linestyle=style, linewidth=1.4, label=f"d = {int(dim)}")
    x = np.linspace(-4.0, 4.0, 200)
    axes.plot(x, np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi), color=BLACK, linewidth=0.9, label="N(0, 1)")
    axes.set(xlabel=r"$\sqrt{d}\,m$", ylabel="density", xlim=(-4.0, 4.0), ylim=(0.0, 0.55))
    axes.set_title("overlap at a random start")
    axes.legend(loc="upper left")


def draw_exponents(axes: Axes, data: xr.Dataset) -> None:
    """Flatness with an encoding against that without; the size of a point is the number of targets.

    Args:
        axes: where to draw.
        data: "flatness_without" and "flatness_with" over target.
    """
    pairs = np.stack([data["flatness_without"].values, data["flatness_with"].values], axis=-1)
    places, counts = np.unique(np.where(np.isinf(pairs), _NONE, pairs), axis=0, return_counts=True)
    axes.scatter(places[:, 0], places[:, 1], s=30.0 + 40.0 * counts, color=BLUE, alpha=0.8, edgecolor=BLACK)
    for (x, y), count in zip(places, counts, strict=True):
        axes.annotate(str(count), (x, y), ha="center", va="center", color="white", fontsize=7.5)
    axes.plot([0.0, 8.0], [0.0, 8.0], color=BLACK, linewidth=0.7)
    ticks, names = [1, 2, 3, 4, 5, 6, _NONE], ["1", "2", "3", "4", "5", "6", "none"]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
    axes.set(xlim=(0.5, 7.6), ylim=(0.5, 7.6), xlabel="flatness without encoding", ylabel="flatness with encoding")
    axes.set_title("random targets, lemma 1: never above the line")
