"""Which units of a gated layer a token can reach: proved from the weights, then looked up.

The proof is that of Sperner. On the coordinates that some gate of a word fines, every row of the
token table has k ones or more among zeros, and every gate fines all but k coordinates, or more, by
1. So a gate is exactly 0 for the words that have its ones there, and at most -1 for every other,
which has a one elsewhere; likewise for positions. If the penalty of a unit exceeds all that it can
see of averages, it is 0 for every other word and place.

Given vectors are no codes. Then inner products tell the same, with bounds on their rounding
(`gate_products`): a gate is about 0 for one row, and at most -m for every other. On the coordinates
of these gates the sums X + E have one term that is not 0, and attention adds 0 there, so nothing
else is rounded before the layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.nn.classifier import TokenClassifier
from rankone.nn.gate_products import Opened, gamma, opened_by_products
from rankone.nn.gated import GatedFeedForward

Flags = NDArray[np.bool_]

U = 2.0**-53
SPARE = 1 - 2.0**-40  # for the rounding of a product and a difference


@dataclass(frozen=True)
class Gatekeeper:
    """``word[v]`` and ``place[p]`` are the gates that row v of the table and position p open (0 for
    none). Units are kept in the order of their gates; group g, the units ``first[g]`` to
    ``first[g + 1]`` - 1, is for the gates ``pairs[g]`` of a word and of a position (0: any).
    ``word_fine`` and ``place_fine`` are what the opened gates give, and how far that may be off."""

    word: Ints
    place: Ints
    order: Ints
    first: Ints
    pairs: Ints  # sorted
    word_fine: tuple[Floats, Floats]
    place_fine: tuple[Floats, Floats]

    @classmethod
    def of(cls, network: TokenClassifier, *, inexact: bool = False) -> Gatekeeper | None:
        """None where the proof fails, or the network is of another kind. Unless `inexact`, an open
        gate must be exactly 0, in any order of its sum."""
        layer = gated_layer_of(network)
        if layer is None:
            return None
        gates, table = (
            layer.gates.detach().double().numpy(),
            network.table.detach().double().numpy(),
        )
        places = network.positions
        positions = (
            np.zeros((1, table.shape[1])) if places is None else places.detach().double().numpy()
        )
        words, spots = layer.word.numpy(), layer.position.numpy()
        rows = np.unique(words), np.unique(spots[spots > 0])
        if gates[0].any() or 0 in rows[0] or len(np.intersect1d(*rows)):
            return None
        if places is None and len(rows[1]):
            return None
        if len(torch.unique(layer.writes)) < len(layer.writes):  # a case that nobody needs
            return None
        if network.step is not None and _step_is_seen(network, layer):
            return None
        written = np.zeros(table.shape[1], bool)  # by attention
        for head in network.blocks[0].attention.heads:
            written |= head.output.any(1).numpy()
        word = _opened(gates, rows[0], table, positions, written, inexact)
        place = _opened(gates, rows[1], positions, table, written, inexact)
        if word is None or place is None:
            return None
        # another word whose position is right, or the right word at another position
        least = word.margin[words] - place.above[spots]
        least = np.minimum(least, place.margin[spots] - word.above[words])
        reach = reach_of(network, layer, table, positions)
        penalty = layer.penalty.detach().double().numpy()
        if not ((least > 0) & (penalty * least * SPARE > reach)).all():
            return None
        order = np.lexsort((spots, words))
        keys = words[order] * len(gates) + spots[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1, append=-1))
        spot = place.gate[: 0 if places is None else None]
        fines = (word.fine, word.slip), (place.fine, place.slip)
        return cls(word.gate, spot, order, first, keys[first[:-1]], *fines)

    def reached(
        self, ids: Ints, places: Ints, gates: int, without: Flags | None = None
    ) -> tuple[Ints, Ints]:
        """Pairs of a token (its number among these) and a unit that is of its group; `without` some
        of the groups."""
        tokens, group = self.groups(ids, places, gates, without)
        count = self.first[group + 1] - self.first[group]
        start = np.repeat(self.first[group] - (np.cumsum(count) - count), count)
        return np.repeat(tokens, count), self.order[start + np.arange(len(start))]

    def groups(
        self, ids: Ints, places: Ints, gates: int, without: Flags | None = None
    ) -> tuple[Ints, Ints]:
        """Pairs of a token and its group: first those for any position."""
        found: list[tuple[Ints, Ints]] = []
        words = self.word[ids]
        for gate in (np.zeros_like(words), self.place[places] if len(self.place) else None):
            if gate is None:
                continue
            asked = (words > 0) & ((gate > 0) | (len(found) == 0))
            tokens = np.flatnonzero(asked)
            keys = words[tokens] * gates + gate[tokens]
            group = np.minimum(np.searchsorted(self.pairs, keys), max(0, len(self.pairs) - 1))
            there = self.pairs[group] == keys if len(self.pairs) else np.zeros(len(keys), bool)
            if without is not None and len(self.pairs):
                there &= ~without[group]
            found.append((tokens[there], group[there]))
        return tuple(np.concatenate(column) for column in zip(*found, strict=True))  # type: ignore[return-value]

    @property
    def exact(self) -> bool:
        """Whether open gates are exactly 0, in any order of their sums."""
        return not (self.word_fine[1].any() or self.place_fine[1].any())

    def fines(self, ids: Ints, places: Ints, placed: Flags) -> tuple[Floats, Floats]:
        """What the open gates of tokens give, for units that have a gate of a position (`placed`)
        or not, and how far that may be off."""
        (fine, slip), (more, more_slip) = self.word_fine, self.place_fine
        if not len(self.place):
            return fine[ids], slip[ids]
        added = np.where(placed, more[places], 0.0)
        total = fine[ids] + added
        return total, slip[ids] + np.where(placed, more_slip[places], 0.0) + 2 * U * np.abs(total)


def gated_layer_of(network: TokenClassifier) -> GatedFeedForward | None:
    """The gated layer of a network of one block."""
    layers = [block.feedforward for block in network.blocks]
    return layers[0] if len(layers) == 1 and isinstance(layers[0], GatedFeedForward) else None


def _step_is_seen(network: TokenClassifier, layer: GatedFeedForward) -> bool:
    """Whether gates or units depend on where a token stands, which has no bound."""
    assert network.step is not None
    step = network.step.detach() != 0
    heads = network.blocks[0].attention.heads
    values = [bool((head.value[:, step] != 0).any()) for head in heads]
    return bool((layer.gates[:, step] != 0).any()) or bool(step[layer.reads].any()) or any(values)


def _opened(
    gates: Floats, rows: Ints, own: Floats, other: Floats, written: Flags, inexact: bool
) -> Opened | None:
    """For every row of `own` the gate that it opens; None if both proofs fail, or the second one is
    needed and not wanted."""
    used = gates[rows].any(0)
    if other[:, used].any() or written[used].any():
        return None
    gate = _opened_by_codes(gates[np.ix_(rows, used)], rows, own[:, used])
    if gate is not None:
        return Opened.exactly(gate, rows, len(gates))
    return opened_by_products(gates[:, used], rows, own[:, used]) if inexact else None


def _opened_by_codes(gates: Floats, rows: Ints, seen: Floats) -> Ints | None:
    """The proof of Sperner, on the coordinates that gates use."""
    if not len(rows):
        return np.zeros(len(seen), np.int64)
    fines, size = -gates, gates.shape[1]
    zero_one = all(((x == 0) | (x == 1)).all() for x in (fines, seen))
    if not zero_one or size > 64:
        return None
    if seen.sum(1).min(initial=np.inf) < (size - fines.sum(1)).max():
        return None  # some row may have no ones but those of a gate, and still be another one
    codes, wanted = _packed(seen), _packed(1 - fines)
    order = np.argsort(wanted)
    at = np.minimum(np.searchsorted(wanted[order], codes), len(rows) - 1)
    if (np.diff(wanted[order]) == 0).any():
        return None
    return np.where(wanted[order][at] == codes, rows[order][at], 0)


def _packed(bits: Floats) -> NDArray[np.uint64]:
    """At most 64 zeros and ones per row, as one number."""
    eight = np.zeros((len(bits), 8), np.uint8)
    packed = np.packbits(bits.astype(bool), axis=1)
    eight[:, : packed.shape[1]] = packed
    return eight.view(np.uint64)[:, 0]


def reach_of(
    network: TokenClassifier, layer: GatedFeedForward, table: Floats, positions: Floats
) -> Floats:
    """What each unit can see at most besides its gates, whatever the sentence."""
    reads = layer.reads.numpy()
    size = np.abs(table[:, reads]).max(0) + np.abs(positions[:, reads]).max(0)
    for head in network.blocks[0].attention.heads:
        value = head.value.double().numpy()
        used = np.flatnonzero(value.any(0))
        value, rounded = value[:, used], gamma(len(used))
        most = np.zeros(len(value))
        for x in (table[:, used].T, positions[:, used].T):
            most += np.abs(value @ x).max(1) + rounded * (np.abs(value) @ np.abs(x)).max(1)
        size += np.abs(head.output.double().numpy())[reads] @ most
    slopes, bias = (x.detach().double().numpy() for x in (layer.slopes, layer.bias1))
    return np.asarray((np.abs(slopes) @ size + np.abs(bias)) * (1 + 2.0**-20))
