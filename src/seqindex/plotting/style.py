"""The look of every drawing: one set of Matplotlib settings, one palette, no global state.

Drawings are functions decorated with ``styled`` that return a Figure made by ``figure``.  They never import pyplot, so
they need no display and open no window, and the caller's settings, backend and open figures stay as they were.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import matplotlib.style
from matplotlib.figure import Figure

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Okabe and Ito's palette: told apart with any colour vision; those that meet in one drawing differ in grey too.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8C8C8C"

SEMANTIC = BLUE
"""What aligns with the target, m."""
POSITIONAL = ORANGE
"""What aligns with the encoding, e."""
NEITHER = GREY
"""What aligns with neither."""
CYCLE = (BLUE, ORANGE, GREEN, VERMILLION, SKY, PURPLE, BLACK)
"""Colours of series that have no colour of their own."""

SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # ships with Matplotlib
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.7,
    "axes.prop_cycle": f"cycler('color', {list(CYCLE)})",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
    "mathtext.fontset": "dejavusans",
    "text.usetex": False,
    "pdf.fonttype": 42,  # text in a PDF stays text
    "savefig.bbox": None,
}
"""Settings on top of Matplotlib's defaults."""


@contextmanager
def settings() -> Iterator[None]:
    """Our settings inside, the caller's again afterwards.

    Example:
        >>> import matplotlib
        >>> with settings():
        ...     matplotlib.rcParams["font.size"]
        9.0
    """
    with matplotlib.style.context(["default", SETTINGS]):
        yield


def styled(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run a drawing under our settings.

    Example:
        >>> @styled
        ... def draw() -> Figure:
        ...     drawing, axes = figure(4.0, 3.0)
        ...     axes.plot([0, 1], [0, 1], color=SEMANTIC)
        ...     return drawing
        >>> draw().get_axes()[0].lines[0].get_color()
        '#0072B2'
    """

    @functools.wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with settings():
            return draw(*args, **kwargs)

    return drawn


class StyledFigure(Figure):
    """A figure that is rendered under our settings too, since Matplotlib makes ticks and lays out only then."""

    def draw(self, renderer: Any) -> None:
        """Render."""
        with settings():
            super().draw(renderer)

    def savefig(self, fname: Any, *, transparent: bool | None = None, **kwargs: Any) -> None:
        """Write to a file, as ``Figure.savefig``."""
        with settings():
            super().savefig(fname, transparent=transparent, **kwargs)


def figure(
    width: float,
    height: float,
    rows: int = 1,
    columns: int = 1,
    *,
    sharex: bool | str = False,
    sharey: bool | str = False,
    width_ratios: list[float] | None = None,
    height_ratios: list[float] | None = None,
) -> tuple[Figure, Any]:
    """A figure of ``width`` by ``height`` inches with constrained layout, and its axes.

    Returns:
        The figure, and its axes as ``Figure.subplots`` gives them: one Axes, or an array of them.

    Example:
        >>> drawing, (left, right) = figure(7.0, 3.0, columns=2)
        >>> len(drawing.get_axes())
        2
    """
    with settings():
        result = StyledFigure(figsize=(width, height), layout="constrained")
        axes = result.subplots(
            rows,
            columns,
            sharex=sharex,  # type: ignore[arg-type]
            sharey=sharey,  # type: ignore[arg-type]
            width_ratios=width_ratios,
            height_ratios=height_ratios,
        )
    return result, axes
