"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Labelled corpus, plain or gzipped; - is standard input, builtin the built-in corpus.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["auto", "conll", "conllu", "tsv", "jsonl"], typer.Option(help="Layout of the file.")
]
TokenColumn = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Column (from 1) or key of the token; default the first, FORM in CoNLL-U.",
        show_default=False,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Column (from 1, -1 the last) or key of the label; default the last, UPOS in CoNLL-U.",
        show_default=False,
    ),
]
Scheme = Annotated[
    Literal["keep", "iob2"],
    typer.Option(help="Entity tags: keep them as stored, or turn IOB1 into IOB2."),
]
Lower = Annotated[bool, typer.Option("--lower", help="Turn tokens to lower case.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
ModelDirectory = Annotated[
    Path, typer.Argument(metavar="DIR", help="Model directory.", show_default=False)
]


def reading(
    format: str, token_column: str | None, label_column: str | None, scheme: str, lower: bool
) -> dict[str, Any]:
    """The keyword arguments of `read_corpus`."""
    return {
        "format": format,
        "token_column": _column(token_column),
        "label_column": _column(label_column),
        "scheme": scheme,
        "lower": lower,
    }


def _column(value: str | None) -> int | str | None:
    return int(value) if value is not None and value.lstrip("-").isdigit() else value
