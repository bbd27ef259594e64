"""rankone reproduce figure1 --corpus FILE"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankone.cli import options, running

if TYPE_CHECKING:
    from rankone.train.figure1 import Figure1

EPOCHS, BUILTIN_EPOCHS = 400, 40  # the paper's; and what is enough for a corpus that is made up
AGAIN = "the same command continues from the checkpoints"

CorpusFile = Annotated[
    str,
    typer.Option(
        "--corpus", metavar="FILE", help="Labelled corpus, as for train.", show_default=False
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Runs at a time; default one per core.", show_default=False
    ),
]

reproduce = typer.Typer(help="Run the paper's experiment.", no_args_is_help=True)


@contextlib.contextmanager
def workers() -> Iterator[None]:
    """A worker that dies breaks a pipe: that is reported, and must not end us as `| head` may."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


@reproduce.callback()
def experiments() -> None:
    """Run the paper's experiment."""


@reproduce.command()
def figure1(
    corpus: CorpusFile,
    out: Annotated[
        Path, options.out("DIR", "Where to write; runs that were stopped are resumed.")
    ] = Path("runs/figure1"),
    depths: Annotated[
        list[int] | None,
        typer.Option(
            "--depth", metavar="N", min=1, help="Depths; default 1, 3 and 6.", show_default=False
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help=f"Epochs, twice as many for the least depth; default {EPOCHS}, "
            f"{BUILTIN_EPOCHS} for a built-in corpus.",
            show_default=False,
        ),
    ] = None,
    theorem2: Annotated[
        bool, typer.Option(help="Also with v1 and v2 constructed, and fixed.")
    ] = True,
    standard: Annotated[
        bool, typer.Option("--standard", help="Also with standard attention.")
    ] = False,
    batch_size: options.BatchSize = 32,
    dim: options.Dim = 32,
    hidden: options.Hidden = 0,
    positions: options.Positions = True,
    optimizer: options.Optimizer = "adam",
    lr: options.Lr = 1e-3,
    momentum: options.Momentum = 0.0,
    schedule: options.Schedule = "constant",
    init_std: options.InitStd = 0.02,
    accuracy: options.Accuracy = "running",
    dtype: options.Dtype = "float32",
    seed: options.Seed = 0,
    jobs: Jobs = None,
    checkpoint_seconds: options.CheckpointSeconds = 60.0,
    format: options.Format = "auto",
    token_column: options.TokenColumn = None,
    label_column: options.LabelColumn = None,
    scheme: options.Scheme = "auto",
    lower: options.Lower = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Training accuracy of rank-1 Transformers of depth 1, 3 and 6, with the ceilings.

    Writes the curves (CSV), the figure (PNG, SVG), and settings, machine and final figures (JSON).
    """
    from rankone.cli import console

    how = options.reading(format, token_column, label_column, scheme=scheme, lower=lower)
    with (
        running.interruptible(lambda: AGAIN, quiet=quiet),
        console.working("start", quiet=quiet or json) as progress,
        workers(),
    ):
        from rankone.corpus import read_corpus
        from rankone.corpus.builtin import BUILTIN
        from rankone.train import Settings
        from rankone.train.figure1 import DEPTHS, KINDS, figure1

        settings = Settings(
            epochs=epochs or (BUILTIN_EPOCHS if corpus in BUILTIN else EPOCHS),
            batch_size=batch_size,
            dim=dim,
            hidden=hidden,
            positions=positions,
            optimizer=optimizer,
            lr=lr,
            momentum=momentum,
            schedule=schedule,
            init_std=init_std,
            accuracy=accuracy,
            dtype=dtype,
            seed=seed,
        )
        progress("read", 0.0)
        result = figure1(
            read_corpus(corpus, **how),
            out,
            settings,
            depths=depths or DEPTHS,
            attentions=[
                kind
                for kind, wanted in zip(KINDS, (True, theorem2, standard), strict=True)
                if wanted
            ],
            jobs=jobs,
            checkpoint_seconds=checkpoint_seconds,
            progress=progress,
            on_epoch=running.run_printer(quiet=quiet or json),
        )
    if json:
        console.print_json({**result.to_json(), "files": [str(path) for path in result.files]})
    elif not quiet:
        _show(result, scheme)


@reproduce.command()
def sweep(
    corpus: CorpusFile,
    out: Annotated[
        Path, options.out("DIR", "Where to write; runs that were stopped are resumed.")
    ] = Path("runs/sweep"),
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Epochs of every run.")] = 60,
    seed: options.Seed = 0,
    jobs: Jobs = None,
    checkpoint_seconds: options.CheckpointSeconds = 60.0,
    format: options.Format = "auto",
    token_column: options.TokenColumn = None,
    label_column: options.LabelColumn = None,
    scheme: options.Scheme = "auto",
    lower: options.Lower = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """What the paper does not state, one choice changed at a time: which make its curve slow?"""
    from rankone.cli import console

    how = options.reading(format, token_column, label_column, scheme=scheme, lower=lower)
    with (
        running.interruptible(lambda: AGAIN, quiet=quiet),
        console.working("start", quiet=quiet or json) as progress,
        workers(),
    ):
        from rankone.corpus import read_corpus
        from rankone.train import Settings
        from rankone.train.sweep import sweep

        progress("read", 0.0)
        result = sweep(
            read_corpus(corpus, **how),
            out,
            Settings(epochs=epochs, seed=seed),
            jobs=jobs,
            checkpoint_seconds=checkpoint_seconds,
            progress=progress,
            on_epoch=running.run_printer(quiet=quiet or json),
        )
    if json:
        console.print_json({**result.to_json(), "files": [str(path) for path in result.files]})
    elif not quiet:
        from rankone.plural import plural
        from rankone.train.curves import PAPER

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
        console.print_lines("Wrote", *(f"  {path}" for path in result.files))


def _show(result: Figure1, asked: str) -> None:
    from rankone.cli import console
    from rankone.train.figure1 import GOALS

    console.print_table(
        f"{result.source}: training accuracy",
        [
            (
                f"{final['depth']}, {final['attention']}",
                f"{final['epochs']:,}",
                f"{final['accuracy']:.4%}",
                *(f"{epoch or 'never'}" for epoch in final["first_above"].values()),
                options.share(final["attention_share"]),
                f"{final['seconds']:,.0f} s",
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
    said = console.scheme_line(result.scheme, asked)
    console.print_lines(
        f"Ceilings: {token:.4%} of the token alone, {full:.4%} of any model; share is how much of "
        "the difference, which is all that attention could add, was reached.",
        *([said] if said else []),
        "Wrote",
        *(f"  {path}" for path in result.files),
    )
