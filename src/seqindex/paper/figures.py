"""The figures of the paper that can be reproduced, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import xarray as xr
from matplotlib.figure import Figure as Drawing

from seqindex.paper import (
    crossover,
    dynamics,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    fig7,
    fig8,
    fig9,
    fig10,
    fig11,
    fig12,
    fig13,
    foundations,
    quadrature,
    scaling,
)
from seqindex.paper.claim import Claim
from seqindex.paper.jobs import AnyJob


@dataclass(frozen=True)
class Figure:
    """One figure: what is computed, how it is drawn, and what it says of the paper's claims.

    Attributes:
        title: one line.
        full: scale of the paper.
        quick: a small scale that shows the same in seconds.
        jobs: scale -> simulations that are needed.
        compute: (scale, their results) -> Dataset with all numbers behind the picture.
        draw: Dataset -> Matplotlib figure.
        claims: Dataset -> rows of the table of claims.
    """

    title: str
    full: Any
    quick: Any
    jobs: Callable[[Any], Sequence[AnyJob]]
    compute: Callable[[Any, Sequence[xr.Dataset]], xr.Dataset]
    draw: Callable[[xr.Dataset], Drawing]
    claims: Callable[[xr.Dataset], Sequence[Claim]]


_MODULES: dict[str, Any] = {
    "fig1": fig1,
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "fig5": fig5,
    "fig6": fig6,
    "fig7": fig7,
    "fig8": fig8,
    "fig9": fig9,
    "fig10": fig10,
    "fig11": fig11,
    "fig12": fig12,
    "fig13": fig13,
    "foundations": foundations,
    "dynamics": dynamics,
    "crossover": crossover,
    "quadrature": quadrature,
    "theorem1": scaling,
}
FIGURES: dict[str, Figure] = {
    name: Figure(module.TITLE, module.FULL, module.QUICK, module.jobs, module.compute, module.draw, module.claims)
    for name, module in _MODULES.items()
}
"""Figures by name; a new one is one module with these seven names, added here."""
