"""The two phases of learning on the axes that make each a straight line, and means of SGD beside its ODE."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from seqindex.plotting.style import BLACK, CYCLE, GREY, SEMANTIC

_LATE = 0.03
"""Distance from the end at which the line of the theory is drawn through the runs."""
_RUN: dict[str, Any] = {"color": SEMANTIC, "alpha": 0.35, "linewidth": 0.7}


def draw_escape(axes: Axes, data: xr.Dataset) -> None:
    """|m| of every run on a logarithmic axis: a straight line while SGD escapes.

    Args:
        axes: where to draw.
        data: "time", "overlap" over (run, record), "escape_rate" and "end".
    """
    t, size = data["time"].values, np.abs(data["overlap"].values)
    axes.plot(t, size.T, **_RUN)
    axes.plot([], [], **{**_RUN, "alpha": 1.0}, label="SGD")
    middle = float(np.median(_time_of(t, size, 0.05)))
    line = 0.05 * np.exp(float(data["escape_rate"]) * (t - middle))
    shown = (line < 1.0) & (line > size[:, 0].min())
    axes.plot(t[shown], line[shown], color=BLACK, linestyle="--", label=r"theory, $e^{\lambda t}$")
    axes.set(yscale="log", ylim=(max(1e-5, 0.3 * np.median(size[:, 0])), 1.5), xlim=(0.0, float(t[-1])))
    axes.set(xlabel=r"time $t = \gamma\,$step$/d$", ylabel="overlap $|m|$", title="escape from the start")
    axes.legend(loc="lower right")


def draw_alignment(axes: Axes, data: xr.Dataset) -> None:
    """Distance of |m| to its end on a logarithmic axis, from the time at which each run has half its end.

    Args:
        axes: where to draw.
        data: "time", "overlap" over (run, record), "alignment_rate" and "end".
    """
    t, size, end = data["time"].values, np.abs(data["overlap"].values), float(data["end"])
    gap = np.abs(size - end)
    for run, begin in zip(gap, _time_of(t, size, 0.5 * end), strict=True):
        axes.plot(t - begin, run, **_RUN)
    axes.plot([], [], **{**_RUN, "alpha": 1.0}, label="SGD")
    rate = float(data["alignment_rate"])
    late = float(np.median(_time_of(t, -gap, -_LATE) - _time_of(t, size, 0.5 * end)))
    shift = np.linspace(0.0, late + 3.0 / rate, 50)
    axes.plot(
        shift, _LATE * np.exp(-rate * (shift - late)), color=BLACK, linestyle="--", label="theory, Hessian at the end"
    )
    axes.set(yscale="log", xlim=(-2.0 / rate, 7.0 / rate), ylim=(1e-4, 1.5))
    axes.set(xlabel="time after half-way", ylabel=r"$|\,|m| - m_\infty|$", title="alignment with the end point")
    axes.legend(loc="lower left")


def draw_mean(axes: Axes, data: xr.Dataset) -> None:
    """Mean overlap of the chain beside the ODE, and the ODE without its second-order term.

    Args:
        axes: where to draw.
        data: "mean_time", "mean", "error" over (case, mean_record), "curve_time", "curve", "without" over (case,
            curve_record), and "rate" over case.
    """
    for index, colour in zip(range(data.sizes["case"]), CYCLE, strict=False):
        one = data.isel(case=index)
        t = one["mean_time"].values
        label = rf"$\gamma = {float(one['rate']):g}$"
        axes.errorbar(
            t, one["mean"], 3.0 * one["error"], color=colour, fmt="os^D"[index % 4], markersize=3.5, label=label
        )
        axes.plot(one["curve_time"], one["curve"], color=colour)
    axes.plot(
        data["curve_time"].values[0],
        data["without"].values[0],
        color=GREY,
        linestyle=":",
        label="without second-order term",
    )
    axes.set(
        xlabel=r"time $t = \gamma\,$step$/d$", ylabel="mean overlap $m$", title="mean of SGD (points) and ODE (lines)"
    )
    axes.set(ylim=(0.0, 1.05), xlim=(0.0, None))
    axes.legend(loc="lower right")


def _time_of(t: np.ndarray[Any, Any], size: np.ndarray[Any, Any], level: float) -> np.ndarray[Any, Any]:
    """First time at which each run has the given size; the last one where it never has."""
    above = size >= level
    return np.asarray(np.where(above.any(1), t[np.argmax(above, axis=1)], t[-1]))
