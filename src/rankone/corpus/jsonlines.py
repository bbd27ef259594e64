"""Reader for JSON lines: one object per sentence, ``{"tokens": [...], "labels": [...]}``."""

from __future__ import annotations

import json
from typing import Any

from rankone.corpus.columns import DOCSTART
from rankone.corpus.corpus import Choice, Rows
from rankone.corpus.fields import Strings, strings_of
from rankone.errors import CorpusError


def read_jsonlines(lines: list[str], name: str, choice: Choice) -> Rows:
    """Every line is one sentence; an empty list of tokens is passed over like a blank line."""
    rows, labelled = Rows(), choice.labelled
    token_key, label_key = str(choice.token or "tokens"), str(choice.label or "labels")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        record = _record(line, where)
        tokens = _strings(record, token_key, where)
        labelled = label_key in record if labelled is None else labelled
        labels: Strings = _strings(record, label_key, where) if labelled else []
        if labelled and len(tokens) != len(labels):
            raise CorpusError(
                f"{len(tokens)} {token_key} but {len(labels)} {label_key}",
                where=where,
                remedy="give exactly one label per token",
            )
        if tokens and tokens != [DOCSTART]:
            rows.starts.append(len(rows.tokens.ids))
            rows.tokens.extend(tokens)
            rows.labels.extend(labels)
            rows.lines.extend([number] * len(tokens))
    return rows


def _record(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:  # also a number of too many digits
        raise CorpusError(
            f"not valid JSON ({error})",
            where=where,
            remedy='give one object per line: {"tokens": [...], "labels": [...]}',
        ) from None
    if not isinstance(record, dict):
        raise CorpusError(
            f"a JSON {type(record).__name__} where an object is needed",
            where=where,
            remedy='give one object per line: {"tokens": [...], "labels": [...]}',
        )
    return record


def _strings(record: dict[str, Any], key: str, where: str) -> Strings:
    if key not in record:
        raise CorpusError(
            f"no key {key!r}",
            where=where,
            remedy=f"it has {', '.join(map(repr, record)) or 'no keys'}: choose the columns",
        )
    return strings_of(record[key], key, where)
