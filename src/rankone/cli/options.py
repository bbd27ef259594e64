"""Options that several commands share, and bundles of those that go together."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from rankone import choices

if TYPE_CHECKING:
    pass

OUTPUT = "Output"
CAP = 200_000  # the default of `certify`, which is too heavy to import here; a test compares them

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Corpus, plain or gzipped; - is standard input, `builtin` and `toy` are built in.",
        show_default=False,
    ),
]
ModelDirectory = Annotated[
    Path,
    # An unreadable directory gets our own error message, not one about wrong usage.
    typer.Argument(metavar="DIR", help="Model directory.", show_default=False, readable=False),
]
Vectors = Annotated[
    Path | None,
    typer.Option(metavar="TEXT", help="Token vectors in GloVe text format (default: chosen)."),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Random seed.")]
Cap = Annotated[
    int,
    typer.Option(metavar="DIGITS", min=20, max=10**9, help="Maximum number of decimal digits."),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=1 << 24,
        help="Longest sentence the model can read as a whole (default: longest in FILE).",
    ),
]
CheckpointSeconds = Annotated[
    float,
    typer.Option(metavar="S", min=0.0, help="Seconds between checkpoints.", rich_help_panel=OUTPUT),
]


def out(metavar: str, help: str) -> Any:
    """--out: each command writes something else."""
    return typer.Option(metavar=metavar, help=help, show_default=False, rich_help_panel=OUTPUT)


@dataclass(frozen=True)
class Layout:
    """Where tokens and labels are in a file."""

    PANEL: ClassVar = "Reading the file"

    format: Annotated[
        choices.Format,
        typer.Option(help="File layout; `text` is one sentence per line, without labels."),
    ] = "auto"
    token_column: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Token column (from 1) or key (default: first; CoNLL-U: FORM)."
        ),
    ] = None
    label_column: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Label column (from 1; -1 is the last) or key (default: last; CoNLL-U: UPOS).",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `read_corpus`."""
        columns = {name: _column(getattr(self, name)) for name in ("token_column", "label_column")}
        return {**vars(self), **columns}


@dataclass(frozen=True)
class Reading(Layout):
    """How a file becomes a corpus."""

    scheme: Annotated[
        choices.Scheme,
        typer.Option(
            help="Entity tags: keep them, convert IOB1 to IOB2, or convert if they are IOB1 (auto)."
        ),
    ] = "keep"
    lower: Annotated[bool, typer.Option("--lower", help="Convert tokens to lower case.")] = False


@dataclass(frozen=True)
class Output:
    """What is printed."""

    PANEL: ClassVar = OUTPUT

    json: Annotated[bool, typer.Option("--json", help="Print one JSON object only.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False

    @property
    def silent(self) -> bool:
        """Whether nothing is printed before the result."""
        return self.json or self.quiet


@dataclass(frozen=True)
class Training:
    """Settings that every training run has; the defaults are those of `Settings`."""

    PANEL: ClassVar = "Training"

    batch_size: Annotated[int, typer.Option(metavar="N", min=1, help="Sentences per step.")] = 32
    dim: Annotated[int, typer.Option(metavar="D", min=1, help="Length of token vectors.")] = 32
    hidden: Annotated[
        int, typer.Option(metavar="Q", min=0, help="Hidden units per block (0: 4 * dim).")
    ] = 0
    positions: Annotated[bool, typer.Option(help="Learn positional encodings.")] = True
    max_length: MaxLength = None
    optimizer: Annotated[choices.Optimizer, typer.Option(help="Optimizer.")] = "adam"
    lr: Annotated[float, typer.Option(metavar="X", help="Learning rate.")] = 1e-3
    momentum: Annotated[float, typer.Option(metavar="X", min=0.0, help="SGD momentum.")] = 0.0
    schedule: Annotated[
        choices.Schedule, typer.Option(help="Learning rate schedule; linear decays to 0.")
    ] = "constant"
    init_std: Annotated[
        float,
        typer.Option(
            metavar="X", min=0.0, help="Initial standard deviation of token and position tables."
        ),
    ] = 0.02
    accuracy: Annotated[
        choices.Accuracy,
        typer.Option(help="Measure each epoch's accuracy as it runs, or after it."),
    ] = "running"
    dtype: Annotated[choices.Dtype, typer.Option(help="Precision of the weights.")] = "float32"
    seed: Seed = 0


def first_process() -> bool:
    """Whether this process prints for all that torchrun started."""
    return "WORLD_SIZE" not in os.environ or os.environ.get("RANK", "0") == "0"


def _column(value: str | None) -> int | str | None:
    from rankone.corpus.rows import is_number

    return int(value) if value is not None and is_number(value) else value
