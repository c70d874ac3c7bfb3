"""Drawing of simulated runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from seqindex.plotting.style import NEITHER, POSITIONAL, SEMANTIC, figure, styled
from seqindex.sgd.ends import ENDS, encoding_norm, ends

LOOKS: dict[str, tuple[str, Any]] = {
    "neither": (NEITHER, ":"),
    "semantic": (SEMANTIC, "-"),
    "positional": (POSITIONAL, "--"),
}
"""Colour and line of a replica, by where it ended."""


@styled
def draw_runs(runs: xr.Dataset) -> Figure:
    """Overlap and encoding overlap of every replica against the number of steps.

    Args:
        runs: what ``sgd`` returns.  Where the encoding has several directions its norm |e| is drawn.

    Example:
        >>> target = sx.PositionalSemanticTarget(0.5, alignment=1.0)
        >>> problem = sx.Problem(target, sx.Attention(2, sx.OppositeEncoding()))
        >>> runs = sx.sgd(problem, dim=100, learning_rate=0.5, steps=100, replicas=3, records=5)
        >>> [axes.get_ylabel() for axes in draw_runs(runs).get_axes()]
        ['overlap $m$', 'encoding overlap $e$']
    """
    panels = [("overlap $m$", runs["overlap"], -1.0)]
    if "position" in runs["overlap"].dims:  # one overlap a position: their size
        panels = [(r"overlap $\|m\| / \sqrt{L}$", runs["overlap_norm"], 0.0)]
    if "encoding_overlap" in runs:
        several = "direction" in runs["encoding_overlap"].dims
        label = "encoding overlap $|e|$" if several else "encoding overlap $e$"
        panels.append((label, encoding_norm(runs) if several else runs["encoding_overlap"], 0.0 if several else -1.0))
    where = ends(runs).values
    drawing, axes = figure(3.6 * len(panels), 3.1, columns=len(panels), sharex=True)
    for panel, (label, values, lowest) in zip(np.atleast_1d(axes), panels, strict=True):
        _draw_replicas(panel, runs["step"].values, values.transpose("replica", "record").values, where)
        panel.set(xlabel="step", ylabel=label, ylim=(lowest - 0.04, 1.04), xlim=_limits(runs["step"].values))
        panel.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
        panel.axhline(0.0, color="black", linewidth=0.5, zorder=0)
    handles = []
    for flag, name in enumerate(ENDS):
        if (where == flag).any():
            colour, line = LOOKS[name]
            handles.append(Line2D([], [], color=colour, linestyle=line, label=f"{name}: {(where == flag).sum()}"))
    drawing.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    drawing.suptitle(_title(runs), fontsize=9.5)
    return drawing


def _draw_replicas(panel: Any, steps: Any, values: Any, where: Any) -> None:
    width = float(np.clip(8.0 / np.sqrt(len(values)), 0.5, 1.4))
    for flag, name in enumerate(ENDS):
        colour, line = LOOKS[name]
        if len(steps) == 1:  # a line through one point shows nothing
            panel.plot(np.repeat(steps, (where == flag).sum()), values[where == flag, 0], "o", color=colour, alpha=0.7)
            continue
        paths = [np.column_stack([steps, row]) for row in values[where == flag]]
        panel.add_collection(LineCollection(paths, colors=colour, linestyles=line, linewidths=width, alpha=0.7))


def _limits(steps: Any) -> tuple[float, float]:
    low, high = float(steps[0]), float(steps[-1])
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _title(runs: xr.Dataset) -> str:
    attrs = runs.attrs
    parts = [f"{runs.sizes['replica']} replicas"]
    if "dim" in attrs:
        parts.append(f"$d$ = {attrs['dim']:,}".replace(",", "\u2009"))
    if "learning_rate" in attrs:
        parts.append(f"learning rate {attrs['learning_rate']:g}")
    if "loss" in attrs:
        parts.append({"square": "squared loss", "norm": "un-squared norm"}.get(attrs["loss"], attrs["loss"]))
    return ", ".join(parts)
