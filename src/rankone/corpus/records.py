"""Sentences given as Python objects: pairs, mappings, columns, or a Hugging Face dataset."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rankone.corpus.fields import Fields, Strings, listed
from rankone.corpus.rows import DOCSTART, Choice, Columns, Rows, Sentence
from rankone.corpus.source import printable
from rankone.errors import CorpusError
from rankone.plural import plural

BATCH = 1000  # reading a dataset in batches is ten times as fast as row by row
PAIRS = (
    "give (tokens, labels), two lists of strings, or a mapping with these two keys; for texts, "
    "make a corpus by Corpus.from_texts"
)


class SentenceRecord(NamedTuple):
    """One sentence; `lines` has the line of each token, or is empty: then its number is used."""

    tokens: Strings
    labels: Strings
    lines: Sequence[int] = ()
    file: str | None = None
    columns: Columns = Columns()


def read_records(given: Any, source: str, choice: Choice) -> Rows:
    """Every record is one sentence; those without tokens are skipped, and so is -DOCSTART-."""
    rows, columns = Rows(), Columns()
    for number, part in enumerate(_parts(given, source, choice), start=1):
        tokens, labels = part.tokens, part.labels
        if len(tokens) != len(labels):
            raise CorpusError(
                f"{plural(len(tokens), 'token')} but {plural(len(labels), 'label')}",
                where=f"{source}, sentence {number}",
                remedy="give exactly one label per token",
            )
        if len(tokens) > tokens.count(DOCSTART):
            rows.starts.append(len(rows.tokens.ids))
            rows.tokens.extend(tokens)
            rows.labels.extend(labels)
            rows.lines.extend(part.lines if part.lines else [number] * len(tokens))
            rows.files.append(part.file)
            columns = part.columns
    if not rows.starts:
        raise CorpusError(
            "no sentence in it",
            where=source,
            remedy="give at least one; a generator can be read only once",
        )
    return replace(rows, columns=columns)


def _parts(given: Any, source: str, choice: Choice) -> Iterator[SentenceRecord]:
    if all(hasattr(given, name) for name in ("features", "column_names", "iter")):
        return _rows(given.iter(batch_size=BATCH), source, choice, given.features)
    if hasattr(given, "keys"):  # columns in a mapping or a data frame
        return _rows([given], source, choice)
    if not isinstance(given, Iterable):
        raise CorpusError(f"no sentences in {reprlib.repr(given)}", where=source, remedy=PAIRS)
    return _items(given, source, choice)


def _rows(
    tables: Iterable[Any], source: str, choice: Choice, features: Any = None
) -> Iterator[SentenceRecord]:
    number, fields = 0, None
    for table in tables:
        fields = fields or Fields.among(_keys(table, source), choice, source, features)
        tokens, labels = fields.of(table, source)
        tokens, labels = listed(tokens, fields.token, source), listed(labels, fields.label, source)
        if len(tokens) != len(labels):
            raise CorpusError(
                f"{len(tokens)} lists of tokens but {len(labels)} of labels",
                where=source,
                remedy="give columns of equal length",
            )
        for cells in zip(tokens, labels, strict=True):
            number += 1
            where = f"{source}, sentence {number}"
            yield SentenceRecord(*fields.strings(*cells, where), columns=fields.columns)


def _keys(table: Any, source: str) -> list[Hashable]:
    if not hasattr(table, "keys"):
        raise CorpusError(
            f"a dataset that gives objects of type {type(table).__name__}",
            where=source,
            remedy="give dataset.with_format(None)",
        )
    keys = list(table.keys())
    splits = [key for key in keys if hasattr(table[key], "column_names")]
    if splits:
        raise CorpusError(
            f"several data sets: {', '.join(map(repr, splits))}",
            where=source,
            remedy=f"choose one, for example dataset[{splits[0]!r}]",
        )
    return keys


def _items(given: Iterable[Any], source: str, choice: Choice) -> Iterator[SentenceRecord]:
    pair, fields = Fields(), None
    for number, item in enumerate(given, start=1):
        where = f"{source}, sentence {number}"
        if not isinstance(item, (Sentence, tuple)) and isinstance(item, Mapping):
            fields = fields or Fields.among(list(item), choice, where)
            yield SentenceRecord(
                *fields.strings(*fields.of(item, where), where), columns=fields.columns
            )
        elif choice.token is not None or choice.label is not None:
            raise CorpusError(
                "not a mapping, so there are no columns to choose from",
                where=where,
                remedy="leave token_column and label_column out",
            )
        elif isinstance(item, Sentence):
            yield _sentence(item, where)
        else:
            try:
                tokens, labels = item
            except (TypeError, ValueError):
                raise CorpusError("not a sentence", where=where, remedy=PAIRS) from None
            yield SentenceRecord(*pair.strings(tokens, labels, where))


def _sentence(given: Sentence, where: str) -> SentenceRecord:
    """Check the words and lines of a `Sentence`: anyone can make one."""
    words = Fields().strings(given.tokens, given.labels, where)
    lines = listed(given.lines, "lines", where) or [given.line] * len(words[0])
    sound = len(lines) == len(words[0]) and all(
        isinstance(line, int | np.integer) and 0 <= line < 1 << 63 for line in lines
    )
    if not sound or not isinstance(given.file, str | None):
        raise CorpusError(
            "lines that are not whole numbers, one per token"
            if not sound
            else "a file that is not the name of one",
            where=where,
            remedy="give Sentence(tokens, labels, line)",
        )
    return SentenceRecord(*words, lines, None if given.file is None else printable(given.file))
