"""The population risk over the disc of overlaps (m, e): contours with flow lines, surface, sections."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from seqindex.plotting.style import BLACK, POSITIONAL, SEMANTIC, VERMILLION, figure, styled

_MARKERS = {"minimum": "o", "saddle": "X", "maximum": "^"}
_DESCENT = "steepest descent at 0"
_E = "overlap with the encoding, e"
_M = "overlap with the target, m"


@styled
def draw_landscape(data: xr.Dataset) -> Figure:
    """Contours with flow lines beside sections along both axes; without an encoding the section alone.

    Args:
        data: what ``theory.landscape.landscape`` returns.
    """
    if data.sizes["row"] == 1:
        drawing, axes = figure(5.0, 3.2)
        draw_sections(axes, data)
        return drawing
    drawing, (left, right) = figure(9.5, 4.2, columns=2, width_ratios=[1.25, 1.0])
    draw_contours(left, data, flow=True)
    draw_sections(right, data)
    return drawing


def draw_contours(axes: Any, data: xr.Dataset, flow: bool = False, legend: bool = True) -> None:
    """Contours of the risk, its critical points, the steepest direction at the origin, and trajectories if any.

    Args:
        axes: Matplotlib axes.
        data: of ``theory.landscape.landscape``; optionally "trajectory_m", "trajectory_e" over (run, record).
        flow: whether to draw lines of the gradient flow on the sphere.
        legend: whether to explain the marks below the axes.
    """
    m, e, risk = (data[name].values for name in ("risk_m", "risk_e", "risk"))
    filled = axes.contourf(m, e, risk, levels=24, cmap="viridis")
    axes.contour(m, e, risk, levels=filled.levels[::3], colors=BLACK, linewidths=0.35, alpha=0.6)
    size, spread = np.abs(risk).max(), np.ptp(risk)
    digits = 3 + max(0, math.ceil(math.log10(size / spread))) if spread > 0.0 else 6
    axes.figure.colorbar(filled, ax=axes, label="population risk R(m, e)", shrink=0.85, format=f"%.{digits}g")
    if flow:
        _draw_flow(axes, data)
    if "trajectory_m" in data:
        for run in range(data.sizes["run"]):
            one = data.isel(run=run)
            axes.plot(one["trajectory_m"], one["trajectory_e"], color="white", linewidth=0.9, alpha=0.85)
        axes.plot([], [], color="white", label="SGD")
    dot = {"color": "white", "markeredgecolor": BLACK, "markersize": 7, "zorder": 5, "clip_on": False}
    kinds = data["critical_kind"].values if "critical_kind" in data else np.array([], dtype=str)
    for kind, marker in _MARKERS.items():
        some = data.isel(critical=kinds == kind) if (kinds == kind).any() else None
        if some is not None:
            axes.plot(some["critical_m"], some["critical_e"], marker, linestyle="none", label=kind, **dot)
    x, y = (0.45 * float(data[name][0]) for name in ("direction_m", "direction_e"))
    if float(data["curvatures"][0]) < -1e-9 * size:
        for sign in (1.0, -1.0):
            arrow = {"arrowstyle": "-|>", "color": VERMILLION, "linewidth": 2.2, "mutation_scale": 14}
            axes.annotate("", (sign * x, sign * y), (0.0, 0.0), arrowprops=arrow, zorder=6)
        axes.plot([], [], color=VERMILLION, linewidth=2.2, label=_DESCENT)
    axes.add_patch(Circle((0.0, 0.0), 1.0, fill=False, linewidth=0.8))
    axes.set(xlabel=_M, ylabel=_E, xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
    if legend and axes.get_legend_handles_labels()[0]:
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 3}
        axes.legend(facecolor="0.55", frameon=True, labelcolor="white", **place)


def _draw_flow(axes: Any, data: xr.Dataset) -> None:
    from scipy.interpolate import griddata  # slow to import, and needed for this alone

    x = np.linspace(-1.0, 1.0, 61)
    grid = np.stack(np.meshgrid(x, x), axis=-1)
    known = np.column_stack([data["risk_m"].values.ravel(), data["risk_e"].values.ravel()])
    known, kept = np.unique(known.round(12), axis=0, return_index=True)
    u, v = (griddata(known, data[name].values.ravel()[kept], grid) for name in ("flow_m", "flow_e"))
    outside = (grid**2).sum(-1) > 1.0
    u, v = np.ma.masked_where(outside | np.isnan(u), u), np.ma.masked_where(outside | np.isnan(v), v)
    axes.streamplot(x, x, u, v, color=(1.0, 1.0, 1.0, 0.55), linewidth=0.6, density=1.1, arrowsize=0.7)


def share_legend(drawing: Figure) -> None:
    """One legend below all axes for the marks of ``draw_contours``."""
    found = [pair for axes in drawing.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    marks = {label: handle for handle, label in found if label in (*_MARKERS, _DESCENT)}
    box = {"facecolor": "0.55", "frameon": True, "labelcolor": "white"}
    drawing.legend(marks.values(), marks.keys(), loc="outside lower center", ncols=len(marks), **box)


def draw_sections(axes: Any, data: xr.Dataset) -> None:
    """The risk along m at e = 0 and along e at m = 0."""
    row, column = data.sizes["row"] // 2, data.sizes["column"] // 2
    along_m, along_e = data.isel(row=row), data.isel(column=column)
    axes.plot(along_m["risk_m"], along_m["risk"], color=SEMANTIC, label="along m, e = 0")
    if data.sizes["row"] > 1:
        axes.plot(along_e["risk_e"], along_e["risk"], color=POSITIONAL, linestyle="--", label="along e, m = 0")
        axes.set(xlabel="overlap m or e")
        axes.legend()
    else:
        axes.set(xlabel=_M)
    axes.set(ylabel="population risk", xlim=(-1.0, 1.0))


@styled
def draw_surface(data: xr.Dataset) -> Figure:
    """The risk as a surface over the disc.

    Args:
        data: what ``theory.landscape.landscape`` returns for a student with an encoding.
    """
    drawing, flat = figure(5.4, 4.2)
    flat.remove()
    axes: Any = drawing.add_subplot(projection="3d")
    m, e, risk = (data[name].values for name in ("risk_m", "risk_e", "risk"))
    axes.plot_surface(m, e, risk, cmap="viridis", linewidth=0.15, edgecolor=(0.0, 0.0, 0.0, 0.25), antialiased=True)
    axes.set(xlabel="m", ylabel="e")
    axes.set_zlabel("risk")
    axes.view_init(elev=32, azim=-58)
    return drawing
