"""Simulations that a figure needs: each is stored when done, and not computed again."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

import seqindex
from seqindex.model.problem import Problem
from seqindex.progress import Advance, track
from seqindex.sgd.random import STREAM_VERSION
from seqindex.sgd.run import sgd
from seqindex.sgd.start import Start
from seqindex.sgd.stop import Near
from seqindex.storage import save_dataset


@dataclass(frozen=True)
class Job:
    """Arguments of one call of ``sgd``; ``history`` keeps all records, not only the last."""

    problem: Problem
    dim: int
    learning_rate: float
    steps: int
    replicas: int
    seed: int
    start: Start
    records: int | tuple[int, ...]
    stop: Near | None = None
    history: bool = False

    def key(self) -> str:
        """A name that changes with anything that changes the result."""
        stop = None if self.stop is None else [np.asarray(self.stop.points).tolist(), self.stop.distance]
        settings = [
            self.problem.to_attrs(),
            [self.dim, self.learning_rate, self.steps, self.replicas, self.seed, self.records, self.history],
            [self.start.spec(), stop, STREAM_VERSION, seqindex.__version__],
        ]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:24]

    def run(self, progress: Advance) -> xr.Dataset:
        """Simulate on one core."""
        runs = sgd(
            self.problem,
            self.dim,
            self.learning_rate,
            self.steps,
            replicas=self.replicas,
            seed=self.seed,
            start=self.start,
            records=self.records,
            stop=self.stop,
            workers=1,
            progress=progress,
        )
        return (runs if self.history else runs.isel(record=[-1])).assign_attrs(job=self.key())


def run_jobs(
    jobs: Sequence[Job], store: Path, description: str, workers: int | None = None, progress: bool | None = None
) -> list[xr.Dataset]:
    """Results of the jobs, in their order, from ``store`` where they are there and whole.

    On Ctrl-C the jobs under way stop within a moment; those that are done stay in the store.
    """
    store.mkdir(parents=True, exist_ok=True)
    found = {index: _load(store, job) for index, job in enumerate(jobs)}
    results = {index: data for index, data in found.items() if data is not None}
    todo = sorted(set(range(len(jobs))) - set(results), key=lambda index: -jobs[index].steps)
    cancelled = threading.Event()

    def tick(steps: float) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt

    def work(index: int) -> xr.Dataset:
        tick(0)
        data = jobs[index].run(tick)
        save_dataset(data, store / f"{jobs[index].key()}.nc")
        return data

    total = sum(jobs[index].steps for index in todo)
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool, track(description, max(total, 1), progress) as advance:
        futures: dict[Future[xr.Dataset], int] = {pool.submit(work, index): index for index in todo}
        try:
            for future in as_completed(futures):
                index = futures[future]
                results[index] = future.result()
                advance(jobs[index].steps)
        except BaseException:
            cancelled.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [results[index] for index in range(len(jobs))]


def _load(store: Path, job: Job) -> xr.Dataset | None:
    path = store / f"{job.key()}.nc"
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            return data.load() if data.attrs.get("job") == job.key() else None
    except (OSError, ValueError, KeyError):  # absent, truncated or foreign: computed again
        return None
