"""Runs what is missing of a study, on local processes or on a Dask cluster, and stores every point when it is done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqindex.sgd.rounds import processors
from seqindex.study.block import REPLICAS, assembled, blocks, run_block
from seqindex.study.board import Board
from seqindex.study.point import Point
from seqindex.study.store import Store

_TRIES = 3
"""How often a block is started again whose worker was killed."""
_AHEAD = 2
"""Blocks a worker that are handed out at a time: few, so that memory does not grow with the study."""
_stop: Any = None
"""In a worker: set when it is to keep its state and stop."""


@dataclass
class Summary:
    """What became of a study.

    Attributes:
        kept: points that were there already.
        done: points computed now.
        failed: points that raised, with their messages.
        stopped: whether it was interrupted.
    """

    kept: int = 0
    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False


def run_points(
    points: Sequence[Point],
    store: Store,
    workers: int | None = None,
    cluster: str | None = None,
    block: int = REPLICAS,
    progress: bool | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Summary:
    """Compute the points that are missing.

    Args:
        points: of the study.
        store: its folder, which this process holds locked.
        workers: local processes; None for one a processor.
        cluster: address of a Dask scheduler whose workers see the same folder; None for local processes.
        block: replicas of a block; the results do not depend on it.
        progress: as in ``Board``.
        say: told what fails, and what to do after an interrupt.

    Returns:
        What became of every point; one that fails does not stop the others.
    """
    missing = store.missing(points)
    summary = Summary(kept=len(points) - len(missing))
    store.log(f"{len(points)} points, {len(missing)} to compute")
    if not missing:
        return summary
    board = Board(len(points), summary.kept, sum(point.work for point in missing), progress, store.log)
    work = _Work(missing, store, block, board, summary, say)
    with _executors(workers, cluster) as (new, count), board.shown():
        work.run(new, count)
    store.tidy()
    return summary


@contextmanager
def _executors(workers: int | None, cluster: str | None) -> Iterator[tuple[Callable[[], Executor], int]]:
    """A maker of executors and the number of workers of each."""
    if cluster is None:
        count = workers or processors()
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        made: list[Executor] = []

        def new() -> Executor:
            made.append(ProcessPoolExecutor(count, context, _begin, (stop, os.getpid())))
            return made[-1]

        try:
            yield new, count
        except KeyboardInterrupt:
            stop.set()
            raise
        finally:
            for executor in made:
                executor.shutdown(wait=True, cancel_futures=True)
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError('cluster needs Dask: pip install "seqindex[cluster]"') from error
    try:
        client = Client(cluster, timeout="10s")
    except (OSError, ValueError) as error:
        raise ValueError(f"cluster must be the address of a Dask scheduler, got {cluster!r} ({error})") from error
    with client:
        threads = sum(client.nthreads().values())
        yield client.get_executor, max(1, threads)


def _begin(stop: Any, parent: int) -> None:
    """Start of a local worker: Ctrl-C is the parent's affair, and without a parent there is nothing to do."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _tick(steps: float) -> None:
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt


def _work(folder: str, point: Point, block: range) -> str:
    """Run a block in a worker; returns what went wrong, if anything."""
    try:
        run_block(Path(folder), point, block, _tick)
    except KeyboardInterrupt:
        return "stopped"
    except Exception as error:  # noqa: BLE001 - whatever a target or a disk does, the other points go on
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


class _Work:
    """Blocks on their way."""

    def __init__(
        self,
        points: Sequence[Point],
        store: Store,
        block: int,
        board: Board,
        summary: Summary,
        say: Callable[[str], None],
    ) -> None:
        self._points = points
        self._store, self._block, self._board, self._summary, self._say = store, block, board, summary, say
        self._left: dict[str, int] = {}
        self._tries: dict[tuple[str, int], int] = {}
        self._running: dict[Future[str], tuple[Point, range]] = {}

    def run(self, new: Callable[[], Executor], workers: int) -> None:
        """Until nothing is left, or an interrupt."""
        executor = new()
        todo = self._blocks()
        again: list[tuple[Point, range]] = []
        while True:
            while len(self._running) < _AHEAD * workers:
                one = again.pop() if again else next(todo, None)
                if one is None:
                    break
                self._running[executor.submit(_work, str(self._store.folder), *one)] = one
            self._board.running = min(len(self._running), workers)
            if not self._running:
                return
            finished, _ = wait(self._running, timeout=1.0, return_when=FIRST_COMPLETED)
            self._board.made(0.0)
            for future in finished:
                point, block = self._running.pop(future)
                try:
                    self._ended(point, block, future.result())
                except BrokenProcessPool:
                    again += [(point, block), *self._running.values()]
                    self._running.clear()
                    executor = self._replaced(executor, new, point, block)
                    break

    def _blocks(self) -> Iterator[tuple[Point, range]]:
        """Blocks that are not stored, the longest points first; a point with all its blocks is finished at once."""
        for point in sorted(self._points, key=lambda point: -point.work):
            every = blocks(point.replicas, self._block)
            todo = [block for block in every if self._store.load_part(point.key, block) is None]
            self._board.made(point.work * (1.0 - sum(map(len, todo)) / point.replicas))
            self._left[point.key] = len(todo)
            if not todo:
                self._finish(point)
            yield from ((point, block) for block in todo)

    def _ended(self, point: Point, block: range, message: str) -> None:
        self._board.made(point.work * len(block) / point.replicas)
        if message:
            self._failed(point, message)
            return
        self._left[point.key] -= 1
        if self._left[point.key] == 0 and point.key not in self._summary.failed:
            self._finish(point)

    def _finish(self, point: Point) -> None:
        data = assembled(self._store, point, self._block)
        if data is None:
            self._failed(point, "a block was removed while it ran")
            return
        try:
            self._store.finish(point, data)
        except OSError as error:
            self._failed(point, f"{type(error).__name__}: {error}")
            return
        self._summary.done += 1
        self._board.done += 1
        self._store.log(f"done {point.key} {_shown(point)}")

    def _failed(self, point: Point, message: str) -> None:
        if point.key in self._summary.failed:
            return
        self._summary.failed[point.key] = f"{_shown(point)}: {message}"
        self._board.failed += 1
        self._store.log(f"failed {point.key} {_shown(point)}: {message}")
        self._say(f"failed: {_shown(point)}: {message}")

    def _replaced(self, broken: Executor, new: Callable[[], Executor], point: Point, block: range) -> Executor:
        """New workers after one was killed; the block that broke them may only do so a few times."""
        broken.shutdown(wait=True, cancel_futures=True)
        place = (point.key, block.start)
        self._tries[place] = self._tries.get(place, 0) + 1
        self._store.log(f"a worker was killed while {_shown(point)} ran; its blocks go on in new workers")
        if self._tries[place] > _TRIES:
            raise ChildProcessError(f"workers are killed again and again, last at {_shown(point)}; is memory enough?")
        return new()


def _shown(point: Point) -> str:
    return ", ".join(f"{name} = {value}" for name, value in point.swept.items()) or "the study"
