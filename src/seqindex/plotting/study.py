"""A study as a picture: what is drawn follows from what was swept and recorded."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from seqindex.plotting.style import CYCLE, figure, styled
from seqindex.sgd.scaling import power_law
from seqindex.sgd.survival import median_time

_MOST = 8
"""Series in one picture; of more, evenly chosen ones are shown."""
_FEW = 3
"""Values of a number that make it an axis."""
_MARKERS, _LINES = "osD^vPX*", ("-", "--", "-.", ":")
_OWN = ("replica", "record", "position", "direction", "threshold")


@styled
def draw_study(data: xr.Dataset) -> Figure:
    """Recovery times against a swept number, a map over two of them, or overlaps against steps.

    Hitting steps and at least three positive values of one number: medians with intervals on logarithmic axes and a
    fitted power, one series a value of everything else.  Else two such numbers: a map of the median final overlap.
    Else medians and quartiles of the overlap against the steps, one series a point.

    Args:
        data: as ``open_study`` returns it.

    Raises:
        ValueError: a study that recorded nothing that can be drawn.

    Example:
        >>> step = ("record", [0, 5, 10])
        >>> data = xr.Dataset({"overlap_norm": (("replica", "record"), np.ones((4, 3)))}, {"step": step})
        >>> draw_study(data).axes[0].get_xlabel()
        'steps'
    """
    swept = [str(name) for name in data.sizes if name not in _OWN]
    numbers = [name for name in swept if name in data.coords and _is_axis(data[name].values)]
    if "hitting_step" in data and numbers:
        return _times(data, max(numbers, key=lambda name: _span(data[name].values)))
    if "overlap_norm" not in data:
        raise ValueError("study must have recorded overlaps, or thresholds over a swept number, got neither")
    return _map(data, numbers[:2]) if len(numbers) > 1 else _overlaps(data)


def _is_axis(values: NDArray[Any]) -> bool:
    return values.ndim == 1 and values.dtype.kind in "if" and len(np.unique(values)) >= _FEW


def _span(values: NDArray[Any]) -> float:
    """How much a number varies, the positive ones by their ratio."""
    low, high = float(values.min()), float(values.max())
    return high / low if low > 0.0 else 1.0


def _series(data: xr.Dataset, kept: tuple[str, ...]) -> Iterator[tuple[str, xr.Dataset]]:
    """Every combination of the other swept values, with its label; evenly chosen where there are many."""
    others = [str(name) for name in data.sizes if name not in (*kept, *_OWN)]
    if "threshold" in data.sizes and "threshold" not in kept:
        others.append("threshold")
    every = list(itertools.product(*(range(data.sizes[name]) for name in others)))
    chosen = np.unique(np.linspace(0, len(every) - 1, min(_MOST, len(every))).round().astype(int))
    for index in chosen:
        place = dict(zip(others, every[index], strict=True))
        one = data.isel(place)
        names = [name for name in others if data.sizes[name] > 1]
        label = ", ".join(
            f"{name} = {_shown(one[name].values if name in one.coords else place[name])}" for name in names
        )
        yield label, one


def _shown(value: Any) -> str:
    item = np.asarray(value).item()
    return f"{item:.4g}" if isinstance(item, float) else str(item)


def _times(data: xr.Dataset, axis: str) -> Figure:
    drawing, axes = figure(6.4, 4.4)
    for (label, one), colour, marker in zip(_series(data, (axis,)), itertools.cycle(CYCLE), itertools.cycle(_MARKERS)):
        x, samples = [], []
        for index in range(one.sizes[axis]):
            point = one.isel({axis: index})
            times = xr.Dataset({"time": point["hitting_step"], "outcome": point["hitting_outcome"]}).dropna("replica")
            if times.sizes["replica"]:
                x.append(float(point[axis]))
                samples.append(times.assign(outcome=times["outcome"].astype(np.int8)))
        _draw_medians(axes, np.array(x), samples, label, colour, marker)
    axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="median steps to recovery")
    axes.set_title("recovery times; arrows: half of the runs were still below the threshold")
    axes.legend(loc="best")
    return drawing


def _draw_medians(
    axes: Axes, x: NDArray[np.float64], samples: list[xr.Dataset], label: str, colour: str, marker: str
) -> None:
    found = [median_time(one) for one in samples]
    known = np.array([np.isfinite(one.value) for one in found], dtype=bool)
    value = np.array([one.value for one in found])
    bars = np.array([[one.value - one.low, one.high - one.value] for one in found]).reshape(-1, 2).T
    words = label
    if known.sum() > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the legend's interval says how much it is worth
            fit = power_law(x[known], [one for one, there in zip(samples, known, strict=True) if there])
        words = f"{label}{': ' if label else ''}exponent {fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}]"
    clipped = np.nan_to_num(np.abs(bars[:, known]), posinf=0.0)
    axes.errorbar(x[known], value[known], clipped, fmt=f"{marker}-", color=colour, markersize=4, label=words)
    for place, one in zip(x[~known], (one for one, there in zip(found, known, strict=True) if not there), strict=True):
        axes.plot(place, one.low, marker="^", color=colour, markerfacecolor="none", markersize=7)


def _map(data: xr.Dataset, axes_of: list[str]) -> Figure:
    across, up = axes_of
    last = (
        data["overlap_norm"]
        .isel(record=-1)
        .median([d for d in data["overlap_norm"].dims if d not in (*axes_of, "record")])
    )
    drawing, axes = figure(5.6, 4.4)
    mesh = axes.pcolormesh(
        data[across], data[up], last.transpose(up, across), cmap="viridis", vmin=0.0, vmax=1.0, shading="nearest"
    )
    for name, setter in ((across, axes.set_xscale), (up, axes.set_yscale)):
        if _span(data[name].values) > 30.0:
            setter("log")
    drawing.colorbar(mesh, label="median final overlap")
    axes.set(xlabel=across, ylabel=up)
    return drawing


def _overlaps(data: xr.Dataset) -> Figure:
    drawing, axes = figure(6.4, 4.4)
    logarithmic = False
    for (label, one), colour, line in zip(_series(data, ()), itertools.cycle(CYCLE), itertools.cycle(_LINES)):
        step = one["step"].values.astype(float)
        low, middle, high = (one["overlap_norm"].quantile(q, "replica").values for q in (0.25, 0.5, 0.75))
        axes.plot(step, middle, color=colour, linestyle=line, label=label or "median")
        axes.fill_between(step, low, high, color=colour, alpha=0.2, linewidth=0.0)
        gaps = np.diff(step[np.isfinite(step)])
        logarithmic = logarithmic or bool(len(gaps) > 2 and gaps[-1] > 5.0 * gaps[1])
    if logarithmic:
        axes.set_xscale("symlog", linthresh=1.0)
    axes.set(xlabel="steps", ylabel="size of the overlap", ylim=(0.0, 1.02), title="medians and quartiles")
    axes.legend(loc="best")
    return drawing
