"""What long-running commands print: epochs, warnings, and how to resume."""

from __future__ import annotations

import contextlib
import logging
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rankone.training.document import EpochLine


def explicit(context: typer.Context, **values: Any) -> dict[str, Any]:
    """The options among these that the user has given."""
    sources = {name: context.get_parameter_source(name) for name in values}
    return {
        name: values[name]
        for name, source in sources.items()
        if source is not None and source.name != "DEFAULT"
    }


def run_printer(*, quiet: bool) -> Callable[[str, EpochLine], None]:
    """Print a line per epoch, with the name of its run, if the output goes to a file or a pipe; a
    terminal shows the progress bar instead."""
    stream = sys.stdout  # the bar replaces it while it is shown
    if quiet or stream is None or stream.isatty():
        return lambda *_: None
    from rankone.cli.console import plain

    def show(name: str, line: EpochLine) -> None:
        text = f"{name}, {epoch_text(line)}" if name else epoch_text(line)
        print(plain(text), file=stream, flush=True)

    return show


def epoch_text(line: EpochLine) -> str:
    """An epoch in words."""
    parts = [f"epoch {line['epoch']}: loss {line['loss']:.5f}, accuracy {line['accuracy']:.4%}"]
    for evaluated in line.get("evaluations", []):
        f1 = "" if evaluated["f1"] is None else f", F1 {evaluated['f1']:.2%}"
        parts.append(f"{evaluated['source']}: accuracy {evaluated['accuracy']:.4%}{f1}")
    return "; ".join(parts)


@contextlib.contextmanager
def messages(level: int) -> Iterator[None]:
    """Show what training logs, from this level up, on standard error."""
    logger = logging.getLogger("rankone")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("rankone: %(message)s"))
    before, passed = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = passed


@contextlib.contextmanager
def interruptible(remedy: Callable[[], str], *, quiet: bool) -> Iterator[None]:
    """On Ctrl-C, say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        if not quiet:
            print(f"rankone: stopped; {remedy()}", file=sys.stderr)
        raise


def how_to_resume(out: Path | None, command: list[str]) -> str:
    """How to continue after Ctrl-C."""
    from rankone.training.checkpoint import NAME

    if out is None:
        return "nothing was written (no --out DIR)"
    names = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    steps = [int(found[1]) for found in map(NAME.fullmatch, names) if found]
    if not steps:
        return "nothing was written"
    return f"continue from the last checkpoint, step {steps[-1]:,}, with\n  {shlex.join(command)}"
