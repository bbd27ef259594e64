"""How far apart rounding alone can bring the logits of two float64 runs of one network."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor, nn

from rankone.certify.attention import array
from rankone.certify.floats import FloatBalls, feedforward
from rankone.certify.readout import ExactPieces
from rankone.certify.rounding import Balls, Floats, Ints, linear
from rankone.nn import Rank1FeedForward, TokenClassifier


class Rounding(FloatBalls):
    """The network in float64 balls, as certificates have it, but for one thing: the pieces of a
    feed-forward layer of rank 1 are taken as float64 holds them, not added up exactly. Both runs
    evaluate these pieces, so how well they stand for the hidden units does not matter.
    """

    def __init__(self, network: TokenClassifier) -> None:
        self.causal = network.shape.causal
        self.table = array(network.table)
        self.positions = None if network.positions is None else array(network.positions)
        self.attentions = [block.attention for block in network.blocks]
        self.feedforwards = [layer_of(block.feedforward) for block in network.blocks]
        self.weight, self.bias = array(network.head.weight), array(network.head.bias)[:, None]

    def room(self, rows: Ints, offsets: Ints) -> Floats:
        """For every logit, (tokens, labels), twice the radius of its ball; 0 where it is infinite.

        What any order of float64 operations gives lies in the ball. It is wider than 1e-9 where a
        token stands on a steep ramp between two labels: the slope (10^6 and more) times the last
        digit of the token's place on the line.
        """
        chunks = [chunk.features for chunk in self.run(rows, offsets)]
        radii = [linear(self.weight, z).shifted(self.bias).rad.T for z in chunks]
        return 2 * np.nan_to_num(np.concatenate(radii), nan=0.0, posinf=0.0)


def layer_of(layer: nn.Module | Tensor) -> Callable[[Balls], Balls]:
    """H + w f(a^T H) + b2 with f as `PiecewiseLinear` evaluates it; other layers as they are."""
    if not isinstance(layer, Rank1FeedForward):
        return feedforward(layer)
    f = layer.piecewise()
    piece = np.arange(len(f.slopes))
    anchor = piece - (piece > f.start)
    pieces = ExactPieces(f.knots, f.knots[anchor], f.values[anchor], f.slopes, sharp=True)
    a, w, bias2 = map(array, (layer.direction, layer.out_direction, layer.bias2))

    def folded(h: Balls) -> Balls:
        added = linear(w[:, None], pieces(linear(a, h))[None])
        return h + added.shifted(bias2[:, None])

    return folded
