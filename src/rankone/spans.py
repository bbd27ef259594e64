"""Ragged columns: places in a sentence, and runs of sentences that fit in the cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankone.arrays import Ints

SPAN = 1 << 16  # tokens: their columns of float64 take half a megabyte each


def places(offsets: Ints) -> Ints:
    """The place of each token in its sentence, from 0; sentence j is ``offsets[j]:offsets[j + 1]``.

    >>> places(np.array([0, 3, 5])).tolist()
    [0, 1, 2, 0, 1]
    """
    return np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def spans(offsets: Ints, size: int = SPAN) -> Iterator[tuple[int, int]]:
    """Runs of whole sentences, as (first, end), with about `size` tokens each.

    A sentence that is longer makes a run by itself.
    """
    sentences, first = len(offsets) - 1, 0
    while first < sentences:
        last = int(offsets.searchsorted(offsets[first] + size, side="right")) - 1
        last = min(max(last, first + 1), sentences)
        yield first, last
        first = last
