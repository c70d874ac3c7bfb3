"""One block of replicas of one point: what a worker does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from seqindex.model.frame import Frame
from seqindex.model.problem import Problem
from seqindex.sgd.hitting import hitting_time
from seqindex.sgd.run import sgd
from seqindex.storage import save_dataset
from seqindex.study.point import Point
from seqindex.study.store import Store

REPLICAS = 64
"""Replicas of a block."""


def blocks(replicas: int, size: int) -> list[range]:
    """Stretches of replicas.

    Example:
        >>> blocks(100, 64)
        [range(0, 64), range(64, 100)]
    """
    return [range(first, min(first + size, replicas)) for first in range(0, replicas, size)]


def run_block(folder: Path, point: Point, block: range, tick: Callable[[float], None]) -> None:
    """Simulate a block and store it; what an earlier call has left is used.

    Args:
        folder: of the study.
        point: its settings.
        block: the replicas.
        tick: told the steps made; raises KeyboardInterrupt to stop, and the state is kept.
    """
    store = Store(folder)
    settings, problem = point.settings, point.problem()
    common: dict[str, Any] = {
        "dim": settings["dim"],
        "learning_rate": settings["learning_rate"],
        "steps": settings["steps"],
        "replicas": block,
        "seed": point.seed,
        "start": point.start(),
        "batch": settings["batch"],
        "workers": 1,
        "progress": tick,
    }
    parts: list[xr.Dataset] = []
    attrs: dict[str, Any] = {}
    if settings["records"]:
        file = store.checkpoint(point.key, block, "overlaps")
        runs = sgd(problem, records=settings["records"], engine=settings["engine"], checkpoint=file, **common)
        attrs = runs.attrs
        parts.append(_with_risk(runs, problem) if settings["risk"] else runs)
    for threshold in settings["thresholds"]:
        file = store.checkpoint(point.key, block, f"threshold-{threshold:g}")
        times = hitting_time(problem, threshold=threshold, checkpoint=file, **common)
        attrs = attrs or {name: value for name, value in times.attrs.items() if name != "threshold"}
        names = {"time": "hitting_step", "outcome": "hitting_outcome"}
        parts.append(times.rename(names).expand_dims(threshold=[threshold]))
    data = _merged(parts).assign_attrs({**attrs, **_attrs(point)})
    save_dataset(data, store.part(point.key, block))


def assembled(store: Store, point: Point, size: int) -> xr.Dataset | None:
    """All blocks of a point as one Dataset; None where some are missing."""
    found = [store.load_part(point.key, block) for block in blocks(point.replicas, size)]
    if any(part is None for part in found):
        return None
    parts = [part for part in found if part is not None]
    data = xr.concat(parts, "replica", data_vars="minimal", coords="minimal", compat="override", join="exact")
    return data.assign_attrs(parts[0].attrs)


def _attrs(point: Point) -> dict[str, Any]:
    return {"key": point.key, "point": json.dumps(point.settings), "swept": json.dumps(point.swept)}


def _merged(parts: list[xr.Dataset]) -> xr.Dataset:
    runs = [part for part in parts if "threshold" not in part.dims]
    times = [part for part in parts if "threshold" in part.dims]
    if times:
        runs.append(xr.concat(times, "threshold", join="exact"))
    return xr.merge([part.drop_attrs(deep=False) for part in runs], join="exact", compat="no_conflicts")


def _with_risk(runs: xr.Dataset, problem: Problem) -> xr.Dataset:
    """Runs with the population risk of their states."""
    m = runs["overlap"].values
    risk = np.full(runs["overlap_norm"].shape, np.nan)
    known = np.isfinite(runs["overlap_norm"].values)
    if isinstance(problem.student.frame, Frame):
        from seqindex.theory.risk import PopulationRisk

        e = runs["encoding_overlap"].values[known] if "encoding_overlap" in runs else None
        risk[known] = PopulationRisk(problem)(m[known], e)
    else:
        from seqindex.theory.untied_risk import UntiedRisk

        risk[known] = UntiedRisk(problem)(m[known])
    return runs.assign(risk=(("replica", "record"), risk, {"long_name": "population risk"}))
