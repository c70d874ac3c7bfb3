"""``seqindex phase-diagram``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqindex.cli.console import OUT, real, say, say_files, table, whole

if TYPE_CHECKING:
    import xarray as xr

_ROWS = 7  # alignments at which the boundaries are written


def _number(text: str) -> Any:
    return typer.Option(parser=real, metavar="X", help=text)


def _count(text: str) -> Any:
    return typer.Option(parser=whole, metavar="N", help=text)


def phase_diagram(
    alignment_min: Annotated[float, _number("Smallest alignment a.")] = 0.0,
    alignment_max: Annotated[float, _number("Largest alignment a.")] = 1.5,
    alignment_points: Annotated[int, _count("Number of alignments.")] = 200,
    omega_min: Annotated[float, _number("Smallest weight of the positional part.")] = 0.0,
    omega_max: Annotated[float, _number("Largest weight of the positional part.")] = 1.0,
    omega_points: Annotated[int, _count("Number of weights.")] = 200,
    loss: Annotated[
        str, typer.Option(metavar="NAME", help="square (the paper), or norm, un-squared, as in its released runs.")
    ] = "square",
    out: Annotated[Path, OUT] = Path("results"),
) -> None:
    """Phase diagram of the positional-semantic model at length 2.

    Writes phase-diagram.nc, .png and .pdf, and prints the boundaries at a few alignments.

    Example: seqindex phase-diagram --alignment-min 0.7 --alignment-max 0.8 --omega-min 0.9 --out corner.
    """
    from seqindex import check, storage
    from seqindex.model.loss import LOSSES
    from seqindex.plotting.phases import draw_phase_diagram
    from seqindex.theory import phases

    loss = check.choice("loss", loss, LOSSES)
    alignment = _axis("alignment", alignment_min, alignment_max, alignment_points)
    omega = _axis("omega", omega_min, omega_max, omega_points, 0.0, 1.0)
    folder = storage.writable_folder(out)
    diagram = phases.phase_diagram(alignment, omega, loss)
    path = storage.save_dataset(diagram, folder / "phase-diagram.nc")
    pictures = storage.save_figure(draw_phase_diagram(diagram), folder / "phase-diagram")
    say(summary(diagram))
    say_files([path, *pictures])


def _axis(
    name: str, low: float, high: float, points: int, smallest: float = -math.inf, largest: float = math.inf
) -> list[float]:
    import numpy as np

    from seqindex import check

    low = check.number(f"{name}-min", low, smallest, largest)
    high = check.number(f"{name}-max", high, smallest, largest)
    if not low < high:
        raise ValueError(f"{name}-max must be larger than {name}-min = {low:g}, got {high:g}")
    return [float(value) for value in np.linspace(low, high, check.integer(f"{name}-points", points, 2))]


def summary(diagram: xr.Dataset) -> str:
    """Boundaries at a few alignments, and the share of the map of each phase."""
    import numpy as np

    kinds = [str(name) for name in diagram.data_vars if str(name).startswith("boundary_")]
    chosen = np.unique(np.linspace(0, diagram.sizes["alignment"] - 1, _ROWS).round().astype(int))
    rows = [
        [f"{float(column['alignment']):.4f}", *(_shown(float(column[kind])) for kind in kinds)]
        for column in (diagram[["alignment", *kinds]].isel(alignment=index) for index in chosen)
    ]
    lines = ["boundaries: omega at which each property changes (- for none in [0, 1])"]
    lines.append(table(["alignment", *(kind.removeprefix("boundary_") for kind in kinds)], rows))
    names = diagram["phase"].attrs["flag_meanings"].split()
    shares = [(name, float((diagram["phase"] == flag).mean())) for flag, name in enumerate(names)]
    lines.append("phases: " + ", ".join(f"{name} {100 * share:.3g} %" for name, share in shares if share > 0))
    return "\n".join(lines)


def _shown(omega: float) -> str:
    return "-" if math.isnan(omega) else f"{omega:.6f}"
