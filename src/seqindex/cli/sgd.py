"""``seqindex sgd``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqindex.cli.console import OUT, PARAM, QUIET, WORKERS, Halted, note, real, reals, say, say_files, whole
from seqindex.cli.problem import ENCODINGS, STUDENTS, encoding_of, student_of, target_of

if TYPE_CHECKING:
    import xarray as xr

    from seqindex.model.problem import Problem
    from seqindex.sgd.start import Start

_STARTS = ("random", "orthogonal", "released", "overlaps")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + f" or {names[-1]}"


def _target(kind: Callable[[str], object], shown: str, text: str) -> Any:
    return typer.Option(rich_help_panel="Target", parser=kind, metavar=shown, help=text)


def _student(text: str) -> Any:
    return typer.Option(rich_help_panel="Student and loss", metavar="NAME", help=text)


def _simulation(kind: Callable[[str], object], shown: str, text: str, *names: str) -> Any:
    return typer.Option(*names, rich_help_panel="Simulation", parser=kind, metavar=shown, help=text)


def sgd(
    target: Annotated[
        str | None,
        _target(
            str,
            "EXPR",
            "A link function such as 'z1*z2' or 'sum(He2(z))/sqrt(2)', instead of the positional-semantic one.",
        ),
    ] = None,
    param: Annotated[list[str] | None, PARAM] = None,
    omega: Annotated[
        float | None, _target(real, "W", "Weight of the positional part, in [0, 1]; 0.67 if not given.")
    ] = None,
    alignment: Annotated[
        float | None, _target(real, "A", "a of the positional part, at length 2; 1 if not given.")
    ] = None,
    alignment_matrix: Annotated[
        Path | None, _target(Path, "FILE", "Instead of a: a row-stochastic L x L matrix, as text or .npy.")
    ] = None,
    length: Annotated[int | None, _target(whole, "L", "Sequence length; needed with --target.")] = None,
    student: Annotated[str, _student(f"{_listed(STUDENTS)}.")] = "attention",
    activation: Annotated[
        str | None,
        _student("Of tied and untied: relu, tanh, erf, sigmoid, softplus, square, He3, or an expression in u."),
    ] = None,
    weights: Annotated[str | None, _student("Of tied: weights of the positions, as 1,-1; ones if not given.")] = None,
    sphere: Annotated[
        str | None, _student("Of untied: rows (the paper) or joint (its released code), what a step rescales.")
    ] = None,
    reduction: Annotated[
        str | None,
        _student("Of attention: identity, trace or plain_trace; trace if not given and there is but one label."),
    ] = None,
    scores: Annotated[str | None, _student("Of attention: softmax or linear; softmax if not given.")] = None,
    encoding: Annotated[
        str | None,
        _student(
            f"{_listed((*ENCODINGS, 'injected:c1,c2,..'))}; if not given, none for tied, for attention opposite at "
            "length 2 and random beyond."
        ),
    ] = None,
    loss: Annotated[str, _student("square (the paper), or norm, un-squared, as in its released runs.")] = "square",
    dim: Annotated[int, _simulation(whole, "D", "Dimension d, also as 1e9.")] = 1000,
    learning_rate: Annotated[float, _simulation(real, "RATE", "Learning rate; time is rate * step / d.")] = 0.5,
    steps: Annotated[int, _simulation(whole, "N", "Number of steps, also as 3e5.")] = 300_000,
    replicas: Annotated[int, _simulation(whole, "N", "Number of independent runs.")] = 64,
    seed: Annotated[int, _simulation(whole, "N", "Seed; the same one gives the same numbers.")] = 0,
    start: Annotated[
        str,
        _simulation(
            str,
            "NAME",
            "random: uniform on the sphere; orthogonal: m = e = 0; released: the released code's overlapped start; "
            "overlaps: as --m and --e say.",
        ),
    ] = "random",
    m: Annotated[float | None, _simulation(real, "M", "Overlap, of the starts overlaps and released.", "--m")] = None,
    e: Annotated[
        str | None, _simulation(str, "E,..", "Encoding overlap of the start overlaps; one number a direction.", "--e")
    ] = None,
    batch: Annotated[int, _simulation(whole, "B", "Samples a step.")] = 1,
    engine: Annotated[
        str, _simulation(str, "NAME", "reduced: the exact chain of the overlaps; explicit: d-dimensional SGD.")
    ] = "reduced",
    records: Annotated[int, _simulation(whole, "N", "States recorded, the first and the last included.")] = 300,
    workers: Annotated[int | None, WORKERS] = None,
    out: Annotated[Path, OUT] = Path("results"),
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """One-pass spherical SGD of attention or a tied network, by default on the positional-semantic target.

    Writes sgd.nc, .png and .pdf, and prints where the runs ended. Ctrl-C keeps what was recorded.

    Examples: seqindex sgd --omega 0.5; seqindex sgd --dim 1e6 --learning-rate 100 --start overlaps --m 0.1 --e 0.2;
    seqindex sgd --target "sum(He2(z))/sqrt(2)" --length 10 --student tied --learning-rate 0.01.
    """
    from seqindex import storage
    from seqindex.model.problem import Problem
    from seqindex.sgd.run import Interrupted
    from seqindex.sgd.run import sgd as simulate

    link = target_of(target, param or [], omega, alignment, alignment_matrix, length)
    shifts = encoding_of(encoding, student, link.length)
    problem = Problem(link, student_of(student, link, shifts, activation, weights, reduction, scores, sphere), loss)
    law = _start(problem, start, m, e)
    folder = storage.writable_folder(out)
    _warn_of_too_high_a_rate(problem, learning_rate, batch, law)
    begin = time.perf_counter()
    try:
        runs = simulate(
            problem, dim, learning_rate, steps, replicas, seed, law, records, batch, engine, None, workers, not quiet
        )
    except Interrupted as error:
        raise Halted(_keep(error.runs, folder)) from error
    seconds = time.perf_counter() - begin
    path = storage.save_dataset(runs, folder / "sgd.nc")
    from seqindex.plotting.runs import draw_runs

    pictures = storage.save_figure(draw_runs(runs), folder / "sgd")
    say(summary(runs, seconds))
    say_files([path, *pictures])


def _start(problem: Problem, name: str, m: float | None, e: str | None) -> Start:
    from seqindex import check
    from seqindex.sgd.start import Start

    name = check.choice("start", name, _STARTS)
    if e is not None and name != "overlaps":
        raise ValueError(f"e goes with start 'overlaps', got start {name!r}")
    if m is not None and name not in ("overlaps", "released"):
        raise ValueError(f"m goes with start 'overlaps' or 'released', got start {name!r}")
    if name == "overlaps" and m is None and e is None:
        raise ValueError("start 'overlaps' needs m, e or both, got neither; for m = e = 0 use start 'orthogonal'")
    if name == "overlaps":
        overlap = 0.0 if m is None else m
        along = None if e is None else reals(e)
        from seqindex.model.rows import Rows

        frame = problem.student.frame
        (frame.row if isinstance(frame, Rows) else frame).state(overlap, along)  # refuses what does not fit
        return Start.overlaps(overlap, along)
    return Start.released(m) if name == "released" else Start.random() if name == "random" else Start.orthogonal()


def _warn_of_too_high_a_rate(problem: Problem, rate: float, batch: int, start: Start) -> None:
    """Say so where the noise, which a mini-batch divides, will keep SGD near m = e = 0."""
    from seqindex.model.rows import Rows

    rows = isinstance(problem.student.frame, Rows)  # whose noise is that of the tied network, but not its pull
    if rows or start.name not in ("random", "orthogonal") or not math.isfinite(rate) or batch < 1:
        return  # what is wrong with a number is said by the simulation
    from seqindex.theory.stability import stability_bound

    bound = stability_bound(problem)
    if bound is not None and rate > bound * batch:
        note(f"Warning: at learning rates above about {bound * batch:.2g} noise keeps SGD near m = e = 0.")


def _keep(runs: xr.Dataset, folder: Path) -> str:
    """Save the records made until an interrupt beside, not over, those of a finished run."""
    from seqindex import storage

    made = runs.isel(record=runs["overlap"].notnull().any("replica").values)
    path = storage.save_dataset(made, folder / "sgd-interrupted.nc")
    last, steps = int(made["step"][-1]), runs.attrs["steps"]
    again = "the same command starts again from step 0 and passes through the same states"
    return f"{path} holds the {made.sizes['replica']} runs up to step {last} of {steps}; {again}."


def summary(runs: xr.Dataset, seconds: float) -> str:
    """Where the runs ended, in a few lines."""
    from seqindex.outcome import Outcome
    from seqindex.sgd.ends import ENDS, encoding_norm, ends

    attrs, last = runs.attrs, runs.isel(record=-1)
    where = ends(runs).values
    outcomes = runs["outcome"].values
    counts = {name: int((where == ENDS.index(name)).sum()) for name in ("semantic", "positional", "neither")}
    how = {outcome.name.lower(): int((outcomes == outcome).sum()) for outcome in Outcome}
    name = "||m|| / sqrt(L)" if "position" in last.dims else "|m|"
    means = [f"{name} = {_mean(last['overlap_norm'])}"]
    if "encoding_overlap" in runs:
        means.append(f"|e| = {_mean(encoding_norm(last))}")
    about = f"learning rate {attrs['learning_rate']:g}, {attrs['engine']} engine"
    return "\n".join(
        [
            f"{runs.sizes['replica']} runs of {attrs['steps']} steps at d = {attrs['dim']}, {about}: {seconds:.1f} s",
            "ended "
            + ", ".join(f"{name} {count}" for name, count in counts.items())
            + "  (m^2 > 1/2, |e|^2 > 1/2, else)",
            "final " + ", ".join(means) + "  (mean and standard error)",
            "outcomes: " + ", ".join(f"{name} {count}" for name, count in how.items() if count),
        ]
    )


def _mean(values: xr.DataArray) -> str:
    """Mean and standard error over the replicas that did not diverge."""
    import numpy as np

    finite = values.values[np.isfinite(values.values)]
    if len(finite) == 0:
        return "undefined"
    error = f" +- {finite.std(ddof=1) / len(finite) ** 0.5:.2g}" if len(finite) > 1 else ""
    return f"{finite.mean():.4f}{error}"
