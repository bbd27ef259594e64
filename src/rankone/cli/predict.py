"""rankone predict DIR FILE..."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.nn.classified import Classified
    from rankone.nn.parted_scores import PartedPrediction
    from rankone.nn.scores import Prediction


@bundled
def predict(
    model: options.ModelDirectory,
    files: options.Files,
    out: Annotated[
        Path | None, options.out("PATH", "Write labels here (default: standard output).")
    ] = None,
    *,
    layout: options.Layout,
    engines: options.Engines,
    output: options.Output,
) -> None:
    """Label text, a token and its label per line; compare with the labels in the file, if any.

    A file with columns is read as the model's corpus was; a file without columns is plain text,
    one sentence per line. The command reports how it read the file.

    A model of the task `class` labels documents, one label per line. A file without labels has a
    text per line.

    Unknown words share one row of the token table. It stands for the most frequent label, or is
    the mean of the given vectors.
    """
    from rankone.cli import console
    from rankone.cli.parts import in_parts
    from rankone.files import check_place
    from rankone.nn import load

    if out is not None:
        check_place(out)
    with contextlib.ExitStack() as stack:
        found: Prediction | PartedPrediction | Classified
        with console.working("start", output) as progress:
            loaded = load(model)
            progress("read", 0.0)
            if engines.given:
                from rankone.nn.parted_scores import predict_parts

                engine = stack.enter_context(engines.open())
                parts = in_parts(loaded, files, engine, layout.arguments(), progress)
                found = predict_parts(loaded, parts, partial(progress, "predict"))
            else:
                from rankone.nn.classified import classify
                from rankone.nn.scores import predict

                corpus = loaded.read(files, **layout.arguments())
                progress("predict", 0.0)
                found = (classify if loaded.task.whole else predict)(loaded, corpus)
        if out is not None:
            saved = found.save(out)
            if output.json:
                console.print_json({**found.to_json(), "files": list(map(str, saved))})
        elif output.json:
            console.print_json({**found.to_json(), **found.listed()})
        elif not output.quiet:
            rows = found.rows()
            for piece in [rows] if isinstance(rows, str) else rows:
                typer.echo(piece, nl=False)
    if not output.silent:
        typer.echo("\n".join(map(console.plain, _summary(found))), err=True)


def _summary(found: Prediction | PartedPrediction | Classified) -> tuple[str, str]:
    """How the file was read, and what was found."""
    from rankone.nn.classified import Classified

    corpus, scores = found.heading, found.scores
    how = f"{corpus.source}: read as {corpus.format}"
    if corpus.format == "python":
        how = corpus.source
    elif corpus.remarks:
        how = f"{corpus.source}: {'; '.join(corpus.remarks)}"
    elif str(corpus.columns):
        how += f", {corpus.columns}"
    parts = [f"{plural(found.n_tokens, 'token')} ({found.unknown:,} unknown)"]
    if isinstance(found, Classified):
        parts.insert(0, plural(corpus.n_sentences, "document"))
    elif found.in_pieces:
        longer = "longer than the table of positions, labelled in pieces"
        parts.append(f"{plural(found.in_pieces, 'sentence')} {longer}")
    if scores is not None:
        parts.append(f"{scores.right:,} as labelled in the file ({scores.accuracy:.4%})")
        if scores.f1 is not None:
            parts.append(f"entities: F1 {scores.f1:.2%}")
    return how, "; ".join(parts)
