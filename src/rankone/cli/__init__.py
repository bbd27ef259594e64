"""The command line. Each command is a small file; what is heavy is imported inside it."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import typer

from rankone.cli.lazy import Group, OnDemand
from rankone.errors import RankOneError

# Each is `rankone.cli.NAME.NAME`, imported when it is called. The line shown by `rankone --help` is
# the first of the command's own help, and is repeated here; a test keeps the two equal.
COMMANDS = {
    "inspect": "Find contradicting rows, leaks, likely errors, and the best possible score.",
    "memorize": "Build a one-layer rank-1 Transformer that labels every token of the file right.",
    "edit": "Add sentences to a gated model, or take some out, without making it anew.",
    "certify": "Prove or refute that the weights tell all contexts apart and label every token "
    "right.",
    "explain": "Compare the proof with the facts: digits it needs, the gap it promises, the gap "
    "there is.",
    "compare": "Build every construction of the field for one file, and compare sizes, bits and "
    "proofs.",
    "train": "Train a rank-1 Transformer without normalisation, as in the paper's experiment.",
    "predict": "Label text, a token and its label per line; compare with the labels in the file, "
    "if any.",
    "recite": "Go on from a prompt, one token after the other, or recite a whole file.",
    "explore": "See a model at work in the browser: its sentences, the line of context ids, its "
    "certificate.",
    "approximate": "Approximate a permutation equivariant function by a network, and measure the "
    "error.",
    "export": "Write a model for Hugging Face or ONNX, checked before anything is written.",
    "reproduce": "Run the paper's experiment.",
}

app = typer.Typer(
    name="rankone",
    cls=Group,
    help="One-layer rank-1 softmax Transformers that memorise a labelled corpus exactly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, line in COMMANDS.items():
    app.command(name, cls=OnDemand, help=line)(lambda: None)


@app.callback(invoke_without_command=True)
def rankone(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from rankone import __version__

        typer.echo(f"rankone {__version__}")
        raise typer.Exit


INTERRUPTED = 130  # what shells report for Ctrl-C


class Interrupt:
    """Ctrl-C, remembered: what a library makes of it while it is imported may be any exception."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, *_: Any) -> None:
        self.came = True
        raise KeyboardInterrupt


def main() -> None:
    """Run a command; an error of the user's making is reported in a few lines, exit status 2."""
    if hasattr(signal, "SIGPIPE"):  # `| head` ends us without a word, like any other tool
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process: output is discarded
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (open to the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    interrupt = Interrupt()
    before, aside = signal.signal(signal.SIGINT, interrupt), sys.unraisablehook
    sys.unraisablehook = lambda problem: None if interrupt.came else aside(problem)
    try:
        app()
    except SystemExit:
        raise
    except BaseException as error:
        if interrupt.came:
            _leave()
        _explain(error)
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = aside


def _leave() -> NoReturn:
    """At once: taking down an interpreter with half of a library in it may crash."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(INTERRUPTED)


def _explain(error: BaseException) -> NoReturn:
    if isinstance(error, RankOneError):
        _refuse(str(error))
    if isinstance(error, MemoryError):
        _refuse("not enough memory\n  remedy: give a smaller corpus, or smaller settings")
    if isinstance(error, OSError):
        _refuse(f"cannot write the output ({error.strerror})\n  remedy: check where it goes")
    raise error


def _refuse(message: str) -> NoReturn:
    from rankone.cli.console import plain
    from rankone.cli.options import first_process

    with contextlib.suppress(OSError):
        if first_process():
            print("rankone: " + "\n".join(map(plain, message.split("\n"))), file=sys.stderr)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.exit(2)
