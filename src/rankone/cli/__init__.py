"""The command line. Each command is a small file; what is heavy is imported inside it."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from typing import NoReturn

import typer

from rankone.cli.approximate import approximate
from rankone.cli.certify import certify
from rankone.cli.explain import explain
from rankone.cli.inspect import inspect
from rankone.cli.memorize import memorize
from rankone.cli.options import first_process
from rankone.cli.predict import predict
from rankone.cli.reproduce import reproduce
from rankone.cli.train import train
from rankone.errors import RankOneError

app = typer.Typer(
    name="rankone",
    help="One-layer rank-1 softmax Transformers that memorise a labelled corpus exactly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (inspect, memorize, certify, explain, train, predict, approximate):
    app.command()(command)
app.add_typer(reproduce, name="reproduce")


@app.callback(invoke_without_command=True)
def rankone(
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        from rankone import __version__

        typer.echo(f"rankone {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command; an error of the user's making is told in a few lines, with exit status 2."""
    if hasattr(signal, "SIGPIPE"):  # `| head` ends us without a word, like any other tool
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except RankOneError as error:
        _refuse(str(error))
    except MemoryError:
        _refuse("not enough memory\n  remedy: give a smaller corpus, or smaller settings")
    except OSError as error:
        _refuse(f"cannot write the output ({error.strerror})\n  remedy: check where it goes")


def _refuse(message: str) -> NoReturn:
    with contextlib.suppress(OSError):
        if first_process():
            print(f"rankone: {message}", file=sys.stderr)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.exit(2)
