"""Reader for Parquet: a row per sentence with lists of tokens and labels, or a row per token.

The line of a token is the number of its row. Values are taken as columns where they are what they
should be; a batch with anything else goes through the rules of `fields`, row by row, which have the
messages.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.corpus.choice import LABEL_HEADERS, TOKEN_HEADERS
from rankone.corpus.features import features_of
from rankone.corpus.fields import LABELS, Fields, Strings, key_among, strings_of
from rankone.corpus.growing import Column
from rankone.corpus.rows import DOCSTART, Choice, Columns, Rows, Words
from rankone.corpus.source import Stream
from rankone.errors import CorpusError
from rankone.plural import plural

BATCH = 1 << 14  # rows
SENTENCES = ("sentence_id", "sent_id", "sentence")  # columns that tell sentences apart
ONE_EACH = "give exactly one label per token"


@contextmanager
def opened_parquet(stream: Stream) -> Iterator[Any]:
    """The Parquet file of a stream, whose damage has a message."""
    import pyarrow as pa
    from pyarrow import parquet

    source = io.BytesIO(stream.rest()) if stream.path is None else stream.path
    try:
        with parquet.ParquetFile(source) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        said = str(error).strip().partition("\n")[0]
        raise CorpusError(
            f"damaged Parquet data ({said})",
            where=stream.name,
            remedy="write or copy the file again",
        ) from None


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """Reads row groups. ``sentence`` is the column that says to which sentence the token of a row
    belongs, or None if rows are sentences; ``names`` are those of labels that are numbers."""

    name: str
    token: str
    label: str | None
    sentence: str | None = None
    names: dict[int, str] | None = None

    @property
    def columns(self) -> Columns:
        return Columns(self.token, self.label)

    @classmethod
    def of(cls, file: Any, name: str, choice: Choice) -> ParquetReader:
        """The columns that were chosen, or those with the usual names."""
        schema = file.schema_arrow
        keys, labelled = list(schema.names), choice.labelled
        usual = (*LABELS, *sorted(LABEL_HEADERS - {"labels", *LABELS}))
        if labelled is None:
            labelled = bool({choice.label} & set(keys) or {"labels", *usual} & set(keys))
        token = key_among(keys, choice.token, "token", sorted(TOKEN_HEADERS - {"tokens"}), name)
        label = key_among(keys, choice.label, "label", usual, name) if labelled else None
        names = Fields.names_in(features_of(schema.metadata, name), label)
        found = cls(name, str(token), None if label is None else str(label), None, names)
        if schema.field(found.token).type.num_fields:  # lists
            return found
        sentence = next((key for key in SENTENCES if key in keys), None)
        if sentence is None:
            raise CorpusError(
                f"{found.token!r} has no lists, and no column says which sentence a row is in",
                where=name,
                remedy=f"add a column {SENTENCES[0]!r}, or write a row per sentence, with lists of "
                "tokens and labels",
            )
        return replace(found, sentence=sentence)

    def read(self, file: Any, groups: Sequence[int], first: int = 1) -> tuple[Rows, int]:
        """The rows of these row groups, of which the first has this number; and how many rows of
        the file they are."""
        import pyarrow as pa

        found, last, start = Found(), None, first
        wanted = [key for key in (self.token, self.label, self.sentence) if key is not None]
        each = (file.iter_batches(BATCH, row_groups=[group], columns=wanted) for group in groups)
        for batch in chain.from_iterable(each):
            lengths = np.ones(batch.num_rows, dtype=np.int64)
            fresh = np.ones(batch.num_rows, dtype=bool)
            if self.sentence is not None:
                fresh, last = _changes(batch.column(self.sentence), last)
            try:
                values = [batch.column(key) for key in (self.token, self.label) if key is not None]
                if self.sentence is None:
                    lengths, values = _flat(values)
                words = [*map(self._words, values, [None, self.names])]
            except (Unusual, CorpusError, pa.ArrowException):
                lengths, words = self._row_by_row(batch, first)
            numbers = np.arange(first, first + batch.num_rows)
            found.add(words, np.repeat(numbers, lengths), lengths, fresh)
            first += batch.num_rows
        return found.rows(self.columns, in_lists=self.sentence is None), first - start

    def goes_on(self, file: Any, group: int) -> bool:
        """Whether a sentence that begins before this row group ends in it."""
        if self.sentence is None or not 0 < group < file.num_row_groups:
            return False
        ends = [file.read_row_group(i, [self.sentence]).column(0) for i in (group - 1, group)]
        return bool(len(ends[0]) and len(ends[1]) and ends[0][-1] == ends[1][0])

    def _words(self, values: Any, names: dict[int, str] | None) -> tuple[Strings, Ints]:
        """The words among the values, and the number of each value's word."""
        import pyarrow as pa

        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if values.null_count:
            raise Unusual
        coded = values.dictionary_encode()
        words = strings_of(coded.dictionary.to_pylist(), "", self.name, names) if len(coded) else []
        return words, coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)

    def _row_by_row(self, batch: Any, first: int) -> tuple[Ints, list[tuple[Strings, Ints]]]:
        """The same, with a message for the first row that is not as it should be."""
        columns: list[list[str]] = [[], []]
        lengths = []
        for number, row in enumerate(batch.to_pylist(), start=first):
            where, found = f"{self.name}, line {number}", list[Strings]()
            for key, names in ((self.token, None), (self.label, self.names)):
                if key is not None:
                    value = row[key] if self.sentence is None else [row[key]]
                    found.append(strings_of(value, key, where, names))
            if len({*map(len, found)}) > 1:
                raise CorpusError(
                    f"{plural(len(found[0]), 'token')} but {plural(len(found[1]), 'label')}",
                    where=where,
                    remedy=ONE_EACH,
                )
            lengths.append(len(found[0]))
            for column, words in zip(columns, found, strict=False):
                column += words
        ids = np.arange(len(columns[0]))
        each = columns if self.label is not None else columns[:1]
        return np.array(lengths, dtype=np.int64), [(words, ids) for words in each]


