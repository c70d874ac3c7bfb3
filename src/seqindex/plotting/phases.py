"""Drawing of the phase diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from scipy import ndimage

from seqindex.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, YELLOW, figure, styled

LOOKS: dict[str, tuple[str, str]] = {
    "unique_semantic": (BLUE, "semantic minimum only"),
    "global_semantic": (SKY, "semantic minimum lower"),
    "global_semantic_positional_dynamic": (YELLOW, "semantic minimum lower,\n    steepest descent positional"),
    "unique_semantic_misaligned": (PURPLE, "semantic minimum only,\n    steepest descent positional"),
    "global_positional": (ORANGE, "positional minimum lower"),
    "unique_positional": (VERMILLION, "positional minimum only"),
    "mixed": (GREEN, "minimum slides between the two"),
    "other": (GREY, "other"),
}
"""Colour and description of a phase, by name; a phase keeps its colour and its number whichever phases occur."""
BOUNDARIES: dict[str, tuple[Any, str]] = {
    "steepest": ("-", "steepest descent switches"),
    "equal_risk": ("--", "equal risk"),
    "semantic": ("-.", "semantic minimum lost"),
    "positional": (":", "positional minimum appears"),
}
"""Line and description of a boundary, by name."""
_SMALLEST = 5e-4  # share of the map below which a region gets no number


@styled
def draw_phase_diagram(diagram: xr.Dataset) -> Figure:
    """Map of the phases over alignment and omega, with the boundaries between them.

    Args:
        diagram: what ``phase_diagram`` returns.

    Example:
        >>> diagram = sx.phase_diagram(alignment=[0.5, 1.0], omega=[0.1, 0.5, 0.9])
        >>> draw_phase_diagram(diagram).get_axes()[0].get_xlabel()
        'alignment $a$'
    """
    diagram = diagram.sortby(["alignment", "omega"])
    drawing, axes = figure(8.0, 4.5)
    x, y = _edges(diagram["alignment"].values), _edges(diagram["omega"].values)
    names = diagram["phase"].attrs["flag_meanings"].split()
    flags = diagram["phase"].transpose("omega", "alignment").values
    colours = ListedColormap([LOOKS[name][0] for name in names])
    norm = BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names))
    axes.pcolormesh(x, y, flags, cmap=colours, norm=norm, rasterized=True)
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel="alignment $a$", ylabel=r"positional weight $\omega$")
    for flag in np.unique(flags):
        _write_number(axes, x, y, flags == flag, str(list(LOOKS).index(names[flag]) + 1))
    handles: list[Any] = [
        Patch(facecolor=LOOKS[name][0], edgecolor="black", linewidth=0.5, label=f"{number}  {LOOKS[name][1]}")
        for number, name in enumerate(LOOKS, start=1)
        if name in {names[flag] for flag in np.unique(flags)}
    ]
    for kind, (line, label) in BOUNDARIES.items():
        axes.plot(diagram["alignment"], diagram[f"boundary_{kind}"], color="black", linestyle=line, linewidth=1.3)
        handles.append(Line2D([], [], color="black", linestyle=line, linewidth=1.3, label=label))
    drawing.legend(handles=handles, loc="outside right center", labelspacing=0.7)
    loss = {"square": "squared loss", "norm": "un-squared norm"}.get(diagram.attrs.get("loss", ""), "")
    axes.set_title(loss)
    axes.spines[["top", "right"]].set_visible(True)
    return drawing


def _edges(centres: Any) -> Any:
    """Edges of the cells around given centres."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middle = 0.5 * (centres[1:] + centres[:-1])
    return np.concatenate([[2.0 * centres[0] - middle[0]], middle, [2.0 * centres[-1] - middle[-1]]])


def _write_number(axes: Any, x: Any, y: Any, inside: Any, text: str) -> None:
    """Write in each connected region that is not tiny, at the point that lies farthest from its edge."""
    regions, count = ndimage.label(inside)
    for region in range(1, count + 1):
        here = regions == region
        if here.mean() < _SMALLEST:
            continue
        spacing = [1.0 / here.shape[0], 1.0 / here.shape[1]]  # the map is drawn about square
        depth = ndimage.distance_transform_edt(np.pad(here, 1), sampling=spacing)[1:-1, 1:-1]
        row, column = np.unravel_index(int(np.argmax(depth)), here.shape)
        axes.text(
            0.5 * (x[column] + x[column + 1]),
            0.5 * (y[row] + y[row + 1]),
            text,
            ha="center",
            va="center",
            fontweight="bold",
            fontsize=9.0 if here.mean() > 10 * _SMALLEST else 6.5,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )
