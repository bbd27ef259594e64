"""Sentences given as Python objects: pairs, mappings, columns, or a Hugging Face dataset."""

from __future__ import annotations

import reprlib
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from rankone.corpus.columns import DOCSTART
from rankone.corpus.corpus import Choice, Rows, Sentence
from rankone.corpus.fields import Fields, Strings, listed
from rankone.errors import CorpusError

BATCH = 1000  # a dataset hands out a batch ten times as fast as its rows
PAIRS = "give (tokens, labels), two lists of strings, or a mapping with these two keys"

Part = tuple[Strings, Strings, int]  # tokens, labels, and the line or else the sentence's number


def read_records(given: Any, source: str, choice: Choice) -> Rows:
    """Every record is one sentence; one without tokens is passed over, as is -DOCSTART-."""
    rows = Rows()
    for number, (tokens, labels, line) in enumerate(_parts(given, source, choice), start=1):
        if len(tokens) != len(labels):
            raise CorpusError(
                f"{len(tokens)} tokens but {len(labels)} labels",
                where=f"{source}, sentence {number}",
                remedy="give exactly one label per token",
            )
        if len(tokens) > tokens.count(DOCSTART):
            rows.starts.append(len(rows.tokens.ids))
            rows.tokens.extend(tokens)
            rows.labels.extend(labels)
            rows.lines.extend(array("q", [line]) * len(tokens))
    if not rows.starts:
        raise CorpusError(
            "no sentence in it",
            where=source,
            remedy="give at least one; a generator can be read only once",
        )
    return rows


def _parts(given: Any, source: str, choice: Choice) -> Iterator[Part]:
    if all(hasattr(given, name) for name in ("features", "column_names", "iter")):
        return _rows(given.iter(batch_size=BATCH), source, choice, given.features)
    if hasattr(given, "keys"):  # columns in a mapping or a data frame
        return _rows([given], source, choice)
    if not isinstance(given, Iterable):
        raise CorpusError(f"no sentences in {reprlib.repr(given)}", where=source, remedy=PAIRS)
    return _items(given, source, choice)


def _rows(
    tables: Iterable[Any], source: str, choice: Choice, features: Any = None
) -> Iterator[Part]:
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
            yield *fields.strings(*cells, f"{source}, sentence {number}"), number


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


def _items(given: Iterable[Any], source: str, choice: Choice) -> Iterator[Part]:
    pair, fields = Fields(), None
    for number, item in enumerate(given, start=1):
        where = f"{source}, sentence {number}"
        if not isinstance(item, (Sentence, tuple)) and isinstance(item, Mapping):
            fields = fields or Fields.among(list(item), choice, where)
            yield *fields.strings(*fields.of(item, where), where), number
        elif choice.token is not None or choice.label is not None:
            raise CorpusError(
                "not a mapping, so there are no columns to choose from",
                where=where,
                remedy="leave token_column and label_column out",
            )
        elif isinstance(item, Sentence):
            yield item.tokens, item.labels, item.line
        else:
            try:
                tokens, labels = item
            except (TypeError, ValueError):
                raise CorpusError("not a sentence", where=where, remedy=PAIRS) from None
            yield *pair.strings(tokens, labels, where), number
