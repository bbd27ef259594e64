"""What an exported graph computes, next to what the model itself does, and how far apart rounding
alone can bring two float64 runs of one network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.certification.attention_balls import array
from rankone.certification.ball_arithmetic import Balls, linear
from rankone.certification.exact_pieces import ExactPieces
from rankone.certification.float_balls import FloatBalls, feedforward
from rankone.interop.onnx.sentences import Padding, run
from rankone.nn import Evaluator, Model, Rank1FeedForward, TokenClassifier
from rankone.nn.layers import FeedForwardLayer
from rankone.plural import plural
from rankone.spans import spans

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Compared:
    """onnxruntime's logits beside rankone's own, both float64, over the tokens of ``source``.

    Differences of two logits are taken relative to max(1, |logit|). They may be 1e-9;
    ``difference`` is the largest there is. Only where float64 itself knows no better, on a steep
    ramp between two labels for instance, what rounding explains (`Rounding`) may be added:
    ``steep`` counts the tokens that need it, and ``steep_difference`` is their largest. ``far``
    counts tokens that differ by more than that, ``wrong`` those with another label, whatever the
    reason.
    """

    source: str
    sentences: int
    tokens: int
    difference: float
    steep: int
    steep_difference: float
    far: int
    wrong: int

    @property
    def ok(self) -> bool:
        return not self.far and not self.wrong

    def line(self) -> str:
        """For people to read."""
        differ = "label differs" if self.wrong == 1 else "labels differ"
        labels = f"{self.wrong:,} {differ}" if self.wrong else "the same labels"
        within = f"logits within {self.difference:.2g}" if self.difference else "identical logits"
        line = f"{self.source}: {plural(self.tokens, 'token')}, {labels}, {within}"
        if self.steep:
            steep = plural(self.steep, "token")
            line += f" (but for {steep} on steep ramps: {self.steep_difference:.2g})"
        return line


def compare(
    session: InferenceSession,
    model: Model,
    rows: Ints,
    offsets: Ints,
    *,
    source: str,
    paddings: tuple[Padding, ...] = ("right",),
    progress: Callable[[float], None] = lambda _: None,
) -> Compared:
    """Every sentence ``offsets[j]:offsets[j + 1]`` of rows of the table, in all `paddings`."""
    network, rng = model.network, np.random.default_rng(0)
    weight, bias = array(network.head.weight), array(network.head.bias)
    evaluator, rounding = Evaluator(network), Rounding(network)
    difference, steep_difference, steep, far, wrong = 0.0, 0.0, 0, 0, 0
    for first, last in spans(offsets):
        ids = rows[offsets[first] : offsets[last]]
        bounds = offsets[first : last + 1] - offsets[first]
        own = evaluator.run(ids, bounds, lambda z: (weight @ z + bias[:, None]).T)
        logits = np.asarray(own, dtype=np.float64)
        labels, scale = model.label_ids(ids, bounds), np.maximum(1.0, np.abs(logits))
        for padding in paddings:
            found = run(session, network.shape, ids, bounds, padding, rng)
            off, allowed = np.abs(found - logits) / scale, np.full_like(logits, TOLERANCE)
            beyond = tokens_beyond(off, allowed)
            if beyond.any():
                at, edges = whole_sentences(beyond, bounds)
                allowed[at] += rounding.room(ids[at], edges) / scale[at]
            too_far = tokens_beyond(off, allowed)
            explained = beyond & ~too_far
            difference = max(difference, float(off[~explained].max(initial=0.0)))
            steep_difference = max(steep_difference, float(off[explained].max(initial=0.0)))
            steep += int(explained.sum())
            far += int(too_far.sum())
            wrong += int((found.argmax(1) != labels).sum())
        progress(last / (len(offsets) - 1))
    sentences, tokens = (len(offsets) - 1) * len(paddings), len(rows) * len(paddings)
    return Compared(source, sentences, tokens, difference, steep, steep_difference, far, wrong)


def tokens_beyond(off: Floats, allowed: Floats) -> Bools:
    """Those with a logit that is further off than allowed, or is no number."""
    return np.asarray(~(off <= allowed).all(1))


def whole_sentences(chosen: Bools, offsets: Ints) -> tuple[Ints, Ints]:
    """The tokens of all sentences with a chosen one, and the offsets of these sentences."""
    some = np.add.reduceat(chosen, offsets[:-1]) > 0
    lengths = np.diff(offsets)
    return np.flatnonzero(np.repeat(some, lengths)), np.append(0, np.cumsum(lengths[some]))


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


def layer_of(layer: FeedForwardLayer) -> Callable[[Balls], Balls]:
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
