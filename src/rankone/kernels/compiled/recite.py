"""A network with gated units, one token after the other: what it needs, a step, and texts made of
steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Bools, Floats, Ints
from rankone.kernels.compiled.add_units import Groups, Pieces, Units, add_units, seen_by, written
from rankone.kernels.compiled.compiler import FUSED, compiled
from rankone.kernels.compiled.nearest_label import DOUBT, Labels, nearest
from rankone.kernels.compiled.running_averages import (
    Heads,
    State,
    Tables,
    average_prefix,
    average_window,
)

Numbers = NDArray[Any]  # float32 or float64: those of the network
LANES = 32  # units whose products are taken at once,
AT_ONCE = 8  # and heads
END = -1  # in place of the row of a label that no token follows


class Filter(NamedTuple):
    """Large groups, which are ``done`` by blocks. Group g has the blocks ``first[g]`` to
    ``first[g + 1]`` - 1 of `LANES` slopes in single precision, as (block, head, lane), the heads
    filled up with zeros: a unit may be active only where the product reaches ``least``."""

    done: Bools
    first: Ints
    slopes: NDArray[np.float32]
    least: NDArray[np.float32]


class Network(NamedTuple):
    """All that a step needs."""

    tables: Tables
    heads: Heads
    groups: Groups
    units: Units
    pieces: Pieces
    filter: Filter
    labels: Labels


@compiled(fastmath=FUSED)
def blocks_beyond(
    slopes: NDArray[np.float32],
    least: NDArray[np.float32],
    a: NDArray[np.float32],
    first: int,
    last: int,
    products: NDArray[np.float32],
    found: Ints,
) -> int:
    """The lanes of some blocks whose products are beyond their least, in order, counted from the
    first block: how many there are."""
    count = 0
    for block in range(first, last):
        products[:] = np.float32(0.0)
        for h in range(0, len(a), AT_ONCE):
            a0, a1, a2, a3 = a[h], a[h + 1], a[h + 2], a[h + 3]
            a4, a5, a6, a7 = a[h + 4], a[h + 5], a[h + 6], a[h + 7]
            s = slopes[block, h : h + AT_ONCE]
            for k in range(LANES):
                low = (s[0, k] * a0 + s[1, k] * a1) + (s[2, k] * a2 + s[3, k] * a3)
                high = (s[4, k] * a4 + s[5, k] * a5) + (s[6, k] * a6 + s[7, k] * a7)
                products[k] += low + high
        ahead = np.float32(-1.0)
        for k in range(LANES):
            ahead = max(ahead, products[k] - least[block, k])
        if ahead < np.float32(0.0):
            continue
        for k in range(LANES):
            if products[k] >= least[block, k]:
                found[count] = (block - first) * LANES + k
                count += 1
    return count


class Scratch(NamedTuple):
    """Room for the numbers of one step."""

    sums: Floats
    averages: Floats
    seen: Numbers
    a: Floats
    single: NDArray[np.float32]
    added: Floats
    word: Ints
    place: Ints
    fines: Floats
    products: NDArray[np.float32]
    found: Ints


@compiled()
def scratch(net: Network, state: State) -> Scratch:
    heads, (width, reads) = len(state.above), (len(state.features), net.tables.reads.shape[1])
    most = 0
    for g in range(len(net.filter.first) - 1):
        most = max(most, net.filter.first[g + 1] - net.filter.first[g])
    return Scratch(
        np.empty(heads),
        np.empty(heads),
        np.empty_like(net.tables.reads[0]),
        np.empty((reads, 1)),
        np.zeros(-(-reads // AT_ONCE) * AT_ONCE, np.float32),
        np.empty((width, 1)),
        np.empty(1, np.int64),
        np.empty(1, np.int64),
        np.empty((2, 1)),
        np.empty(LANES, np.float32),
        np.empty(most * LANES, np.int64),
    )


@compiled()
def add_large(net: Network, room: Scratch, gate: int) -> None:
    """The units of the large group of a word, if it has one, in their order."""
    u, g = net.units, net.groups.starts[gate]
    if g == len(net.filter.done) or net.groups.pairs[g] != gate * net.groups.gates:
        return
    if not net.filter.done[g]:
        return
    blocks, start = net.filter.first, net.groups.first[g]
    given = room.single, blocks[g], blocks[g + 1], room.products, room.found
    for k in range(blocks_beyond(net.filter.slopes, net.filter.least, *given)):
        j = start + room.found[k]
        z = seen_by(u, j, room.a, 0, u.bias[j])
        if z > 0.0:
            for m in range(len(room.added)):
                room.added[m, 0] += z * written(u, j, m)


@compiled()
def step(net: Network, state: State, room: Scratch, token: int) -> int:
    """See one more token. Returns the label that follows, or `DOUBT`; ``features`` are then those
    of the token, with all that units wrote."""
    tables, at = net.tables, 0
    if net.heads.window == 0:
        at = min(state.seen[0], len(tables.gates_at) - 1)
        average_prefix(tables, net.heads, state, token, at, room.averages)
    else:
        average_window(tables, net.heads, state, token, room.sums, room.averages)
    state.seen[0] += 1
    for r in range(len(room.seen)):
        room.seen[r] = tables.reads[token, r] + tables.reads_at[at, r]
    for h in range(len(room.averages)):
        state.features[0] = room.averages[h]  # rounded to the precision of the network
        room.seen[tables.to[h]] += tables.scale[h] * state.features[0]
    for r in range(len(room.seen)):
        room.a[r, 0] = room.seen[r]
        room.single[r] = room.seen[r]
    room.added[:] = 0.0
    gate = tables.gates[token]
    if gate > 0:
        room.word[0], room.place[0] = gate, tables.gates_at[at]
        room.fines[0, 0] = tables.fines[token]
        room.fines[1, 0] = tables.fines[token] + tables.fines_at[at]
        add_large(net, room, gate)
        given, done = (net.groups, net.units, net.pieces), net.filter.done
        add_units(room.added, room.a, room.word, room.place, room.fines, *given, done)
    for m in range(len(state.features)):
        state.features[m] = room.added[m, 0]
    for m in range(len(state.features)):
        state.features[m] = tables.writes[token, m] + state.features[m]
    return nearest(net.labels, state.features)


@compiled()
def follow(net: Network, state: State, tokens: Ints, out: Ints, first: int) -> int:
    """See these tokens from number `first` on, whatever the network says, and write down the label
    after each. Ends after one that is in doubt; returns how many have been seen."""
    room = scratch(net, state)
    for i in range(first, len(tokens)):
        out[i] = step(net, state, room, tokens[i])
        if out[i] == DOUBT:
            return i + 1
    return len(tokens)


@compiled()
def go_on(
    net: Network, state: State, rows: Ints, most: int, label: int, out: Ints
) -> tuple[int, int]:
    """Begin with a label, see its token, and so on: fills `out`, unless a label has no token (its
    row is `END`), `most` tokens have been seen, or one is in doubt. Returns how many labels there
    are, and the one that follows (or `DOUBT`)."""
    room, i = scratch(net, state), 0
    while i < len(out) and label != DOUBT and rows[label] != END and state.seen[0] < most:
        out[i] = label
        label = step(net, state, room, rows[label])
        i += 1
    return i, label
