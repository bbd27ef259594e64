"""rankone train FILE --out DIR"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from rankone import choices
from rankone.cli import options, running
from rankone.cli.bundles import bundled
from rankone.cli.options import flag, option
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.training import Trained

LAST = {"running": "last epoch, as it ran", "after": "last epoch"}


@dataclass(frozen=True)
class Run:
    """Settings of a single run."""

    PANEL: ClassVar = None

    depth: Annotated[int, option("Number of blocks.", "N", min=1)] = 1
    epochs: Annotated[int, option("Passes over the file.", "N", min=1)] = 400
    attention: Annotated[
        choices.TrainedAttention,
        option(
            "Rank-1 attention (eq. 20), the same with v1 and v2 constructed and fixed, or "
            "standard attention."
        ),
    ] = "rank1"
    heads: Annotated[int, option("Number of heads of standard attention.", "H", min=1)] = 1
    head_size: Annotated[int, option("Size of each head (0: dim / heads).", "S", min=0)] = 0
    patience: Annotated[
        int,
        option(
            "Stop when N epochs in a row are no better on the first --evaluate file, and keep "
            "the best epoch (0: never stop).",
            "N",
            min=0,
        ),
    ] = 0


@bundled
def train(
    context: typer.Context,
    file: options.File,
    run: Run,
    out: Annotated[
        Path | None, options.out("DIR", "Write log, checkpoints and the model here.")
    ] = None,
    resume: Annotated[
        bool,
        flag("Continue the run in DIR with its settings, changed by options given.", "--resume"),
    ] = False,
    evaluate: Annotated[
        list[str] | None,
        option(
            "Also evaluate on this file after every epoch; can be repeated.", "FILE", "--evaluate"
        ),
    ] = None,
    checkpoint_seconds: options.CheckpointSeconds = 60.0,
    tensorboard: Annotated[
        Path | None, options.out("DIR", "Write event files for TensorBoard here.")
    ] = None,
    threads: Annotated[
        int, option("Number of threads; only large networks gain from more.", "N", min=1)
    ] = 1,
    device: Annotated[str, option("Device to compute on: cpu, cuda, ...")] = "cpu",
    *,
    training: options.Training,
    reading: options.TextReading,
    output: options.Output,
) -> None:
    """Train a rank-1 Transformer without normalisation, as in the paper's experiment.

    Under torchrun every process takes its share of each batch.
    """
    from rankone.cli import console

    first = options.first_process()
    if not first:
        output = options.Output(quiet=True)
    settings = running.explicit(context, **vars(run), **vars(training))
    given = running.explicit(context, threads=threads, checkpoint_seconds=checkpoint_seconds)
    again = ["rankone", "train", file, "--out", str(out), "--resume"]
    again += [word for other in evaluate or () for word in ("--evaluate", other)]
    again += ["--tensorboard", str(tensorboard)] if tensorboard is not None else []
    again += ["--device", device] if device != "cpu" else []
    on_epoch = partial(running.run_printer(quiet=output.silent), "")  # of the one run there is
    level = logging.ERROR if output.quiet else logging.WARNING if output.json else logging.INFO
    with (
        running.interruptible(lambda: running.how_to_resume(out, again), quiet=output.quiet),
        running.messages(level),
        console.working("start", output) as progress,
    ):
        from rankone.training import train

        progress("read", 0.0)
        result = train(
            file,
            settings,
            out=out,
            resume=resume,
            evaluate=evaluate or (),
            tensorboard=tensorboard,
            device=device,
            reading=running.explicit(context, **reading.arguments()),
            progress=progress,
            on_epoch=on_epoch,
            **given,
        )
    boards = [] if tensorboard is None else [tensorboard]

    def show() -> None:
        _show(result)
        if not result.files:
            what = "Nothing" if tensorboard is None else "No model"
            console.print_lines(f"{what} written: no --out DIR.")

    files = [*result.files, *([] if output.json else boards)]
    console.report(output, result.to_json(), show, files)


def _show(result: Trained) -> None:
    from rankone.cli import console

    settings, last = result.settings, result.curve[-1]
    console.print_table(
        f"{result.source}: depth {settings['depth']}, {settings['attention']} attention, "
        f"{plural(result.epochs, 'epoch')}",
        [
            ("tokens right", f"{result.tokens - result.wrong:,} of {result.tokens:,}"),
            ("accuracy", f"{result.accuracy:.4%}"),
            *console.ceiling_rows(result.ceilings),
            ("of what attention could add", console.attention_share(result.attention_share)),
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
            ("speed", f"{result.tokens_per_second:,.0f} tokens/s, {result.seconds['train']:.1f} s"),
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
    asked = str(result.reading.get("scheme", "keep"))
    console.print_lines(*console.scheme_lines(settings["scheme"], asked), *result.remarks)
