"""``seqindex run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqindex.cli.console import QUIET, Halted, note, say, say_files, table, whole

if TYPE_CHECKING:
    from seqindex.study.point import Point
    from seqindex.study.spec import Study


def run(
    study: Annotated[Path | None, typer.Argument(metavar="STUDY.yaml", help="The study.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the results; if not given, the file's name.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", parser=whole, help="Processes; if not given, one a processor."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="ADDRESS", help="Dask scheduler, such as tcp://host:8786.")
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", metavar="seqindex|hydra", help="Language of the file; hydra: of the released code."),
    ] = "seqindex",
    dry: Annotated[bool, typer.Option("--dry-run", help="Only list the points, the time and the disk.")] = False,
    example: Annotated[bool, typer.Option("--example", help="Print a study with comments.")] = False,
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """Run a study: every point of a sweep, stored one by one.

    What is already there is not computed again, so that the same command goes on after anything: an interrupt, a crash,
    a changed value.

    Examples: seqindex run --example > study.yaml; seqindex run study.yaml --dry-run; seqindex run study.yaml.
    """
    if example:
        say((Path(__file__).parent.parent / "study" / "example.yaml").read_text(encoding="utf-8").rstrip())
        return
    from seqindex import check

    check.choice("format", form, ("seqindex", "hydra"))
    if study is None:
        raise ValueError("STUDY.yaml must be given, got none; seqindex run --example prints one")
    if workers is not None:
        check.integer("workers", workers, 1)
    described = _read(study, form)
    folder = study.with_suffix("") if out is None else out
    if dry:
        _list(described, folder)
        return
    from seqindex.study.run import run_study

    text = study.read_text(encoding="utf-8")
    try:
        summary = run_study(described, folder, text, workers, cluster, progress=not quiet, say=note)
    except KeyboardInterrupt as error:
        raise Halted(
            f"what is finished, and the state of what was running, is kept in {folder}; the same command goes on."
        ) from error
    say(f"{summary.done} points computed, {summary.kept} kept, {len(summary.failed)} failed")
    for message in summary.failed.values():
        say(f"failed: {message}")
    say_files([folder])
    if summary.failed:
        raise typer.Exit(1)


def _read(path: Path, form: str) -> Study:
    if form == "hydra":
        from seqindex.study.hydra import read_hydra

        described, remarks = read_hydra(path)
        for remark in remarks:
            note(f"Note: {remark}.")
        return described
    from seqindex.study.spec import read_study

    return read_study(path)


def _list(described: Study, folder: Path) -> None:
    """The points, and what they will cost."""
    from seqindex.sgd.rounds import processors
    from seqindex.study.estimate import estimate
    from seqindex.study.spec import points

    every = points(described)
    missing = [point for point in every if not (folder / "points" / f"{point.key}.nc").exists()]
    names = list(every[0].swept)
    header = [*names, "dim", "learning_rate", "steps", "replicas", "stored"]
    header = list(dict.fromkeys(header))
    say(table(header, [[_cell(point, name, missing) for name in header] for point in every]))
    cost = estimate(missing)
    count = processors()
    size = f"{cost.steps:.3g} steps, about {cost.seconds / count:.0f} s on {count} processors, {cost.disk / 1e6:.1f} MB"
    say(f"{len(missing)} of {len(every)} points to compute: {size}")


def _cell(point: Point, name: str, missing: list[Point]) -> str:
    if name == "stored":
        return "no" if point in missing else "yes"
    value = point.swept.get(name, point.settings.get(name))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
