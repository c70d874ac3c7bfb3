"""Errors of quadrature rules against their nodes."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from seqindex.plotting.style import BLUE, GREY, ORANGE


def draw_errors(axes: Axes, data: xr.Dataset) -> None:
    """Absolute errors of both rules, and the nodes that the paper uses.

    Args:
        axes: where to draw.
        data: "gauss_error" over gauss and "trapezoid_error" over trapezoid, coordinates the nodes an axis.
    """
    for name, colour, marker in (("gauss", BLUE, "o"), ("trapezoid", ORANGE, "s")):
        label = {"gauss": "Gauss-Hermite", "trapezoid": "trapezoid"}[name]
        error = np.maximum(data[f"{name}_error"].values, 1e-17)
        axes.semilogy(data[name].values, error, marker=marker, color=colour, label=label, markersize=3.5)
    axes.axvspan(17, 19, color=GREY, alpha=0.3, label="17 to 19 nodes, the paper")
    axes.set(xlabel="nodes an axis", ylabel="absolute error", xlim=(0, 125))
    axes.legend(loc="upper right")
