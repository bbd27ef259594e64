"""Votes: how often each label stands in the same window, the token itself left out.

Loops are compiled. Tokens with equal keys form a group; a token of the group is asked, for label y,
the logarithm of (count of y among the others + A) / A, which is 0 where nobody votes for y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rankone.arrays import Ints

Scores = NDArray[np.float32]
Numbers = NDArray[np.int32]
A = 0.5  # what every label has before anybody votes


@dataclass(frozen=True)
class Groups:
    """Tokens by group: ``order[starts[g]:starts[g + 1]]``, without the groups of a single token."""

    order: Numbers
    starts: Numbers

    @classmethod
    def of(cls, keys: NDArray[np.uint64]) -> Groups:
        return cls(*_grouped(keys))

    def members(self, token: int, group_of: Numbers) -> Numbers:
        """The tokens in the group of a token, itself included."""
        group = group_of[token]
        if group < 0:
            return self.order[:0]
        return self.order[self.starts[group] : self.starts[group + 1]]

    def group_of(self, size: int) -> Numbers:
        """The group of each token, -1 for a token that is alone."""
        found = np.full(size, -1, dtype=np.int32)
        found[self.order] = np.repeat(
            np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts)
        )
        return found

    def add(self, weight: float, labels: Numbers, scores: Scores) -> None:
        """Add the weighted votes of this window to the scores of all tokens."""
        _add(self.order, self.starts, labels, weight, _logarithms(self), scores)

    def odds(self, asked: Queries, labels: Numbers, out: Scores) -> None:
        """For each query the votes for the other label, less those for its own, into `out`."""
        logs = _logarithms(self)
        _odds(self.order, self.starts, labels, logs, asked.first, asked.own, asked.other, out)


@dataclass(frozen=True)
class Queries:
    """Pairs of labels to compare, sorted by token: those of token i are
    ``first[i]:first[i + 1]``."""

    first: Numbers
    own: Numbers
    other: Numbers

    @classmethod
    def of(cls, tokens: Ints, own: Numbers, other: Numbers, size: int) -> Queries:
        """`tokens` must be sorted."""
        first = np.searchsorted(tokens, np.arange(size + 1)).astype(np.int32)
        return cls(first, own.astype(np.int32), other.astype(np.int32))


def _logarithms(groups: Groups) -> Scores:
    largest = int(np.diff(groups.starts).max(initial=0))
    return np.log1p(np.arange(largest + 1) / A).astype(np.float32)


@njit(nogil=True, cache=True)
def _grouped(keys: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """A hash table of the keys, then a counting sort."""
    size = 1
    while size < 2 * len(keys) + 1:
        size *= 2
    mask = np.uint64(size - 1)
    table = np.full(size, -1, np.int32)  # the first token of the key in this place
    first = np.empty(len(keys), np.int32)  # the first token with the same key
    count = np.zeros(len(keys), np.int32)
    for i in range(len(keys)):
        place = (keys[i] ^ (keys[i] >> np.uint64(29))) & mask
        while table[place] >= 0 and keys[table[place]] != keys[i]:
            place = (place + np.uint64(1)) & mask
        if table[place] < 0:
            table[place] = i
        first[i] = table[place]
        count[first[i]] += 1
    groups = tokens = 0
    for i in range(len(keys)):
        if count[i] > 1:
            groups += 1
            tokens += count[i]
    starts, order = np.empty(groups + 1, np.int32), np.empty(tokens, np.int32)
    groups = tokens = 0
    for i in range(len(keys)):
        if count[i] > 1:
            starts[groups] = tokens
            groups += 1
            tokens += count[i]
            count[i] = starts[groups - 1]  # from here on: where its next member goes
        else:
            count[i] = -1
    starts[groups] = tokens
    for i in range(len(keys)):
        if count[first[i]] >= 0:
            order[count[first[i]]] = i
            count[first[i]] += 1
    return order, starts


@njit(nogil=True, cache=True)
def _add(
    order: Numbers, starts: Numbers, labels: Numbers, weight: float, logs: Scores, scores: Scores
) -> None:
    count = np.zeros(scores.shape[1], np.int32)
    seen = np.empty(scores.shape[1], np.int32)
    for g in range(len(starts) - 1):
        kinds = 0
        for k in range(starts[g], starts[g + 1]):
            label = labels[order[k]]
            if label >= 0:
                if count[label] == 0:
                    seen[kinds] = label
                    kinds += 1
                count[label] += 1
        for k in range(starts[g], starts[g + 1]):
            i = order[k]
            for j in range(kinds):
                label = seen[j]
                scores[i, label] += weight * logs[count[label] - (label == labels[i])]
        for j in range(kinds):
            count[seen[j]] = 0


@njit(nogil=True, cache=True)
def _odds(
    order: Numbers,
    starts: Numbers,
    labels: Numbers,
    logs: Scores,
    first: Numbers,
    own: Numbers,
    other: Numbers,
    out: Scores,
) -> None:
    count = np.zeros(max(labels.max(), own.max(), other.max()) + 1, np.int32)
    for g in range(len(starts) - 1):
        for k in range(starts[g], starts[g + 1]):
            if labels[order[k]] >= 0:
                count[labels[order[k]]] += 1
        for k in range(starts[g], starts[g + 1]):
            i = order[k]
            for q in range(first[i], first[i + 1]):
                against = count[other[q]] - (other[q] == labels[i])
                out[q] = logs[against] - logs[count[own[q]] - (own[q] == labels[i])]
        for k in range(starts[g], starts[g + 1]):
            if labels[order[k]] >= 0:
                count[labels[order[k]]] = 0
