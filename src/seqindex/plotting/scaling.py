"""Recovery times against the dimension, on the axes that make each law a straight line."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from seqindex.plotting.style import BLUE, GREEN, ORANGE, PURPLE, VERMILLION, figure, styled

_LOOKS: dict[str, tuple[str, str, str]] = {
    "SIE 1": (BLUE, "o", "-"),
    "SIE 2": (GREEN, "o", "-"),
    "SIE 2, schedule": (ORANGE, "s", "--"),
    "SIE 3": (VERMILLION, "o", "-"),
    "SIE 4": (PURPLE, "o", "-"),
}
"""Colour, marker and line of each curve."""


@styled
def draw_scaling(data: xr.Dataset) -> Figure:
    """One panel for each SIE; points are medians with 95 % intervals, lines the predicted medians.

    Steps are divided by d^(SIE - 1) (by d for SIE 1), so that a law of Theorem 1 is a horizontal line and logarithms
    show: for SIE 2 against log d, where d log d is a straight line and d log^2 d a parabola.

    Args:
        data: of ``seqindex.paper.scaling.compute``.
    """
    drawing, axes = figure(7.4, 5.6, rows=2, columns=2)
    for panel, sie in zip(np.ravel(axes), (1, 2, 3, 4), strict=True):
        names = data["curve"].values[data["sie"].values == sie]
        for name in names:
            _draw_curve(panel, data, str(name), max(1, sie - 1))
        power = "" if sie <= 2 else rf"^{sie - 1}"
        panel.set(xscale="log")
        _mark_dimensions(panel, data["dim"].values[np.isin(data["series"].values, names)])
        panel.set(xlabel="dimension $d$", ylabel=rf"median steps / $d{power}$", title=f"SIE {sie}")
        high = float(panel.get_ylim()[1])
        panel.set_ylim(0.0, 1.35 * high)
        panel.legend(loc="lower right" if sie != 2 else "upper left")
    drawing.suptitle("points: measured medians, 95 % intervals; lines: predicted medians", fontsize=9.5)
    return drawing


def _draw_curve(panel: Any, data: xr.Dataset, name: str, power: int) -> None:
    colour, marker, line = _LOOKS[name]
    one = data.isel(point=data["series"].values == name)
    fit = data.sel(curve=name)
    dim = one["dim"].values.astype(float)
    median, low, high, predicted = (one[key].values / dim**power for key in ("median", "low", "high", "predicted"))
    spread = np.maximum(0.0, [median - low, np.where(np.isfinite(high), high, median) - median])
    label = str(fit["label"].values)
    if int(fit["sie"]) != 2:
        interval = f"[{float(fit['exponent_low']):.3f}, {float(fit['exponent_high']):.3f}]"
        label = f"{label}\nfitted exponent {float(fit['exponent']):.3f} {interval}"
    panel.plot(dim, predicted, color=colour, linestyle=line)
    panel.errorbar(dim, median, spread, color=colour, marker=marker, linestyle="none", capsize=2.0, label=label)


def _mark_dimensions(panel: Any, dims: NDArray[np.int64]) -> None:
    """Powers of ten, or where d spans less than two decades the measured dimensions themselves."""
    panel.xaxis.set_minor_formatter(NullFormatter())
    if dims.max() < 100 * dims.min():
        shown = np.unique(dims)
        panel.set_xticks(shown, [f"{d:,}".replace(",", "\u2009") for d in shown])
        panel.minorticks_off()
