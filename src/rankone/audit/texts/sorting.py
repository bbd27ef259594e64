"""The suffixes of a text in order, by induced sorting: linear in its length, whatever it is.

Nong, Zhang and Chan, "Linear suffix array construction by almost pure induced-sorting", 2009. A
suffix is small if it comes before the one that begins a symbol later, else large; the end of the
text comes before everything. A seed is a small suffix after a large one. Once seeds are in order,
two passes put all others in order: each large suffix is met right after the one that follows it in
the text, each small one right before. Seeds are put in order by the same two passes, and where
stretches from seed to seed are equal, by the same method on a text that has a symbol per seed.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Numbers = NDArray[np.int32]  # half the memory of int64, in which the time goes


def sorted_suffixes(text: Numbers, size: int) -> Numbers:
    """Where the suffixes begin, in order; symbols are numbers below `size`.

    >>> sorted_suffixes(np.array([1, 0, 2, 0, 2, 0], dtype=np.int32), 3).tolist()  # banana
    [5, 3, 1, 0, 4, 2]
    """
    coded = _coded(text)
    small = (coded & 1).astype(bool)
    seeds = (np.flatnonzero(small[1:] & ~small[:-1]) + 1).astype(np.int32)
    del small
    ends = np.cumsum(np.bincount(text, minlength=size)).astype(np.int32)
    order = np.empty(len(text), dtype=np.int32)
    _place(coded, seeds, ends, order)
    _induce(coded, ends, order)
    if len(seeds) > 1:
        names = np.empty(len(text) // 2 + 1, dtype=np.int32)  # no two seeds are neighbours
        count = _name(coded, seeds, order, names)
        reduced = names[seeds >> 1]
        del names
        if count < len(seeds):
            ranked = sorted_suffixes(reduced, count)
        else:
            ranked = np.empty(count, dtype=np.int32)
            ranked[reduced] = np.arange(count, dtype=np.int32)
        _place(coded, seeds[ranked], ends, order)
        _induce(coded, ends, order)
    return order


@njit(nogil=True, cache=True)
def _coded(text: Numbers) -> Numbers:
    """Twice each symbol, plus 1 if its suffix is small: both are needed at once."""
    coded = np.empty(len(text), np.int32)
    small = 0
    coded[-1] = text[-1] << 1
    for i in range(len(text) - 2, -1, -1):
        if text[i] != text[i + 1]:
            small = 1 if text[i] < text[i + 1] else 0
        coded[i] = (text[i] << 1) | small
    return coded


@njit(nogil=True, cache=True)
def _place(coded: Numbers, seeds: Numbers, ends: Numbers, order: Numbers) -> None:
    """Seeds, in the order given, at the ends of the buckets of their first symbols."""
    order[:] = -1
    tail = ends.copy()
    for i in range(len(seeds) - 1, -1, -1):
        bucket = coded[seeds[i]] >> 1
        tail[bucket] -= 1
        order[tail[bucket]] = seeds[i]


@njit(nogil=True, cache=True)
def _induce(coded: Numbers, ends: Numbers, order: Numbers) -> None:
    """Large suffixes from the left, then small ones from the right, where seeds were."""
    head = np.empty_like(ends)
    head[0] = 0
    head[1:] = ends[:-1]
    last = coded[-1] >> 1
    order[head[last]] = len(coded) - 1  # follows the end of the text, which comes first
    head[last] += 1
    for i in range(len(order)):
        before = order[i] - 1
        if before >= 0 and not coded[before] & 1:
            bucket = coded[before] >> 1
            order[head[bucket]] = before
            head[bucket] += 1
    tail = ends.copy()
    for i in range(len(order) - 1, -1, -1):
        before = order[i] - 1
        if before >= 0 and coded[before] & 1:
            bucket = coded[before] >> 1
            tail[bucket] -= 1
            order[tail[bucket]] = before


@njit(nogil=True, cache=True)
def _name(coded: Numbers, seeds: Numbers, order: Numbers, names: Numbers) -> int:
    """Number the stretches from seed to seed, both included, in order; how many differ.

    Entry ``seed // 2`` of `names` holds the length of its stretch until it has a name.
    """
    for i in range(len(seeds) - 1):
        names[seeds[i] >> 1] = seeds[i + 1] - seeds[i]
    names[seeds[-1] >> 1] = -1  # the last stretch has the end of the text in it: no other has
    count, earlier, known = 0, 0, -1
    for i in range(len(order)):
        seed = order[i]
        if seed > 0 and coded[seed] & 1 and not coded[seed - 1] & 1:
            length = names[seed >> 1]
            same = length >= 0 and length == known
            k = 0
            while same and k <= length:
                same = coded[seed + k] == coded[earlier + k]
                k += 1
            count += not same
            names[seed >> 1] = count - 1
            earlier, known = seed, length
    return count
