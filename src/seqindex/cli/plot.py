"""``seqindex plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqindex.cli.console import say_files


def plot(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Picture without its ending; if not given, DIR/study.")
    ] = None,
) -> None:
    """Draw a study: recovery times, a map, or overlaps, as what was swept and recorded allows.

    Example: seqindex plot study.
    """
    from seqindex.plotting.study import draw_study
    from seqindex.storage import save_figure, writable_folder
    from seqindex.study.run import open_study

    data = open_study(folder).load()
    stem = folder / "study" if out is None else out.with_suffix("")
    writable_folder(stem.parent)
    say_files(save_figure(draw_study(data), stem))
