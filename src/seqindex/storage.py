"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


PARTIAL = ".partial-"
"""How the names of files begin that are being written."""
_STALE_SECONDS = 3600.0  # a younger one may belong to a process that is still writing


def writable_folder(path: str | Path) -> Path:
    """The folder ``path``, made if it is not there, after trying to write in it.

    Raises:
        ValueError: it cannot be made or written to; said before any computing.

    Example:
        >>> import tempfile
        >>> writable_folder(tempfile.mkdtemp()).is_dir()
        True
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for stale in folder.glob(f"{PARTIAL}*"):  # left by a process that was killed while it wrote
            if time.time() - stale.stat().st_mtime > _STALE_SECONDS:
                stale.unlink()
    except OSError as error:
        reason = error.strerror
        raise ValueError(f"out must be a folder that can be written to, got {str(folder)!r} ({reason})") from error
    return folder


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it into place.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_whole(folder / "a.txt", lambda p: p.write_text("whole")).read_text()
        'whole'
    """
    handle, name = tempfile.mkstemp(prefix=PARTIAL, suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def save_dataset(data: xr.Dataset, path: Path) -> Path:
    """Write a Dataset as NetCDF."""
    return write_whole(path, lambda temporary: data.to_netcdf(temporary, engine="h5netcdf"))


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as PNG and PDF beside each other."""
    paths = [stem.with_suffix(suffix) for suffix in (".png", ".pdf")]
    for path in paths:
        write_whole(path, lambda temporary: figure.savefig(temporary, dpi=150))
    return paths
