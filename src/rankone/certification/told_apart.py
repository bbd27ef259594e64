"""Contexts of different words or positions: how far are their context ids apart at least?

On a coordinate that no head writes, a context id is exactly x = t + p, with t the row of the word
and p that of the position. Let W be such coordinates where p is always 0 and t a whole number, and
P those where t is always 0 and p a whole number. If the rows of all words that occur differ on W,
and those of all positions on P, two different places differ in some coordinate by a whole number
that is not 0, so their context ids are at least 1 apart, whatever attention adds. With a window
there is no table of positions, and the coordinates of the step do not count (`windows`).
"""

from __future__ import annotations

from math import prod

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.certification.attention_balls import array
from rankone.certification.windows import bare_table
from rankone.nn import TokenClassifier

MOST = 2.0**52  # beyond, differences are not exact


def least_distance(network: TokenClassifier, words: Ints, positions: Ints) -> float:
    """1 if this is proved for these rows of the two tables, which may repeat, and 0 if not."""
    table = bare_table(network)
    free = ~np.any([head.output.any(1).numpy() for head in network.blocks[0].attention.heads], 0)
    if network.positions is None:
        return float(_all_differ(table[np.ix_(np.unique(words), free)]))
    placed = array(network.positions)
    at_words, at_places = free & ~placed.any(0), free & ~table.any(0)
    both = _all_differ(table[np.ix_(np.unique(words), at_words)]) and _all_differ(
        placed[np.ix_(np.unique(positions), at_places)]
    )
    return float(both)


def _all_differ(rows: Floats) -> bool:
    """Whether all rows differ in the columns of whole numbers. No hashes: columns are numbered and
    packed into 63 bits as long as they fit, and the packed columns sorted."""
    if len(rows) < 2:
        return True
    rows = rows[:, _whole(rows)]
    low = rows.min(0, initial=0.0)
    spans = [int(x) + 1 for x in (rows.max(0, initial=0.0) - low).tolist()]
    packed, first = list[Ints](), 0
    while first < len(spans):
        last = first + 1
        while last < len(spans) and prod(spans[first : last + 1]) < 1 << 62:
            last += 1
        key = np.zeros(len(rows), np.int64)
        for i in range(first, last):
            key *= spans[i]
            key += (rows[:, i] - low[i]).astype(np.int64)
        packed.append(key)
        first = last
    if not packed:
        return False
    order = np.lexsort(packed)
    again = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in packed])
    return not again.any()


def _whole(rows: Floats) -> Bools:
    return np.asarray(((rows == np.rint(rows)) & (np.abs(rows) <= MOST)).all(0))
