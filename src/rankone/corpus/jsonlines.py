"""Reader for JSON lines: one object per sentence, ``{"tokens": [...], "labels": [...]}``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import msgspec

from rankone.corpus.fields import Strings, listing, strings_of
from rankone.corpus.rows import DOCSTART, Choice, Columns, Rows
from rankone.documents import parse_document
from rankone.errors import CorpusError
from rankone.plural import plural

OBJECT = 'give one object per line: {"tokens": [...], "labels": [...]}'


@dataclass(slots=True)
class JsonReader:
    """Reads the objects of one file: every line is a sentence; an empty list of tokens is skipped
    like a blank line."""

    name: str
    token: str
    label: str
    labelled: bool | None
    parse: Any = field(default=None, repr=False)

    @property
    def columns(self) -> Columns:
        return Columns(self.token, self.label)

    def read(self, lines: list[str], first: int, rows: Rows) -> None:
        """Add the rows of these lines, of which the first has this number."""
        for number, line in enumerate(lines, start=first):
            if not line.strip():
                continue
            tokens, labels = self._strings(line, number)
            if tokens and tokens != [DOCSTART]:
                rows.starts.append(len(rows.tokens.ids))
                rows.tokens.extend(tokens)
                rows.labels.extend(labels)
                rows.lines.extend(repeat(number, len(tokens)))

    def _strings(self, line: str, number: int) -> tuple[Strings, Strings]:
        """Tokens and labels. What is as it should be needs no more than its parser."""
        if self.labelled is not None and self.parse is None:
            self.parse = _parser(self.token, self.label if self.labelled else None)
        if self.parse is not None:
            with suppress(ValueError, RecursionError):
                found = self.parse(line)
                tokens, labels = found.tokens, found.labels
                words = (*tokens, *labels)
                equal = len(tokens) == len(labels) or not self.labelled
                if equal and "" not in words and "".join(words).isprintable():
                    return tokens, labels
        return self._checked(line, number)

    def _checked(self, line: str, number: int) -> tuple[Strings, Strings]:
        """The same by all rules, which have the messages."""
        where = f"{self.name}, line {number}"
        record = parse_document(line, dict[str, Any], where, CorpusError, OBJECT)
        tokens = _strings(record, self.token, where)
        if self.labelled is None:
            self.labelled = self.label in record
        labels: Strings = _strings(record, self.label, where) if self.labelled else []
        if self.labelled and len(tokens) != len(labels):
            raise CorpusError(
                f"{plural(len(tokens), 'token')} but {plural(len(labels), 'label')}",
                where=where,
                remedy="give exactly one label per token",
            )
        return tokens, labels

    def anew(self) -> JsonReader:
        """A reader that knows the layout, for lines from the start of a sentence on."""
        return replace(self, parse=None)  # which goes to no other process


def jsonlines(head: list[str], name: str, choice: Choice, first: int = 1) -> JsonReader:  # noqa: ARG001
    """The keys of tokens and labels are given, or "tokens" and "labels"."""
    token = "tokens" if choice.token is None else str(choice.token)
    label = "labels" if choice.label is None else str(choice.label)
    return JsonReader(name, token, label, choice.labelled)


def _parser(token: str, label: str | None) -> Any:
    """What takes two lists of strings from an object, and nothing else."""
    fields: list[Any] = [("tokens", list[str]), ("labels", list[str], [])]
    names = {"tokens": token, "labels": label}
    if label is not None:
        fields[1] = fields[1][:2]
    row = msgspec.defstruct("Row", fields, rename=lambda name: names[name] or "")
    return msgspec.json.Decoder(row, strict=True).decode


def _strings(record: dict[str, Any], key: str, where: str) -> Strings:
    if key not in record:
        raise CorpusError(
            f"no key {key!r}",
            where=where,
            remedy=f"it has {listing(record)}: choose the columns" if record else OBJECT,
        )
    return strings_of(record[key], key, where)
