"""rankone train FILE --out DIR"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankone.cli import options, running

if TYPE_CHECKING:
    from rankone.train import Trained

LAST = {"running": "last epoch, as it ran", "after": "last epoch"}


def train(
    context: typer.Context,
    file: options.File,
    out: Annotated[
        Path | None, options.out("DIR", "Where to write log, checkpoints and the model.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the run in DIR with the settings it was started with, but for the "
            "options that are given.",
        ),
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
            help="Rows of the table of positions (0: as many as the longest sentence).",
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
            help="Also measure the model on this file, after every epoch; can be repeated.",
            show_default=False,
        ),
    ] = None,
    patience: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Stop when the first --evaluate file has seen no better epoch for N epochs, and "
            "keep the best (0: never stop).",
        ),
    ] = 0,
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
    settings = running.explicit(
        context,
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
        patience=patience,
    )
    given = running.explicit(context, threads=threads, checkpoint_seconds=checkpoint_seconds)
    how = options.reading(format, token_column, label_column, scheme=scheme, lower=lower)
    again = ["rankone", "train", file, "--out", str(out), "--resume"]
    again += [word for other in evaluate or () for word in ("--evaluate", other)]
    again += ["--tensorboard", str(tensorboard)] if tensorboard is not None else []
    again += ["--device", device] if device != "cpu" else []
    on_epoch = running.epoch_printer(quiet=quiet or json)
    level = logging.ERROR if quiet else logging.WARNING if json else logging.INFO
    with (
        running.interruptible(lambda: running.how_to_resume(out, again), quiet=quiet),
        running.messages(level),
        console.working("start", quiet=quiet or json) as progress,
    ):
        from rankone.train import train_model

        progress("read", 0.0)
        result = train_model(
            file,
            settings,
            out=out,
            resume=resume,
            evaluate=evaluate or (),
            tensorboard=tensorboard,
            device=device,
            reading=running.explicit(context, **how),
            progress=progress,
            on_epoch=on_epoch,
            **given,
        )
    if not first:
        return
    if json:
        console.print_json({**result.to_json(), "files": [str(path) for path in result.files]})
    elif not quiet:
        _show(result)
        if not result.files:
            what = "Nothing" if tensorboard is None else "No model"
            console.print_lines(f"{what} written: no --out DIR.")
        files = [*result.files, *([tensorboard] if tensorboard is not None else [])]
        console.print_lines(*(["Wrote"] if files else []), *(f"  {path}" for path in files))


def _show(result: Trained) -> None:
    from rankone.cli import console
    from rankone.plural import plural

    settings, last = result.settings, result.curve[-1]
    console.print_table(
        f"{result.source}: depth {settings['depth']}, {settings['attention']} attention, "
        f"{plural(result.epochs, 'epoch')}",
        [
            ("tokens right", f"{result.tokens - result.wrong:,} of {result.tokens:,}"),
            ("accuracy", f"{result.accuracy:.4%}"),
            *options.ceiling_rows(result.ceilings, result.attention_share),
            (
                LAST[settings["accuracy"]],
                f"loss {last['loss']:.5f}, accuracy {last['accuracy']:.4%}",
            ),
            *(
                [("model of", f"epoch {result.best_epoch:,}, the best")]
                if result.best_epoch
                else []
            ),
            ("parameters", f"{result.parameters:,}"),
            ("speed", f"{result.tokens_per_second:,.0f} tokens/s, {result.seconds:.1f} s"),
        ],
    )
    for scores in result.evaluations:
        rows = [
            ("tokens right", f"{scores.right:,} of {scores.tokens:,} ({scores.accuracy:.4%})"),
            ("unknown words", plural(scores.unknown, "token")),
        ]
        if scores.in_pieces:
            rows.append(("longer than the model, in pieces", plural(scores.in_pieces, "sentence")))
        if scores.f1 is not None:
            parts = f"precision {scores.precision:.2%}, recall {scores.recall:.2%}"
            rows.append(("entities", f"F1 {scores.f1:.2%} ({parts})"))
        console.print_table(scores.source, rows)
    said = console.scheme_line(settings["scheme"], result.reading.get("scheme", "keep"))
    console.print_lines(*([said] if said else []), *result.remarks)
