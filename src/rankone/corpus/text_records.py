"""Documents given as records: Python objects, columns, a Hugging Face dataset, or JSON."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankone.corpus.fields import listing
from rankone.corpus.rows import Choice, Columns
from rankone.corpus.tokenizers import Tokenizer
from rankone.errors import CorpusError


@dataclass(frozen=True, slots=True)
class Document:
    """A text, where it begins, and its label if it has one; ``lines`` says whether its lines are
    those of the file, or it has one line, or number, to itself."""

    text: str
    where: str
    line: int
    file: str | None = None
    label: str | None = None
    columns: Columns = field(default_factory=Columns)
    lines: bool = False


@dataclass(frozen=True, slots=True)
class TextFields:
    """The keys of a text and of its label (None: it is not read), and the names of label numbers.

    Unless a label is ``needed``, a document may have none.
    """

    text: Any = "text"
    label: Any = None
    names: tuple[str, ...] = ()
    needed: bool = False

    @classmethod
    def among(cls, keys: list[Any], choice: Choice, where: str, features: Any = None) -> TextFields:
        """The chosen keys, or else "text" and "label"; a key that must be there is."""
        text = "text" if choice.token is None else choice.token
        label = "label" if choice.label is None else choice.label
        needed = choice.labelled is True
        wanted = {text: "token_column", **({label: "label_column"} if needed else {})}
        for key, option in wanted.items():
            if key not in keys:
                raise CorpusError(
                    f"no key {key!r}",
                    where=where,
                    remedy=f"it has {listing(keys)}: choose one by {option}",
                )
        if choice.labelled is False:
            return cls(text)
        names = getattr((features or {}).get(label), "names", None) or ()
        return cls(text, label, tuple(names), needed)

    def document(
        self, record: Any, where: str, line: int, file: str | None, tokenizer: Tokenizer
    ) -> Document:
        for key in (self.text, *([self.label] if self.needed else [])):
            if key not in record:
                raise CorpusError(
                    f"no key {key!r}", where=where, remedy=f"it has {listing(list(record))}"
                )
        text = text_of(record[self.text], where, tokenizer)
        label = None
        if self.label is not None and self.label in record:
            label = self._label(record[self.label], where)
        columns = Columns(self.text, None if label is None else self.label)
        return Document(text, where, line, file, label, columns)

    def _label(self, value: Any, where: str) -> str | None:
        """The label, or None where there is none: in data sets for tests all numbers are -1."""
        if not self.needed and (value is None or (self.names and value == -1)):
            return None
        if self.names and not isinstance(value, str | bool):
            if isinstance(value, int | np.integer) and 0 <= value < len(self.names):
                return self.names[int(value)]
            raise CorpusError(
                f"{reprlib.repr(value)} is not the number of a label",
                where=where,
                remedy=f"give one of 0 to {len(self.names) - 1}",
            )
        return label_of(value, where)


def label_of(value: Any, where: str) -> str:
    """A label: a string, or a whole number as its digits."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(int(value))
    raise CorpusError(
        f"{reprlib.repr(value)} is not a label",
        where=where,
        remedy="give a string that is not empty, or a whole number",
    )


def text_of(value: Any, where: str, tokenizer: Tokenizer) -> str:
    """A text as the tokenizer takes it."""
    if not isinstance(value, str):
        raise CorpusError(
            f"{reprlib.repr(value)} is not a text", where=where, remedy="give a string"
        )
    try:
        return tokenizer.decode(value.encode(), where)
    except UnicodeEncodeError:
        raise CorpusError(
            "half of a surrogate pair in a text", where=where, remedy="take it out"
        ) from None


def given_documents(
    given: Any, source: str, tokenizer: Tokenizer, choice: Choice
) -> Iterator[Document]:
    """Strings, mappings, (text, label) pairs, a mapping of columns, or a Hugging Face dataset."""
    if isinstance(given, str):
        given = [given]
    if getattr(given, "ndim", 0) == 1:  # a column alone
        given = list(given)
    features = getattr(given, "features", None)
    if hasattr(given, "keys") and not hasattr(given, "iter"):  # columns
        fields = TextFields.among(list(given.keys()), choice, source)
        keys = [key for key in (fields.text, fields.label) if key in given]
        given = (
            dict(zip(keys, row, strict=True))
            for row in zip(*(given[key] for key in keys), strict=True)
        )
    if not isinstance(given, Iterable):
        raise CorpusError(
            f"no texts in {reprlib.repr(given)}", where=source, remedy="give a list of strings"
        )
    found: TextFields | None = None
    for number, item in enumerate(given, start=1):
        where = f"{source}, document {number}"
        if isinstance(item, str):
            yield Document(text_of(item, where, tokenizer), where, number)
        elif isinstance(item, Mapping):
            found = found or TextFields.among(list(item), choice, where, features)
            yield found.document(item, where, number, None, tokenizer)
        elif isinstance(item, tuple) and len(item) == 2:
            text = text_of(item[0], where, tokenizer)
            yield Document(text, where, number, label=label_of(item[1], where))
        else:
            raise CorpusError(
                f"{reprlib.repr(item)} is not a text",
                where=where,
                remedy='give a string, (text, label), or {"text": ...}',
            )
