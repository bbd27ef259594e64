"""Where a record keeps its tokens and labels, and how to turn their values into strings."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from rankone.corpus.rows import Choice, Columns, check_word
from rankone.errors import CorpusError

LABELS = ("tags", "ner_tags", "pos_tags", "chunk_tags", "ner", "pos", "upos", "xpos")
MOST = 20  # keys listed in a message
Strings = list[str] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """The keys of tokens and labels, and the names of labels that are stored as numbers."""

    token: Hashable = "tokens"
    label: Hashable = "labels"
    names: Mapping[int, str] | None = None

    @classmethod
    def among(
        cls, keys: list[Hashable], choice: Choice, where: str, features: Any = None
    ) -> Fields:
        """The chosen fields, or else those with the usual names.

        `features` are those of a dataset: a column of ClassLabel numbers has their names.
        """
        token = key_among(keys, choice.token, "token", ("words",), where)
        label = key_among(keys, choice.label, "label", LABELS, where)
        return cls(token, label, cls.names_in(features, label))

    @staticmethod
    def names_in(features: Any, label: Hashable) -> dict[int, str] | None:
        """The names that a column of numbers has in the features of a dataset."""
        feature = (features or {}).get(label)  # List or Sequence; in older versions a plain list
        inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)
        names = getattr(inner, "names", None)
        return dict(enumerate(names)) if names else None

    @property
    def columns(self) -> Columns:
        """The keys, for reports."""
        token, label = (k if isinstance(k, int) else str(k) for k in (self.token, self.label))
        return Columns(token, label)

    def of(self, record: Any, where: str) -> tuple[Any, Any]:
        """The values of both fields, unchanged."""
        try:
            return record[self.token], record[self.label]
        except KeyError as error:
            raise CorpusError(
                f"no key {error.args[0]!r}",
                where=where,
                remedy="give every sentence the keys of the first",
            ) from None

    def strings(self, tokens: Any, labels: Any, where: str) -> tuple[Strings, Strings]:
        """One sentence: its words, and the names of its labels."""
        words = strings_of(tokens, self.token, where)
        return words, strings_of(labels, self.label, where, self.names)


def listed(values: Any, key: Hashable, where: str) -> list[Any] | tuple[Any, ...]:
    """The values as a list or tuple; those of arrays and tensors as Python objects."""
    if isinstance(values, (list, tuple)):
        return values
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise CorpusError(
            f"{key!r} is {reprlib.repr(values)}, not a list",
            where=where,
            remedy="give lists of strings; for texts, make a corpus by Corpus.from_texts",
        )
    return list(values)


def key_among(
    keys: Sequence[Hashable],
    chosen: int | str | None,
    what: str,
    usual: Sequence[Hashable],
    where: str,
) -> Hashable:
    """The chosen key, or else "tokens" or "labels", or else the only usual name there is."""
    first = f"{what}s" if chosen is None else chosen
    found: list[Hashable] = [key for key in keys if key == first]
    if not found and chosen is None:
        found = [key for key in keys if key in set(usual)]
    if len(found) == 1:
        return found[0]
    raise CorpusError(
        f"several {what}s: {', '.join(map(repr, found))}" if found else f"no key {first!r}",
        where=where,
        remedy=f"it has {listing(keys)}: choose one by {what}_column",
    )


def listing(keys: Collection[Hashable]) -> str:
    """Keys for a message; if there are many, the first of them."""
    there = [*map(reprlib.repr, islice(keys, MOST)), *["..."] * (len(keys) > MOST)]
    return ", ".join(there) or "no keys"


def strings_of(
    values: Any, key: Hashable, where: str, names: Mapping[int, str] | None = None
) -> Strings:
    """The values as strings: whole numbers become their names or, without names, their digits."""
    words: Strings = listed(values, key, where)
    if set(map(type, words)) != {str}:
        words = _spelled(words, key, where, names)
    if "" in words or not "".join(words).isprintable():  # nearly all pass this quick check
        for word in words:
            check_word(word, key, where)
    return words


def _spelled(
    values: Sequence[Any], key: Hashable, where: str, names: Mapping[int, str] | None
) -> list[str]:
    kinds = set(map(type, values))  # few, even for many values
    bad = [kind for kind in kinds if kind is bool or not issubclass(kind, (str, int, np.integer))]
    if bad:
        value = next(value for value in values if type(value) in bad)
        raise CorpusError(
            f"{reprlib.repr(value)} among {key!r} is not a word",
            where=where,
            remedy="give strings that are not empty, or whole numbers",
        )
    if names is None:
        return [_digits(value, key, where) for value in values]
    try:
        return [str(value) if isinstance(value, str) else names[value] for value in values]
    except KeyError as error:
        raise CorpusError(
            f"{error.args[0]} among {key!r} is not the number of a label",
            where=where,
            remedy=f"give every token one of 0 to {len(names) - 1}, or take it out",
        ) from None


def _digits(value: Any, key: Hashable, where: str) -> str:
    try:
        return str(value)
    except ValueError:  # Python does not write numbers with more than 4,300 digits
        raise CorpusError(
            f"a number of thousands of digits among {key!r}",
            where=where,
            remedy="give words, or smaller numbers",
        ) from None
