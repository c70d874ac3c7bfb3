"""What every command shares: results to standard output, remarks to standard error, numbers such as 3e5."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path

import typer


class Halted(Exception):  # noqa: N818 - no error
    """Ctrl-C or SIGTERM, with one line on what was kept and how to go on."""


def say(text: str) -> None:
    """A result."""
    typer.echo(text)


def note(text: str) -> None:
    """A remark on the way."""
    typer.echo(text, err=True)


def say_files(paths: Iterable[Path]) -> None:
    """The files that hold the results."""
    say("files: " + ", ".join(map(str, paths)))


def one_line(error: BaseException) -> str:
    """The message of an error on one line.

    Example:
        >>> one_line(ValueError("first   second"))
        'first second'
    """
    return " ".join(str(error).split()) or type(error).__name__


def whole(text: str | int) -> int:
    """A whole number, also written as 3e5.

    Example:
        >>> whole("3e5"), whole("1e18"), whole(7)
        (300000, 1000000000000000000, 7)
    """
    try:
        value = Decimal(str(text))
        if value.is_finite() and value.adjusted() < 30 and value == value.to_integral_value():
            return int(value)
    except InvalidOperation:
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number such as 1000 or 3e5.")


def real(text: str | float) -> float:
    """A number.

    Example:
        >>> real("1e-2"), real(2.0)
        (0.01, 2.0)
    """
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


OUT = typer.Option("--out", metavar="DIR", help="Folder for the results; files of the same name are replaced.")
WORKERS = typer.Option("--workers", metavar="N", parser=whole, help="Number of threads; if not given, one a processor.")
PARAM = typer.Option(
    "--param",
    metavar="NAME=VALUE",
    rich_help_panel="Target",
    help="Value of a further name in EXPR, as a=0.5; may be given again.",
)
QUIET = typer.Option("--quiet", help="Show no progress.")


def reals(text: str) -> list[float]:
    """Numbers apart by commas."""
    return [real(part) for part in text.split(",")]


def named_reals(texts: Iterable[str]) -> dict[str, float]:
    """Numbers with names, each as NAME=VALUE.

    Example:
        >>> named_reals(["a=1", "b=2e-3"])
        {'a': 1.0, 'b': 0.002}
    """
    values: dict[str, float] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier():
            raise typer.BadParameter(f"{text!r} is no NAME=VALUE such as a=0.5.")
        if name in ("link", "length"):
            raise ValueError(f"param must have a name of its own, got {name!r}")
        if name in values:
            raise typer.BadParameter(f"{name} has two values, {values[name]:g} and {value}.")
        values[name] = real(value)
    return values


def table(header: list[str], rows: Iterable[Iterable[str]]) -> str:
    """Rows under a header, columns aligned, nothing cut.

    Example:
        >>> print(table(["a", "long"], [["1.5", "2"]]))
        a    long
        1.5  2
    """
    lines = [header, *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(n) for cell, n in zip(line, widths, strict=True)).rstrip() for line in lines)
