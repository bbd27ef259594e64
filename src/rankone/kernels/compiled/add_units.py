"""What the units of a gated layer write, token by token.

Where all units of a small group look along one direction, what they write is piecewise linear in
one number: `fold` finds the pieces once, and a token looks up its own. Where a group is large,
products of matrices say roughly what its units see, and only those that may be active are looked at
(`add_beyond`). Otherwise units are added up one by one. It makes no difference to the last bit
which of the two latter ways is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankone.arrays import Bools, Floats, Ints, Singles
from rankone.kernels.compiled.compiler import compiled, inlined

MANY = 6  # units: looking up a piece is faster from about here on
STRIDE = 64  # products that are looked at together


class Units(NamedTuple):
    """A row per unit. It sees slopes . a + bias, and writes amplitude (codes[plus] - codes[minus])
    times that; a fine is multiplied by its penalty."""

    slopes: Floats
    bias: Floats
    penalty: Floats
    amplitude: Floats
    codes: Floats
    plus: Ints
    minus: Ints


class Groups(NamedTuple):
    """Group g is for the gates ``pairs[g]`` (word * gates + position) and has the units
    ``first[g]`` to ``first[g + 1]`` - 1. Those of word w are the groups ``starts[w]`` to
    ``starts[w + 1]`` - 1."""

    pairs: Ints
    starts: Ints
    first: Ints
    gates: int


class Pieces(NamedTuple):
    """Of a folded group (``at[g]`` >= 0) the direction, and from number ``at[g]`` on the bends and
    what it writes there, in order. The slopes between them are one more: left of the first bend,
    and right of each, from number at[g] + ``folded[g]`` on, the number of groups folded before."""

    at: Ints
    folded: Ints
    along: Floats
    bends: Floats
    value: Floats
    slope: Floats


@inlined
def written(u: Units, j: int, m: int) -> float:
    """What unit j writes to the m-th coordinate, for each bit that it sees above 0."""
    return float(u.amplitude[j] * (u.codes[u.plus[j], m] - u.codes[u.minus[j], m]))


@inlined
def seen_by(u: Units, j: int, a: Floats, t: int, start: float) -> float:
    """What unit j sees of token t: one number after the other, in strict order."""
    z = start
    for h in range(len(a)):
        z += u.slopes[j, h] * a[h, t]
    return z


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
def fold(first: Ints, u: Units) -> Pieces:
    """The pieces of all groups that can be folded.

    A unit writes o relu(g s + b), so its slope is o g on one side of its bend and 0 on the other:
    from left to right, the slope grows by o |g| at every bend.
    """
    count, width = max(0, len(first) - 1), u.codes.shape[1]
    at, folded = np.full(count, -1), np.zeros(count, np.int64)
    along, tops = np.zeros((count, u.slopes.shape[1])), np.zeros(count, np.int64)
    units, groups = 0, 0
    for g in range(count):
        a, b = first[g], first[g + 1]
        tops[g] = -1 if b - a < MANY else parallel(u.slopes, a, b, along[g])
        folded[g] = groups
        if tops[g] >= 0:
            at[g] = units
            units, groups = units + b - a, groups + 1
    bends, value = np.zeros(units), np.zeros((units, width))
    slope = np.zeros((units + groups, width))
    for g in range(count):
        if at[g] < 0:
            continue
        a, b, c = first[g], first[g + 1], at[g]
        gain = u.slopes[a:b, tops[g]] / along[g, tops[g]]
        bend = -u.bias[a:b] / gain
        order = np.argsort(bend)
        bends[c : c + b - a] = bend[order]
        start = c + folded[g]  # of its slopes
        for i in range(b - a):
            j = order[i]
            for m in range(width):
                if gain[j] < 0.0:
                    slope[start, m] += gain[j] * written(u, a + j, m)
        for i in range(b - a):
            j = order[i]
            for m in range(width):
                rise = abs(gain[j]) * written(u, a + j, m)
                slope[start + i + 1, m] = slope[start + i, m] + rise
        for j in range(b - a):
            z = gain[j] * bends[c] + u.bias[a + j]
            if z > 0.0:
                for m in range(width):
                    value[c, m] += z * written(u, a + j, m)
        for i in range(1, b - a):
            for m in range(width):
                step = bends[c + i] - bends[c + i - 1]
                value[c + i, m] = value[c + i - 1, m] + slope[start + i, m] * step
    return Pieces(at, folded, along, bends, value, slope)


@compiled()
def add_beyond(
    out: Floats, a: Floats, tokens: Ints, products: Singles, least: Singles, first: int, u: Units
) -> None:
    """The units of one group from number `first` on, for some of its tokens: a row of `products` is
    about what a unit sees of each of them, without its bias. Only where that is beyond ``least``,
    what it sees is computed, and added if it is above 0."""
    count = len(tokens)
    for i in range(len(products)):
        row, border, j = products[i], least[i], first + i
        for begin in range(0, count, STRIDE):
            end = min(begin + STRIDE, count)
            top = row[begin]
            for k in range(begin, end):
                top = max(top, row[k])
            if top <= border:
                continue
            for k in range(begin, end):
                if row[k] > border:
                    t = tokens[k]
                    z = seen_by(u, j, a, t, u.bias[j])
                    if z > 0.0:
                        for m in range(len(out)):
                            out[m, t] += z * written(u, j, m)


@compiled()
def add_units(
    out: Floats,
    a: Floats,
    words: Ints,
    places: Ints,
    fines: Floats,
    groups: Groups,
    u: Units,
    pieces: Pieces,
    done: Bools,
) -> None:
    """Add to each column of `out` what the units of its token write. `fines` are those of its own
    gates: that of its word, and both together. Groups that are `done` are left out."""
    pairs, starts, first = groups.pairs, groups.starts, groups.first
    for t in range(len(words)):
        if words[t] == 0:
            continue
        for turn in range(2):
            if turn == 1 and places[t] == 0:
                break
            key = words[t] * groups.gates + (places[t] if turn else 0)
            g, end = starts[words[t]], starts[words[t] + 1]
            g += np.searchsorted(pairs[g:end], key)
            if g == end or pairs[g] != key or done[g]:
                continue
            c = pieces.at[g]
            if c >= 0 and fines[turn, t] == 0.0:
                s = 0.0
                for h in range(len(a)):
                    s += pieces.along[g, h] * a[h, t]
                size = first[g + 1] - first[g]
                i = c + np.searchsorted(pieces.bends[c : c + size], s)
                anchor = max(i - 1, c)  # the bend to the left, or the first one
                for m in range(len(out)):
                    rise = pieces.slope[i + pieces.folded[g], m] * (s - pieces.bends[anchor])
                    out[m, t] += pieces.value[anchor, m] + rise
                continue
            for j in range(first[g], first[g + 1]):
                z = seen_by(u, j, a, t, u.bias[j] + u.penalty[j] * fines[turn, t])
                if z > 0.0:
                    for m in range(len(out)):
                        out[m, t] += z * written(u, j, m)
