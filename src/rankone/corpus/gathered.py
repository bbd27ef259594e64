"""A few sentences of a corpus in parts, brought together in this process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.arrays import Ints
from rankone.corpus.corpus import Corpus
from rankone.corpus.parted import PartedCorpus, columns_of, corpus_of
from rankone.corpus.picked import laid_end_to_end, picked
from rankone.engines import Table


@dataclass(frozen=True)
class Gathered:
    """The sentences as a corpus; ``sentences`` and ``starts`` are their numbers in all parts, and
    those of their first tokens."""

    corpus: Corpus
    sentences: Ints
    starts: Ints

    def sentence(self, number: Ints | int) -> Ints:
        """Where a sentence of this number is in the corpus."""
        return np.asarray(self.sentences.searchsorted(number))

    def token(self, number: Ints | int) -> Ints:
        """Where a token of this number is in the corpus."""
        sentence = self.starts.searchsorted(number, side="right") - 1
        return np.asarray(number - self.starts[sentence] + self.corpus.offsets[sentence])


def gathered(
    corpus: PartedCorpus, *, sentences: Ints | None = None, tokens: Ints | None = None
) -> Gathered:
    """The sentences of these numbers, or with tokens of these numbers, in order."""
    engine, heading, calls = corpus.engine, corpus.engine.share(corpus.heading), []
    wanted = np.unique(np.empty(0, np.int64) if sentences is None else sentences)
    asked = np.unique(np.empty(0, np.int64) if tokens is None else tokens)
    for part in corpus.parts:
        mine = wanted[(wanted >= part.before) & (wanted < part.before + part.sentences)]
        theirs = asked[(asked >= part.start) & (asked < part.start + part.tokens)]
        if len(mine) or len(theirs):
            own = mine - part.before, theirs - part.start
            calls.append((heading, part.columns, *own, part.before, part.start))
    refs = engine.each(pick_both, calls)
    tables = [engine.take(ref) for ref in refs]
    engine.drop(refs)
    if not tables:
        return Gathered(corpus.heading, np.empty(0, np.int64), np.empty(0, np.int64))
    found, _ = laid_end_to_end(corpus.heading, tables)
    numbers, starts = (
        np.concatenate([table[name] for table in tables]) for name in ("sentences", "starts")
    )
    return Gathered(found, numbers, starts)


def pick_both(
    heading: Corpus, columns: Table, sentences: Ints, tokens: Ints, before: int, start: int
) -> Table:
    """These sentences of a part, and those of these tokens: their columns, and their numbers."""
    part = corpus_of(heading, columns)
    holding = part.offsets.searchsorted(tokens, side="right") - 1
    numbers = np.union1d(sentences, holding)
    return {
        **columns_of(picked(part, numbers)[0]),
        "sentences": numbers + before,
        "starts": part.offsets[numbers] + start,
    }
