"""The population risk over the disc of overlaps (m, e)."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.patches import Circle

from seqindex.plotting.style import BLACK, VERMILLION


def draw_landscape(axes: Any, data: xr.Dataset) -> None:
    """Contours of the risk, its minima, the steepest direction at the origin, and trajectories if there are any.

    Args:
        axes: Matplotlib axes.
        data: "risk", "risk_m", "risk_e" over (row, column), up to the circle; "minimum_m", "minimum_e" over (minimum);
            "direction_m", "direction_e", a unit vector; optionally "trajectory_m", "trajectory_e" over (run, record).
    """
    m, e, risk = (data[name].values for name in ("risk_m", "risk_e", "risk"))
    filled = axes.contourf(m, e, risk, levels=24, cmap="viridis")
    axes.contour(m, e, risk, levels=filled.levels[::3], colors=BLACK, linewidths=0.35, alpha=0.6)
    axes.figure.colorbar(filled, ax=axes, label="population risk R(m, e)", shrink=0.85, format="%.3f")
    if "trajectory_m" in data:
        for run in range(data.sizes["run"]):
            one = data.isel(run=run)
            axes.plot(one["trajectory_m"], one["trajectory_e"], color="white", linewidth=0.9, alpha=0.85)
        axes.plot([], [], color="white", label="SGD")
    dot = {"color": "white", "markeredgecolor": BLACK, "markersize": 7, "zorder": 5, "clip_on": False}
    axes.plot(data["minimum_m"], data["minimum_e"], "o", label="minimum", **dot)
    x, y = 0.45 * float(data["direction_m"]), 0.45 * float(data["direction_e"])
    for sign in (1.0, -1.0):
        arrow = {"arrowstyle": "-|>", "color": VERMILLION, "linewidth": 2.2, "mutation_scale": 14}
        axes.annotate("", (sign * x, sign * y), (0.0, 0.0), arrowprops=arrow, zorder=6)
    axes.plot([], [], color=VERMILLION, linewidth=2.2, label="steepest descent at 0")
    axes.add_patch(Circle((0.0, 0.0), 1.0, fill=False, linewidth=0.8))
    axes.set(xlabel="overlap with the target, m", ylabel="overlap with the encoding, e")
    axes.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 3}
    axes.legend(facecolor="0.55", frameon=True, labelcolor="white", **place)