def refused(_head: list[str], name: str, _choice: Choice, _first: int) -> Any:
    """What is not Parquet, but should be."""
    raise CorpusError(
        "not Parquet data", where=name, remedy="write it again, or say what it is (--format)"
    )


class Unusual(Exception):  # noqa: N818 - never seen outside
    """A batch that cannot be taken as columns."""


@dataclass(slots=True)
class Found:
    """Rows so far, as narrow columns."""

    words: tuple[Words, Words] = field(default_factory=lambda: (Words(), Words()))
    ids: tuple[Column, Column] = field(default_factory=lambda: (Column(), Column()))
    lines: Column = field(default_factory=Column)
    starts: Column = field(default_factory=Column)
    size: int = 0

    def add(
        self, words: list[tuple[Strings, Ints]], lines: Ints, lengths: Ints, fresh: Any
    ) -> None:
        for (names, ids), known, column in zip(words, self.words, self.ids, strict=False):
            column.add(np.array([known.index[name] for name in names], dtype=np.int64)[ids])
        ends = np.cumsum(lengths) + self.size
        self.starts.add((ends - lengths)[fresh & (lengths > 0)])
        self.lines.add(lines)
        self.size += len(lines)

    def rows(self, columns: Columns, in_lists: bool) -> Rows:
        """All of them, without the marks of documents."""
        rows = Rows(*self.words, columns=columns)
        rows.lines, rows.starts = self.lines.joined(), self.starts.joined()
        for known, column in zip((rows.tokens, rows.labels), self.ids, strict=True):
            known.ids = column.joined()
        return _without_marks(rows, in_lists) if DOCSTART in rows.tokens.index else rows


def _without_marks(rows: Rows, in_lists: bool) -> Rows:
    """A list of the mark alone is no sentence; a row of its own ends one."""
    ids, starts = rows.tokens.numbers(), np.array(rows.starts, dtype=np.int64)
    marks = ids == rows.tokens.index[DOCSTART]
    fresh = np.zeros(len(ids) + 1, dtype=bool)
    fresh[starts] = True
    fresh[-1] = True
    if in_lists:
        marks &= fresh[:-1] & fresh[1:]  # sentences of one token
    fresh[1:] |= marks
    kept = ~marks
    for known in (rows.tokens, rows.labels):
        if len(known.ids):
            part = Words.renamed(list(known.index), known.numbers()[kept])
            known.index, known.ids = part.index, part.ids
    begun = np.flatnonzero(fresh[:-1] | np.isin(np.arange(len(ids)), starts))
    places = np.cumsum(kept) - kept
    new = Column()
    new.add(np.unique(places[begun][places[begun] < kept.sum()]))
    lines = Column()
    lines.add(np.frombuffer(rows.lines, dtype=np.int64)[kept])
    return replace(rows, starts=new.joined(), lines=lines.joined())


def _flat(values: list[Any]) -> tuple[Ints, list[Any]]:
    """How long the lists are, and all their items."""
    from pyarrow import compute

    if any(column.null_count for column in values):
        raise Unusual
    lengths = [compute.list_value_length(column).to_numpy() for column in values]
    if any((lengths[0] != other).any() for other in lengths[1:]):
        raise Unusual
    return lengths[0].astype(np.int64), [column.flatten() for column in values]


def _changes(column: Any, last: Any) -> tuple[Any, Any]:
    """Where the value is another than in the row before, `last` being that before the first; and
    the value in the last row."""
    values = column.to_pylist()
    before = [(last,) if last is None else last, *((value,) for value in values)]
    pairs = pairwise(before)
    changes = np.array([one != other for one, other in pairs], dtype=bool)
    return changes, before[-1]
