"""Entity tag schemes: IOB2, and IOB1, where B- only separates two adjacent entities."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from rankone.arrays import Bools, Ints
from rankone.corpus.rows import Rows, Words
from rankone.errors import CorpusError, SettingError

TAG = re.compile(r"O|[BI]-.+")


def check(scheme: str) -> None:
    """Refuse an unknown scheme."""
    if scheme not in ("keep", "iob2", "auto"):
        raise SettingError(f"unknown scheme {scheme!r}", remedy="choose keep, iob2 or auto")


def apply(rows: Rows, scheme: str, name: str) -> tuple[Rows, str | None]:
    """The rows in the wanted scheme, and its name (None if labels are not entity tags)."""
    kinds = list(rows.labels.index)
    strays = set(strays_among(kinds))
    if strays and scheme == "iob2":
        first, tag = next((i, tag) for i, tag in enumerate(rows.labels) if tag in strays)
        raise stray(tag, f"{name}, line {rows.lines[first]}")
    if not are_tags(kinds):
        return rows, None
    opens = opening(kinds, rows.labels.numbers(), np.frombuffer(rows.starts, dtype=np.int64))
    if not opens.any():
        return rows, "IOB2"
    if scheme == "keep":
        return rows, "IOB1"
    ids = rows.labels.numbers() + len(kinds) * opens
    return dataclasses.replace(rows, labels=Words.renamed([*kinds, *begins(kinds)], ids)), "IOB2"


def strays_among(kinds: Iterable[str]) -> list[str]:
    """The labels that are not entity tags."""
    return [tag for tag in kinds if not TAG.fullmatch(tag)]


def stray(tag: str, where: str) -> CorpusError:
    """What refuses a label that is not an entity tag."""
    return CorpusError(
        f"label {tag!r} is not an IOB tag",
        where=where,
        remedy="choose the column of the tags (--label-column), or keep the labels as stored",
    )


def are_tags(kinds: Collection[str]) -> bool:
    """Whether the labels of a corpus are entity tags; they are IOB2 unless an I- opens an entity
    somewhere (`opening`)."""
    return not strays_among(kinds) and not set(kinds) <= {"O"}


def begins(kinds: Iterable[str]) -> list[str]:
    """The tags that open an entity in IOB2, for those that do in IOB1."""
    return [f"B-{tag[2:]}" for tag in kinds]


def opening(names: Sequence[str], ids: Ints, starts: Ints) -> Bools:
    """Where I-X opens an entity: the tag before is O, of another type, or in another sentence.

    Tag i is ``names[ids[i]]``; sentences begin at `starts`.
    """
    types = {kind: i for i, kind in enumerate(dict.fromkeys(tag[2:] for tag in names))}
    narrow = np.min_scalar_type(len(types))  # there may be many tags
    type_of = np.array([types[tag[2:]] for tag in names], narrow)[ids]  # O has the type ""
    before = np.roll(type_of, 1)
    before[starts] = len(types)  # no type
    return np.asarray(np.array([tag[0] == "I" for tag in names])[ids] & (before != type_of))


def as_iob1(tags: Sequence[str]) -> list[str]:
    """The IOB2 tags of one sentence as IOB1.

    >>> as_iob1(["B-LOC", "I-LOC", "B-LOC", "B-PER", "O", "B-PER"])
    ['I-LOC', 'I-LOC', 'B-LOC', 'I-PER', 'O', 'I-PER']
    """
    return [
        f"I-{tag[2:]}" if tag[0] == "B" and tag[2:] != before[2:] else tag
        for before, tag in zip(["O", *tags], tags, strict=False)
    ]
