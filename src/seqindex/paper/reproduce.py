"""Figures, the numbers behind them and the table of claims, in one call."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import xarray as xr

import seqindex
from seqindex import check
from seqindex.paper.claim import Claim, markdown_table
from seqindex.paper.figures import FIGURES
from seqindex.paper.jobs import AnyJob, finished, results
from seqindex.paper.report import write_report
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

    For each figure the folder gets NAME.nc (all numbers), NAME.png and NAME.pdf, and in the end report.html, which
    stands alone, report.md and claims.md.  Simulations
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
        >>> reproduce(["fig44"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: figure must be one of 'fig1', ..., got 'fig44'; did you mean 'fig4'?
    """
    chosen = list(dict.fromkeys(check.choice("figure", name, FIGURES) for name in names)) or list(FIGURES)
    if workers is not None:
        check.integer("workers", workers, 1)
    folder = writable_folder(out)
    store = folder / "runs"
    if fresh and store.is_dir():
        _empty(store)
    found: dict[str, list[Claim]] = {}
    todo = {}
    for name in chosen:
        scale = FIGURES[name].quick if quick else FIGURES[name].full
        data = None if fresh else _kept(folder / f"{name}.nc", FIGURES[name].title, scale)
        if data is None:
            todo[name] = (scale, FIGURES[name].jobs(scale))
        else:
            found[name] = _finish(name, data, folder)
            say(f"{name}: {FIGURES[name].title} (kept from an earlier run) -> {folder / name}.png, .pdf, .nc")
    ready: set[AnyJob] = set()
    begin = time.perf_counter()
    every = list(dict.fromkeys(job for _, jobs in todo.values() for job in jobs))
    for job in finished(every, store, workers, progress):
        if job is not None:
            ready.add(job)
        # A figure is drawn as soon as its simulations are done; one without any at once.
        for name in [name for name, (_, jobs) in todo.items() if ready.issuperset(jobs)]:
            scale, jobs = todo.pop(name)
            runs = results(jobs, store)
            started = time.thread_time()
            data = FIGURES[name].compute(scale, runs)
            seconds = time.thread_time() - started + sum(float(one.attrs.get("seconds", 0.0)) for one in runs)
            data = data.assign_attrs(_identity(FIGURES[name].title, scale), seconds=seconds)
            save_dataset(data, folder / f"{name}.nc")  # numbers are safe before anything is drawn
            found[name] = _finish(name, data, folder)
            took = time.perf_counter() - begin
            say(f"{name}: {FIGURES[name].title} (after {took:.0f} s) -> {folder / name}.png, .pdf, .nc")
    claims = [claim for name in chosen for claim in found[name]]
    write_report(folder, {name: found[name] for name in chosen}, {n: FIGURES[n].title for n in chosen}, quick)
    _write_text(folder / "claims.md", markdown_table(claims))
    _write_text(folder / "claims.json", json.dumps([asdict(claim) for claim in claims], indent=1, ensure_ascii=False))
    return claims


def _finish(name: str, data: xr.Dataset, folder: Path) -> list[Claim]:
    save_figure(FIGURES[name].draw(data), folder / name)
    seconds = float(data.attrs.get("seconds", 0.0))
    return [replace(claim, seconds=seconds) for claim in FIGURES[name].claims(data)]


def _identity(title: str, scale: object) -> dict[str, str]:
    return {"title": title, "scale": repr(scale), "seqindex_version": seqindex.__version__}


def _kept(path: Path, title: str, scale: object) -> xr.Dataset | None:
    """The numbers of an earlier run with the same settings, if they are there and whole."""
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            same = all(data.attrs.get(key) == value for key, value in _identity(title, scale).items())
            return data.load() if same else None
    except (OSError, ValueError, KeyError):
        return None


def _write_text(path: Path, text: str) -> None:
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _empty(store: Path) -> None:
    for path in store.glob("*.nc"):
        path.unlink()
