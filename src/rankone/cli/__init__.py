"""The command line. Each command is a small file; what is heavy is imported inside it."""

from __future__ import annotations

import sys

import typer

from rankone.cli.inspect import inspect
from rankone.cli.memorize import memorize
from rankone.cli.predict import predict
from rankone.errors import RankOneError

app = typer.Typer(
    name="rankone",
    help="One-layer rank-1 softmax Transformers that memorise a labelled corpus exactly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (inspect, memorize, predict):
    app.command()(command)


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
    try:
        app()
    except RankOneError as error:
        print(f"rankone: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output has seen enough, as `head` does
        sys.stderr.close()
        sys.exit(0)
