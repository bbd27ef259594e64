"""rankone train FILE --out DIR"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankone.cli import options

if TYPE_CHECKING:
    from rankone.train import Trained

LAST = {"running": "last epoch, as it ran", "after": "last epoch"}


def train(
    file: options.File,
    out: Annotated[
        Path | None, options.out("DIR", "Where to write log, checkpoints and the model.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint in DIR.")
    ] = False,
    depth: options.Depth = 1,
    epochs: Annotated[
        int, typer.Option(metavar="N", min=1, help="How often to go through the file.")
    ] = 400,
    attention: Annotated[
        Literal["rank1", "theorem2", "softmax"],
        typer.Option(
            help="Eq. 20; eq. 20 with v1 and v2 constructed, and fixed; or standard attention."
        ),
    ] = "rank1",
    batch_size: options.BatchSize = 32,
    dim: options.Dim = 32,
    hidden: options.Hidden = 0,
    heads: options.Heads = 1,
    head_size: options.HeadSize = 0,
    positions: options.Positions = True,
    max_length: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Rows of the table of positions; 0: as many as the longest sentence.",
            rich_help_panel=options.TRAINING,
        ),
    ] = 0,
    optimizer: options.Optimizer = "adam",
    lr: options.Lr = 1e-3,
    momentum: options.Momentum = 0.0,
    schedule: options.Schedule = "constant",
    init_std: options.InitStd = 0.02,
    accuracy: options.Accuracy = "running",
    dtype: options.Dtype = "float32",
    seed: options.Seed = 0,
    evaluate: Annotated[
        list[str] | None,
        typer.Option(
            "--evaluate",
            metavar="FILE",
            help="Measure the model on this file too; can be given several times.",
            show_default=False,
        ),
    ] = None,
    checkpoint_seconds: options.CheckpointSeconds = 60.0,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write event files for TensorBoard here.",
            show_default=False,
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    threads: options.Threads = 1,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, ...")] = "cpu",
    format: options.Format = "auto",
    token_column: options.TokenColumn = None,
    label_column: options.LabelColumn = None,
    scheme: options.Scheme = "keep",
    lower: options.Lower = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a Transformer of rank 1, without normalisation, as in the paper's experiment.

    Under torchrun every process takes its share of each batch.
    """
    from rankone.cli import console

    first = options.first_process()
    quiet = quiet or not first
    how = options.reading(format, token_column, label_column, scheme=scheme, lower=lower)
    with console.working("start", quiet=quiet or json) as progress:
        from rankone.corpus.read import read_corpus, read_other
        from rankone.train import Settings, train_model

        settings = Settings(
            depth=depth,
            epochs=epochs,
            batch_size=batch_size,
            attention=attention,
            dim=dim,
            hidden=hidden,
            heads=heads,
            head_size=head_size,
            positions=positions,
            max_length=max_length,
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
        corpus = read_corpus(file, **how)
        result = train_model(
            corpus,
            settings,
            out=out,
            resume=resume,
            checkpoint_seconds=checkpoint_seconds,
            evaluate=[read_other(other, **how) for other in evaluate or ()],
            tensorboard=tensorboard,
            threads=threads,
            device=device,
            progress=progress,
        )
    if not first:
        return
    if json:
        console.print_json({**result.to_json(), "files": [str(path) for path in result.files]})
    elif not quiet:
        _show(result, scheme)
        console.print_lines(*(["Wrote"] if result.files else ["Nothing written: no --out DIR."]))
        console.print_lines(*(f"  {path}" for path in result.files))


def _show(result: Trained, asked: str) -> None:
    from rankone.cli import console

    settings, last = result.settings, result.curve[-1]
    console.print_table(
        f"{result.source}: depth {settings['depth']}, {settings['attention']} attention, "
        f"{result.epochs} epochs",
        [
            ("tokens right", f"{result.tokens - result.wrong:,} of {result.tokens:,}"),
            ("accuracy", f"{result.accuracy:.4%}"),
            *options.ceiling_rows(result.ceilings, result.attention_share),
            (
                LAST[settings["accuracy"]],
                f"loss {last['loss']:.5f}, accuracy {last['accuracy']:.4%}",
            ),
            ("parameters", f"{result.parameters:,}"),
            ("speed", f"{result.tokens_per_second:,.0f} tokens/s, {result.seconds:.1f} s"),
        ],
    )
    for scores in result.evaluations:
        rows = [
            ("tokens right", f"{scores.right:,} of {scores.tokens:,} ({scores.accuracy:.4%})"),
            ("unknown words", f"{scores.unknown:,} tokens"),
        ]
        if scores.f1 is not None:
            parts = f"precision {scores.precision:.2%}, recall {scores.recall:.2%}"
            rows.append(("entities", f"F1 {scores.f1:.2%} ({parts})"))
        console.print_table(scores.source, rows)
    said = console.scheme_line(settings["scheme"], asked)
    console.print_lines(*([said] if said else []), *result.remarks)
