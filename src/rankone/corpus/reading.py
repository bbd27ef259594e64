"""How a file is read: its layout is found out, then its rows come in, block after block."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from rankone.corpus.blocks import Blocks, lines_in
from rankone.corpus.columns import ColumnReader
from rankone.corpus.layouts import CONLL, READERS, Reader, guess, is_telling, suffix_of
from rankone.corpus.parquet import ParquetReader, opened_parquet
from rankone.corpus.rows import Choice, Rows
from rankone.corpus.source import Stream
from rankone.corpus.text import Expected, is_text

HEAD = 1 << 18  # bytes from which the layout is guessed
WORTH = 8 << 20  # bytes for which it is worth to load compiled code
LOADED = 1 << 20  # the same, if numba is loaded already
ASSUMED = (
    "read as plain text, one sentence per line, since it does not have the columns of the model's "
    "corpus; --format conll reads columns"
)

Numbered = tuple[int, bytes]  # a block, and before it the number of its first line


@dataclass(frozen=True)
class Begun:
    """A file whose layout is known: its first lines, all its blocks, and who reads them."""

    kind: str
    choice: Choice
    reader: Reader
    head: list[str]
    blocks: Iterator[Numbered]
    remarks: tuple[str, ...] = ()


def begin(stream: Stream, format: str, choice: Choice, expected: Expected | None = None) -> Begun:
    """Find out the layout. A file without the columns that a model expects may be plain text."""
    head, blocks = head_of(iter(Blocks(stream)))
    kind, remarks = guess(stream.name, head) if format == "auto" else format, tuple[str, ...]()
    unclear = format == "auto" and kind == "conll" and suffix_of(stream.name) not in CONLL
    if expected is not None and unclear and is_text(head, stream.name, expected):
        kind, remarks = "text", (ASSUMED,)
        choice = replace(choice, token=None, label=None)  # those were of the model
    reader = READERS[kind](head, stream.name, choice, 1)
    return Begun(kind, choice, reader, head, blocks, remarks)


def rows_in(
    stream: Stream, format: str, choice: Choice, expected: Expected | None = None
) -> tuple[str, Choice, Rows, tuple[str, ...]]:
    """The layout, what was taken of each row, all rows, and what was assumed."""
    if is_parquet(stream, format):
        with opened_parquet(stream) as file:
            reader = ParquetReader.of(file, stream.name, choice)
            return "parquet", choice, reader.read(file, range(file.num_row_groups))[0], ()
    begun = begin(stream, format, choice, expected)
    rows = read_blocks(begun.blocks, begun.reader, stream.expected)
    return begun.kind, begun.choice, rows, begun.remarks


def is_parquet(stream: Stream, format: str) -> bool:
    """Whether it is to be read as Parquet."""
    return stream.parquet and format in ("auto", "parquet")


def head_of(blocks: Iterator[Numbered]) -> tuple[list[str], Iterator[Numbered]]:
    """The first lines, with a row among them if the file has one; and all blocks."""
    taken, lines = list[Numbered](), list[str]()
    for number, block in blocks:
        taken.append((number, block))
        cut = block.find(b"\n", min(HEAD, len(block) - 1)) + 1
        for part in (block[:cut], block[cut:]):
            lines += lines_in(part) if part else []
            if any(map(is_telling, lines[-part.count(b"\n") :])):
                return lines, chain(taken, blocks)
    return lines, chain(taken, blocks)


def read_blocks(blocks: Iterable[Numbered], reader: Reader, expected: int) -> Rows:
    """All rows; `expected` is about how many bytes there are, or 0."""
    rows, scanner, seen = Rows(), None, 0
    for number, block in blocks:
        enough = LOADED if "numba" in sys.modules else WORTH
        if scanner is None and isinstance(reader, ColumnReader) and max(seen, expected) >= enough:
            from rankone.corpus.scan import Scanner

            scanner = Scanner(reader, rows)
        if scanner is None:
            reader.read(lines_in(block), number, rows)
        else:
            scanner.read(block, number)
        seen += len(block)
    if scanner is not None:
        scanner.finish()
    return replace(rows, columns=reader.columns)
