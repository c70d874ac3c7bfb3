"""How many steps a second does each engine make on one core, and how many does PyTorch?

The problem is the positional-semantic one at length 2 with opposite encodings.  What is counted is processor time, so
that other jobs on the machine disturb little; the contestants take turns, and the median turn counts.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqindex import check
from seqindex.model.attention import Attention
from seqindex.model.encoding import OppositeEncoding
from seqindex.model.problem import Problem
from seqindex.model.target import PositionalSemanticTarget
from seqindex.sgd.peers import PEERS, has_torch
from seqindex.sgd.run import sgd
from seqindex.sgd.start import Start

_DIM, _HUGE = 1000, 10**9
_REPLICAS = 64
_M = 0.3
_RATE = 0.5

Run = Callable[[int], NDArray[np.float64]]
"""Makes a number of steps from the start and gives the final overlaps of the replicas."""


@dataclass(frozen=True)
class Row:
    """One contestant.

    Attributes:
        name: engine or peer, and its dimension.
        steps_per_second: steps of a replica.
        times: for each peer its name and how many times faster this is; empty without PyTorch.
    """

    name: str
    steps_per_second: float
    times: dict[str, float]


def _engine(problem: Problem, engine: str, dim: int) -> Run:
    def run(steps: int) -> NDArray[np.float64]:
        settings = {"replicas": _REPLICAS, "records": [steps], "workers": 1, "progress": False}
        runs = sgd(problem, dim, _RATE, steps, start=Start.overlaps(_M), engine=engine, **settings)  # type: ignore[arg-type]
        overlaps: NDArray[np.float64] = runs["overlap"].values[:, -1]
        return overlaps

    return run


def _peer(problem: Problem, name: str) -> Run:
    def run(steps: int) -> NDArray[np.float64]:
        make, single = PEERS[name]
        peer = make(problem, _DIM, _RATE, _M, seed=1, single=single)
        peer.run(steps)
        overlaps: NDArray[np.float64] = peer.overlap
        return overlaps

    return run


def contestants(loss: str = "square") -> dict[str, tuple[Run, int, int]]:
    """Every contestant by name: how it runs, its dimension, its number of replicas; peers only where PyTorch is."""
    target = PositionalSemanticTarget(omega=0.67, alignment=1.0)
    problem = Problem(target, Attention(2, OppositeEncoding()), loss)
    rows = {name: (_peer(problem, name), _DIM, peer.replicas) for name, (peer, _) in PEERS.items() if has_torch()}
    for label, engine, dim in (
        ("explicit", "explicit", _DIM),
        ("reduced", "reduced", _DIM),
        ("reduced", "reduced", _HUGE),
    ):
        rows[f"{label}, d = {dim:.0e}".replace("e+0", "e")] = (_engine(problem, engine, dim), dim, _REPLICAS)
    return rows


@contextmanager
def _one_thread() -> Iterator[None]:
    """PyTorch on one thread, as the engines; afterwards on as many as before."""
    if not has_torch():
        yield
        return
    torch = importlib.import_module("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@_one_thread()
def benchmark(seconds: float = 1.0, turns: int = 3, loss: str = "square") -> list[Row]:
    """Time every contestant on one core.

    Args:
        seconds: processor time of a turn, about.
        turns: number of turns.
        loss: as for ``Problem``.

    Raises:
        TypeError, ValueError: an argument that is not positive, or an unknown loss.

    Example:
        >>> [row.name for row in benchmark(seconds=1e-3, turns=1)][-1]
        'reduced, d = 1e9'
    """
    check.number("seconds", seconds, positive=True)
    check.integer("turns", turns, 1)
    runs = contestants(loss)
    steps = {name: _steps_for(run, seconds) for name, (run, _, _) in runs.items()}
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, (run, _, replicas) in runs.items():
            speeds[name].append(steps[name] * replicas / _time(run, steps[name]))
    speed = {name: statistics.median(values) for name, values in speeds.items()}
    peers = [name for name in PEERS if name in speed]
    return [Row(name, speed[name], {peer: speed[name] / speed[peer] for peer in peers}) for name in runs]


@_one_thread()
def overlaps(steps: int, names: Sequence[str] | None = None, loss: str = "square") -> dict[str, NDArray[np.float64]]:
    """Overlaps m that the contestants at d = 1000 reach after ``steps`` steps from the same start: the same law."""
    runs = contestants(loss)
    return {
        name: run(steps) for name, (run, dim, _) in runs.items() if dim == _DIM and (names is None or name in names)
    }


def _time(run: Run, steps: int) -> float:
    begin = time.process_time()
    run(steps)
    return max(time.process_time() - begin, 1e-9)


def _steps_for(run: Run, seconds: float) -> int:
    """Number of steps that take about ``seconds``; the first call compiles and warms up."""
    run(1)
    steps = 16
    while (taken := _time(run, steps)) < 0.2 * seconds:
        steps *= 4
    return max(1, round(steps * seconds / taken))
