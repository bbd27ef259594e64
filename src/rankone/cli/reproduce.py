"""rankone reproduce figure1 FILE, rankone reproduce sweep FILE"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from rankone.cli import options, running
from rankone.cli.bundles import bundled
from rankone.cli.options import flag, option
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.training.figure1 import Figure1
    from rankone.training.sweep import Sweep

EPOCHS, BUILTIN_EPOCHS = 400, 40  # the paper's; and enough for a built-in corpus
AGAIN = "the same command continues from the checkpoints"
READING = options.Reading(scheme="auto")
DIRECTORY = "Write here; existing runs are resumed."


@dataclass(frozen=True)
class Runs:
    """How several runs are trained."""

    PANEL: ClassVar = None

    jobs: Annotated[int | None, option("Runs at a time (default: one per core).", "N", min=1)] = (
        None
    )
    checkpoint_seconds: options.CheckpointSeconds = 60.0


reproduce = typer.Typer(help="Run the paper's experiment.", no_args_is_help=True)


@reproduce.command()
@bundled
def figure1(
    file: options.File,
    out: Annotated[Path, options.out("DIR", DIRECTORY)] = Path("runs/figure1"),
    depths: Annotated[
        list[int] | None,
        option("Number of blocks; repeat it (default: 1, 3, 6).", "N", "--depth", min=1),
    ] = None,
    epochs: Annotated[
        int | None,
        option(
            f"Epochs, doubled for the smallest depth (default: {EPOCHS}; {BUILTIN_EPOCHS} for a "
            "built-in corpus).",
            "N",
            min=1,
        ),
    ] = None,
    theorem2: Annotated[bool, option("Also train with v1 and v2 constructed and fixed.")] = True,
    standard: Annotated[bool, flag("Also train with standard attention.", "--standard")] = False,
    *,
    training: options.Training,
    runs: Runs,
    reading: options.Reading = READING,
    output: options.Output,
) -> None:
    """Training accuracy of rank-1 Transformers of depth 1, 3 and 6, with the ceilings.

    Writes the curves (CSV), the figure (PNG, SVG), and settings, machine and final figures (JSON).
    """
    from rankone.cli import console

    with _reported(output) as reported:
        from rankone.corpus import read_corpus
        from rankone.corpus.builtin import BUILTIN
        from rankone.training import Settings
        from rankone.training.figure1 import DEPTHS, KINDS, figure1

        epochs = epochs or (BUILTIN_EPOCHS if file in BUILTIN else EPOCHS)
        settings = Settings(epochs=epochs, **vars(training))
        wanted = zip(KINDS, (True, theorem2, standard), strict=True)
        result = figure1(
            read_corpus(file, **reading.arguments()),
            out,
            settings,
            depths=depths or DEPTHS,
            attentions=[kind for kind, chosen in wanted if chosen],
            **vars(runs),
            **reported,
        )
        files = result.save(out)
    console.report(output, result.to_json(), lambda: _show_figure1(result, reading.scheme), files)


@reproduce.command()
@bundled
def sweep(
    file: options.File,
    out: Annotated[Path, options.out("DIR", DIRECTORY)] = Path("runs/sweep"),
    epochs: Annotated[int, option("Epochs of every run.", "N", min=1)] = 60,
    *,
    training: options.Training,
    runs: Runs,
    reading: options.Reading = READING,
    output: options.Output,
) -> None:
    """Change one choice that the paper leaves open at a time: which ones make its curve slow?"""
    from rankone.cli import console

    with _reported(output) as reported:
        from rankone.corpus import read_corpus
        from rankone.training import Settings
        from rankone.training.sweep import sweep

        settings = Settings(epochs=epochs, **vars(training))
        corpus = read_corpus(file, **reading.arguments())
        result = sweep(corpus, out, settings, **vars(runs), **reported)
        files = result.save(out)
    console.report(output, result.to_json(), lambda: _show_sweep(result, epochs), files)


@contextlib.contextmanager
def _reported(output: options.Output) -> Iterator[dict[str, Any]]:
    """Where to report progress while runs are trained."""
    from rankone.cli import console

    with (
        running.interruptible(lambda: AGAIN, quiet=output.quiet),
        console.working("start", output) as progress,
        workers(),
    ):
        progress("read", 0.0)
        yield {"progress": progress, "on_epoch": running.run_printer(quiet=output.silent)}


@contextlib.contextmanager
def workers() -> Iterator[None]:
    """A worker that dies breaks a pipe; this is reported, and must not end us as `| head` does."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


def _show_figure1(result: Figure1, asked: str) -> None:
    from rankone.cli import console
    from rankone.training.figure1 import GOALS

    console.print_table(
        f"{result.source}: training accuracy",
        [
            (
                f"{final['depth']}, {final['attention']}",
                f"{final['epochs']:,}",
                f"{final['accuracy']:.4%}",
                *(f"{epoch or 'never'}" for epoch in final["first_above"].values()),
                console.attention_share(final["attention_share"]),
                f"{final['seconds']['train']:,.0f} s",
            )
            for final in result.finals
        ],
        (
            "depth, attention",
            "epochs",
            "last",
            *(f"above {goal}" for goal in GOALS),
            "share",
            "time",
        ),
    )
    token, full = (result.ceilings[name].accuracy for name in ("token", "input"))
    console.print_lines(
        f"Ceilings: {token:.4%} for the token alone, {full:.4%} for any model. Attention could add "
        "the difference; share is how much of it was reached.",
        *console.scheme_lines(result.scheme, asked),
    )


def _show_sweep(result: Sweep, epochs: int) -> None:
    from rankone.cli import console
    from rankone.training.curves import PAPER

    console.print_table(
        f"{result.source}: accuracy after {plural(epochs, 'epoch')}, one choice changed",
        [
            (
                f"{row['choice']}: {row['value']}",
                f"{row['accuracy']:.4%}",
                f"{row['first_above_paper'] or 'never'}",
            )
            for row in result.rows()
        ],
        ("choice", "last", f"above {PAPER[1]}"),
    )
