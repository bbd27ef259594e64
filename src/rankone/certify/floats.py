"""The network in float64 balls: every layer with the error that rounding can have made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from rankone.certify.attention import array, attend
from rankone.certify.readout import ExactPieces
from rankone.certify.rounding import Balls, Ints, linear
from rankone.deadline import tick
from rankone.nn import Rank1FeedForward, TokenClassifier
from rankone.spans import SPAN, spans

CELLS = 1 << 20  # hidden units of one table


@dataclass(frozen=True)
class Chunk:
    """Tokens `first:last` of the corpus and their positions; columns.

    ``moved`` is what the first attention layer adds to X + E, ``q`` the sum (the context ids),
    ``features`` what the last block puts out.
    """

    first: int
    last: int
    positions: Ints
    moved: Balls
    q: Balls
    features: Balls


class FloatBalls:
    """Runs a network over sentences ``offsets[j]:offsets[j + 1]`` of a column of token ids."""

    def __init__(self, network: TokenClassifier) -> None:
        self.causal = network.shape.causal
        self.table = array(network.table)
        self.positions = None if network.positions is None else array(network.positions)
        self.attentions = [block.attention for block in network.blocks]
        self.feedforwards = [feedforward(block.feedforward) for block in network.blocks]

    def run(self, token_ids: Ints, offsets: Ints, size: int = SPAN) -> Iterator[Chunk]:
        """Whole sentences at a time, so that what is computed stays small."""
        for a, b in spans(offsets, size):
            first, last = int(offsets[a]), int(offsets[b])
            starts = offsets[a : b + 1] - first
            moved, q = self.context_ids(token_ids[first:last], starts)
            z = self.feedforwards[0](q)
            for attention, layer in zip(self.attentions[1:], self.feedforwards[1:], strict=True):
                z = layer(z + attend(attention, z, starts, self.causal))
            yield Chunk(first, last, positions(starts), moved, q, z)

    def context_ids(self, ids: Ints, offsets: Ints) -> tuple[Balls, Balls]:
        """What the first attention layer adds to X + E, and the sum."""
        x = self._embed(ids, offsets)
        moved = attend(self.attentions[0], x, offsets, self.causal)
        return moved, x + moved

    def _embed(self, ids: Ints, offsets: Ints) -> Balls:
        """X + E, one rounding."""
        x = np.ascontiguousarray(self.table[ids].T)
        if self.positions is None:
            return Balls(x, np.zeros_like(x))
        return Balls.rounded(x + self.positions[positions(offsets)].T)


def positions(offsets: Ints) -> Ints:
    """The place of every token in its sentence, from 0."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def feedforward(layer: nn.Module | Tensor) -> Callable[[Balls], Balls]:
    """H + W2 relu(W1 H + b1) + b2 (eq. 3)."""
    if isinstance(layer, Rank1FeedForward):
        f = ExactPieces.from_units(*map(array, (layer.gain, layer.bias1, layer.out_gain)))
        a, w, bias2 = map(array, (layer.direction, layer.out_direction, layer.bias2))

        def rank1(h: Balls) -> Balls:
            added = f(linear(a, h))
            return (h + linear(w[:, None], added[None])).shifted(bias2[:, None])

        return rank1
    names = "weight1", "bias1", "weight2", "bias2"
    weight1, bias1, weight2, bias2 = (array(getattr(layer, name)) for name in names)

    def dense(h: Balls) -> Balls:
        step = max(1, CELLS // max(1, len(bias1)))
        parts = []
        for i in range(0, h.mid.shape[1], step):
            tick()
            part = h[:, i : i + step]
            hidden = linear(weight1, part).shifted(bias1[:, None])
            # relu brings two numbers no further apart than they were
            hidden = Balls(np.maximum(hidden.mid, 0.0), hidden.rad)
            parts.append((part + linear(weight2, hidden)).shifted(bias2[:, None]))
        mid, rad = (np.concatenate([getattr(p, x) for p in parts], 1) for x in ("mid", "rad"))
        return Balls(mid, rad)

    return dense
