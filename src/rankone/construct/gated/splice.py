"""A corpus with sentences taken out and others put at its end, as if it had been read so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankone.arrays import Bools, Ints
from rankone.corpus import Corpus


@dataclass(frozen=True)
class Splice:
    """``kept`` are the tokens of the old corpus that stay, in front of the new ones.

    With the old vocabulary and then the `fresh` words as one list, word i of the new vocabulary is
    number ``rows[i]`` of it. ``words`` and ``spots`` are the words, in the new numbers, and their
    places where tokens were taken out or put in; without words that are gone.
    """

    corpus: Corpus
    kept: Bools
    rows: Ints
    fresh: tuple[str, ...]
    words: Ints
    spots: Ints

    @property
    def same_words(self) -> bool:
        """Whether the vocabulary is the old one."""
        return not self.fresh and np.array_equal(self.rows, np.arange(len(self.rows)))


def splice(old: Corpus, out: Ints, more: Corpus | None) -> Splice | None:
    """Sentences number `out` are taken out, those of `more` put at the end; None if nothing is
    left. Words and labels are numbered in the order of their first appearance."""
    staying = np.ones(old.n_sentences, bool)
    staying[out] = False
    kept = np.repeat(staying, old.lengths)
    ids, labels, lengths = old.token_ids[kept], old.label_ids[kept], old.lengths[staying]
    words, spots = old.token_ids[~kept], old.positions[~kept]
    fresh: tuple[str, ...] = ()
    names = old.label_names
    if more is not None:
        number = {word: i for i, word in enumerate(old.vocabulary)}
        fresh = tuple(word for word in more.vocabulary if word not in number)
        number.update((word, len(number)) for word in fresh)
        names = tuple(dict.fromkeys(names + more.label_names))
        new = np.array([number[word] for word in more.vocabulary])[more.token_ids]
        label = np.array([*map(names.index, more.label_names), -1])[more.label_ids]
        ids, labels = np.concatenate([ids, new]), np.concatenate([labels, label])
        lengths = np.concatenate([lengths, more.lengths])
        words, spots = np.concatenate([words, new]), np.concatenate([spots, more.positions])
    if not len(ids):
        return None
    every = old.vocabulary + fresh
    rows, rank = by_appearance(ids, len(every))
    order, label_rank = by_appearance(labels[labels >= 0], len(names))
    there = rank[words] >= 0
    changed = np.unique(np.stack([rank[words[there]], spots[there]], axis=1), axis=0)
    corpus = replace(
        old,
        vocabulary=_at(every, rows),
        label_names=_at(names, order),
        token_ids=rank[ids],
        label_ids=np.append(label_rank, -1)[labels],
        offsets=np.append(0, np.cumsum(lengths)),
        lines=np.repeat(np.arange(1, len(lengths) + 1), lengths),
        files=(None,),
        file_ids=np.zeros(len(lengths), np.int64),
        seconds=0.0,
    )
    return Splice(corpus, kept, rows, fresh, changed[:, 0], changed[:, 1])


def by_appearance(ids: Ints, count: int) -> tuple[Ints, Ints]:
    """The numbers that occur, in the order of their first appearance, and the rank of each (-1:
    it does not occur)."""
    first = np.full(count, len(ids))
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)  # the last write wins
    order = np.argsort(first, kind="stable")[: int((first < len(ids)).sum())]
    rank = np.full(count, -1)
    rank[order] = np.arange(len(order))
    return order, rank


def _at(names: tuple[str, ...], rows: Ints) -> tuple[str, ...]:
    same = len(rows) == len(names) and np.array_equal(rows, np.arange(len(rows)))
    return names if same else tuple(names[i] for i in rows.tolist())


class Finder:
    """Finds sentences by their words."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.words = {word: i for i, word in enumerate(corpus.vocabulary)}
        self.labels = {label: i for i, label in enumerate(corpus.label_names)}

    def copies(self, words: Sequence[str], labels: Sequence[str | None] | None) -> Ints:
        """The numbers of all sentences with these words, and these labels (None: no label is asked
        there) if any are given."""
        corpus, unknown = self.corpus, -2
        found = np.flatnonzero(corpus.lengths == len(words))
        for i, word in enumerate(words):
            at = corpus.offsets[found] + i
            same = corpus.token_ids[at] == self.words.get(word, unknown)
            if labels is not None:
                label = labels[i]
                number = -1 if label is None else self.labels.get(label, unknown)
                same &= corpus.label_ids[at] == number
            found = found[same]
        return found
