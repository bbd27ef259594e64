"""The network in float64 balls: every layer with a bound on its rounding errors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.certification.attention_balls import array, attend
from rankone.certification.ball_arithmetic import Balls, gamma, linear, up
from rankone.certification.exact_pieces import ExactPieces
from rankone.certification.window_averages import WindowAverages
from rankone.certification.windows import bare_table
from rankone.deadline import tick
from rankone.nn import Rank1FeedForward, TokenClassifier
from rankone.nn.gated import GatedFeedForward
from rankone.nn.layers import FeedForwardLayer
from rankone.spans import SPAN, places, spans

UNITS_AT_ONCE = 1 << 20  # hidden units held in memory


@dataclass(frozen=True)
class Chunk:
    """Tokens `first:last` of the corpus, as columns, and their positions.

    ``moved`` is what the first attention layer adds to X + E, ``q`` the sum (the context ids),
    ``features`` the output of the last block.
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
        self.table = bare_table(network)
        self.windows = WindowAverages(network) if network.shape.window else None
        self.positions = None if network.positions is None else array(network.positions)
        self.attentions = [block.attention for block in network.blocks]
        self.feedforwards = [feedforward(block.feedforward) for block in network.blocks]

    def run(self, token_ids: Ints, offsets: Ints, size: int = SPAN) -> Iterator[Chunk]:
        """Evaluate whole sentences, about `size` tokens at a time."""
        for a, b in spans(offsets, size):
            first, last = int(offsets[a]), int(offsets[b])
            starts = offsets[a : b + 1] - first
            moved, q = self.context_ids(token_ids[first:last], starts)
            z = self.feedforwards[0](q)
            for attention, layer in zip(self.attentions[1:], self.feedforwards[1:], strict=True):
                z = layer(z + attend(attention, z, starts, self.causal))
            yield Chunk(first, last, places(starts), moved, q, z)

    def context_ids(self, ids: Ints, offsets: Ints) -> tuple[Balls, Balls]:
        """What the first attention layer adds to X + E, and the sum."""
        x = self._embed(ids, offsets)
        if self.windows is not None:
            output = [array(head.output) for head in self.attentions[0].heads]
            moved = linear(np.concatenate(output, axis=1), self.windows(ids, offsets))
        else:
            moved = attend(self.attentions[0], x, offsets, self.causal)
        return moved, x + moved

    def _embed(self, ids: Ints, offsets: Ints) -> Balls:
        """X + E, one rounding."""
        x = np.ascontiguousarray(self.table[ids].T)
        if self.positions is None:
            return Balls(x, np.zeros_like(x))
        return Balls.rounded(x + self.positions[places(offsets)].T)


def feedforward(layer: FeedForwardLayer) -> Callable[[Balls], Balls]:
    """H + W2 relu(W1 H + b1) + b2 (eq. 3)."""
    if isinstance(layer, Rank1FeedForward):
        f = ExactPieces.from_units(*map(array, (layer.gain, layer.bias1, layer.out_gain)))
        a, w, bias2 = map(array, (layer.direction, layer.out_direction, layer.bias2))

        def rank1(h: Balls) -> Balls:
            added = f(linear(a, h))
            return (h + linear(w[:, None], added[None])).shifted(bias2[:, None])

        return rank1
    if isinstance(layer, GatedFeedForward):
        layer = copy.deepcopy(layer).double()
    sizes = written_out(layer)
    full = layer.expand()
    weight1, bias1 = array(full.weight1), array(full.bias1)
    weight2, bias2 = array(full.weight2), array(full.bias2)

    def dense(h: Balls) -> Balls:
        step = max(1, UNITS_AT_ONCE // max(1, len(bias1)))
        parts = []
        for i in range(0, h.mid.shape[1], step):
            tick()
            part = h[:, i : i + step]
            hidden = linear(weight1, part).shifted(bias1[:, None])
            if sizes is not None:
                hidden.rad[:] = up(
                    hidden.rad + gamma(8) * (sizes[0] @ (np.abs(part.mid) + part.rad))
                )
            # relu never increases the distance of two numbers
            hidden = Balls(np.maximum(hidden.mid, 0.0), hidden.rad)
            added = linear(weight2, hidden)
            if sizes is not None:
                added.rad[:] = up(added.rad + gamma(8) * (sizes[1] @ (hidden.mid + hidden.rad)))
            parts.append((part + added).shifted(bias2[:, None]))
        mid, rad = (np.concatenate([getattr(p, x) for p in parts], 1) for x in ("mid", "rad"))
        return Balls(mid, rad)

    return dense


def written_out(layer: FeedForwardLayer) -> tuple[Floats, Floats] | None:
    """Sizes of what the two matrices of a gated layer are added up from, for their rounding."""
    if not isinstance(layer, GatedFeedForward):
        return None
    gates, slopes, amplitude, codes = (
        np.abs(array(x)) for x in (layer.gates, layer.slopes, layer.amplitude, layer.codes)
    )
    one = np.abs(array(layer.penalty))[:, None] * (
        gates[layer.word.numpy()] + gates[layer.position.numpy()]
    )
    np.add.at(one.T, layer.reads.numpy(), slopes.T)
    two = np.zeros(one.shape[::-1])
    o = amplitude[:, None] * (codes[layer.plus.numpy()] + codes[layer.minus.numpy()])
    np.add.at(two, layer.writes.numpy(), o.T)
    return one, two
