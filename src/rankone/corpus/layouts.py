"""The layouts of files: which one a file has, and who reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rankone.corpus import columns, jsonlines, parquet, text
from rankone.corpus.choice import is_header
from rankone.corpus.rows import DOCSTART, Choice, Columns, Rows
from rankone.corpus.source import unpacked_name
from rankone.errors import CorpusError, SettingError

SUFFIXES = {
    ".conllu": "conllu",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
CONLL = (".conll", ".iob", ".iob2", ".bio")  # some kind of columns, certainly not text


class Reader(Protocol):
    """Reads one file, block after block; it remembers what the next block needs."""

    @property
    def columns(self) -> Columns:
        """Where tokens and labels were found."""

    def read(self, lines: list[str], first: int, rows: Rows) -> None:
        """Add the rows of these lines, of which the first has this number."""

    def anew(self) -> Reader:
        """A reader that knows the layout, for lines from the start of a sentence on."""


# A reader is made of the first lines of a file, with a row among them if the file has one, its name
# for messages, what to take of each row, and the number of the first of these lines.
READERS: dict[str, Callable[[list[str], str, Choice, int], Reader]] = {
    "conll": columns.conll,
    "conllu": columns.conllu,
    "tsv": columns.tsv,
    "jsonl": jsonlines.jsonlines,
    "text": text.text,
    "parquet": parquet.refused,  # which has no lines: `rankone.corpus.parquet` reads it
}


def check_format(format: str) -> None:
    """Refuse an unknown layout."""
    known = tuple(READERS)
    if format != "auto" and format not in known:
        raise SettingError(
            f"unknown format {format!r}", remedy=f"choose one of auto, {', '.join(known)}"
        )


def rows_of(lines: list[str], kind: str, name: str, choice: Choice) -> Rows:
    """The rows of all lines of a file."""
    rows, reader = Rows(), READERS[kind](lines, name, choice, 1)
    reader.read(lines, 1, rows)
    return replace(rows, columns=reader.columns)


def is_telling(line: str) -> bool:
    """Whether a line may show the layout: it is not blank, a comment, or the mark of a document."""
    return not columns.blank(line) and line[0] != "#" and not line.lstrip(" ").startswith(DOCSTART)


def guess(name: str, lines: list[str]) -> str:
    """Guess the format by the suffix of the name, or else by the first line that is not blank."""
    first = next((line for line in lines if not columns.blank(line)), "")
    kind = SUFFIXES.get(suffix_of(name))
    if kind is not None and (kind != "tsv" or any("\t" in line for line in lines)):
        return kind
    if suffix_of(name) == ".csv" and "," in first and "\t" not in first:
        raise CorpusError(
            "columns separated by commas, which are words too",
            where=name,
            remedy="separate them by TABs, or say what else it is: --format conll or text",
        )
    if first.lstrip().startswith("{") and '"' in first:
        return "jsonl"
    row = next((line for line in lines if not columns.blank(line) and line[0] != "#"), "")
    cells = row.split("\t")
    if len(cells) == 10 and cells[0].split("-")[0].split(".")[0].isdigit():
        return "conllu"
    return "tsv" if is_header([cell.strip().lower() for cell in cells]) else "conll"


def suffix_of(name: str) -> str:
    """What the name ends in, before the file was packed."""
    return Path(unpacked_name(name)).suffix
