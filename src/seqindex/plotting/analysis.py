"""Drawings of the analysis of one problem: Hermite spectrum, and recovery predicted and run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqindex.plotting.style import BLUE, GREY, ORANGE, VERMILLION

Array = NDArray[np.float64]


def draw_spectrum(axes: Any, shares: Array, exponent: float | None) -> None:
    """Bars of E|g_k|^2 by Hermite order k; the order of the information exponent stands out.

    Args:
        axes: Matplotlib axes.
        shares: E|g_k|^2, k = 0.., NaN where unknown.
        exponent: order to stand out, or None.
    """
    orders = np.arange(len(shares))
    colours = [VERMILLION if order == exponent else GREY if order == 0 else BLUE for order in orders]
    axes.bar(orders, np.nan_to_num(shares), color=colours, width=0.7)
    top = max(float(np.nanmax(shares)), 1e-300)
    for order, share in zip(orders, shares, strict=True):
        text = "?" if np.isnan(share) else f"{share:.3g}" if share > 1e-12 * top else "0"
        axes.annotate(
            text, (order, np.nan_to_num(share)), (0, 2), textcoords="offset points", ha="center", fontsize=7.5
        )
    axes.set(xlabel="Hermite order k", ylabel="share of $E|g|^2$", xticks=orders, ylim=(0.0, 1.15 * top))


def draw_recovery(
    axes: Any, steps: Array, overlap: Array, threshold: float, predicted: float | None, spread: float | None, name: str
) -> None:
    """Sizes of the overlap of all runs against the steps, the threshold, and the predicted time.

    Args:
        axes: Matplotlib axes.
        steps: (record,).
        overlap: (replica, record).
        threshold: what counts as recovery.
        predicted: number of steps, or None.
        spread: its standard deviation, or None.
        name: label of the overlap.
    """
    kept = steps > 0
    x = steps[kept]
    for one in overlap[:24]:
        axes.plot(x, one[kept], color=BLUE, alpha=0.22, linewidth=0.7)
    axes.plot(x, np.median(overlap[:, kept], axis=0), color=BLUE, linewidth=2.0, label="SGD: median and runs")
    axes.axhline(threshold, color=GREY, linewidth=0.9, linestyle=":", label=f"threshold {threshold:g}")
    if predicted is not None:
        axes.axvline(predicted, color=ORANGE, linestyle="--", linewidth=1.6, label="predicted recovery")
        if spread is not None:
            axes.axvspan(max(predicted - spread, 1.0), predicted + spread, color=ORANGE, alpha=0.15, linewidth=0.0)
    axes.set(xscale="log", xlabel="steps", ylabel=name, ylim=(0.0, 1.02))
    axes.legend(loc="upper left")
