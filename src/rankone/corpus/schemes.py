"""How entity tags are written: IOB1, where B- only parts two touching entities, and IOB2."""

from __future__ import annotations

import dataclasses
import re

from rankone.corpus.corpus import Rows
from rankone.errors import CorpusError

TAG = re.compile(r"O|[BI]-.+")


def apply(rows: Rows, scheme: str, name: str) -> tuple[Rows, str | None]:
    """The rows as asked for, and the scheme they are now in (None if they are no entity tags)."""
    if scheme not in ("keep", "iob2", "auto"):
        raise CorpusError(f"unknown scheme {scheme!r}", remedy="choose keep, iob2 or auto")
    kinds = set(rows.labels)
    strays = [tag for tag in kinds if not TAG.fullmatch(tag)]
    if strays or kinds <= {"O"}:
        if scheme != "iob2" or not strays:
            return rows, None
        first = next(i for i, tag in enumerate(rows.labels) if tag in strays)
        raise CorpusError(
            f"label {rows.labels[first]!r} is no IOB tag",
            where=f"{name}, line {rows.lines[first]}",
            remedy="leave the labels as they are (--scheme keep), or choose the column of the tags",
        )
    converted = to_iob2(rows)
    if converted == rows.labels:
        return rows, "IOB2"
    return (
        (rows, "IOB1")
        if scheme == "keep"
        else (
            dataclasses.replace(rows, labels=converted),
            "IOB2",
        )
    )


def to_iob2(rows: Rows) -> list[str]:
    """I-X becomes B-X where the tag before it is O, of another type, or in another sentence."""
    starts, before, tags = set(rows.starts), "O", []
    for i, tag in enumerate(rows.labels):
        if i in starts:
            before = "O"
        opens = tag[0] == "I" and (before == "O" or before[2:] != tag[2:])
        tags.append(f"B-{tag[2:]}" if opens else tag)
        before = tag
    return tags
