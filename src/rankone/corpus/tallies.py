"""Tallies: which labels each context carries, counted in parts of a corpus and added up.

Tokens are numbered over all parts laid end to end. A whole corpus is a single part: there is
nothing to add up, and contexts need no keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from secrets import token_bytes

import numpy as np

from rankone.arrays import Bools, Ints
from rankone.corpus.contexts import Look
from rankone.corpus.corpus import Corpus
from rankone.corpus.keys import Keys, maker_of, numbered


@dataclass(frozen=True)
class Tally:
    """Context c first occurs at token ``first[c]``; ``keys[c]`` identifies it in other parts (None
    if the part is the whole corpus).

    Entry e says that context ``context[e]`` has ``label[e]`` at ``count[e]`` tokens, the first of
    which is ``seen[e]``; several entries may be about the same context and label.
    """

    first: Ints
    context: Ints
    label: Ints
    count: Ints
    seen: Ints
    keys: Keys | None = None

    @classmethod
    def of(cls, contexts: Ints, labels: Ints) -> Tally:
        """An entry for each token that is asked; ``contexts[i]`` is the first token like token i.

        Each token counts as a context, but entries are only about those that come first.
        """
        seen = first = np.arange(len(labels))
        if (labels < 0).any():
            seen = np.flatnonzero(labels >= 0)
            contexts, labels = contexts[seen], labels[seen]
        once = np.broadcast_to(np.int64(1), seen.shape)  # which takes no memory
        return cls(first, contexts, labels, once, seen)

    def keyed(self, contexts: Ints, keys: Keys, start: int) -> Tally:
        """The tally of these contexts, with their keys; token 0 is token `start` of all parts."""
        rank = np.searchsorted(contexts, self.context)
        seen = self.seen + start
        return replace(self, first=contexts + start, context=rank, seen=seen, keys=keys).added()

    def added(self) -> Tally:
        """The same with one entry for each label of a context."""
        pairs = self.context * (self.label.max(initial=0) + 1) + self.label
        _, where, back = np.unique(pairs, return_index=True, return_inverse=True)
        seen = _least(self.seen, back, len(where))
        count = np.bincount(back, self.count, len(where)).astype(np.int64)
        context, label = self.context[where], self.label[where]
        return replace(self, context=context, label=label, count=count, seen=seen)


@dataclass(frozen=True)
class Best:
    """The best label of every context (-1 if none is asked), which contexts carry several labels,
    and how many tokens every function of the context gets wrong."""

    labels: Ints
    contested: Bools
    errors: int

    def members(self, contexts: Ints, labels: Ints) -> Ints:
        """The asked tokens whose context carries several labels, in order."""
        if not self.errors:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(np.take(self.contested, contexts) & (labels >= 0))


def best(tally: Tally) -> Best:
    """The most frequent label of every context; in a tie, the one seen first."""
    labels = np.full(len(tally.first), -1)
    labels[tally.context] = tally.label  # one of its labels; most contexts have only one
    wrong = tally.label != np.take(labels, tally.context)
    contested = np.zeros(len(labels), dtype=bool)
    if not wrong.any():
        return Best(labels, contested, 0)
    contested[tally.context[wrong]] = True
    at = np.flatnonzero(np.take(contested, tally.context))
    each = {name: getattr(tally, name)[at] for name in ("context", "label", "count", "seen")}
    some = replace(tally, **each).added()
    # Last write wins: sort so that the most frequent label, then the earliest, is written last.
    order = np.lexsort((-some.seen, some.count))
    labels[some.context[order]] = some.label[order]
    lost = some.label != labels[some.context]
    return Best(labels, contested, int(some.count[lost].sum()))


@dataclass(frozen=True)
class BestLabels:
    """The best label for every token (-1 if its context is never asked), the asked tokens whose
    context carries several labels, and the errors that must remain."""

    labels: Ints
    members: Ints
    errors: int


def best_targets(contexts: Ints, labels: Ints) -> BestLabels:
    """The most frequent label of every context; in a tie, the one seen first."""
    found = best(Tally.of(contexts, labels))
    members = found.members(contexts, labels)
    return BestLabels(np.take(found.labels, contexts), members, found.errors)


def merge(tallies: Sequence[Tally]) -> Tally:
    """The tally of all parts from the tally of each; contexts are ordered by their keys."""
    return merged(tallies)[0]


def merged(tallies: Sequence[Tally]) -> tuple[Tally, list[Ints]]:
    """The same, and for each part the number that each of its contexts has there."""
    if len(tallies) == 1:
        return tallies[0], [np.arange(len(tallies[0].first))]
    keys = np.concatenate([t.keys for t in tallies if t.keys is not None])
    different, back = numbered(keys)
    ends = list(accumulate(len(t.first) for t in tallies))
    starts = [0, *ends[:-1]]
    context = np.concatenate([t.context + a for t, a in zip(tallies, starts, strict=True)])
    label, count, seen, first = (
        np.concatenate([getattr(t, name) for t in tallies])
        for name in ("label", "count", "seen", "first")
    )
    first = _least(first, back, len(different))
    whole = Tally(first, back[context], label, count, seen, keys[different]).added()
    return whole, np.split(back, ends[:-1])


def tally_parts(parts: Sequence[Corpus], look: Look) -> tuple[Tally, list[Ints]]:
    """The tally of all parts, and for each part the context of every token in it."""
    own = [look(part) for part in parts]
    each = [Tally.of(seen, part.label_ids) for seen, part in zip(own, parts, strict=True)]
    if len(parts) == 1:
        return each[0], own
    secret, maker = token_bytes(16), maker_of(look)
    starts = accumulate((part.n_tokens for part in parts), initial=0)
    firsts = [np.flatnonzero(seen == np.arange(len(seen))) for seen in own]
    each = [
        tally.keyed(first, maker(part, first, secret), start)
        for tally, part, first, start in zip(each, parts, firsts, starts, strict=False)
    ]
    whole, numbers = merged(each)
    return whole, [
        number[np.searchsorted(first, seen)]
        for number, first, seen in zip(numbers, firsts, own, strict=True)
    ]


def _least(numbers: Ints, groups: Ints, size: int) -> Ints:
    """The smallest number of every group."""
    found = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(found, groups, numbers)
    return found
