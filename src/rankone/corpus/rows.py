"""What readers are given and what they return: rows of tokens and labels, and their places."""

from __future__ import annotations

import re
import reprlib
from array import array
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rankone.arrays import Ints
from rankone.errors import CorpusError, SettingError

Column = int | str
NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
PART = 1 << 16  # rows that are worked on at once
DOCSTART = "-DOCSTART-"
NO_LABEL = "_"  # marks what is not annotated, as in CoNLL-U


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sequence: its tokens, one label per token (none if unlabelled, "_" if a task asks for
    none), and where it comes from.

    Tokens and labels are lists, as scorers and tokenizers expect. ``lines`` has the line of every
    token, and is empty if all are on ``line``; ``file`` is None for sentences made in Python, whose
    ``line`` is their number.
    """

    tokens: list[str]
    labels: list[str]
    line: int
    lines: list[int] = field(default_factory=list)
    file: str | None = None


class Words:
    """A column of words as numbers: ``ids[i]`` is the number of row i, ``index[word]`` of a word.

    Words are numbered in the order of their first appearance: ``ids.append(index[word])`` gives a
    new word the next number.
    """

    def __init__(self) -> None:
        self.index: defaultdict[str, int] = defaultdict()
        self.index.default_factory = self.index.__len__
        self.ids = array("q")

    def __iter__(self) -> Iterator[str]:
        names = list(self.index)
        return (names[i] for i in self.ids)

    def extend(self, words: Iterable[str]) -> None:
        self.ids.extend(map(self.index.__getitem__, words))

    def numbers(self) -> Ints:
        """The column, which can have no more rows from now on."""
        return np.frombuffer(self.ids, dtype=np.int64) if self.ids else np.empty(0, dtype=np.int64)

    @classmethod
    def renamed(cls, names: list[str], ids: Ints) -> Words:
        """Row i is ``names[ids[i]]``, or nothing if the id is -1. Names may repeat; words are
        numbered in the order of their first appearance."""
        words = cls()
        first = np.full(len(names) + 1, len(ids))  # index -1 finds the last
        number = np.full(len(names) + 1, -1)
        for at in reversed(range(0, len(ids), PART)):  # in parts: a column may take much memory
            part = ids[at : at + PART]
            first[part[::-1]] = np.arange(at, at + len(part))[::-1]  # the last write stays
        for i in np.argsort(first[:-1], kind="stable").tolist():
            if first[i] < len(ids):
                number[i] = words.index[names[i]]
        for at in range(0, len(ids), PART):
            words.ids.frombytes(number[ids[at : at + PART]].tobytes())
        return words


@dataclass(frozen=True, slots=True)
class Columns:
    """Where tokens and labels were found: the number of a column (from 1), its name, or a key.

    None if the layout has no columns, and for labels if there are none; ``of`` is the number of
    columns in a row.
    """

    token: Column | None = None
    label: Column | None = None
    of: int | None = None

    def __str__(self) -> str:
        parts = [
            f"{what} in {f'column {column}' if isinstance(column, int) else repr(column)}"
            for what, column in (("tokens", self.token), ("labels", self.label))
            if column is not None
        ]
        if self.of is not None:
            parts[-1] += f" of {self.of}"
        return ", ".join(parts)


@dataclass(slots=True)
class Rows:
    """What every reader returns: the rows of all sentences, and where each sentence starts."""

    tokens: Words = field(default_factory=Words)
    labels: Words = field(default_factory=Words)  # empty if the corpus is unlabelled
    lines: array[int] = field(default_factory=lambda: array("q"))
    starts: array[int] = field(default_factory=lambda: array("q"))
    files: list[str | None] = field(default_factory=list)  # of each sentence; empty if one
    columns: Columns = field(default_factory=Columns)

    def lowered(self) -> Rows:
        """The same with all words in lower case."""
        words = [word.lower() for word in self.tokens.index]
        return replace(self, tokens=Words.renamed(words, self.tokens.numbers()))


@dataclass(frozen=True, slots=True)
class Choice:
    """What to take from each row: token and label by number (from 1, or from the end) or by name.

    ``labelled`` None means labels if there are any.
    """

    token: Column | None = None
    label: Column | None = None
    labelled: bool | None = True

    def checked(self) -> Choice:
        """Refuse what cannot be the number or the name of a column."""
        for what, column in (("token", self.token), ("label", self.label)):
            sound = column is None or (type(column) is int and abs(column) < 10**9)
            if isinstance(column, str):
                sound = bool(column) and not re.search("[\0\ud800-\udfff]", column)
            if not sound:
                raise SettingError(
                    f"{what}_column cannot be {_short(column)}",
                    remedy="give the number of a column (from 1), or its name",
                )
        return self


def is_annotated(labels: Collection[str], choice: Choice, name: str) -> bool:
    """Whether the labels of a whole corpus are any: not if all are "_"."""
    if set(labels) != {NO_LABEL}:
        return True
    if choice.labelled:
        raise CorpusError(
            'no labels: all are "_", which stands for "not annotated"',
            where=name,
            remedy="choose another label column, or annotate the file",
        )
    return False


def is_number(column: Column) -> bool:
    """Whether a column is chosen by its number, which may be a string of digits."""
    return isinstance(column, int) or NUMBER.fullmatch(column) is not None


def spelled_out(words: Sequence[str]) -> bytes:
    """Words as one text to hash. No word has a NUL in it, so different lists differ as texts."""
    return "\0".join([str(len(words)), *words, ""]).encode()


def check_word(word: str, key: Hashable, where: str) -> None:
    """Refuse words that no text file can hold: empty, with a NUL, or half of a surrogate pair."""
    bad = re.search("[\0\ud800-\udfff]", word)
    if bad or not word:
        what = "an empty word" if not word else "a NUL character in a word"
        what = "half of a surrogate pair in a word" if bad and bad[0] != "\0" else what
        raise CorpusError(f"{what} among {key!r}", where=where, remedy="take it out")


def _short(value: object) -> str:
    if type(value) is int:
        return "so large a number"
    return reprlib.repr(value).encode("utf-8", "backslashreplace").decode()
