"""The corpus: labelled sentences, kept as columns of integers."""

from __future__ import annotations

import re
import time
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.errors import CorpusError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sequence: its tokens, one label per token (none if unlabelled), and its first line."""

    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    line: int


class Words:
    """A column of words as numbers: ``ids[i]`` is the number of row i, ``index`` that of a word.

    Words are numbered as they come: ``ids.append(index[word])`` gives a new word the next number.
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
        return np.array(self.ids, dtype=np.int64)

    def renamed(self, names: list[str], ids: Ints) -> Words:
        """Row i is now ``names[ids[i]]``; names may repeat, and words are numbered anew."""
        words = Words()
        first = np.sort(np.unique(ids, return_index=True)[1])
        number = np.zeros(len(names), dtype=np.int64)
        for i in ids[first].tolist():
            number[i] = words.index[names[i]]
        words.ids.frombytes(number[ids].tobytes())
        return words


@dataclass(frozen=True, slots=True)
class Rows:
    """What every reader returns: the rows of all sentences in one run, and where each starts."""

    tokens: Words = field(default_factory=Words)
    labels: Words = field(default_factory=Words)  # empty if the corpus is unlabelled
    lines: array[int] = field(default_factory=lambda: array("q"))
    starts: array[int] = field(default_factory=lambda: array("q"))


@dataclass(frozen=True, slots=True)
class Choice:
    """What to take of each row: token and label by number (from 1, or from the end) or by name.

    ``labelled`` None means: labels, if there are any.
    """

    token: int | str | None = None
    label: int | str | None = None
    labelled: bool | None = True


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled sentences as columns.

    Token i of the corpus is ``vocabulary[token_ids[i]]``, labelled ``label_names[label_ids[i]]``,
    and stood on line ``lines[i]`` of ``source``; sentence j is the run
    ``offsets[j]:offsets[j + 1]``. ``sentences`` gives the same as Python objects.
    An unlabelled corpus has no label names, and every label id is -1.
    """

    source: str
    vocabulary: tuple[str, ...]
    label_names: tuple[str, ...]
    token_ids: Ints
    label_ids: Ints
    offsets: Ints
    lines: Ints
    format: str = "python"
    scheme: str | None = None  # how NER tags are written, None if the labels are not NER tags
    reading: dict[str, Any] = field(default_factory=dict)  # how to read other text the same way
    seconds: float = 0.0  # what reading took

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences, in the order of the file."""
        words = [self.vocabulary[i] for i in self.token_ids.tolist()]
        names = [self.label_names[i] for i in self.label_ids.tolist()] if self.labelled else []
        lines = self.lines[self.offsets[:-1]].tolist()
        bounds = self.offsets.tolist()
        return tuple(
            Sentence(tuple(words[a:b]), tuple(names[a:b]), line)
            for (a, b), line in zip(pairwise(bounds), lines, strict=True)
        )

    @property
    def labelled(self) -> bool:
        return bool(self.label_names)

    @property
    def n_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def n_sentences(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> Ints:
        """Tokens per sentence."""
        return np.diff(self.offsets)

    @cached_property
    def sentence_of(self) -> Ints:
        """The sentence each token stands in."""
        return np.repeat(np.arange(self.n_sentences), self.lengths)

    @cached_property
    def positions(self) -> Ints:
        """The place of each token in its sentence, from 0."""
        return np.arange(self.n_tokens) - np.repeat(self.offsets[:-1], self.lengths)

    @cached_property
    def longest(self) -> int:
        return int(self.lengths.max())

    @classmethod
    def from_rows(
        cls, rows: Rows, *, source: str, format: str, scheme: str | None = None
    ) -> Corpus:
        """Number tokens and labels in the order of their first appearance."""
        if not rows.tokens.ids:
            raise CorpusError(
                "no sentence in it",
                where=source,
                remedy="give a file with one token and its label per line",
            )
        labels = rows.labels.numbers()
        return cls(
            source=source,
            vocabulary=tuple(rows.tokens.index),
            label_names=tuple(rows.labels.index),
            token_ids=rows.tokens.numbers(),
            label_ids=labels if len(labels) else np.full(len(rows.tokens.ids), -1),
            offsets=np.array([*rows.starts, len(rows.tokens.ids)], dtype=np.int64),
            lines=np.array(rows.lines, dtype=np.int64),
            format=format,
            scheme=scheme,
        )

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[Any],
        *,
        source: str = "<python>",
        token_column: int | str | None = None,
        label_column: int | str | None = None,
    ) -> Corpus:
        """From (tokens, labels) pairs, `Sentence` objects, mappings, or a Hugging Face dataset.

        `token_column` and `label_column` are keys of the mappings or columns of the dataset. If
        not given they are "tokens", else "words"; and "labels", else the only usual name
        ("tags", "ner_tags", "upos") that is there. Numbers of a ClassLabel become its names.

        >>> Corpus.from_sentences([(["a", "rose"], ["DET", "NOUN"])]).n_tokens
        2
        """
        from rankone.corpus import records, schemes  # which build on this module

        started = time.perf_counter()
        rows = records.read_records(sentences, source, Choice(token_column, label_column))
        rows, found = schemes.apply(rows, "keep", source)
        corpus = cls.from_rows(rows, source=source, format="python", scheme=found)
        reading = {"scheme": "auto"} if found == "IOB2" else {}
        return replace(corpus, reading=reading, seconds=time.perf_counter() - started)


def check_word(word: str, where: str) -> None:
    """Refuse what no text file can hold: nothing, NUL, or half of a surrogate pair."""
    bad = re.search("[\0\ud800-\udfff]", word)
    if bad or not word:
        what = "an empty word" if not word else "a NUL character in a word"
        what = "half of a surrogate pair in a word" if bad and bad[0] != "\0" else what
        raise CorpusError(what, where=where, remedy="take it out")
