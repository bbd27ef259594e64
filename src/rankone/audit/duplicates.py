"""Sentences that stand in a corpus more than once."""

from __future__ import annotations

import numpy as np

from rankone.arrays import Ints
from rankone.audit.findings import Duplicate, rows_of, words_of
from rankone.corpus.contexts import by_sequence
from rankone.corpus.corpus import Corpus


def first_copies(corpus: Corpus, contexts: Ints | None = None) -> Ints:
    """For each sentence, the first one that equals it."""
    contexts = by_sequence(corpus) if contexts is None else contexts
    return corpus.sentence_of[contexts[corpus.offsets[:-1]]]


def find_duplicates(corpus: Corpus, first: Ints, contested: Ints) -> tuple[Duplicate, ...]:
    """All of them, in the order of their first copies; `contested` are the tokens whose context
    carries more than one label."""
    again = np.flatnonzero(np.bincount(first, minlength=len(first)) > 1)
    at_odds = np.zeros(corpus.n_sentences, dtype=bool)
    at_odds[first[corpus.sentence_of[contested]]] = True
    return tuple(
        Duplicate(
            words_of(corpus, copies[0]), rows_of(corpus, copies), bool(not at_odds[copies[0]])
        )
        for copies in members_of(first, again)
    )


def members_of(first: Ints, groups: Ints) -> list[list[int]]:
    """The members of each of these groups, where ``first[j]`` is the group of member j."""
    order = np.argsort(first, kind="stable")
    starts = np.searchsorted(first[order], groups).tolist()
    behind = np.searchsorted(first[order], groups, side="right").tolist()
    return [order[a:b].tolist() for a, b in zip(starts, behind, strict=True)]
