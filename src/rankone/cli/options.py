"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from rankone.corpus import Ceiling, Corpus
    from rankone.nn import Model

READING, TRAINING, OUTPUT = "Reading the file", "Training", "Output"  # panels of `--help`

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Corpus, plain or gzipped; - is standard input, builtin and toy are built in.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["auto", "conll", "conllu", "tsv", "jsonl"],
    typer.Option(help="Layout of the file.", rich_help_panel=READING),
]
AnyFormat = Annotated[
    Literal["auto", "conll", "conllu", "tsv", "jsonl", "text"],
    typer.Option(
        help="Layout of the file; text is one sentence per line, split at white space.",
        rich_help_panel=READING,
    ),
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
    int,
    typer.Option(metavar="DIGITS", min=20, max=10**9, help="Most decimal digits to compute with."),
]
ModelDirectory = Annotated[
    Path,
    # What cannot be read is refused in our words, not as a mistake in the command.
    typer.Argument(metavar="DIR", help="Model directory.", show_default=False, readable=False),
]
Depth = Annotated[int, typer.Option(metavar="N", min=1, help="Number of blocks.")]
BatchSize = Annotated[
    int,
    typer.Option(metavar="N", min=1, help="Sentences per step.", rich_help_panel=TRAINING),
]
Dim = Annotated[
    int, typer.Option(metavar="D", min=1, help="Length of token vectors.", rich_help_panel=TRAINING)
]
Hidden = Annotated[
    int,
    typer.Option(metavar="Q", min=0, help="Hidden units (0: 4 dim).", rich_help_panel=TRAINING),
]
Heads = Annotated[
    int,
    typer.Option(metavar="H", min=1, help="Heads of softmax attention.", rich_help_panel=TRAINING),
]
HeadSize = Annotated[
    int,
    typer.Option(
        metavar="S", min=0, help="Size of each head (0: dim / heads).", rich_help_panel=TRAINING
    ),
]
Positions = Annotated[bool, typer.Option(help="Learned positions.", rich_help_panel=TRAINING)]
Optimizer = Annotated[
    Literal["adam", "sgd"], typer.Option(help="Optimizer.", rich_help_panel=TRAINING)
]
Lr = Annotated[float, typer.Option(metavar="X", help="Learning rate.", rich_help_panel=TRAINING)]
Momentum = Annotated[
    float, typer.Option(metavar="X", min=0.0, help="SGD momentum.", rich_help_panel=TRAINING)
]
Schedule = Annotated[
    Literal["constant", "linear"],
    typer.Option(help="Learning rate: constant, or falling to 0.", rich_help_panel=TRAINING),
]
InitStd = Annotated[
    float,
    typer.Option(
        metavar="X",
        min=0.0,
        help="Standard deviation of both tables at the start.",
        rich_help_panel=TRAINING,
    ),
]
Accuracy = Annotated[
    Literal["running", "after"],
    typer.Option(
        help="Accuracy of an epoch: as it runs, or with the weights at its end.",
        rich_help_panel=TRAINING,
    ),
]
Dtype = Annotated[
    Literal["float32", "float64"],
    typer.Option(help="Precision of the weights.", rich_help_panel=TRAINING),
]
CheckpointSeconds = Annotated[
    float,
    typer.Option(metavar="S", min=0.0, help="Seconds between checkpoints.", rich_help_panel=OUTPUT),
]
Threads = Annotated[
    int,
    typer.Option(metavar="N", min=1, help="Threads; more than one pays for large networks only."),
]


def first_process() -> bool:
    """Whether this process speaks for all that torchrun started."""
    return "WORLD_SIZE" not in os.environ or os.environ.get("RANK", "0") == "0"


def share(part: float | None) -> str:
    """How much of what attention could add was reached."""
    if part is None:
        return "nothing to add"
    return f"{part:.2%}" if part >= 0 else "none: below the token alone"


def ceiling_rows(ceilings: dict[str, Ceiling], part: float | None) -> list[tuple[str, str]]:
    """What stands beside every accuracy."""
    token, full = ceilings["token"], ceilings["input"]
    return [
        ("ceiling of the token alone", f"{token.accuracy:.4%} ({token.errors:,} wrong)"),
        ("ceiling of any model", f"{full.accuracy:.4%} ({full.errors:,} wrong)"),
        ("of what attention could add", share(part)),
    ]


def out(metavar: str, help: str) -> Any:
    """--out, which each command writes something else to."""
    return typer.Option(metavar=metavar, help=help, show_default=False, rich_help_panel=OUTPUT)


def read_like(model: Model, file: str, *, labelled: bool | None, **given: Any) -> Corpus:
    """The file, read as the model's own corpus was, but for what is given."""
    from rankone.corpus.read import read_like

    return read_like(file, model.reading, model.labels, labelled=labelled, **given)


def reading(
    format: str, token_column: str | None, label_column: str | None, **more: Any
) -> dict[str, Any]:
    """The keyword arguments of `read_corpus`."""
    columns = {"token_column": _column(token_column), "label_column": _column(label_column)}
    return {"format": format, **columns, **more}


def _column(value: str | None) -> int | str | None:
    from rankone.corpus.rows import is_number

    return int(value) if value is not None and is_number(value) else value
