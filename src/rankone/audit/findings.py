"""What an audit finds: each finding says where it is, so that a person can go there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rankone.audit.pieces import piece
from rankone.corpus.ceilings import Ceiling
from rankone.corpus.conflicts import AROUND
from rankone.corpus.corpus import Corpus
from rankone.corpus.tasks import of_texts

SHOWN = 10  # rows that are spelled out


@dataclass(frozen=True)
class Row:
    """Where something stands: a file (None for sentences made in Python) and a line."""

    file: str | None
    line: int

    def __str__(self) -> str:
        return self.named("sentence")

    def named(self, unit: str) -> str:
        """As compilers print it, so that editors find it; `unit` is what was made in Python."""
        return f"{unit} {self.line}" if self.file is None else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Duplicate:
    """A sentence that stands in the corpus more than once; of a text, ``sentence`` is its
    beginning, in one piece.

    ``agree`` says whether its copies have the same labels.
    """

    sentence: tuple[str, ...]
    rows: tuple[Row, ...]
    agree: bool


@dataclass(frozen=True)
class Leak:
    """A sentence that stands in the corpus (``here``) and in another split (``there``).

    An exact leak is the same tokens. A near one is the same letters: equal but for case, digits,
    punctuation and white space. ``agree`` says whether all exact copies have the same labels; for a
    near leak it is None.
    """

    kind: Literal["exact", "near"]
    sentence: tuple[str, ...]
    here: tuple[Row, ...]
    there: tuple[Row, ...]
    agree: bool | None


@dataclass(frozen=True)
class Known:
    """How much of a split the other one holds: of its ``tokens``, how many are a word of the other,
    stand between the same neighbours, stand in the same sentence at the same place; of its
    ``sentences``, how many are an exact leak, or a near one."""

    sentences: int
    tokens: int
    words: int
    windows: int
    contexts: int
    exact: int
    near: int


@dataclass(frozen=True)
class Comparison:
    """The corpus against another split.

    ``known`` and ``ceilings`` speak of the corpus (``here``) and of the other split (``there``),
    each as seen by a model that has memorised the other. A ceiling is the best accuracy that such
    a model can reach, by input: where the other split decides the label it is bound to it, and
    elsewhere (contexts that are new, labels equally frequent there) it does what is best.
    """

    file: str
    leaks: tuple[Leak, ...]
    known: dict[str, Known]
    ceilings: dict[str, dict[str, Ceiling]]


@dataclass(frozen=True)
class Evidence:
    """A row that speaks against a label: alike as far as ``alike`` says, and labelled otherwise."""

    file: str | None
    line: int
    label: str
    text: str
    alike: str


@dataclass(frozen=True)
class Suspect:
    """A token that is likely to be mislabelled, or a run of tokens that one correction changes.

    Token k of the run stands on ``lines[k]``; ``token``, ``label`` and ``proposal`` are those of
    its tokens with blanks between them. ``position`` is the place of the first in the sentence,
    from 1; a long sentence is kept for 100 tokens on either side, and begins at token ``start``.
    ``score`` is the probability that the label is wrong, if one label in a hundred is.
    """

    file: str | None
    line: int
    sentence: tuple[str, ...]
    token: str
    label: str
    proposal: str
    score: float
    position: int
    lines: tuple[int, ...]
    evidence: tuple[Evidence, ...] = ()
    start: int = 1


def rows_of(corpus: Corpus, sentences: list[int]) -> tuple[Row, ...]:
    """Where these sentences begin."""
    files, lines = corpus.file_ids[sentences], corpus.lines[corpus.offsets[sentences]]
    return tuple(
        Row(corpus.files[file], line)
        for file, line in zip(files.tolist(), lines.tolist(), strict=True)
    )


def words_of(corpus: Corpus, sentence: int) -> tuple[str, ...]:
    """The tokens of a sentence; of a text, its beginning in one piece."""
    first, behind = corpus.offsets[sentence : sentence + 2].tolist()
    if of_texts(corpus.task):
        return (piece(corpus, first, behind, of="head"),)
    return tuple(corpus.vocabulary[i] for i in corpus.token_ids[first:behind].tolist())


def listed(rows: Sequence[Row], of: int = 0, unit: str = "sentence") -> str:
    """Some rows, file by file, and how many more there are; if not all are given, there are `of`.
    `unit` is what was made in Python.

    >>> listed([Row("train", 1), Row("train", 9), Row("dev", 4)])
    'train:1, 9; dev:4'
    """
    groups = groupby(rows[:SHOWN], lambda row: row.file)
    parts = [
        ", ".join([next(group).named(unit), *(str(row.line) for row in group)])
        for _, group in groups
    ]
    more = max(len(rows), of) - len(rows[:SHOWN])
    return "; ".join(parts) + (f" and {more:,} more" if more else "")


def excerpt(words: Sequence[str], at: int | None = None, length: int = 1) -> str:
    """The beginning of a sentence; or the words around `length` of them, which stand in brackets.

    >>> excerpt(["I", "saw", "New", "York", "today"], 2, 2)
    'I saw [New York] today'
    """
    if at is None:
        shown = [*words[: 2 * AROUND]]
        return " ".join(shown + ["..."] * (len(shown) < len(words)))
    before, after = words[max(at - AROUND, 0) : at], words[at + length :][:AROUND]
    parts = [*before, f"[{' '.join(words[at : at + length])}]", *after]
    parts = ["..."] * (at > AROUND) + parts
    return " ".join(parts + ["..."] * (at + length + AROUND < len(words)))
