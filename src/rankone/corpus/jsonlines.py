"""Reader for JSON lines: one object per sentence, ``{"tokens": [...], "labels": [...]}``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

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

    @property
    def columns(self) -> Columns:
        return Columns(self.token, self.label)

    def read(self, lines: list[str], first: int, rows: Rows) -> None:
        """Add the rows of these lines, of which the first has this number."""
        for number, line in enumerate(lines, start=first):
            if not line.strip():
                continue
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
            if tokens and tokens != [DOCSTART]:
                rows.starts.append(len(rows.tokens.ids))
                rows.tokens.extend(tokens)
                rows.labels.extend(labels)
                rows.lines.extend([number] * len(tokens))

    def anew(self) -> JsonReader:
        """A reader that knows the layout, for lines from the start of a sentence on."""
        return replace(self)


def jsonlines(head: list[str], name: str, choice: Choice, first: int = 1) -> JsonReader:  # noqa: ARG001
    """The keys of tokens and labels are given, or "tokens" and "labels"."""
    token = "tokens" if choice.token is None else str(choice.token)
    label = "labels" if choice.label is None else str(choice.label)
    return JsonReader(name, token, label, choice.labelled)


def _strings(record: dict[str, Any], key: str, where: str) -> Strings:
    if key not in record:
        raise CorpusError(
            f"no key {key!r}",
            where=where,
            remedy=f"it has {listing(record)}: choose the columns" if record else OBJECT,
        )
    return strings_of(record[key], key, where)
