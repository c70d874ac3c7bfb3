"""When replicas recover: the first step with an overlap of a given size, exactly or as far as records tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.outcome import Outcome, flag_attrs
from seqindex.progress import Advance, track
from seqindex.sgd.checkpoint import Checkpoint
from seqindex.sgd.geometry import geometry_of
from seqindex.sgd.rounds import Rounds
from seqindex.sgd.run import Interrupted
from seqindex.sgd.settings import Settings
from seqindex.sgd.start import Start

_TIME = {
    "long_name": "step of the first crossing; of the end of the watch where censored; NaN where diverged",
    "units": "1",
}


def hitting_time(
    problem: Problem,
    dim: int,
    learning_rate: float,
    steps: int,
    threshold: float = 0.2,
    replicas: int | range = 64,
    seed: int = 0,
    start: Start | None = None,
    batch: int = 1,
    workers: int | None = None,
    progress: bool | Advance | None = None,
    checkpoint: str | Path | None = None,
) -> xr.Dataset:
    """First step at which |m| (untied networks: ||m|| / sqrt(L)) >= threshold, for each replica, to the step.

    A replica makes the same steps as under ``sgd`` with the same arguments, and stops when it crosses.  Every step is
    looked at, at no cost that depends on d.

    Args:
        problem: see ``seqindex.sgd``, as for all arguments that are not named here.
        dim: dimension d.
        learning_rate: gamma.
        steps: horizon T; a replica that has not crossed by then is censored.
        threshold: size of the overlap, "overlap_norm" of ``sgd``, in (0, 1].
        replicas: number of independent runs, or the indices of some of them, as in ``sgd``.
        seed: seed of the streams.
        start: law of the start; None for ``Start.random()``.
        batch: mini-batch size.
        workers: threads; None for all processors.
        progress: as in ``sgd``.
        checkpoint: as in ``sgd``.

    Returns:
        Dataset over replica with "time" in steps and "outcome": recovered (time is the step of the crossing),
        already_above (0), censored (T) or diverged (NaN).  ``median_time`` and ``restricted_mean`` average
        such times; a plain mean would count a censored replica as one that crossed at T.

    Raises:
        ValueError, TypeError: a bad argument, named in one line; so a threshold that learning does not reach: more than
            1, or more than sqrt(k / L) of an untied network's rows on spheres of their own where the target reads k
            tokens.
        Interrupted: on Ctrl-C; its ``runs`` holds the times known by then, the other replicas censored where they were.

    Example:
        >>> problem = sx.Problem(sx.Target("He2(z1)", 1), sx.TiedNetwork(1))
        >>> times = hitting_time(problem, dim=100, learning_rate=0.1, steps=10**5, threshold=0.5, replicas=4)
        >>> times.outcome.values.tolist(), bool((times.time > 100).all())
        ([0, 0, 0, 0], True)
    """
    settings = Settings.checked(problem, dim, learning_rate, steps, replicas, seed, start, batch, workers)
    threshold = _checked(threshold)
    geometry = geometry_of(problem)
    engine = settings.engine(geometry.engines["reduced"], threshold=threshold)
    watch = _Watch(geometry.norm(engine.s) >= threshold)
    reach = geometry.reach(problem)
    if threshold > reach and (watch.outcome == Outcome.CENSORED).any():
        raise ValueError(
            f"threshold must be at most {reach:.4g}, where every row whose token the target reads is aligned and the "
            f"others, on spheres of their own, stay random, got {threshold:g}"
        )
    keep = Checkpoint(checkpoint, settings.identity(threshold=threshold))
    memory = {"time": watch.time, "outcome": watch.outcome, **{f"engine.{n}": a for n, a in engine.memory.items()}}
    interrupted = False
    with (
        track("hitting_time", settings.steps, progress) as made,
        Rounds(engine.advance, len(settings.replicas), settings.threads) as rounds,
    ):
        rounds.active = rounds.active[watch.outcome == Outcome.CENSORED]
        keep.resume(rounds, memory)
        try:
            if rounds.now:
                made(rounds.now)
            for diverged in rounds.until(settings.steps, made):
                rounds.active = watch.after(rounds.active, rounds.now, diverged, engine.crossed)
                keep.tick(rounds, memory)
            keep.done()
        except KeyboardInterrupt:
            keep.keep(rounds, memory)
            interrupted = True
    attrs = {**settings.attrs(), "engine": "reduced", "threshold": threshold}
    times = xr.Dataset(
        {"time": ("replica", watch.time, _TIME), "outcome": ("replica", watch.outcome, flag_attrs())},
        {"replica": np.array(settings.replicas)},
        attrs,
    )
    if interrupted:
        raise Interrupted(times)
    return times


def recovery_time(runs: xr.Dataset, threshold: float = 0.2) -> xr.Dataset:
    """First recorded step with "overlap_norm" >= threshold, for each replica of ``sgd``.

    The crossing itself lies after the record before; ``hitting_time`` finds it to the step.

    Args:
        runs: what ``sgd`` returns, or several such runs along further dimensions.
        threshold: size of the overlap, in (0, 1].

    Returns:
        Dataset over replica (and any further dimensions) with "time" in steps and "outcome": recovered (time is the
        recorded step), already_above (the state at step 0 was; time 0), censored (time is the last step that was looked
        at: the last record, or the step at which the replica was frozen or interrupted) or diverged (NaN).

    Raises:
        TypeError: runs that are no Dataset.
        ValueError: runs without what ``sgd`` records, or a threshold that no overlap reaches.

    Example:
        >>> problem = sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1, activation="identity"))
        >>> start = sx.Start.overlaps(m=0.1)
        >>> runs = sx.sgd(problem, dim=10**4, learning_rate=0.1, steps=10**5, replicas=2, start=start, records=11)
        >>> recovery_time(runs, threshold=0.5).time.values.tolist()  # (d / gamma) (artanh 0.5 - artanh 0.1) / 2 = 22450
        [30000.0, 30000.0]
    """
    if not isinstance(runs, xr.Dataset):
        raise TypeError(f"runs must be a Dataset such as sgd returns, got {check.shown(type(runs).__name__)}")
    for name in ("overlap_norm", "step", "outcome", "end_step"):
        if name not in runs:
            raise ValueError(f"runs must hold {name!r} as sgd records it, got {check.shown(list(runs.variables))}")
    threshold = _checked(threshold)
    norm, step = runs["overlap_norm"].load(), runs["step"]
    above = norm >= threshold
    found = above.any("record")
    crossing = step.isel(record=above.argmax("record")).drop_vars("step", errors="ignore").astype(np.float64)
    seen = step.where(norm.notnull()).max("record")
    last = seen.where(seen < runs["end_step"], runs["end_step"])
    ended = runs["outcome"] == Outcome.DIVERGED
    time = crossing.where(found, last.where(~ended))
    outcome = xr.full_like(found, int(Outcome.CENSORED), dtype=np.int8)
    for holds, kind in (
        (ended, Outcome.DIVERGED),
        (found, Outcome.RECOVERED),
        (found & (crossing == 0), Outcome.ALREADY_ABOVE),
    ):
        outcome = outcome.where(~holds, int(kind))
    outcome = outcome.astype(np.int8)
    variables = {"time": time.assign_attrs(_TIME), "outcome": outcome.assign_attrs(flag_attrs())}
    return xr.Dataset(variables, attrs={**runs.attrs, "threshold": threshold})


def _checked(threshold: Any) -> float:
    return check.number("threshold", threshold, 0.0, 1.0, positive=True)


class _Watch:
    """Times and outcomes so far."""

    def __init__(self, above: NDArray[np.bool_]) -> None:
        self.time = np.zeros(len(above))
        self.outcome = np.where(above, Outcome.ALREADY_ABOVE, Outcome.CENSORED).astype(np.int8)

    def after(
        self, which: NDArray[np.int64], now: int, diverged: NDArray[np.int64], crossed: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Note what happened to the replicas ``which`` up to step ``now``; return those that go on."""
        crossed = crossed[which]
        hit = (crossed >= 0) & ((diverged < 0) | (crossed < diverged))
        broken = (diverged >= 0) & ~hit
        self.time[which] = np.where(hit, crossed, np.where(broken, np.nan, float(now)))
        self.outcome[which[hit]] = Outcome.RECOVERED
        self.outcome[which[broken]] = Outcome.DIVERGED
        return which[~hit & ~broken]
