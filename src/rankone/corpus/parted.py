"""A corpus in parts that an engine keeps: what is known of the whole, and where the columns are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np

from rankone.corpus.corpus import Corpus
from rankone.corpus.rows import spelled_out
from rankone.engines import Engine, Ref, Table

BYTES = 400  # for each token of a part, at most, in whatever is done with it
NARROW = {"token_ids": np.int32, "label_ids": np.int32, "file_ids": np.int32}
COLUMNS = ("token_ids", "label_ids", "offsets", "lines", "file_ids")


@dataclass(frozen=True)
class Part:
    """Some sentences of a corpus: their columns, how many there are, and what comes before them.

    Token 0 of the part is token ``start`` of the corpus, sentence 0 is number ``before``;
    ``asked`` tokens have a label, and the longest sentence has ``longest`` tokens.
    """

    columns: Ref
    tokens: int
    sentences: int
    asked: int
    longest: int
    start: int = 0
    before: int = 0


@dataclass(frozen=True, repr=False)
class PartedCorpus:
    """Labelled sentences in parts.

    ``heading`` is a corpus without sentences: words, labels, files, and how they were read. A part
    is ``corpus_of(heading, columns)``, in the process that works on it. Words and labels have
    one number in all parts.
    """

    heading: Corpus
    parts: tuple[Part, ...]
    engine: Engine

    def __repr__(self) -> str:
        return f"PartedCorpus({self.source!r}: {self.n_tokens} tokens in {len(self.parts)} parts)"

    @property
    def source(self) -> str:
        return self.heading.source

    @cached_property
    def n_tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @cached_property
    def n_sentences(self) -> int:
        return sum(part.sentences for part in self.parts)

    @cached_property
    def n_asked(self) -> int:
        """Tokens for which the task asks for a label."""
        return sum(part.asked for part in self.parts)

    @cached_property
    def longest(self) -> int:
        return max(part.longest for part in self.parts)

    def check_labelled(self) -> PartedCorpus:
        """The corpus itself; raises an error if it has no labels."""
        self.heading.check_labelled()
        return self

    def part(self, number: int) -> Corpus:
        """A part, in this process."""
        return corpus_of(self.heading, self.engine.take(self.parts[number].columns))

    def part_of(self, token: int) -> tuple[int, int]:
        """The number of the part that holds a token, and the number of the token in it."""
        starts = [part.start for part in self.parts]
        number = int(np.searchsorted(starts, token, side="right")) - 1
        return number, token - starts[number]

    def drop(self) -> None:
        """Forget the columns."""
        self.engine.drop(part.columns for part in self.parts)

    @cached_property
    def sha256(self) -> str:
        """That of the same sentences as one `Corpus`."""
        text = sha256()
        for words in (self.heading.vocabulary, self.heading.label_names):
            text.update(spelled_out(words))
        for name in ("token_ids", "label_ids"):
            for number in range(len(self.parts)):
                text.update(getattr(self.part(number), name).astype("<i8").tobytes())
        for number, part in enumerate(self.parts):
            ends = self.part(number).offsets + part.start
            text.update(ends[number > 0 :].astype("<i8").tobytes())
        return text.hexdigest()


class Nameless(Sequence[Any]):
    """So many words, for what needs their numbers only: nothing to send or to keep."""

    def __init__(self, count: int) -> None:
        self.size = count

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, _: Any) -> Any:
        raise LookupError("the words themselves are not here")


def nameless(heading: Corpus) -> Corpus:
    """The heading without its words."""
    words: Any = Nameless(len(heading.vocabulary))
    return replace(heading, vocabulary=words)


def heading_of(corpus: Corpus) -> Corpus:
    """The corpus without its sentences."""
    empty: dict[str, Any] = dict.fromkeys(COLUMNS, np.empty(0, np.int64))
    return replace(corpus, **empty | {"offsets": np.zeros(1, np.int64)})


def columns_of(corpus: Corpus) -> Table:
    """The columns as a table, in as few bytes as they need."""
    table = {name: getattr(corpus, name) for name in COLUMNS}
    table |= {name: table[name].astype(kind) for name, kind in NARROW.items()}
    if corpus.lines.max(initial=0) < 1 << 31:
        table["lines"] = table["lines"].astype(np.int32)
    return table


def corpus_of(heading: Corpus, columns: Table) -> Corpus:
    """The corpus again."""
    wide: dict[str, Any] = {name: columns[name].astype(np.int64) for name in COLUMNS}
    return replace(heading, **wide)


def part_tokens(engine: Engine) -> int:
    """How many tokens a part may have."""
    return max(1, engine.room // BYTES)


def parted(corpus: Corpus, engine: Engine, tokens: int | None = None) -> PartedCorpus:
    """A corpus that is in memory, in parts of about so many tokens.

    >>> from rankone.corpus import builtin_corpus
    >>> from rankone.engines import open_engine
    >>> parted(builtin_corpus(100), open_engine("here"), 500)
    PartedCorpus('builtin': 839 tokens in 2 parts)
    """
    size, heading = tokens or part_tokens(engine), heading_of(corpus)
    wanted = np.arange(size, corpus.n_tokens, size)
    cuts = np.unique(np.concatenate([[0], corpus.offsets.searchsorted(wanted)]))
    bounds = [*cuts[cuts < corpus.n_sentences].tolist(), corpus.n_sentences]
    parts = []
    for a, b in pairwise(bounds):
        some = sentences_of(corpus, a, b)
        ref, start = engine.put(columns_of(some)), int(corpus.offsets[a])
        parts.append(
            Part(ref, some.n_tokens, b - a, len(some.asked), some.longest, start, before=a)
        )
    return PartedCorpus(heading, tuple(parts), engine)


def sentences_of(corpus: Corpus, first: int, behind: int) -> Corpus:
    """Some sentences, with the words, labels and files of all."""
    start, stop = corpus.offsets[[first, behind]].tolist()
    return replace(
        corpus,
        token_ids=corpus.token_ids[start:stop],
        label_ids=corpus.label_ids[start:stop],
        lines=corpus.lines[start:stop],
        offsets=corpus.offsets[first : behind + 1] - start,
        file_ids=corpus.file_ids[first:behind],
    )
