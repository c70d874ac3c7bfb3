"""``seqindex analyse``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from seqindex.cli.console import OUT, PARAM, Halted, named_reals, real, say, say_files, table, whole


def analyse(
    target: Annotated[str, typer.Argument(metavar="EXPR", help="Link function, such as 'He2(z1) + z1*z2'.")],
    length: Annotated[int, typer.Option(parser=whole, metavar="L", help="Sequence length.")],
    param: Annotated[list[str] | None, PARAM] = None,
    student: Annotated[str, typer.Option(metavar="NAME", help="tied (the tied network) or attention.")] = "tied",
    activation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the tied network: relu, tanh, He3, or an expression in u.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="A1,A2,..", help="Of the tied network: one number a position.")
    ] = None,
    reduction: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of attention: trace (over sqrt(L)), plain_trace or identity.")
    ] = None,
    encoding: Annotated[
        str, typer.Option(metavar="NAME", help="none, opposite, random, sinusoidal, or injected:c1,c2,..")
    ] = "none",
    dim: Annotated[int, typer.Option(parser=whole, metavar="D", help="Dimension d, also as 1e6.")] = 1000,
    learning_rate: Annotated[
        float | None, typer.Option(parser=real, metavar="RATE", help="If not given, the best one by the theory.")
    ] = None,
    threshold: Annotated[float, typer.Option(parser=real, metavar="X", help="Overlap that counts as recovery.")] = 0.2,
    budget: Annotated[float, typer.Option(parser=real, metavar="S", help="Seconds for the run of SGD.")] = 1.0,
    seed: Annotated[int, typer.Option(parser=whole, metavar="N", help="Seed of the run.")] = 0,
    out: Annotated[Path, OUT] = Path("results"),
) -> None:
    """How hard is a target, why, what does an encoding change, and how long does SGD take?

    Prints Hermite spectrum, exponents, learning rates and recovery times, predicted beside an exact run, and writes the
    same with pictures to analyse.html, a page that stands alone.

    Examples: seqindex analyse "He2(z1) + He2(z2)" --length 2; seqindex analyse "z1 - z2" --length 2 --student attention
    --encoding opposite.
    """
    from seqindex import storage
    from seqindex.cli.problem import encoding_of, student_of
    from seqindex.model.link import Target
    from seqindex.model.problem import Problem

    link = Target(target, length, **named_reals(param or []))
    problem = Problem(
        link, student_of(student, link, encoding_of(encoding, student, length), activation, weights, reduction)
    )
    folder = storage.writable_folder(out)
    from seqindex.report.analysis import analyse as run
    from seqindex.report.present import rows, title, to_html

    try:
        found = run(problem, dim, threshold, budget, seed, learning_rate)
    except KeyboardInterrupt as error:
        raise Halted("nothing was kept; the same command starts again.") from error
    say(title(found))
    say(table(["quantity", "value", "meaning"], rows(found)))
    peak = max(float(x) for x in found.spectrum if x == x) or 1.0
    for k, share in enumerate(found.spectrum):
        bar = "?" if share != share else "#" * round(40 * float(share) / peak)
        say(f"order {k}  {share:<12.6g} {bar}".rstrip())
    text = to_html(found, f"seqindex {shlex.join(sys.argv[1:])}")
    path = storage.write_whole(folder / "analyse.html", lambda file: file.write_text(text, encoding="utf-8"))
    say_files([path])
