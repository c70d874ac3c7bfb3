"""How the minimum moves from semantic to positional."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from seqindex.plotting.style import BLUE, GREY, ORANGE

_LOOKS = {"sqrt": (BLUE, "o", "-"), "linear": (ORANGE, "s", "--")}
_WORDS = {"sqrt": r"$\sqrt{1-\omega}\,z^* + \sqrt{\omega}\,p$", "linear": r"$(1-\omega)\,z^* + \omega\,p$"}


def draw_crossover(axes: Axes, data: xr.Dataset) -> None:
    """Angles of minima as lines, medians and quartiles of SGD's ends as points with bars.

    Args:
        axes: where to draw.
        data: "angle" over (kind, omega), "end_angle" over (reading, omega_run, replica), in degrees.
    """
    for name, (colour, marker, line) in _LOOKS.items():
        axes.plot(data["omega"], data["angle"].sel(kind=name), color=colour, linestyle=line, label=_WORDS[name])
        ends = data["end_angle"].sel(reading=name)
        low, middle, high = (ends.quantile(q, "replica").values for q in (0.25, 0.5, 0.75))
        bars = np.stack([middle - low, high - middle])
        axes.errorbar(data["omega_run"], middle, bars, fmt=marker, color=colour, markersize=4, label=f"SGD, {name}")
    other = data["angle"].sel(kind="positional-semantic")
    axes.plot(data["omega"], other, color=GREY, linestyle=":", label="positional-semantic target, a = 1")
    axes.set(xlabel=r"weight of the positions, $\omega$", ylabel="angle of the minimum from the m axis")
    axes.set(xlim=(0.0, 1.0), ylim=(-3.0, 93.0), title="from semantic (0) to positional (90 degrees)")
    axes.legend(loc="upper left")
