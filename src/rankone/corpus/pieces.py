"""Pieces of files: where each begins and ends, and how to read it anywhere.

`plan` looks at the heads of all files. Its pieces are read by `read_piece`, in any process and in
any order. What only a whole corpus knows is left to whoever puts them together:

- words and labels are numbered in each piece by itself, in the order of first appearance;
- lines are counted in each piece from 1: those of a file's earlier pieces come before;
- labels may all be "_" (`rankone.corpus.rows.is_annotated`), or entity tags in IOB1 or IOB2
  (`are_tags` and `opening` of rankone.corpus.schemes; `as_iob2` of rankone.corpus.piece_rows);
- a piece, and even all of them, may have no sentence (`rankone.corpus.corpus.check_sentences`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from rankone.choices import Format
from rankone.corpus.blocks import Blocks, count_lines
from rankone.corpus.borders import Section, border, ends_of
from rankone.corpus.corpus import check_sentences
from rankone.corpus.join import check_layouts
from rankone.corpus.layouts import Reader, check_format
from rankone.corpus.parquet import ParquetReader, opened_parquet
from rankone.corpus.piece_rows import PieceRows
from rankone.corpus.reading import Begun, Numbered, begin, is_parquet, read_blocks
from rankone.corpus.rows import Choice, Column, Columns, Rows
from rankone.corpus.source import STDIN, Stream, opened
from rankone.corpus.sources import files_of
from rankone.corpus.text import Expected
from rankone.errors import CorpusError

SIZE = 64 << 20  # bytes of text in a piece
COLUMNS = ("conll", "conllu", "tsv")


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes ``first`` to ``last`` (not included) of a file, or row groups of Parquet, or the
    ``data`` itself where a file cannot be read from the middle; and the reader that goes on there.

    ``file`` is the number of the file in the plan. ``line`` is the number of the first line if it
    is known, and otherwise None.
    """

    source: str
    file: int
    name: str
    reader: Reader | ParquetReader
    first: int = 0
    last: int = 0
    data: bytes | None = None
    line: int | None = None
    lower: bool = False


