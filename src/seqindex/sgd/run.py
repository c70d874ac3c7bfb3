"""``sgd``: many replicas of one problem, recorded as a labelled Dataset."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.outcome import Outcome, flag_attrs
from seqindex.progress import Advance, track
from seqindex.sgd.checkpoint import Checkpoint
from seqindex.sgd.geometry import SHARED, Geometry, geometry_of
from seqindex.sgd.rounds import Rounds
from seqindex.sgd.settings import Settings
from seqindex.sgd.start import Start
from seqindex.sgd.stop import Near


class Engine(Protocol):
    """What a simulation of n replicas offers to ``sgd``."""

    @property
    def s(self) -> NDArray[np.float64]:
        """States, (R, n)."""
        ...

    @property
    def memory(self) -> dict[str, NDArray[Any]]:
        """Arrays that change while it runs."""
        ...

    def advance(self, which: NDArray[np.int64], first: int, steps: int) -> NDArray[np.int64]:
        """Make ``steps`` steps of at most WIDTH replicas; return their steps of divergence, or -1."""
        ...


ENGINES: dict[str, Any] = SHARED.engines
"""Engines by name, of students with one weight vector."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during ``sgd``; ``runs`` holds what was recorded until then, its unfinished replicas censored.

    Example:
        >>> import xarray as xr
        >>> try:
        ...     raise Interrupted(xr.Dataset({"overlap": 0.0}))
        ... except Interrupted as error:
        ...     print(*error.runs)
        overlap
    """

    def __init__(self, runs: xr.Dataset) -> None:
        super().__init__("interrupted; the records made until then are in .runs")
        self.runs = runs


def sgd(
    problem: Problem,
    dim: int,
    learning_rate: float,
    steps: int,
    replicas: int | range = 64,
    seed: int = 0,
    start: Start | None = None,
    records: int | Sequence[int] = 300,
    batch: int = 1,
    engine: str = "reduced",
    stop: Near | None = None,
    workers: int | None = None,
    progress: bool | Advance | None = None,
    checkpoint: str | Path | None = None,
) -> xr.Dataset:
    """Simulate one-pass spherical SGD, w <- w - gamma grad loss, then rescaled to norm sqrt(d) (the paper, eq. 7).

    Args:
        problem: target, student and loss.
        dim: dimension d, at least the rank of the frame plus one; for untied networks 2.
        learning_rate: gamma; time is t = gamma * step / d.
        steps: number of steps, int64.
        replicas: number of independent runs; or the indices of some of them, such as ``range(16, 32)``: the same runs.
        seed: seed; replica i draws from a stream that depends on (seed, i) alone.  The same seed gives the same numbers
            bit for bit on one type of processor, whatever the number of replicas, workers and records.
        start: law of the start; None for ``Start.random()``.
        records: number of recorded states, equally spaced with the first and the last, or the steps to record.
        batch: mini-batch size B; the gradient is the mean over B samples.
        engine: "reduced" for the exact chain of the overlaps, "explicit" for d-dimensional SGD (the plain truth).
        stop: where a replica has converged; it is then frozen.  Looked at when a record is made.
        workers: threads; None for all processors.
        progress: None for a bar with the time left on a terminal, True for plain lines elsewhere, False for none, or a
            function that is told the steps made; it may raise KeyboardInterrupt to stop the run.
        checkpoint: file that keeps the state every half minute and at Ctrl-C; where it is there, the run goes on from
            it, to the same numbers bit for bit.  It is removed at the end.

    Returns:
        Dataset over (replica, record) with "overlap" m, "encoding_overlap" e (if the student has an encoding; a third
        dimension "direction" if there are several), "overlap_norm" |m|, "outcome" and "end_step" a replica, and the
        coordinate "step".  Of an untied network "overlap" has a third dimension "position" and "overlap_norm" is
        ||m|| / sqrt(L).  A frozen replica repeats its last state; a diverged one is NaN from then on.  The attributes
        hold the problem and all settings.

    Raises:
        ValueError, TypeError: a bad argument, named in one line.
        Interrupted: on Ctrl-C, with the records made so far.

    Example:
        >>> target = sx.PositionalSemanticTarget(omega=0.3, alignment=1.0)
        >>> problem = sx.Problem(target, sx.Attention(2, sx.OppositeEncoding()))
        >>> runs = sgd(problem, dim=10**6, learning_rate=0.5, steps=100, replicas=4, records=3)
        >>> runs.sizes["record"], runs.step.values.tolist()
        (3, [0, 50, 100])
    """
    settings = Settings.checked(problem, dim, learning_rate, steps, replicas, seed, start, batch, workers)
    record_steps = recorded_steps(records, settings.steps)
    geometry = geometry_of(problem)
    make = geometry.engines[check.choice("engine", engine, geometry.engines)]
    if stop is not None and not isinstance(stop, Near):
        raise TypeError(f"stop must be a Near such as Near([(1, 0)], distance=0.3), or None, got {stop!r:.80}")
    simulation = settings.engine(make)
    if stop is not None:
        check.array("points of stop", stop.points, (None, len(simulation.s)))

    stopped = "" if stop is None else json.dumps(stop.spec())
    keep = Checkpoint(checkpoint, settings.identity(engine=engine, stop=stopped, records=record_steps.tolist()))
    run = _Run(simulation, record_steps, len(settings.replicas), stop, keep)
    interrupted = False
    with track("sgd", settings.steps, progress) as advance:
        try:
            run.finish(settings.steps, settings.threads, advance)
        except KeyboardInterrupt:
            interrupted = True
    attrs = {
        **settings.attrs(),
        "engine": engine,
        "stop": stopped,
    }
    runs = _dataset(run, geometry, settings.replicas, attrs)
    if interrupted:
        raise Interrupted(runs)
    return runs


def recorded_steps(records: int | Sequence[int], steps: int) -> NDArray[np.int64]:
    """The steps to record: sorted and distinct.

    Example:
        >>> recorded_steps(3, 10).tolist(), recorded_steps([10, 0], 10).tolist()
        ([0, 5, 10], [0, 10])
    """
    given: Any = records
    if not isinstance(given, Iterable) or isinstance(given, str) or getattr(given, "ndim", 1) == 0:
        count = check.integer("records", records, 2)
        if count > steps:
            return np.arange(steps + 1, dtype=np.int64)
        # Whole-number arithmetic: floats cannot hold every step beyond 2**53.
        result = [steps * i // (count - 1) for i in range(count)]
        return np.array(result, dtype=np.int64)
    entries = np.asarray(given).tolist() if hasattr(given, "__array__") else list(given)
    chosen = np.unique([check.integer("records", step, 0, steps) for step in entries])
    if chosen.size == 0:
        raise ValueError("records must name at least one step, got none")
    return chosen.astype(np.int64)


class _Run:
    """Replicas on their way: which still move, and what has been recorded."""

    def __init__(
        self, engine: Engine, record_steps: NDArray[np.int64], replicas: int, stop: Near | None, keep: Checkpoint
    ) -> None:
        self.engine = engine
        self.record_steps = record_steps
        self.stop = stop
        self._keep = keep
        self._recorded = np.zeros((), dtype=np.int64)
        self.states = np.full((engine.s.shape[0], replicas, len(record_steps)), np.nan)
        self.outcome = np.full(replicas, Outcome.CENSORED, dtype=np.int8)
        self.end_step = np.zeros(replicas, dtype=np.int64)

    def finish(self, steps: int, threads: int, advance: Advance) -> None:
        """Make all steps, record by record."""
        with Rounds(self.engine.advance, len(self.outcome), threads) as rounds:
            self._keep.resume(rounds, self._memory)
            if rounds.now:
                advance(rounds.now)
            done = int(self._recorded)
            try:
                for index, step in enumerate(self.record_steps[done:], start=done):
                    self._reach(rounds, int(step), advance)
                    self._record(rounds, index)
                self._reach(rounds, steps, advance)
            except KeyboardInterrupt:
                self._keep.keep(rounds, self._memory)
                raise
        self.outcome[rounds.active] = Outcome.STEP_LIMIT
        self._keep.done()

    @property
    def _memory(self) -> dict[str, NDArray[Any]]:
        own = {"states": self.states, "outcome": self.outcome, "end_step": self.end_step, "recorded": self._recorded}
        return {**own, **{f"engine.{name}": array for name, array in self.engine.memory.items()}}

    def _reach(self, rounds: Rounds, step: int, advance: Advance) -> None:
        for diverged in rounds.until(step, advance):
            self.end_step[rounds.active] = rounds.now
            broken = diverged >= 0
            if broken.any():
                self.outcome[rounds.active[broken]] = Outcome.DIVERGED
                self.end_step[rounds.active[broken]] = diverged[broken]
                rounds.active = rounds.active[~broken]
            self._keep.tick(rounds, self._memory)

    def _record(self, rounds: Rounds, index: int) -> None:
        s = np.where(self.outcome == Outcome.DIVERGED, np.nan, self.engine.s)
        self.states[:, :, index] = s
        self._recorded[...] = index + 1
        if self.stop is not None and len(rounds.active):
            done = self.stop.reached(s[:, rounds.active])
            self.outcome[rounds.active[done]] = Outcome.CONVERGED
            rounds.active = rounds.active[~done]


def _dataset(run: _Run, geometry: Geometry, replicas: range, attrs: dict[str, Any]) -> xr.Dataset:
    variables: dict[str, Any] = {
        **geometry.variables(run.states),
        "outcome": ("replica", run.outcome, flag_attrs()),
        "end_step": ("replica", run.end_step, {"long_name": "step at which the replica ended"}),
    }
    coords = {
        "replica": np.array(replicas),
        "step": ("record", run.record_steps, {"long_name": "number of steps", "units": "1"}),
    }
    return xr.Dataset(variables, coords, attrs)
