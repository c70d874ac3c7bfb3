"""The folder of a study: what was asked, one file a point, and nothing that a crash can spoil.

study.yaml     the file as it was given            points.json    every point: settings, swept values, key
versions.json  of the packages                     log.txt        what happened, with times
points/KEY.nc  the result of a point               parts/         blocks of points that are not finished
set-aside/     damaged or foreign files            .lock          held while a process works on the study
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import xarray as xr

from seqindex.storage import PARTIAL, save_dataset, writable_folder, write_whole
from seqindex.study.point import Point

_PACKAGES = ("seqindex", "numpy", "scipy", "numba", "xarray", "h5netcdf")


class Store:
    """The folder of one study.

    Args:
        folder: where it is; made where it is not there.

    Raises:
        ValueError: a folder that cannot be written to.

    Example:
        >>> import tempfile
        >>> Store(tempfile.mkdtemp()).missing([])
        []
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = writable_folder(folder)
        self.points = writable_folder(self.folder / "points")
        self.parts = writable_folder(self.folder / "parts")

    def begin(self, text: str, points: Sequence[Point]) -> None:
        """Write down what was asked, with the folder locked."""
        for stale in self.points.glob(f"{PARTIAL}*"):  # only the process that holds the lock writes here
            stale.unlink(missing_ok=True)
        rows = [{"key": point.key, "swept": point.swept, "settings": point.settings} for point in points]
        versions: dict[str, str] = {name: version(name) for name in _PACKAGES}
        versions["python"], versions["processor"] = platform.python_version(), platform.machine()
        for name, content in (
            ("study.yaml", text),
            ("points.json", json.dumps(rows, indent=1)),
            ("versions.json", json.dumps(versions, indent=1)),
        ):
            _write(self.folder / name, content)

    def path(self, key: str) -> Path:
        """File of a finished point."""
        return self.points / f"{key}.nc"

    def part(self, key: str, block: range) -> Path:
        """File of a finished block of replicas."""
        return self.parts / f"{key}-{block.start}-{block.stop}.nc"

    def checkpoint(self, key: str, block: range, name: str) -> Path:
        """File from which a simulation of a block goes on."""
        return self.parts / f"{key}-{block.start}-{block.stop}-{name}.npz"

    def missing(self, points: Sequence[Point]) -> list[Point]:
        """Points without a whole file of their own; damaged and foreign files are set aside."""
        return [point for point in points if self._load(self.path(point.key), point.key) is None]

    def load_part(self, key: str, block: range) -> xr.Dataset | None:
        """A finished block, or None."""
        return self._load(self.part(key, block), key)

    def finish(self, point: Point, data: xr.Dataset) -> None:
        """Write the result of a point, and remove its blocks."""
        save_dataset(data, self.path(point.key))
        for path in self.parts.glob(f"{point.key}-*"):
            path.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what killed workers have left behind, once nothing runs any more."""
        for stale in self.parts.glob(f"{PARTIAL}*"):
            stale.unlink(missing_ok=True)

    def log(self, line: str) -> None:
        """Append a line with the time to the log."""
        with (self.folder / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from working on this study; released also when this one is killed.

        Raises:
            ValueError: another process holds it.
        """
        try:
            import fcntl
        except ImportError:  # not on this system: two processes would do the same work twice, to the same files
            yield
            return
        with (self.folder / ".lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                file.seek(0)
                who = file.read().strip() or "unknown"
                message = f"out must be a folder that no other run is working on, got {str(self.folder)!r}"
                raise ValueError(f"{message} (process {who})") from error
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()} on {platform.node()}\n")
            file.flush()
            yield

    def _load(self, path: Path, key: str) -> xr.Dataset | None:
        """What a file holds; None where it is not there, or set aside because it holds not what its name says."""
        if not path.exists():
            return None
        data = _loaded(path)
        if data is not None and data.attrs.get("key") == key:
            return data
        aside = writable_folder(self.folder / "set-aside")
        number = sum(1 for _ in aside.glob(f"{path.name}*"))
        path.replace(aside / (path.name if number == 0 else f"{path.name}.{number}"))
        self.log(f"{path.name} is damaged or of something else: set aside, computed again")
        return None


def _loaded(path: Path) -> xr.Dataset | None:
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            return data.load()
    except (OSError, ValueError, KeyError, RuntimeError):
        return None


def _write(path: Path, text: str) -> None:
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def read_points(folder: str | Path) -> list[dict[str, Any]]:
    """Settings, swept values and keys of the points of a study.

    Raises:
        ValueError: a folder that holds no study.
    """
    path = Path(folder) / "points.json"
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"folder must hold a study, as seqindex run writes it, got {str(folder)!r}") from error
    return list(rows)
