"""Simulations that a figure needs: each is stored when done, and not computed again."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

import seqindex
from seqindex.model.problem import Problem
from seqindex.progress import Advance, track
from seqindex.sgd.hitting import hitting_time
from seqindex.sgd.random import STREAM_VERSION
from seqindex.sgd.run import sgd
from seqindex.sgd.start import Start
from seqindex.sgd.stop import Near
from seqindex.storage import save_dataset, writable_folder


@dataclass(frozen=True, eq=False)
class Job:
    """Arguments of one call of ``sgd``; ``history`` keeps all records, not only the last.  Equal if the keys are."""

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> str:
        """A name that changes with anything that changes the result."""
        stop = None if self.stop is None else [np.asarray(self.stop.points).tolist(), self.stop.distance]
        numbers = [self.dim, self.learning_rate, self.steps, self.replicas, self.seed, self.records, self.history]
        return _name(self.problem.to_attrs(), numbers, self.start.spec(), stop)

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


@dataclass(frozen=True, eq=False)
class TimeJob:
    """Arguments of one call of ``hitting_time``; equal if the keys are."""

    problem: Problem
    dim: int
    learning_rate: float
    steps: int
    threshold: float
    replicas: int
    seed: int
    start: Start

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeJob) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> str:
        """A name that changes with anything that changes the result."""
        numbers = [self.dim, self.learning_rate, self.steps, self.threshold, self.replicas, self.seed]
        return _name("time", self.problem.to_attrs(), numbers, self.start.spec())

    def run(self, progress: Advance) -> xr.Dataset:
        """Simulate on one core until every replica has crossed the threshold."""
        times = hitting_time(
            self.problem,
            self.dim,
            self.learning_rate,
            self.steps,
            threshold=self.threshold,
            replicas=self.replicas,
            seed=self.seed,
            start=self.start,
            workers=1,
            progress=progress,
        )
        return times.assign_attrs(job=self.key())


AnyJob = Job | TimeJob
"""Whatever has a key, a number of steps and a way to run."""


def _name(*settings: object) -> str:
    """A short name of settings that are plain JSON types, and of what else decides the numbers."""
    everything = [*settings, STREAM_VERSION, seqindex.__version__]
    return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:24]


def finished(
    jobs: Sequence[AnyJob], store: Path, workers: int | None = None, progress: bool | None = None
) -> Iterator[AnyJob | None]:
    """Run the jobs, the longest first, and yield each once its result is in ``store``.

    Kept results come first, then None once the others are under way, so that the caller can do something meanwhile.

    On Ctrl-C the jobs under way stop within a moment; those that are done stay in the store.
    """
    writable_folder(store)
    kept = [job for job in jobs if load(store, job) is not None]
    yield from kept
    todo = sorted(set(jobs) - set(kept), key=lambda job: (-job.steps, job.key()))
    if not todo:
        yield None
        return
    cancelled = threading.Event()
    lock = threading.Lock()

    def work(job: AnyJob) -> None:
        made = 0.0

        def tick(steps: float) -> None:
            nonlocal made
            if cancelled.is_set():
                raise KeyboardInterrupt
            made += steps
            with lock:
                advance(steps)

        tick(0)
        begin = time.thread_time()
        data = job.run(tick)
        save_dataset(data.assign_attrs(seconds=time.thread_time() - begin), store / f"{job.key()}.nc")
        with lock:  # a job that has converged early is done all the same
            advance(job.steps - made)

    total = sum(job.steps for job in todo)
    with track("simulations", total, progress) as advance, ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        futures = {pool.submit(work, job): job for job in todo}
        try:
            yield None
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        except BaseException:
            cancelled.set()
            pool.shutdown(cancel_futures=True)
            raise


def results(jobs: Sequence[AnyJob], store: Path) -> list[xr.Dataset]:
    """Results of finished jobs, in their order.

    Raises:
        FileNotFoundError: one is not in the store.
    """
    found = [load(store, job) for job in jobs]
    if any(data is None for data in found):
        raise FileNotFoundError(f"{store} must hold the results of all jobs; it was changed while they ran")
    return [data for data in found if data is not None]


def load(store: Path, job: AnyJob) -> xr.Dataset | None:
    """The result of a job, or None where it is absent, damaged or of other settings."""
    path = store / f"{job.key()}.nc"
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            return data.load() if data.attrs.get("job") == job.key() else None
    except (OSError, ValueError, KeyError):
        return None
