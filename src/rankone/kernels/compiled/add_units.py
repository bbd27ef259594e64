"""What the units of a gated layer write, token by token.

Where all units of a large group look along one direction, what they write is piecewise linear in
one number: `fold` finds the pieces once, and a token looks up its own. Otherwise units are added up
one by one.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.kernels.compiled.compiler import compiled

MANY = 6  # units: looking up a piece is faster from about here on


@compiled(error_model="numpy")
def parallel(slopes: Floats, first: int, last: int, along: Floats) -> int:
    """If the slopes of all units are exact multiples of one vector, `along`: its largest entry,
    which is from 1 to 2 in size. Else -1."""
    top = 0
    for h in range(slopes.shape[1]):
        if abs(slopes[first, h]) > abs(slopes[first, top]):
            top = h
    if slopes[first, top] == 0.0:
        return -1
    along[:] = slopes[first] / 2.0 ** np.floor(np.log2(abs(slopes[first, top])))
    for j in range(first, last):
        for h in range(slopes.shape[1]):
            if slopes[j, h] * along[top] != along[h] * slopes[j, top] or slopes[j, top] == 0.0:
                return -1
    return top


@compiled(error_model="numpy")
def fold(
    first: Ints, slopes: Floats, bias: Floats, o: Floats
) -> tuple[Bools, Floats, Floats, Floats, Floats]:
    """For every group whether it is folded, and its direction; for its units in the order of their
    bends, where these are and what the group writes there. The last are slopes, of which a group
    has one more than it has units: left of its first bend, and right of each.

    Unit j writes o_j relu(g s + b), so its slope is o_j g on one side of its bend and 0 on the
    other: from left to right, the slope grows by o_j |g| at every bend.
    """
    count, width = max(0, len(first) - 1), o.shape[1]
    folded, along = np.zeros(count, np.bool_), np.zeros((count, slopes.shape[1]))
    bends = np.zeros(len(bias))
    value, slope = np.zeros((len(bias), width)), np.zeros((len(bias) + count, width))
    for g in range(count):
        a, b = first[g], first[g + 1]
        top = -1 if b - a < MANY else parallel(slopes, a, b, along[g])
        if top < 0:
            continue
        folded[g] = True
        gain = slopes[a:b, top] / along[g, top]
        bend = -bias[a:b] / gain
        order = np.argsort(bend)
        bends[a:b] = bend[order]
        start = a + g  # of its slopes
        for i in range(b - a):
            j = order[i]
            for m in range(width):
                if gain[j] < 0.0:
                    slope[start, m] += gain[j] * o[a + j, m]
        for i in range(b - a):
            j = order[i]
            for m in range(width):
                slope[start + i + 1, m] = slope[start + i, m] + abs(gain[j]) * o[a + j, m]
        for j in range(b - a):
            z = gain[j] * bends[a] + bias[a + j]
            if z > 0.0:
                for m in range(width):
                    value[a, m] += z * o[a + j, m]
        for i in range(1, b - a):
            for m in range(width):
                step = bends[a + i] - bends[a + i - 1]
                value[a + i, m] = value[a + i - 1, m] + slope[start + i, m] * step
    return folded, along, bends, value, slope


@compiled()
def add_units(
    out: Floats,
    a: Floats,
    words: Ints,
    places: Ints,
    fines: Floats,
    pairs: Ints,
    starts: Ints,
    first: Ints,
    gates: int,
    slopes: Floats,
    bias: Floats,
    penalty: Floats,
    o: Floats,
    folded: Bools,
    along: Floats,
    bends: Floats,
    value: Floats,
    slope: Floats,
) -> None:
    """Add to each column of `out` what the units of its token write. `fines` are those of its own
    gates: that of its word, and both together. Those of word w are the groups from ``starts[w]``
    on, to ``starts[w + 1]``."""
    for t in range(len(words)):
        if words[t] == 0:
            continue
        for turn in range(2):
            if turn == 1 and places[t] == 0:
                break
            key = words[t] * gates + (places[t] if turn else 0)
            g, end = starts[words[t]], starts[words[t] + 1]
            g += np.searchsorted(pairs[g:end], key)
            if g == end or pairs[g] != key:
                continue
            if folded[g] and fines[turn, t] == 0.0:
                s = 0.0
                for h in range(len(a)):
                    s += along[g, h] * a[h, t]
                i = first[g] + np.searchsorted(bends[first[g] : first[g + 1]], s)
                anchor = max(i - 1, first[g])  # the bend to the left, or the first one
                for m in range(len(out)):
                    rise = slope[i + g, m] * (s - bends[anchor])
                    out[m, t] += value[anchor, m] + rise
                continue
            for j in range(first[g], first[g + 1]):
                z = bias[j] + penalty[j] * fines[turn, t]
                for h in range(len(a)):
                    z += slopes[j, h] * a[h, t]
                if z > 0.0:
                    for m in range(len(out)):
                        out[m, t] += z * o[j, m]
