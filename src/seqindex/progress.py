"""Progress with the time left: a bar on a terminal, a plain line now and then in a log, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[float], None]
"""Told how much more of the total has been done."""

_PATIENCE = 2.0  # seconds before anything is shown
_INTERVAL = 30.0  # seconds between the lines of a log


@contextmanager
def track(description: str, total: float, show: bool | Advance | None = None) -> Iterator[Advance]:
    """Show how far a job is on standard error, once it has taken two seconds.

    Args:
        description: what is being done.
        total: how much there is to do.
        show: None for a bar on a terminal and nothing elsewhere; True for plain lines where there is no terminal, one
            every 30 seconds; False for nothing; a function to be told instead, which may raise to stop the job.

    Example:
        >>> with track("steps", 3, show=False) as advance:
        ...     advance(1)
    """
    terminal = sys.stderr.isatty()
    if callable(show):
        yield show
    elif show is False or (show is None and not terminal):
        yield lambda amount: None
    elif terminal:
        with _bar(description, total) as advance:
            yield advance
    else:
        yield _lines(description, total)


@contextmanager
def _bar(description: str, total: float) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(description, total=total)
    begin = time.monotonic()
    shown = False

    def advance(amount: float) -> None:
        nonlocal shown
        bar.advance(task, amount)
        if not shown and time.monotonic() - begin > _PATIENCE:
            bar.start()
            shown = True

    try:
        yield advance
    finally:
        if shown:
            bar.stop()


def _lines(description: str, total: float) -> Advance:
    begin = last = time.monotonic()
    done = 0.0

    def advance(amount: float) -> None:
        nonlocal last, done
        done += amount
        now = time.monotonic()
        if now - last >= _INTERVAL and done > 0:
            left = (now - begin) * (total - done) / done
            sys.stderr.write(f"{description}: {100 * done / total:.0f} %, about {left:.0f} s left\n")
            sys.stderr.flush()
            last = now

    return advance
