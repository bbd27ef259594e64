"""Options that several commands share, and bundles of those that go together."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from rankone import choices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankone.engines import Engine

OUTPUT = "Output"
CAP = 200_000  # the default of `certify`, which is too heavy to import here; a test compares them


def option(help: str, metavar: str | None = None, *names: str, **rest: Any) -> Any:
    """An option with a value; `rest` are its range and the other settings of Typer."""
    return typer.Option(*names, metavar=metavar, help=help, **rest)


def flag(help: str, *names: str) -> Any:
    """An option without a value, and without the opposite that Typer adds to unnamed ones."""
    return typer.Option(*names, help=help)


def out(metavar: str, help: str) -> Any:
    """--out: each command writes something else."""
    return option(help, metavar, show_default=False, rich_help_panel=OUTPUT)


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Corpus, plain or packed (gzip, zstd), or a directory or pattern; - is standard "
        "input; `builtin`, `toy` and `story` are built in.",
        show_default=False,
    ),
]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Corpus, plain or packed (gzip, zstd); several files, a directory or a pattern are "
        "read as one. - is standard input; `builtin`, `toy` and `story` are built in.",
        show_default=False,
    ),
]
ModelDirectory = Annotated[
    Path,
    # An unreadable directory gets our own error message, not one about wrong usage.
    typer.Argument(metavar="DIR", help="Model directory.", show_default=False, readable=False),
]
Vectors = Annotated[
    Path | None, option("Token vectors in GloVe text format (default: chosen).", "TEXT")
]
Seed = Annotated[int, option("Random seed.", "N", min=0)]
Cap = Annotated[int, option("Maximum number of decimal digits.", "DIGITS", min=20, max=10**9)]
MaxLength = Annotated[
    int | None,
    option(
        "Longest sentence the model can read as a whole (default: longest in FILE).",
        "N",
        min=1,
        max=1 << 24,
    ),
]
CheckpointSeconds = Annotated[
    float, option("Seconds between checkpoints.", "S", min=0.0, rich_help_panel=OUTPUT)
]


@dataclass(frozen=True)
class Layout:
    """Where tokens and labels are in a file."""

    PANEL: ClassVar = "Reading the file"

    format: Annotated[
        choices.Format, option("File layout; `text` is one sentence per line, without labels.")
    ] = "auto"
    token_column: Annotated[
        str | None, option("Token column (from 1) or key (default: first; CoNLL-U: FORM).", "N")
    ] = None
    label_column: Annotated[
        str | None,
        option("Label column (from 1; -1 is the last) or key (default: last; CoNLL-U: UPOS).", "N"),
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
        option("Entity tags: keep them, convert IOB1 to IOB2, or convert if they are IOB1 (auto)."),
    ] = "keep"
    lower: Annotated[bool, flag("Convert tokens to lower case.", "--lower")] = False


@dataclass(frozen=True)
class TextReading(Reading):
    """How a file becomes a corpus, which may be one of texts."""

    task: Annotated[
        choices.Task,
        option("What is asked: labels of tokens, the next token of a text, the class of a text."),
    ] = "tags"
    tokenizer: Annotated[
        str,
        option("Tokens of a text: words, characters, bytes, or a tokenizer.json.", "NAME"),
    ] = "words"
    window: Annotated[
        int,
        option("Tokens that a model of the next token sees (0: all before it).", "K", min=0),
    ] = 0
    blocks: Annotated[
        bool, flag("A blank line ends a document; otherwise the file does.", "--blocks")
    ] = False


def tags_of(reading: Reading) -> dict[str, Any]:
    """The arguments of what reads tags only."""
    names = {field.name for field in fields(Reading)}
    return {name: x for name, x in reading.arguments().items() if name in names}


@dataclass(frozen=True)
class Engines:
    """In how much memory, and on which machines, a corpus is processed."""

    PANEL: ClassVar = "Memory and machines"

    memory: Annotated[
        float | None,
        option(
            "Memory limit in GB, on a cluster of each worker: the corpus is processed in parts "
            "(default: all of it is in memory).",
            "GB",
        ),
    ] = None
    scratch: Annotated[
        Path | None, option("Directory for temporary files (default: that of the system).", "DIR")
    ] = None
    engine: Annotated[
        choices.EngineName | None,
        option("Keep parts in memory, on disk, or on Ray (default: what the other options need)."),
    ] = None
    workers: Annotated[
        int | None,
        option("Worker processes of a Ray on this machine (default: one per core).", "N", min=1),
    ] = None
    address: Annotated[
        str | None, option("Ray cluster to use (default: a Ray of its own).", "HOST:PORT")
    ] = None

    @property
    def given(self) -> bool:
        """Whether the corpus is to be processed in parts."""
        return any(value is not None for value in vars(self).values())

    @contextlib.contextmanager
    def open(self) -> Iterator[Engine]:
        """The engine. What it keeps goes in the end, also when the process is ended (SIGTERM)."""
        from rankone.engines import open_engine

        settings = dict(vars(self))
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            with open_engine(settings.pop("engine"), **settings) as engine:
                yield engine
        finally:
            signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class Output:
    """What is printed."""

    PANEL: ClassVar = OUTPUT

    json: Annotated[bool, flag("Print one JSON object only.", "--json")] = False
    quiet: Annotated[bool, flag("Print errors only.", "--quiet", "-q")] = False

    @property
    def silent(self) -> bool:
        """Whether nothing is printed before the result."""
        return self.json or self.quiet


@dataclass(frozen=True)
class Training:
    """Settings that every training run has; the defaults are those of `Settings`."""

    PANEL: ClassVar = "Training"

    batch_size: Annotated[int, option("Sentences per step.", "N", min=1)] = 32
    dim: Annotated[int, option("Length of token vectors.", "D", min=1)] = 32
    hidden: Annotated[int, option("Hidden units per block (0: 4 * dim).", "Q", min=0)] = 0
    positions: Annotated[bool, option("Learn positional encodings.")] = True
    max_length: MaxLength = None
    optimizer: Annotated[choices.Optimizer, option("Optimizer.")] = "adam"
    lr: Annotated[float, option("Learning rate.", "X")] = 1e-3
    momentum: Annotated[float, option("SGD momentum.", "X", min=0.0)] = 0.0
    schedule: Annotated[choices.Schedule, option("Learning rate schedule; linear decays to 0.")] = (
        "constant"
    )
    init_std: Annotated[
        float, option("Initial standard deviation of token and position tables.", "X", min=0.0)
    ] = 0.02
    accuracy: Annotated[
        choices.Accuracy, option("Measure each epoch's accuracy as it runs, or after it.")
    ] = "running"
    dtype: Annotated[choices.Dtype, option("Precision of the weights.")] = "float32"
    seed: Seed = 0


def first_process() -> bool:
    """Whether this process prints for all that torchrun started."""
    return "WORLD_SIZE" not in os.environ or os.environ.get("RANK", "0") == "0"


def _column(value: str | None) -> int | str | None:
    from rankone.corpus.rows import is_number

    return int(value) if value is not None and is_number(value) else value
