"""Entry point: the commands, and what becomes of errors and signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

import seqindex
from seqindex.cli.analyse import analyse
from seqindex.cli.bench import bench
from seqindex.cli.console import Halted, note, one_line
from seqindex.cli.paper import paper
from seqindex.cli.phase_diagram import phase_diagram
from seqindex.cli.plot import plot
from seqindex.cli.run import run
from seqindex.cli.sgd import sgd

BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143

app = typer.Typer(name="seqindex", add_completion=False, pretty_exceptions_enable=False)
_COMMANDS: dict[str, Callable[..., None]] = {
    "paper": paper,
    "analyse": analyse,
    "phase-diagram": phase_diagram,
    "sgd": sgd,
    "run": run,
    "plot": plot,
    "bench": bench,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"seqindex {seqindex.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Exact theory and fast simulation of one-pass spherical SGD on sequence single-index targets.

    To begin with, run seqindex paper --quick. Each command explains itself: seqindex sgd --help.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: what follows ``seqindex``; None for those of this process.

    Returns:
        0, 1 where the machine fails (disk, memory), 2 for bad input, 130 after Ctrl-C, 143 after SIGTERM.

    Example:
        >>> main(["--version"])
        seqindex 0.1.0
        0
    """
    with _sigterm_as_interrupt() as terminated, warnings.catch_warnings():
        warnings.showwarning = _warn
        code, message = _run(sys.argv[1:] if arguments is None else list(arguments))
        if code == INTERRUPTED and terminated:
            code = TERMINATED
    if message:
        note(message)
    return code


def _run(arguments: list[str]) -> tuple[int, str]:
    """Exit code, and what to say on standard error."""
    try:
        code = typer.main.get_command(app).main(arguments, prog_name="seqindex", standalone_mode=False)
    except Halted as error:
        return INTERRUPTED, f"Interrupted: {error}"
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED, "Interrupted."
    except BrokenPipeError:
        # Whoever read the results has closed: nothing is left to say, also not when Python flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1, ""
    except (ValueError, TypeError) as error:
        return BAD_INPUT, f"Error: {one_line(error)}"
    except (OSError, MemoryError) as error:
        return 1, f"Error: {one_line(error)}"
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        # Typer's own: an unknown option and the like.
        return BAD_INPUT, f"Error: {' '.join(error.format_message().split())}"
    code = code if isinstance(code, int) else 0
    return code, "Interrupted." if code == INTERRUPTED else ""


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    note(f"Warning: {' '.join(str(message).split())}")


@contextmanager
def _sigterm_as_interrupt() -> Iterator[list[int]]:
    """Treat SIGTERM as Ctrl-C; the list is not empty once it came."""
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)
