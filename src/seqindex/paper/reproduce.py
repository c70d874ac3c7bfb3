"""Figures, the numbers behind them and the table of claims, in one call."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import xarray as xr

import seqindex
from seqindex import check
from seqindex.paper.claim import Claim, markdown_table
from seqindex.paper.figures import FIGURES, Figure
from seqindex.storage import save_dataset, save_figure, writable_folder, write_whole


def reproduce(
    names: Sequence[str] = (),
    out: str | Path = "results",
    quick: bool = False,
    fresh: bool = False,
    workers: int | None = None,
    progress: bool | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[Claim]:
    """Compute, draw and judge figures of the paper.

    For each figure the folder gets NAME.nc (all numbers), NAME.png and NAME.pdf, and in the end claims.md.  Simulations
    are kept one by one in the folder "runs", so that after an interrupt the same call goes on where it stopped.

    Args:
        names: figures such as "fig4"; empty for all.
        out: folder for the results.
        quick: a small scale, in seconds.
        fresh: compute again what the folder already holds.
        workers: threads; None for all processors.
        progress: as for ``seqindex.sgd``.
        say: told each finished figure in one line.

    Returns:
        The claims that these figures speak about.

    Raises:
        ValueError: an unknown figure, or a folder that cannot be written to.

    Example:
        >>> import tempfile
        >>> claims = reproduce(["fig4"], tempfile.mkdtemp(), quick=True, progress=False)
        >>> claims[0].where
        'figure 4'
    """
    chosen = list(dict.fromkeys(check.choice("figure", name, FIGURES) for name in names)) or list(FIGURES)
    if workers is not None:
        check.integer("workers", workers, 1)
    folder = writable_folder(out)
    claims: list[Claim] = []
    for name in chosen:
        begin = time.perf_counter()
        figure = FIGURES[name]
        data = None if fresh else _kept(folder / f"{name}.nc", figure, quick)
        how = "kept from an earlier run" if data is not None else ""
        if data is None:
            store = folder / "runs"
            if fresh and store.is_dir():
                _empty(store)
            data = figure.compute(figure.quick if quick else figure.full, store, workers, progress)
            how = f"{time.perf_counter() - begin:.0f} s"
            # Numbers are safe before anything is drawn.
            save_dataset(data.assign_attrs(_identity(figure, quick)), folder / f"{name}.nc")
        save_figure(figure.draw(data), folder / name)
        claims += figure.claims(data)
        _write_text(folder / "claims.md", markdown_table(claims))
        say(f"{name}: {figure.title} ({how}) -> {folder / name}.png, .pdf, .nc")
    _write_text(folder / "claims.json", json.dumps([asdict(claim) for claim in claims], indent=1, ensure_ascii=False))
    return claims


def _write_text(path: Path, text: str) -> None:
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _identity(figure: Figure, quick: bool) -> dict[str, str]:
    scale = figure.quick if quick else figure.full
    return {"title": figure.title, "scale": repr(scale), "seqindex_version": seqindex.__version__}


def _kept(path: Path, figure: Figure, quick: bool) -> xr.Dataset | None:
    """The numbers of an earlier run with the same settings, if they are there and whole."""
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            same = all(data.attrs.get(key) == value for key, value in _identity(figure, quick).items())
            return data.load() if same else None
    except (OSError, ValueError, KeyError):
        return None


def _empty(store: Path) -> None:
    for path in store.glob("*.nc"):
        path.unlink()
