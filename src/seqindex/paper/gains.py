"""Gain of the tied over the untied network: ratio of recovery times against the sequence length."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from seqindex.model.link import Target
from seqindex.paper.gain_targets import facts
from seqindex.paper.jobs import TimeJob
from seqindex.paper.networks import tied, untied
from seqindex.plotting.style import BLUE
from seqindex.sgd.scaling import power_law
from seqindex.sgd.start import Start
from seqindex.sgd.survival import median_ratio
from seqindex.theory.gain import predicted_gain

DIM = 1000
Rate = Callable[[int], float]


def time_jobs(
    target: str,
    lengths: Sequence[int],
    rates: tuple[Rate, Rate],
    steps: int,
    threshold: float,
    replicas: int,
    start: Start | None = None,
) -> list[TimeJob]:
    """The tied network at every length, then the untied one, each at its own rate; the released start by default."""
    law = Start.released() if start is None else start
    return [
        TimeJob(make(target, n), DIM, rate(n), steps, threshold, replicas, 3, law)
        for make, rate in zip((tied, untied), rates, strict=True)
        for n in lengths
    ]


def gain_table(lengths: Sequence[int], results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Ratio of median times with its interval at every length, and the fitted exponent with its interval.

    Args:
        lengths: sequence lengths.
        results: those of ``time_jobs``.
    """
    count = len(lengths)
    ratios = [median_ratio(results[count + i], results[i]) for i in range(count)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the paper's lengths span no more than a decade
        slope = power_law(lengths, results[count:], results[:count])
    return xr.Dataset(
        {
            "gain": ("length", [ratio.value for ratio in ratios]),
            "gain_low": ("length", [ratio.low for ratio in ratios]),
            "gain_high": ("length", [ratio.high for ratio in ratios]),
            "slope": slope.exponent,
            "slope_low": slope.low,
            "slope_high": slope.high,
        },
        {"length": list(lengths)},
    )


def draw_gain(axes: Any, data: xr.Dataset, predictions: dict[str, float], title: str, colour: str = BLUE) -> None:
    """Gains with intervals on double logarithmic axes, the fit, and powers of L beside them.

    Args:
        axes: Matplotlib axes.
        data: of ``gain_table``.
        predictions: label -> exponent of a line through 1 at L = 1.
        title: of the panel.
        colour: of the points.
    """
    length, gain = data["length"].values.astype(float), data["gain"].values
    spread = np.array([gain - data["gain_low"].values, data["gain_high"].values - gain])
    exponent = float(data["slope"])
    label = f"measured, exponent {exponent:.2f} [{float(data['slope_low']):.2f}, {float(data['slope_high']):.2f}]"
    axes.errorbar(length, gain, yerr=np.maximum(spread, 0.0), fmt="o", color=colour, capsize=2, label=label)
    line = np.linspace(1.0, length.max(), 50)
    for (name, power), style in zip(predictions.items(), ("--", ":", "-."), strict=False):
        axes.plot(line, line**power, color="0.35", linestyle=style, label=name)
    axes.set(xscale="log", yscale="log", xlabel="sequence length L", ylabel="gain of tying", title=title)
    axes.legend(loc="upper left")


def last_gain(target: str, data: xr.Dataset) -> tuple[str, str]:
    """What Theorem 2 says at the greatest length of a table with a gain, and the gain measured there, in words.

    Args:
        target: expression.
        data: of ``gain_table``.
    """
    last = data.isel(length=-1)
    length = int(last["length"])
    gain, low, high = (float(last[name]) for name in ("gain", "gain_low", "gain_high"))
    predicted = facts(predicted_gain(Target(target, length)))
    return f"at L = {length}, {predicted}", f"at L = {length} {gain:.2f} [{low:.2f}, {high:.2f}]"


def covers(data: xr.Dataset, exponent: float, slack: float = 0.0) -> bool:
    """Whether the interval of the fitted exponent, widened by ``slack``, holds a value."""
    return float(data["slope_low"]) - slack <= exponent <= float(data["slope_high"]) + slack
