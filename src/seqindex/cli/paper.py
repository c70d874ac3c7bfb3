"""``seqindex paper``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqindex.cli.console import OUT, QUIET, WORKERS, Halted, note, say, say_files

if TYPE_CHECKING:
    from seqindex.paper.claim import Claim


def paper(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="[FIGURES]...", help="Figures such as fig4; none for all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small scale that takes seconds.")] = False,
    out: Annotated[Path, OUT] = Path("results"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute again what the folder already holds.")] = False,
    workers: Annotated[int | None, WORKERS] = None,
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """Reproduce figures of the paper and judge its claims.

    Each figure gives its numbers (NetCDF) and a picture (PNG and PDF); a table sets what the paper claims beside what
    is predicted and measured here. A run that was interrupted goes on where it stopped.

    Examples: seqindex paper --quick; seqindex paper fig4 fig5 --out my-results.
    """
    from seqindex.paper.reproduce import reproduce

    try:
        claims = reproduce(
            figures or [], out, quick, fresh, workers, progress=not quiet, say=(lambda line: None) if quiet else note
        )
    except KeyboardInterrupt as error:
        raise Halted(
            f"what is finished is kept in {out}; the same command, without --fresh, goes on from there."
        ) from error
    say_claims(claims)
    say_files(sorted(path for path in out.iterdir() if path.is_file() and not path.name.startswith(".")))


def say_claims(claims: Sequence[Claim]) -> None:
    """The claims: one line each on a terminal, where the report has the rest; all of it as Markdown elsewhere."""
    from seqindex.paper.claim import markdown_table, symbol

    if not sys.stdout.isatty():
        say(markdown_table(claims).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = Table("", "id", "claim", "verdict", show_lines=True)
    for claim in claims:
        rows.add_row(*map(Text, (symbol(claim.verdict), claim.id, claim.statement, claim.verdict)))
    Console().print(rows)
