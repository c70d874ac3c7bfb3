"""The share of runs that end in the semantic minimum, against omega."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from seqindex.plotting.style import CYCLE, GREY

_MARKERS = "osD^vP"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))


def draw_transition(axes: Any, data: xr.Dataset, labels: Sequence[str]) -> None:
    """Measured shares with one-standard-error bars, and the finite-size theory; fitted curves where there is none.

    Args:
        axes: Matplotlib axes.
        data: "share", "share_low", "share_high" over (series, omega), NaN where not measured, and "fit" over
            (series, omega_fit); "theory_curve" over (series, omega_theory), NaN where there is none.
        labels: legend entry of each series.
    """
    known = np.isfinite(data["theory_curve"].values).any(-1)
    for index, label in enumerate(labels):
        one = data.isel(series=index)
        there = np.isfinite(one["share"].values)
        omega, share = one["omega"].values[there], one["share"].values[there]
        bars = np.stack([share - one["share_low"].values[there], one["share_high"].values[there] - share])
        color, dash = CYCLE[index % len(CYCLE)], _DASHES[index % len(_DASHES)]
        marker = _MARKERS[index % len(_MARKERS)]
        style = {"fmt": marker, "color": color, "markersize": 3.8, "elinewidth": 0.9, "capsize": 1.5}
        axes.errorbar(omega, share, np.abs(bars), **style)
        curve = ("omega_theory", "theory_curve") if known[index] else ("omega_fit", "fit")
        width = 1.6 if known[index] else 0.8
        axes.plot(one[curve[0]], one[curve[1]], color=color, linestyle=dash, linewidth=width)
        axes.plot([], [], color=color, linestyle=dash, linewidth=width, marker=marker, markersize=3.8, label=label)
    if known.any():
        axes.plot([], [], color=GREY, linewidth=1.6, label="thick: finite-size theory")
    if not known.all():
        axes.plot([], [], color=GREY, linewidth=0.8, label="thin: fitted curve")
    axes.set(xlabel=r"weight of the positional part, $\omega$", ylabel="probability of the semantic minimum")
    axes.set_ylim(-0.03, 1.03)


def mark_omega(axes: Any, omega: float, label: str, linestyle: str = "-") -> None:
    """A vertical line at a predicted omega."""
    axes.axvline(omega, color=GREY, linestyle=linestyle, linewidth=1.2, label=label, zorder=0)
