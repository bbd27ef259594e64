"""rankone predict DIR FILE"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankone.cli import options
from rankone.errors import OutputError
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.corpus import Corpus
    from rankone.nn import Model


def predict(
    model: options.ModelDirectory,
    file: options.File,
    out: Annotated[Path | None, options.out("PATH", "Write here, not to standard output.")] = None,
    format: options.AnyFormat = "auto",
    token_column: options.TokenColumn = None,
    label_column: options.LabelColumn = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Label text: a token, a TAB and its label per line. Labels in the file are compared.

    A file with columns is read as the model's corpus was; a file without them is plain text, one
    sentence per line. How it was read is reported.

    A word the model does not know has a row of its own in the token table: with a free table it
    gets the most frequent label, with given vectors it stands at their mean.
    """
    from rankone.cli import console
    from rankone.files import check_place, write_file
    from rankone.nn import load

    if out is not None:
        check_place(out)
    with console.working("start", quiet=quiet or json) as progress:
        loaded = load(model)
        progress("read", 0.0)
        how = options.reading(format, token_column, label_column)
        corpus = options.read_like(loaded, file, labelled=None, **how)
        progress("predict", 0.0)
        found, figures = _predict(loaded, corpus)
    if json and out is None:
        sentences = [
            {"tokens": s.tokens, "labels": labels, "line": s.line}
            for s, labels in zip(corpus.sentences, found, strict=True)
        ]
        console.print_json({**figures, "sentences": sentences})
        return
    _check_rows(loaded, corpus)
    text = "\n".join(
        "".join(f"{token}\t{label}\n" for token, label in zip(s.tokens, labels, strict=True))
        for s, labels in zip(corpus.sentences, found, strict=True)
    )
    if out is None:
        if not quiet:
            typer.echo(text, nl=False)
    else:
        write_file(out, text)
        if json:
            console.print_json({**figures, "files": [str(out)]})
    if not quiet and not json:
        typer.echo("\n".join(map(console.plain, _summary(corpus, figures))), err=True)


def _predict(model: Model, corpus: Corpus) -> tuple[list[list[str]], dict[str, Any]]:
    from dataclasses import asdict
    from itertools import pairwise

    from rankone.nn.pieces import in_pieces
    from rankone.train.scores import compare, predict

    ids, unknown = predict(model, corpus)
    names = [model.labels[i] for i in ids.tolist()]
    found = [names[a:b] for a, b in pairwise(corpus.offsets.tolist())]
    figures: dict[str, Any] = {
        "source": corpus.source,
        "format": corpus.format,
        "columns": asdict(corpus.columns),
        "remarks": list(corpus.remarks),
        "tokens": corpus.n_tokens,
        "unknown": unknown,
        "in_pieces": in_pieces(corpus.lengths, model.network.shape.positions),
    }
    figures |= dict.fromkeys(("right", "accuracy", "precision", "recall", "f1"))
    if corpus.labelled:
        figures |= compare(model, corpus, ids, unknown).to_json()
    return found, figures


def _summary(corpus: Corpus, figures: dict[str, Any]) -> tuple[str, str]:
    """How the file was read, and what was found."""
    how = f"{corpus.source}: read as {corpus.format}"
    if corpus.format == "python":
        how = corpus.source
    elif corpus.remarks:
        how = f"{corpus.source}: {'; '.join(corpus.remarks)}"
    elif str(corpus.columns):
        how += f", {corpus.columns}"
    parts = [f"{plural(figures['tokens'], 'token')} ({figures['unknown']:,} unknown)"]
    if figures["in_pieces"]:
        longer = "longer than the table of positions, labelled in pieces"
        parts.append(f"{plural(figures['in_pieces'], 'sentence')} {longer}")
    if figures["right"] is not None:
        parts.append(f"{figures['right']:,} as labelled in the file ({figures['accuracy']:.4%})")
    if figures["f1"] is not None:
        parts.append(f"entities: F1 {figures['f1']:.2%}")
    return how, "; ".join(parts)


def _check_rows(model: Model, corpus: Corpus) -> None:
    """A word with a TAB or a line end, as JSON allows, would break the rows that are printed."""
    broken = set("\t\n\r")
    for token, word in enumerate(corpus.vocabulary):
        if broken & set(word):
            raise OutputError(
                f"the token {word!r} does not fit into a row",
                where=corpus.place(int((corpus.token_ids == token).argmax())),
                remedy="take --json, which can hold it",
            )
    for label in model.labels:
        if broken & set(label):
            raise OutputError(
                f"the label {label!r} of the model does not fit into a row",
                remedy="take --json, which can hold it",
            )
