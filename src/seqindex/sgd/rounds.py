"""Replicas taken through their steps in rounds, block by block and thread by thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.simd import WIDTH

_ROUND_SECONDS = 0.05  # all replicas are taken this far before the next round, so that Ctrl-C and progress work
_CALL_SECONDS = 0.004  # unless there are so many that a call of the kernel would be shorter than this

Steps = NDArray[np.int64]


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Rounds:
    """The replicas that still move, and how far they have come.

    Args:
        advance: makes ``steps`` steps of the replicas ``which`` after ``first`` earlier ones; returns one number each.
        replicas: how many there are.
        threads: how many blocks move at a time.

    Attributes:
        active: the replicas that move; the caller drops some between two rounds.
        now: steps made.

    Example:
        >>> with Rounds(lambda which, first, steps: which + first + steps, replicas=3, threads=1) as rounds:
        ...     [results.tolist() for results in rounds.until(2, lambda steps: None)]
        [[1, 2, 3], [2, 3, 4]]
    """

    def __init__(self, advance: Callable[[Steps, int, int], Steps], replicas: int, threads: int) -> None:
        self.active = np.arange(replicas)
        self.now = 0
        self._advance = advance
        self._threads = min(threads, -(-replicas // WIDTH))
        self._pool = ThreadPoolExecutor(self._threads)  # starts a thread when it is first needed
        self._chunk = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def until(self, step: int, made: Callable[[float], None]) -> Iterator[Steps]:
        """Go to ``step``, yielding after each round what ``advance`` returned for ``active``.

        ``made`` is told the steps of a round once the caller has seen it.
        """
        while self.now < step:
            if len(self.active) == 0:
                made(step - self.now)
                self.now = step
                return
            count = min(self._chunk, step - self.now)
            parts = [self.active[i : i + WIDTH] for i in range(0, len(self.active), WIDTH)]
            begin = time.perf_counter()
            if len(parts) == 1:  # in this thread, so that Ctrl-C finds it between two calls
                results = [self._advance(parts[0], self.now, count)]
            else:
                results = list(self._pool.map(self._advance, parts, [self.now] * len(parts), [count] * len(parts)))
            seconds = time.perf_counter() - begin
            wanted = max(_ROUND_SECONDS, _CALL_SECONDS * len(parts) / self._threads)
            if seconds < 0.5 * wanted and count == self._chunk:
                self._chunk *= 2
            elif seconds > 2.0 * wanted:
                self._chunk = max(1, self._chunk // 2)
            self.now += count
            yield np.concatenate(results)
            made(count)
