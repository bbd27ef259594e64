"""How far apart rounding alone can bring two runs of one network, in the precision that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from rankone.arrays import Bools, Floats, Ints
from rankone.certification.attention_balls import array, by_blocks, hardest
from rankone.certification.ball_arithmetic import Balls, linear, up
from rankone.certification.exact_pieces import ExactPieces
from rankone.deadline import tick
from rankone.nn import Evaluator, FeedForward, Rank1FeedForward, TokenClassifier
from rankone.nn.gated import GatedFeedForward
from rankone.nn.layers import AttentionLayer, FeedForwardLayer
from rankone.spans import places, spans

TOLERANCE = 1e-9  # of float64: a million times what rounding does to a number of its own size
SCORE, EXP = 3, 4  # roundings: a key's shift, a score's shift and product; an exponential
FACTORS = 10  # of a matrix of rank 1, which the evaluator writes as a product: 4 eps, and its use
WRITTEN = 6  # of an amplitude times a difference of codes, here and in the run, and its use
UNITS_AT_ONCE = 1 << 20  # hidden units held in memory


class Rounding:
    """Balls that hold what every run of a network gives, whatever the order of its sums.

    An operation of a run is off by at most u, the unit roundoff of the network's dtype (2^-24 or
    2^-53), relative to its result, so n of them in a sum are off by gamma_n = n u / (1 - n u)
    relative to the sizes of its terms (`ball_arithmetic`). The balls of certificates hold the exact
    result of a step for all numbers of the balls that it is given. Here each is widened by what a
    run may lose in that step. So a run that is inside before a step is inside after it, and two
    runs are at most a diameter apart.

    The pieces of a feed-forward layer of rank 1 are taken as float64 holds them, not added up
    exactly. All runs evaluate these pieces, so how well they stand for the units does not matter.
    """

    def __init__(self, network: TokenClassifier) -> None:
        number = torch.finfo(network.dtype)
        self.network, self.u, self.tiny = network, number.eps / 2, number.tiny
        self.causal, self.fixed = network.shape.causal, roundings(network)
        self.table = array(network.table)
        self.positions = None if network.positions is None else array(network.positions)
        self.attentions = [block.attention for block in network.blocks]
        self.feedforwards = [self._feedforward(block.feedforward) for block in network.blocks]
        self.weight, self.bias = array(network.head.weight), array(network.head.bias)[:, None]

    def tolerance(self, lengths: Ints) -> Floats:
        """For tokens of sentences this long: what rounding does to numbers whose errors do not
        grow on their way, relative to a logit; in float64 a rounder number that is far above it.
        """
        return np.maximum(TOLERANCE, 2 * self._gamma(self._roundings(lengths)))

    def room(self, rows: Ints, offsets: Ints) -> Floats:
        """What rounding explains where errors do grow, for every logit, (tokens, labels): twice the
        radius of its ball; 0 where it is infinite.

        Errors grow by the slope (10^6 and more) where a token stands on a steep ramp between two
        labels, for instance. Balls hold the worst of all runs, so float32 balls of several blocks
        are mostly too wide to tell anything. Where they leave the label open, float32 has room for
        what was `measured` instead.
        """
        if self.network.shape.window:  # of which balls know nothing here
            return self.measured(rows, offsets)
        found, sure = [], []
        for z in self.features(rows, offsets):
            logits = self._affine(self.weight, z, self.bias)
            found.append(np.where(np.isfinite(logits.rad), 2 * logits.rad, 0.0).T)
            sure.append(decided(logits))
        room, known = np.concatenate(found), np.concatenate(sure)
        if self.network.dtype == torch.float64 or known.all():
            return room
        return np.where(known[:, None], room, self.measured(rows, offsets))

    def measured(self, rows: Ints, offsets: Ints) -> Floats:
        """How far off the network's own run is somewhere in the sentence, which its run in float64
        tells, times the number of roundings: each may do as much as all of that run did together.
        """
        own, exact = (
            own_logits(self.network, rows, offsets, dtype)
            for dtype in (self.network.dtype, torch.float64)
        )
        lengths, sizes = np.diff(offsets), np.maximum(1.0, np.abs(own))
        seen = np.minimum(lengths, self.network.shape.window or lengths)
        off = np.maximum.reduceat((np.abs(own - exact) / sizes).max(1), offsets[:-1])
        return np.asarray(np.repeat(self._roundings(seen) * off, lengths)[:, None] * sizes)

    def _roundings(self, lengths: Ints) -> Ints:
        """Those that a logit goes through, one after the other: 2n are of averages of n values."""
        return np.asarray(self.fixed + 2 * len(self.attentions) * lengths)

    def features(self, rows: Ints, offsets: Ints) -> Iterator[Balls]:
        """What the last block puts out, (d, tokens) of whole sentences."""
        for first, last in spans(offsets):
            bounds = offsets[first : last + 1] - offsets[first]
            z = self._embed(rows[offsets[first] : offsets[last]], bounds)
            for attention, feedforward in zip(self.attentions, self.feedforwards, strict=True):
                z = feedforward(self._attend(attention, z, bounds))
            yield z

    def _embed(self, ids: Ints, offsets: Ints) -> Balls:
        x = np.ascontiguousarray(self.table[ids].T)
        if self.positions is None:
            return Balls(x, np.zeros_like(x))
        return self._widened(Balls.rounded(x + self.positions[places(offsets)].T), 1)

    def _attend(self, attention: AttentionLayer, z: Balls, offsets: Ints) -> Balls:
        """Z and what all heads add to it.

        Runs take keys and values as they are, or relative to one of them, so no further than twice
        the largest. Scores that are off are keys that are off, and an average that is off is values
        that are off. That of n values has n roundings in each of its two sums, and those of
        exponentials, a quotient and shifts.
        """
        way = by_blocks if attention.kind == "softmax" else hardest
        n = np.diff(offsets)
        parts = []
        for head in (head.map(array) for head in attention.heads):
            s = len(head.key)
            factors = 0 if s == 1 else s + FACTORS
            key, query = (self._affine(w, z, more=factors) for w in (head.key, head.query))
            value = key if head.shared else self._affine(head.value, z, more=factors)
            keys = self._widened(key, s + SCORE, 2 * largest(key, offsets))
            averaging = np.repeat(2 * n + EXP + 3, n)
            values = self._widened(value, averaging, 2 * largest(value, offsets))
            averages = way(keys, query, values, offsets, self.causal)
            parts.append(self._affine(head.output, averages, more=factors))
        return self._sum(z, *parts)

    def _feedforward(self, layer: FeedForwardLayer) -> Callable[[Balls], Balls]:
        if isinstance(layer, Rank1FeedForward):
            return self._folded(layer)
        return self._gated(layer) if isinstance(layer, GatedFeedForward) else self._dense(layer)

    def _folded(self, layer: Rank1FeedForward) -> Callable[[Balls], Balls]:
        """H + w f(a^T H) + b2 with f as `PiecewiseLinear` evaluates it, which rounds once."""
        f = layer.piecewise()
        piece = np.arange(len(f.slopes))
        anchor = piece - (piece > f.start)
        pieces = ExactPieces(f.knots, f.knots[anchor], f.values[anchor], f.slopes, sharp=True)
        a, w, bias2 = map(array, (layer.direction, layer.out_direction, layer.bias2))

        def folded(h: Balls) -> Balls:
            added = self._widened(pieces(self._affine(a[None], h)[0]), 1)
            return self._sum(h, self._affine(w[:, None], added[None], bias2[:, None]))

        return folded

    def _dense(self, layer: FeedForwardLayer) -> Callable[[Balls], Balls]:
        """H + W2 relu(W1 H + b1) + b2."""
        full: FeedForward = layer.expand()
        weight1, bias1 = array(full.weight1), array(full.bias1)[:, None]
        weight2, bias2 = array(full.weight2), array(full.bias2)[:, None]

        def dense(h: Balls) -> Balls:
            hidden = self._affine(weight1, h, bias1)
            # relu never increases the distance of two numbers
            hidden = Balls(np.maximum(hidden.mid, 0.0), hidden.rad)
            return self._sum(h, self._affine(weight2, hidden, bias2))

        return in_steps(dense, len(bias1))

    def _gated(self, layer: GatedFeedForward) -> Callable[[Balls], Balls]:
        """H and what the units write. Those that are silent in all runs add 0 and no rounding, so a
        sum has as many as there are others, and a few in what each of them writes."""
        gates, slopes, bias1 = array(layer.gates), array(layer.slopes), array(layer.bias1)[:, None]
        word, position, reads = (x.numpy() for x in (layer.word, layer.position, layer.reads))
        penalty, codes = array(layer.penalty)[:, None], array(layer.codes).T
        o = array(layer.amplitude) * (codes[:, layer.plus.numpy()] - codes[:, layer.minus.numpy()])
        writes, row = np.unique(layer.writes.numpy(), return_inverse=True)
        weight, sizes = np.zeros((2, len(writes), len(bias1)))
        np.add.at(weight, row, o)
        np.add.at(sizes, row, np.abs(o))
        few = WRITTEN + len(row) - len(writes)

        def gated(h: Balls) -> Balls:
            fines = self._affine(gates, h)
            fine = self._sum(fines[word], fines[position])
            fine = self._widened(Balls(penalty * fine.mid, np.abs(penalty) * fine.rad), 3)
            hidden = self._sum(fine, self._affine(slopes, h[reads], bias1))
            awake = ~(hidden.upper() <= 0)
            hidden = Balls(np.maximum(hidden.mid, 0.0) * awake, np.where(awake, hidden.rad, 0.0))
            terms = awake.sum(0) + few
            added = self._widened(linear(weight, hidden), terms, sizes @ size(hidden))
            out = Balls(h.mid.copy(), h.rad.copy())
            out[writes] = self._sum(h[writes], added)
            return out

        return in_steps(gated, max(gates.shape[0], len(bias1)))

    def _affine(self, weight: Floats, z: Balls, bias: Floats | None = None, more: int = 0) -> Balls:
        """weight z + bias, with as many roundings as there are terms, and `more`."""
        balls, terms = linear(weight, z), weight.shape[-1] + more
        sizes = np.abs(weight) @ size(z)
        if bias is None:
            return self._widened(balls, terms, sizes)
        return self._widened(balls.shifted(bias), terms + 1, sizes + np.abs(bias))

    def _sum(self, first: Balls, *others: Balls) -> Balls:
        """Added up in any order."""
        total, sizes = first, size(first)
        for balls in others:
            total, sizes = total + balls, sizes + size(balls)
        return self._widened(total, len(others), sizes)

    def _widened(self, balls: Balls, n: int | Ints, sizes: Floats | None = None) -> Balls:
        """By n roundings of numbers of these sizes (by default those of the balls), each of which
        may also underflow."""
        sizes = size(balls) if sizes is None else sizes
        return Balls(balls.mid, up(balls.rad + self._gamma(n) * sizes + n * self.tiny))

    def _gamma(self, n: int | Ints) -> Floats:
        return np.asarray(n * self.u / (1 - n * self.u))


def roundings(network: TokenClassifier) -> int:
    """How many roundings a number goes through: sums of as many terms, but for averages."""
    dim = network.shape.dim
    count = 1 + dim + 1  # positions; the head and its bias
    for block in network.blocks:
        heads, layer = block.attention.heads, block.feedforward
        s = len(heads[0].key)
        count += dim + s + SCORE + EXP + 3 + s * len(heads) + 1
        count += dim + 1 + units(layer) + 1
    return count


def units(layer: FeedForwardLayer) -> int:
    """Roundings from the hidden units on. Those of a gated layer are taken to be silent but for
    one group, as they are meant to be; where they are not, rounding has its `Rounding.room`."""
    if isinstance(layer, Rank1FeedForward):
        return 2
    if isinstance(layer, GatedFeedForward):
        group = int(torch.bincount(layer.word, minlength=1).max())
        return 3 + len(layer.reads) + WRITTEN + group
    return layer.hidden + 1


def in_steps(layer: Callable[[Balls], Balls], width: int) -> Callable[[Balls], Balls]:
    """The same for so many tokens at once that their units, `width` each, fit into memory."""
    step = max(1, UNITS_AT_ONCE // max(1, width))

    def stepped(h: Balls) -> Balls:
        out = Balls(np.empty_like(h.mid), np.empty_like(h.rad))
        for i in range(0, h.mid.shape[1], step):
            tick()
            out[:, i : i + step] = layer(h[:, i : i + step])
        return out

    return stepped


def own_logits(
    network: TokenClassifier, rows: Ints, offsets: Ints, dtype: torch.dtype | None = None
) -> Floats:
    """Those that `predict` decides by, (tokens, labels), computed in this type (the network's)."""
    weight, bias = (
        x.detach().to(dtype or network.dtype).numpy()
        for x in (network.head.weight, network.head.bias)
    )
    found = Evaluator(network, dtype).run(rows, offsets, lambda z: (weight @ z + bias[:, None]).T)
    return np.asarray(found, dtype=np.float64)


def decided(logits: Balls) -> Bools:
    """For which tokens, as columns, one label is the best wherever in the balls the logits are."""
    lower, upper = logits.lower(), logits.upper()
    best = logits.mid.argmax(0)[None]
    np.put_along_axis(upper, best, -np.inf, 0)
    sure = np.take_along_axis(lower, best, 0)[0] > upper.max(0)
    return np.asarray(sure & np.isfinite(logits.rad).all(0))


def size(balls: Balls) -> Floats:
    """No number in a ball is larger."""
    return np.asarray(np.abs(balls.mid) + balls.rad)


def largest(balls: Balls, offsets: Ints) -> Floats:
    """The largest size in the sentence, for each of its tokens."""
    found = np.maximum.reduceat(size(balls), offsets[:-1], axis=-1)
    return np.repeat(found, np.diff(offsets), axis=-1)
