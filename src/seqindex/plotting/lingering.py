"""Overlaps of a few runs against the number of steps, on a logarithmic axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from seqindex.plotting.style import POSITIONAL, SEMANTIC


def draw_overlaps(axes: Any, runs: xr.Dataset) -> None:
    """|m| and |e| of every run against the steps, the start left out.

    Args:
        axes: Matplotlib axes.
        runs: "overlap" and "encoding_overlap" over (replica, record), coordinate "step".
    """
    kept = runs["step"].values > 0
    step = runs["step"].values[kept]
    for name, color, dash, label in (
        ("encoding_overlap", POSITIONAL, "--", "positional, |e|"),
        ("overlap", SEMANTIC, "-", "semantic, |m|"),
    ):
        values = np.abs(runs[name].values[:, kept])
        for run in values:
            axes.plot(step, run, color=color, linestyle=dash, linewidth=0.8, alpha=0.6)
        axes.plot([], [], color=color, linestyle=dash, label=label)
    axes.set_xlim(step[-1] / 1e4, step[-1])
    axes.set(xscale="log", xlabel="steps", ylabel="overlap", ylim=(-0.02, 1.02))
    axes.legend(loc="upper left")
