"""A file from which a simulation that was stopped goes on, to the same numbers bit for bit."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqindex.sgd.rounds import Rounds
from seqindex.storage import write_whole

INTERVAL = 30.0
"""Seconds between two savings."""
Arrays = Mapping[str, NDArray[Any]]
Memory = Mapping[str, NDArray[Any]]
"""Arrays that a simulation changes in place."""


class Checkpoint:
    """Where a simulation keeps its state while it runs.

    Args:
        path: the file; None for none.
        identity: what decides the numbers; a file of anything else is refused.

    Raises:
        ValueError: a folder that is not there.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run.npz"
        >>> Checkpoint(path, "a").save({"step": np.array(3)})
        >>> Checkpoint(path, "a").load()["step"].item()
        3
    """

    def __init__(self, path: str | Path | None, identity: str) -> None:
        self._path = None if path is None else Path(path)
        self._identity = identity
        self._last = time.monotonic()
        if self._path is not None and not self._path.parent.is_dir():
            raise ValueError(f"checkpoint must lie in a folder that exists, got {str(path)!r}")

    def load(self) -> Arrays | None:
        """What was saved; None where there is nothing, or a damaged file.

        Raises:
            ValueError: the file belongs to a simulation with other settings.
        """
        if self._path is None or not self._path.exists():
            return None
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                arrays = {name: saved[name] for name in saved.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None
        if str(arrays.pop("identity", "")) != self._identity:
            raise ValueError(f"checkpoint must be a file of the same simulation, got {str(self._path)!r} of another")
        return arrays

    def resume(self, rounds: Rounds, memory: Memory) -> None:
        """Put replicas and everything in ``memory`` back to where they were when saved, if anything was."""
        saved = self.load()
        if saved is None:
            return
        for name, array in memory.items():
            array[...] = saved[name]
        rounds.active, rounds.now = np.array(saved["active"], dtype=np.int64), int(saved["now"])

    def tick(self, rounds: Rounds, memory: Memory) -> None:
        """Save if the last time is ``INTERVAL`` ago."""
        if self._path is not None and time.monotonic() - self._last >= INTERVAL:
            self.keep(rounds, memory)

    def keep(self, rounds: Rounds, memory: Memory) -> None:
        """Save where replicas are."""
        self.save({**memory, "active": rounds.active, "now": np.array(rounds.now)})

    def save(self, arrays: Arrays) -> None:
        """Write everything, or nothing."""
        if self._path is None:
            return

        def write(temporary: Path) -> None:
            with temporary.open("wb") as file:
                np.savez(file, identity=np.array(self._identity), **arrays)  # type: ignore[arg-type]

        write_whole(self._path, write)
        self._last = time.monotonic()

    def done(self) -> None:
        """The simulation has ended: nothing is left to go on with."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
