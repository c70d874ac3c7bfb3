"""``seqindex bench``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seqindex.cli.console import note, real, say, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seqindex.sgd.bench import Row


def bench(
    seconds: Annotated[
        float, typer.Option(parser=real, metavar="S", help="Processor time of a turn; each engine has three.")
    ] = 1.0,
) -> None:
    """Steps per second of each engine on one core of this machine.

    Where PyTorch is installed, two training loops in it are timed too, and how many times faster each engine is.

    Example: seqindex bench --seconds 0.2.
    """
    from seqindex.sgd.bench import benchmark
    from seqindex.sgd.peers import has_torch

    rows = benchmark(seconds)
    say(summary(rows))
    if not has_torch():
        note("PyTorch is not installed, so there is nothing to compare with: pip install 'seqindex[torch]'.")


def summary(rows: Sequence[Row]) -> str:
    """One contestant a line."""
    peers = list(dict.fromkeys(peer for row in rows for peer in row.times))
    header = ["", "steps per second", *(f"times {peer}" for peer in peers)]
    return table(
        header,
        ([row.name, f"{row.steps_per_second:.3g}", *(f"{row.times[peer]:.3g}" for peer in peers)] for row in rows),
    )
