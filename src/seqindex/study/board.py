"""How far a study is: a live table on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

_INTERVAL = 30.0
"""Seconds between two plain lines."""


class Board:
    """Counts of points and blocks, and what follows from them.

    Args:
        points: number of points.
        kept: points that were there already.
        work: steps of all replicas to be made.
        show: None for a table on a terminal and nothing elsewhere, True for plain lines elsewhere, False for nothing.
        log: told the plain lines as well.

    Example:
        >>> board = Board(points=3, kept=1, work=100.0, show=False)
        >>> board.made(50.0)
        >>> board.line().split(";")[0]
        '1 of 3 points done, 0 failed'
    """

    def __init__(
        self, points: int, kept: int, work: float, show: bool | None, log: Callable[[str], None] = lambda line: None
    ) -> None:
        self.points, self.done, self.failed, self.running = points, kept, 0, 0
        self._work, self._made = work, 0.0
        self._begin = self._last = time.monotonic()
        self._log = log
        terminal = sys.stderr.isatty()
        self._lines = show is True and not terminal
        self._live: Any = None
        if terminal and show is not False:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(get_renderable=self.table, console=Console(stderr=True), refresh_per_second=4)

    def shown(self) -> AbstractContextManager[Any]:
        """Shows the table while the context lasts."""
        return nullcontext() if self._live is None else self._live

    def made(self, work: float) -> None:
        """Note that some work is done."""
        self._made += work
        now = time.monotonic()
        if now - self._last >= _INTERVAL:
            self._last = now
            self._log(self.line())
            if self._lines:
                sys.stderr.write(self.line() + "\n")
                sys.stderr.flush()

    def line(self) -> str:
        """Everything on one line."""
        rate, left = self._speed()
        counts = f"{self.done} of {self.points} points done, {self.failed} failed"
        return f"{counts}; {self.running} blocks running; {rate:.3g} steps/s; {_spoken(left)} left"

    def table(self) -> Table:
        """The same as a table."""
        from rich.table import Table

        rate, left = self._speed()
        result = Table("done", "running", "failed", "steps/s", "time left")
        result.add_row(
            f"{self.done} of {self.points}", str(self.running), str(self.failed), f"{rate:.3g}", _spoken(left)
        )
        return result

    def _speed(self) -> tuple[float, float]:
        seconds = max(time.monotonic() - self._begin, 1e-9)
        rate = self._made / seconds
        return rate, (self._work - self._made) / rate if rate > 0.0 else float("inf")


def _spoken(seconds: float) -> str:
    """A time in plain units.

    Example:
        >>> _spoken(50.0), _spoken(4000.0), _spoken(float("inf"))
        ('50 s', '67 min', 'unknown time')
    """
    if seconds == float("inf"):
        return "unknown time"
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