@dataclass(frozen=True)
class PlannedFile:
    """A file and what its head says about it."""

    path: str
    source: str
    format: str
    columns: Columns
    reading: dict[str, Any]  # the columns that were asked for
    reader: Reader | ParquetReader  # as it is at the start of the file
    later: Reader | ParquetReader  # and where columns are known
    packed: bool
    size: int
    begun: Begun | None = field(default=None, repr=False)  # of standard input, read only once
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All files of a corpus, and their pieces in order."""

    files: tuple[PlannedFile, ...]
    size: int
    lower: bool = False

    def __iter__(self) -> Iterator[Piece]:
        for number, file in enumerate(self.files):
            known = Piece(file.path, number, file.source, file.reader, lower=self.lower)
            if file.format == "parquet":
                yield from self._groups(file, known)
            else:
                yield from self._packed(file, known) if file.packed else self._cut(file, known)

    def _groups(self, file: PlannedFile, known: Piece) -> Iterator[Piece]:
        assert isinstance(file.reader, ParquetReader)
        with opened(file.path) as stream, opened_parquet(stream) as table:
            groups = table.metadata.num_row_groups
            sizes = [table.metadata.row_group(i).total_byte_size for i in range(groups)]
            rows = [table.metadata.row_group(i).num_rows for i in range(groups)]
            first = 0
            for last in range(1, groups + 1):
                end = last == groups or sum(sizes[first:last]) >= self.size
                if end and not file.reader.goes_on(table, last):
                    yield replace(known, first=first, last=last, line=1 + sum(rows[:first]))
                    first = last

    def _cut(self, file: PlannedFile, known: Piece) -> Iterator[Piece]:
        first = 0
        while first < file.size:
            last = border(file.path, file.format, first + self.size) or file.size
            yield replace(
                known,
                first=first,
                last=last,
                reader=file.later if first else file.reader,
                line=None if first else 1,
            )
            first = last

    def _packed(self, file: PlannedFile, known: Piece) -> Iterator[Piece]:
        if file.begun is not None:
            yield from self._held(file, file.begun.blocks, known)
            return
        with opened(file.path, times=0) as stream:
            yield from self._held(file, iter(Blocks(stream)), known)

    def _held(self, file: PlannedFile, blocks: Iterator[Numbered], known: Piece) -> Iterator[Piece]:
        held, size, line, reader = list[bytes](), 0, 1, file.reader
        for _, block in blocks:
            while end := ends_of(file.format).search(b"\n" + block, max(0, self.size - size - 1)):
                cut = end.end() - 1
                data = b"".join([*held, block[:cut]])
                yield replace(known, data=data, reader=reader, line=line)
                reader, line = file.later, line + count_lines(data)
                held, size, block = [], 0, block[cut:]
            held.append(block)
            size += len(block)
        if size:
            yield replace(known, data=b"".join(held), reader=reader, line=line)


def plan(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    size: int = SIZE,
    format: Format = "auto",
    token_column: Column | None = None,
    label_column: Column | None = None,
    lower: bool = False,
    labelled: bool | None = True,
    expected: Expected | None = None,
) -> Plan:
    """Look at the heads of all files, refuse those that do not belong together, and cut them into
    pieces of about `size` bytes where sentences end.

    Files that cannot be read from the middle (packed ones, standard input) come as pieces that
    hold their bytes. The other settings are those of `read_corpus`; files without the columns that
    are `expected` may be plain text.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "abc.conll")
    ...     with open(path, "w") as file:
    ...         _ = file.write("a X\\n\\nb Y\\n\\nc X\\n")
    ...     [read_piece(piece).vocabulary for piece in plan(path, size=1)]
    [['a'], ['b'], ['c']]
    """
    check_format(format)
    choice = Choice(token_column, label_column, labelled).checked()
    files = list[PlannedFile]()
    for path in files_of(sources):
        files.append(_planned(path, format, choice, expected))
        check_layouts(files[0], files[-1])
    return Plan(tuple(files), size, bool(lower))


def read_piece(piece: Piece) -> PieceRows:
    """The rows of a piece; of what is wrong in it, the message has the line of the file."""
    try:
        rows, n_lines = _rows(piece, 1)
    except CorpusError:
        if (before := _lines_before(piece)) == 0:
            raise
        _rows(piece, 1 + before)
        raise
    return PieceRows.of(rows.lowered() if piece.lower else rows, n_lines)


def _planned(
    path: str | os.PathLike[str], format: str, choice: Choice, expected: Expected | None
) -> PlannedFile:
    with opened(path, times=0) as stream:
        if is_parquet(stream, format):
            return _planned_parquet(stream, choice)
        begun, found = begin(stream, format, choice, expected), Rows()
        later = copy(begun.reader)
        later.read(begun.head, 1, found)
        if begun.kind in COLUMNS:
            check_sentences(len(found.starts), stream.name)
        return PlannedFile(
            os.fspath(path),
            stream.name,
            begun.kind,
            later.columns,
            {"token_column": begun.choice.token, "label_column": begun.choice.label},
            begun.reader,
            later.anew(),
            stream.packed is not None or stream.name == STDIN,
            stream.size,
            begun if stream.name == STDIN else None,
            begun.remarks,
        )


def _planned_parquet(stream: Stream, choice: Choice) -> PlannedFile:
    if stream.path is None:
        raise CorpusError(
            "Parquet from standard input cannot be read in pieces",
            where=stream.name,
            remedy="give a file",
        )
    with opened_parquet(stream) as file:
        reader = ParquetReader.of(file, stream.name, choice)
    asked = {"token_column": choice.token, "label_column": choice.label}
    columns, size = reader.columns, stream.size
    return PlannedFile(
        stream.path, stream.name, "parquet", columns, asked, reader, reader, False, size
    )


def _stream(piece: Piece) -> Iterator[Numbered]:
    if piece.data is not None:
        yield 1, piece.data
        return
    with open(piece.source, "rb") as file:
        file.seek(piece.first)
        rest = Stream(piece.name, Section(file, piece.last - piece.first), 0, times=0)
        yield from Blocks(rest, begun=piece.first > 0)


def _rows(piece: Piece, line: int) -> tuple[Rows, int]:
    """The rows, and how many lines there are, of which the first has this number."""
    count, reader = 0, copy(piece.reader)
    if isinstance(reader, ParquetReader):
        with opened(piece.source) as stream, opened_parquet(stream) as file:
            return reader.read(file, range(piece.first, piece.last), line)

    def counted() -> Iterator[Numbered]:
        nonlocal count
        for number, block in _stream(piece):
            yield number + line - 1, block
            count = number - 1 + count_lines(block)

    size = len(piece.data) if piece.data is not None else piece.last - piece.first
    return read_blocks(counted(), reader, size), count


def _lines_before(piece: Piece) -> int:
    """How many lines of the file come before the piece."""
    if piece.line is not None:
        return piece.line - 1
    with open(piece.source, "rb") as file:
        section = Section(file, piece.first)
        return sum(count_lines(data) for data in iter(lambda: section.read(1 << 20), b""))
