"""What the best function of a given input must get wrong, and which label it should choose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.corpus.rows import Ints


@dataclass(frozen=True)
class Targets:
    """The best label for every context.

    ``labels[i]`` is the most frequent label among the tokens with token i's context (of equals,
    the one seen first); ``members`` lists the tokens, in order, whose context carries more than
    one label, and ``errors`` counts those that no function can get right.
    """

    labels: Ints
    members: Ints
    errors: int


def best_targets(contexts: Ints, labels: Ints) -> Targets:
    """The majority label of every context; only contexts in conflict cost more than one pass."""
    disagree = labels != np.take(labels, contexts)
    if not disagree.any():
        return Targets(labels, np.empty(0, dtype=np.int64), 0)
    contested = np.zeros(len(labels), dtype=bool)
    contested[contexts[disagree]] = True
    members = np.flatnonzero(np.take(contested, contexts))
    each = np.stack([contexts[members], labels[members]])
    pairs, first, counts = np.unique(each, axis=1, return_index=True, return_counts=True)
    # Last write wins: sort so that the most frequent label, then the earliest, is written last.
    order = np.lexsort((-first, counts))
    best = np.empty(len(labels), dtype=np.int64)
    best[pairs[0, order]] = pairs[1, order]
    chosen = labels.copy()
    chosen[members] = best[contexts[members]]
    return Targets(chosen, members, int((chosen != labels).sum()))
