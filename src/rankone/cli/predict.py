"""rankone predict DIR FILE"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankone.cli import options
from rankone.errors import OutputError

if TYPE_CHECKING:
    from rankone.corpus import Corpus
    from rankone.nn import Model


def predict(
    model: options.ModelDirectory,
    file: options.File,
    out: Annotated[Path | None, options.out("PATH", "Write here, not to standard output.")] = None,
    format: options.Format = "auto",
    token_column: options.TokenColumn = None,
    label_column: options.LabelColumn = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Label text: a token, a TAB and its label per line. Labels in the file are compared.

    A word the model does not know has a row of its own in the token table: with a free table it
    gets the most frequent label, with given vectors it stands at their mean.
    """
    from rankone.cli import console
    from rankone.files import write_file
    from rankone.nn import load

    with console.working("start", quiet=quiet or json) as progress:
        loaded = load(model)
        progress("read", 0.0)
        how = options.reading(format, token_column, label_column)
        corpus = options.read_like(loaded, file, labelled=None, **how)
        progress("predict", 0.0)
        found, figures = _predict(loaded, corpus)
    if json and out is None:
        sentences = [
            {"tokens": list(s.tokens), "labels": list(labels), "line": s.line}
            for s, labels in zip(corpus.sentences, found, strict=True)
        ]
        console.print_json({**figures, "sentences": sentences})
        return
    _check_rows(corpus)
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
        typer.echo(_summary(figures), err=True)


def _predict(model: Model, corpus: Corpus) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    from itertools import pairwise

    from rankone.train.scores import compare, predict

    ids, unknown = predict(model, corpus)
    names = [model.labels[i] for i in ids.tolist()]
    bounds = corpus.offsets.tolist()
    found = [tuple(names[a:b]) for a, b in pairwise(bounds)]
    figures: dict[str, Any] = {"tokens": corpus.n_tokens, "unknown": unknown}
    figures |= dict.fromkeys(("right", "accuracy", "precision", "recall", "f1"))
    if corpus.labelled:
        figures |= compare(model, corpus, ids, unknown).to_json()
        del figures["source"]
    return found, figures


def _summary(figures: dict[str, Any]) -> str:
    parts = [f"{figures['tokens']:,} tokens, {figures['unknown']:,} of them unknown words"]
    if figures["right"] is not None:
        parts.append(f"{figures['right']:,} as labelled in the file ({figures['accuracy']:.4%})")
    if figures["f1"] is not None:
        parts.append(f"entities: F1 {figures['f1']:.2%}")
    return "; ".join(parts)


def _check_rows(corpus: Corpus) -> None:
    """A word with a TAB or a line end, as JSON allows, would break the rows that are printed."""
    for word, token in ((w, i) for i, w in enumerate(corpus.vocabulary) if set(w) & set("\t\n\r")):
        line = corpus.lines[(corpus.token_ids == token).argmax()]
        raise OutputError(
            f"the token {word!r} does not fit into a row",
            where=f"{corpus.source}, line {line}",
            remedy="take --json, which can hold it",
        )
