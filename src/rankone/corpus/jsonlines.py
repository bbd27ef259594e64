"""Reader for JSON lines: one object per sentence, ``{"tokens": [...], "labels": [...]}``."""

from __future__ import annotations

from typing import Any

from rankone.corpus.fields import Strings, listing, strings_of
from rankone.corpus.rows import DOCSTART, Choice, Columns, Rows
from rankone.documents import parse_document
from rankone.errors import CorpusError
from rankone.plural import plural

OBJECT = 'give one object per line: {"tokens": [...], "labels": [...]}'


def read_jsonlines(lines: list[str], name: str, choice: Choice) -> Rows:
    """Every line is one sentence; an empty list of tokens is skipped like a blank line."""
    token_key = "tokens" if choice.token is None else str(choice.token)
    label_key = "labels" if choice.label is None else str(choice.label)
    rows, labelled = Rows(columns=Columns(token_key, label_key)), choice.labelled
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        record = parse_document(line, dict[str, Any], where, CorpusError, OBJECT)
        tokens = _strings(record, token_key, where)
        labelled = label_key in record if labelled is None else labelled
        labels: Strings = _strings(record, label_key, where) if labelled else []
        if labelled and len(tokens) != len(labels):
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
    return rows


def _strings(record: dict[str, Any], key: str, where: str) -> Strings:
    if key not in record:
        raise CorpusError(
            f"no key {key!r}",
            where=where,
            remedy=f"it has {listing(record)}: choose the columns" if record else OBJECT,
        )
    return strings_of(record[key], key, where)
