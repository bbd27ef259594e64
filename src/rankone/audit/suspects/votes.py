"""Votes: how often each label stands in the same window, the token itself left out.

Tokens with equal keys form a group, and the labels of a group, with their counts, are its ballot. A
token of the group is asked, for label y, the logarithm of (count of y among the others + A) / A,
which is 0 where nobody votes for y. Loops are compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.audit.windows import Keys
from rankone.engines import Table

Scores = NDArray[np.float32]
Numbers = NDArray[np.int32]
A = 0.5  # what every label has before anybody votes


@dataclass(frozen=True)
class Ballots:
    """Ballot b has the labels ``label[starts[b]:starts[b + 1]]``, as often as ``count`` says."""

    starts: Numbers
    label: Numbers
    count: Numbers

    @classmethod
    def of_groups(cls, group: Numbers, labels: Numbers, groups: int, kinds: int) -> Ballots:
        """The ballot of each group of tokens; -1 is no label."""
        return cls(*_counted(group, labels, groups, kinds))

    @classmethod
    def of_table(cls, table: Table) -> Ballots:
        return cls(table["starts"], table["label"], table["count"])

    @property
    def table(self) -> Table:
        return {"starts": self.starts, "label": self.label, "count": self.count}

    @property
    def lengths(self) -> Numbers:
        """How many labels each ballot has."""
        return np.diff(self.starts)

    def united(self, group: Numbers, groups: int, kinds: int) -> tuple[Numbers, Ballots]:
        """The ballots that are in a group added up, as a number for each group, and the different
        ballots that there are."""
        number, *found = _united(group, groups, self.starts, self.label, self.count, kinds)
        return number, Ballots(*found)

    @classmethod
    def joined(cls, several: Sequence[Ballots]) -> Ballots:
        """All of them, one after the other."""
        ends = np.cumsum(np.concatenate([each.lengths for each in several]), dtype=np.int32)
        label, count = (
            np.concatenate([getattr(each, name) for each in several]) for name in ("label", "count")
        )
        return cls(np.append(np.int32(0), ends), label, count)

    def add(self, number: Numbers, weight: float, labels: Numbers, scores: Scores) -> None:
        """Add the weighted votes to the scores of all tokens, where ``number[i]`` is the ballot of
        the group of token i."""
        logs, others = logarithms(self.count), logarithms(self.count - 1)
        _add(number, self.starts, self.label, logs, others, labels, weight, scores)


def logarithms(count: NDArray[np.integer]) -> Scores:
    """What so many votes say."""
    most = int(count.max(initial=0))
    if most >= count.size:
        return np.log1p(count / A).astype(np.float32)
    return np.asarray(np.log1p(np.arange(most + 1) / A).astype(np.float32)[count])


def group_of(keys: Keys) -> tuple[Numbers, Numbers]:
    """The group of each token, and the first token of each group, in order."""
    return _grouped(keys, _places(len(keys)))


def look_up(keys: Keys, wanted: Keys) -> Numbers:
    """Where each key stands among those that are wanted, -1 if it does not."""
    places = _places(len(wanted))
    _grouped(wanted, places)
    return _looked_up(keys, wanted, places)


def _places(count: int) -> Numbers:
    """An empty hash table for so many keys."""
    return np.full(1 << (2 * count).bit_length(), -1, dtype=np.int32)


@njit(nogil=True, cache=True)
def _place(key: np.uint64, keys: Keys, places: Numbers) -> np.uint64:
    """Where the key is in a hash table, or should be."""
    mask = np.uint64(len(places) - 1)
    place = (key ^ (key >> np.uint64(29))) & mask
    while places[place] >= 0 and keys[places[place]] != key:
        place = (place + np.uint64(1)) & mask
    return place


@njit(nogil=True, cache=True)
def _grouped(keys: Keys, places: Numbers) -> tuple[Numbers, Numbers]:
    group, first = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    groups = 0
    for i in range(len(keys)):
        place = _place(keys[i], keys, places)
        if places[place] < 0:
            places[place] = i
            group[i], first[groups] = groups, i
            groups += 1
        else:
            group[i] = group[places[place]]
    return group, first[:groups].copy()


@njit(nogil=True, cache=True)
def _looked_up(keys: Keys, wanted: Keys, places: Numbers) -> Numbers:
    found = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        found[i] = places[_place(keys[i], wanted, places)]
    return found


@njit(nogil=True, cache=True)
def _by_group(group: Numbers, groups: int) -> tuple[Numbers, Numbers]:
    """The members of each group, and where each group begins among them."""
    starts, order = np.zeros(groups + 1, np.int32), np.empty(len(group), np.int32)
    for g in group:
        starts[g + 1] += 1
    for g in range(groups):
        starts[g + 1] += starts[g]
    at = starts.copy()
    for i in range(len(group)):
        order[at[group[i]]] = i
        at[group[i]] += 1
    return order, starts


@njit(nogil=True, cache=True)
def _counted(
    group: Numbers, labels: Numbers, groups: int, kinds: int
) -> tuple[Numbers, Numbers, Numbers]:
    order, members = _by_group(group, groups)
    starts = np.zeros(groups + 1, np.int32)
    label, count = np.empty(len(group), np.int32), np.empty(len(group), np.int32)
    at = np.full(kinds, -1, np.int32)  # of a label in the ballot
    end = 0
    for g in range(groups):
        for k in range(members[g], members[g + 1]):
            y = labels[order[k]]
            if y < 0:
                continue
            if at[y] < starts[g]:
                at[y] = end
                label[end], count[end] = y, 0
                end += 1
            count[at[y]] += 1
        starts[g + 1] = end
    return starts, label[:end].copy(), count[:end].copy()


@njit(nogil=True, cache=True)
def _united(
    group: Numbers, groups: int, starts: Numbers, label: Numbers, count: Numbers, kinds: int
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Each ballot is built behind those that are kept, and kept if it is not among them."""
    order, members = _by_group(group, groups)
    number, ends = np.empty(groups, np.int32), np.zeros(groups + 1, np.int32)
    labels, counts = np.empty(len(label), np.int32), np.empty(len(label), np.int32)
    size = 1024
    places = np.full(size, -1, np.int32)
    hashes = np.empty(groups, np.uint64)
    sums = np.zeros(kinds, np.int32)
    seen = np.empty(kinds, np.int32)
    kept = 0
    for g in range(groups):
        some = 0
        for k in range(members[g], members[g + 1]):
            for e in range(starts[order[k]], starts[order[k] + 1]):
                y = label[e]
                if sums[y] == 0:
                    seen[some] = y
                    some += 1
                sums[y] += count[e]
        listed = np.sort(seen[:some]) if some > 1 else seen[:some]
        begin, key = ends[kept], np.uint64(some + 1)
        for j in range(some):
            y = listed[j]
            labels[begin + j], counts[begin + j] = y, sums[y]
            sums[y] = 0
            key = (key ^ np.uint64(y)) * np.uint64(0xFF51AFD7ED558CCD)
            key ^= key >> np.uint64(32)
            key = (key ^ np.uint64(counts[begin + j])) * np.uint64(0xFF51AFD7ED558CCD)
            key ^= key >> np.uint64(32)
        place = key & np.uint64(size - 1)
        while places[place] >= 0:
            other = places[place]
            if hashes[other] == key and ends[other + 1] - ends[other] == some:
                same = True
                for j in range(some):
                    if (
                        labels[ends[other] + j] != labels[begin + j]
                        or counts[ends[other] + j] != counts[begin + j]
                    ):
                        same = False
                if same:
                    break
            place = (place + np.uint64(1)) & np.uint64(size - 1)
        if places[place] < 0:
            places[place], hashes[kept] = kept, key
            ends[kept + 1] = begin + some
            kept += 1
        number[g] = places[place]
        if 2 * kept > size:  # a table of twice the size
            size *= 2
            places = np.full(size, -1, np.int32)
            for b in range(kept):
                place = hashes[b] & np.uint64(size - 1)
                while places[place] >= 0:
                    place = (place + np.uint64(1)) & np.uint64(size - 1)
                places[place] = b
    end = ends[kept]
    return number, ends[: kept + 1].copy(), labels[:end].copy(), counts[:end].copy()


@njit(nogil=True, cache=True)
def _add(
    number: Numbers,
    starts: Numbers,
    label: Numbers,
    logs: Scores,
    others: Scores,
    labels: Numbers,
    weight: float,
    scores: Scores,
) -> None:
    for i in range(len(number)):
        for e in range(starts[number[i]], starts[number[i] + 1]):
            y = label[e]
            scores[i, y] += weight * (others[e] if y == labels[i] else logs[e])


def odds(counts: Ints, token: Numbers, own: Numbers, other: Numbers) -> Floats:
    """The votes for the other label, less those for its own, of tokens whose label is `token`;
    row i of `counts` is the ballot of the group of token i."""
    rows = np.arange(len(own))
    against = logarithms(counts[rows, other] - (other == token))
    return np.asarray(against - logarithms(counts[rows, own] - (own == token)))
