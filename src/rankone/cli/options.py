"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from rankone.corpus import Corpus
    from rankone.nn import Model

READING, OUTPUT = "Reading the file", "Output"  # where `--help` lists an option

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Labelled corpus, plain or gzipped; - is standard input, builtin and toy come along.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["auto", "conll", "conllu", "tsv", "jsonl"],
    typer.Option(help="Layout of the file.", rich_help_panel=READING),
]
TokenColumn = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Column (from 1) or key of the token; default the first, FORM in CoNLL-U.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Column (from 1, -1 the last) or key of the label; default the last, UPOS in CoNLL-U.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Scheme = Annotated[
    Literal["keep", "iob2", "auto"],
    typer.Option(
        help="Entity tags: keep as stored, or turn IOB1 into IOB2 (auto: if they are IOB1).",
        rich_help_panel=READING,
    ),
]
Lower = Annotated[
    bool, typer.Option("--lower", help="Turn tokens to lower case.", rich_help_panel=READING)
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object, nothing else.", rich_help_panel=OUTPUT),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=OUTPUT),
]
Vectors = Annotated[
    Path | None,
    typer.Option(
        metavar="TEXT",
        help="Given token vectors, a GloVe-style text file; otherwise they are chosen.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the numbers drawn.")]
CAP = 200_000  # as in `certify`, which is too heavy to be asked here
Cap = Annotated[
    int, typer.Option(metavar="DIGITS", min=20, help="Most decimal digits to compute with.")
]
ModelDirectory = Annotated[
    Path, typer.Argument(metavar="DIR", help="Model directory.", show_default=False)
]


def out(metavar: str, help: str) -> Any:
    """--out, which each command writes something else to."""
    return typer.Option(metavar=metavar, help=help, show_default=False, rich_help_panel=OUTPUT)


def read_like(model: Model, file: str, *, labelled: bool | None, **given: Any) -> Corpus:
    """The file, read as the model's own corpus was, but for what is given."""
    from rankone.corpus import read_corpus
    from rankone.corpus.builtin import BUILTIN

    if file in BUILTIN:
        return read_corpus(file)
    known = {"token_column", "label_column", "scheme", "lower"}
    before = {key: value for key, value in model.reading.items() if key in known}
    chosen = {key: value for key, value in given.items() if value is not None}
    return read_corpus(file, **{**before, **chosen, "labelled": labelled})


def reading(
    format: str, token_column: str | None, label_column: str | None, **more: Any
) -> dict[str, Any]:
    """The keyword arguments of `read_corpus`."""
    columns = {"token_column": _column(token_column), "label_column": _column(label_column)}
    return {"format": format, **columns, **more}


def _column(value: str | None) -> int | str | None:
    try:
        return value if value is None else int(value)
    except ValueError:
        return value
