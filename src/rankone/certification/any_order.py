"""Is every run in the weights' own type right, in whatever order it adds? For networks with gates.

With u the unit of rounding, a sum of m rounded products in any order is off by at most gamma_m
times the sum of their sizes, and adding zeros is exact.

*Averages.* Keys and values are multiples of 2^-20 and small, and the query is a power of two, so
X + E, scores and their differences are exact. Let p be the softmax weights of n tokens and
s = sum p |v|. Exponentials within 2 units in the last place are off by shares of at most 4u, which
moves the average a by 4u sum p |v - a| <= 8u s. The sum of the exponentials, the quotients, the
products and the sum of these are off by the share gamma_2n, whichever is divided first: in all
gamma_(2n+12) s. Heads write to coordinates of their own, where X + E is 0: no more is rounded.
With a window, n is its length at most. Scores are the place in the text times a number of few bits,
and exact, too; as they may be large, a run has to take the largest one off.

*Gates.* Those of a token's own group add exact zeros. Outside it a unit of penalty B is fined m B
for a whole number m >= 1, and the rest of what it sees is at most M. Its d + 1 products and their
sum are off by at most gamma_2(d+8) (m B + M), so it is 0 if B exceeds M by enough. M counts
averages as large as a run can make them.

*Units.* z has H products and a bias: gamma_(H+1), and what the averages are off times the slopes.
A unit that can only be negative adds exact zeros. Otherwise relu passes on no more than z is off.
Amplitudes times codes, whole numbers, times relu, t of them and X + E added up: gamma_(t+2).

*Labels.* A logit of k products and a bias: gamma_(k+1). The exact features lie in the balls of
`GatedBalls`; where the label leads by more than all this together may shift it, every run has it.
"""

from __future__ import annotations

from copy import copy

import numpy as np
import torch

from rankone.arrays import Floats, Ints
from rankone.certification.attention_balls import array, averages_of
from rankone.certification.ball_arithmetic import Balls, gamma, up
from rankone.certification.crowds import Doubt
from rankone.certification.exact_scores import Attending, attending, fading
from rankone.certification.gated_balls import GatedBalls, GatedChunk
from rankone.certification.label_heads import CodeHead, Head, head_of
from rankone.certification.leads import narrowed
from rankone.certification.mixed_head import MixedHead
from rankone.certification.rare import by_place
from rankone.nn import TokenClassifier
from rankone.nn.gatekeeper import gated_layer_of, reach_of
from rankone.spans import places

ARITHMETIC = (
    "sums in any order; every operation correctly rounded, a product and a sum perhaps in one; exp "
    "within 2 units in the last place, of scores as they are or less the largest, in one softmax "
    "over all tokens; padding has weight 0; numbers below the normal range may become 0"
)
WINDOWED = ARITHMETIC.replace("as they are or less the largest", "less the largest")
CODES = 2.0**20  # of labels: their differences are exact
PLAIN = 1e-20, 1e20  # sizes of weights, other than 0: products do not underflow
LARGE = 1e30  # nothing that is added up is larger: no overflow
TINY = 1e-30  # what may become 0, a million times over
ROUNDED = 0.25  # gamma is used for n u below this
ROUGH = 2.0**-6  # averages that may be off by more: large groups are not worth trying
LOGITS = 1 << 22  # held at once


class AnyOrder:
    """Sees a corpus piece by piece. ``right`` as long as it is proved that every run gives all
    tokens with gold labels the exact labels."""

    def __init__(
        self,
        network: TokenClassifier,
        balls: GatedBalls,
        heads: list[Attending],
        gold: Ints,
        head: Head,
    ) -> None:
        self.balls, self.heads, self.gold = balls, heads, gold
        self.u = torch.finfo(network.dtype).eps / 2
        self.mixed = head if isinstance(head, MixedHead) else None
        self.codes = head.codes if isinstance(head, CodeHead) else None
        self.weight, self.bias = np.empty((0, 0)), array(network.head.bias)
        if self.mixed is None:
            self.weight = array(network.head.weight)[:, balls.out]
        self.right = True
        self._around: tuple[Ints, Floats] | None = None

    @classmethod
    def of(
        cls,
        network: TokenClassifier,
        balls: GatedBalls,
        gold: Ints,
        longest: int,
        head: Head | None = None,
    ) -> AnyOrder | None:
        """None if the network is not of the kind for which this can be tried; `longest` is the
        number of tokens of the longest sentence."""
        layer, u = gated_layer_of(network), torch.finfo(network.dtype).eps / 2
        heads = (
            attending(network, balls) if balls.windows is None else fading(network, balls, longest)
        )
        longest = min(longest, network.shape.window or longest)
        if layer is None or heads is None or 2 * (longest + network.shape.dim + 16) * u > ROUNDED:
            return None
        reads, writes, out = set(balls.reads), set(balls.writes), set(balls.out)
        plain = all(
            _plain(x)
            for x in (
                *(array(getattr(layer, name)) for name in ("slopes", "bias1", "amplitude")),
                array(network.head.weight),
                array(network.head.bias),
                balls.table[:, balls.writes],
                balls.positions[:, balls.writes],
            )
        )
        codes, penalty = array(layer.codes), array(layer.penalty)
        whole = (codes == np.rint(codes)).all() and np.abs(codes).max(initial=0.0) <= CODES
        if not (
            balls.keeper.exact
            and plain
            and whole
            and reads == set(balls.written)
            and len(reads) == len(balls.reads) == len(heads)
            and len(writes) == len(balls.writes)
            and not writes & reads
            and out <= writes
            and (penalty >= 1).all()
            and (penalty <= LARGE).all()
        ):
            return None
        slip = gamma(2 * (network.shape.dim + 8), u)
        seen = reach_of(network, layer, balls.table, balls.positions)
        seen = seen * (1 + gamma(2 * longest + 12, u)) + TINY
        if not (penalty * (1 - slip) > seen * (1 + slip) * (1 + 2.0**-20)).all():
            return None
        made = cls(network, balls, heads, gold, head or head_of(narrowed(network.head, balls.out)))
        made.look_at_groups(longest)
        return made

    def look_at_groups(self, longest: int) -> None:
        """What units may see in a run counts for what is left out of their groups."""
        at = np.array([head.value for head in self.heads])
        most = np.abs(self.balls.table[:, at]).max(0) + np.abs(self.balls.positions[:, at]).max(0)
        off = up((2 * longest + 12) * self.u / (1 - (2 * longest + 12) * self.u) * most) + TINY
        rounded = gamma(len(self.heads) + 1, self.u)
        away = float(up(np.sqrt((off**2).sum()) + rounded * np.sqrt(((most + off) ** 2).sum())))
        if away <= ROUGH:
            self.balls.doubt = Doubt(away * (1 + 2.0**-30), rounded)
        elif self.balls.crowds.there.any():
            self.right = False
        else:
            self.balls.doubt = None

    def over(self, gold: Ints) -> AnyOrder:
        """The same for other tokens."""
        other = copy(self)
        other.gold, other._around = gold, None
        return other

    def see(self, chunk: GatedChunk, labels: Ints, off: Floats) -> None:
        """Tokens with these exact labels, proved where ``off`` is below 1/2."""
        asked = np.flatnonzero(self.gold[chunk.first : chunk.last] >= 0)
        if not self.right or not len(asked):
            return
        if not (off[asked] < 0.5).all():
            self.right = False
            return
        slip, mid = self.features_slip(chunk), chunk.features.mid
        if len(asked) < len(chunk.ids):
            slip, mid, labels = slip[:, asked], mid[:, asked], labels[asked]
        leads = self._by_codes if self.codes is not None else self._by_logits
        if self.mixed is not None:
            leads = self._by_mixed
        self.right = bool(
            (slip < LARGE).all() and (np.abs(mid) < LARGE).all() and leads(mid, slip, labels).all()
        )

    def averages_slip(self, chunk: GatedChunk) -> tuple[Floats, Floats]:
        """sum p |v| for every coordinate that a head writes, and how far a run's average may be
        from the exact one."""
        n = chunk.positions + 1
        if self.balls.windows is not None:
            n = np.minimum(n, self.balls.windows.window)
        if not self.balls.causal:
            lengths = np.diff(chunk.starts)
            n = np.repeat(lengths, lengths)[chunk.lead : chunk.lead + len(chunk.ids)]
        rounding = (2 * n + 12) * self.u
        rounding = rounding / (1 - rounding)
        around = chunk.ids if chunk.around is None else chunk.around
        if self._around is None or self._around[0] is not around:  # pieces of a text share them
            self._around = around, self._sizes(around, chunk.starts)
        sizes = self._around[1][:, chunk.lead : chunk.lead + len(chunk.ids)]
        return sizes, up(rounding * sizes) + TINY

    def _sizes(self, ids: Ints, starts: Ints) -> Floats:
        """sum p |v|, rounded up."""
        where, windows, found = places(starts), self.balls.windows, []
        one = np.zeros((1, len(ids)))
        for row, head in enumerate(self.heads):
            key, value = self.balls.embed(np.array([head.key, head.value]), ids, where).mid  # exact
            size = Balls(np.abs(value)[None], one)
            if windows is not None:
                average = windows.powers[row].averages(size, where)
            else:
                asked = Balls(one + head.query, one)
                average = averages_of(Balls(key[None], one), asked, size, starts, self.balls.causal)
            found.append(average.mid[0] + average.rad[0])
        return np.array(found)

    def units_slip(self, chunk: GatedChunk) -> Floats:
        """How far a run's z may be from the exact one, for every pair of a token and a unit."""
        balls, token, unit = self.balls, chunk.reached.token, chunk.reached.unit
        sizes, off = self.averages_slip(chunk)
        total, slip, most = np.abs(balls.bias[unit]), np.zeros(len(unit)), sizes + off
        for i, at in enumerate(balls.reads.tolist()):
            row = int(np.searchsorted(balls.written, at))
            steep = np.abs(balls.slopes[unit, i])
            slip += steep * off[row, token]
            total += steep * most[row, token]
        return up(slip + gamma(len(self.heads) + 1, self.u) * total) + TINY

    def features_slip(self, chunk: GatedChunk) -> Floats:
        """How far a run's features, in the coordinates `out`, may be from the middle of the balls
        of the exact ones."""
        balls, reached = self.balls, chunk.reached
        slip = self.units_slip(chunk)
        upper = reached.seen.mid + reached.seen.rad + slip
        some = np.flatnonzero(~(upper <= 0))  # the others are 0 in every run, and exactly
        token, unit, slip, upper = reached.token[some], reached.unit[some], slip[some], upper[some]
        tokens = len(chunk.ids)
        terms = np.bincount(token, minlength=tokens)
        rounding = (terms + 2) * self.u
        rounding = np.where(rounding < ROUNDED, rounding / (1 - rounding), np.inf)
        amplitude = np.abs(balls.amplitude[unit])
        if not (amplitude * upper < LARGE).all():
            return np.full((len(balls.out), tokens), np.inf)
        away, base = chunk.features.rad.copy(), balls.base(chunk.ids, chunk.positions)
        grow = 1 + gamma(2 * terms + 8)
        sizes, slips, nothing = amplitude * upper, amplitude * slip, np.zeros(len(unit))
        _, sizes, slips = balls.summed(token, unit, nothing, sizes, slips, nothing, tokens)
        for row, k in enumerate(balls.dense.tolist()):
            added = slips[row] + rounding * (np.abs(base.mid[k]) + sizes[row])
            away[k] = up((away[k] + TINY * (terms + 2) + added) * grow)
        # rare coordinates are exactly 0 but where something is written
        usual, place, _ = balls.rare.words.at(chunk.ids)
        pair, other, write = balls.rare_writes(unit)
        share, nothing = np.abs(write) * amplitude[pair], np.zeros(len(place))
        where, (most, rare_slips) = by_place(
            np.concatenate([place, other]),
            np.concatenate([usual, token[pair]]),
            np.concatenate([nothing, share * upper[pair]]),
            np.concatenate([nothing, share * slip[pair]]),
        )
        own = where[1]
        added = rare_slips + rounding[own] * (np.abs(base.mid[where]) + most)
        away[where] = up((away[where] + TINY * (terms[own] + 2) + added) * grow[own])
        return away

    def _by_codes(self, y: Floats, slip: Floats, labels: Ints) -> Floats:
        """|y_i - c_i| may be so far from 1/2 in every coordinate that logits cannot be mixed up:
        the label leads by 1 - 2e (`LabelCodes`), and two logits are off by `slip` each."""
        assert self.codes is not None
        away = (np.abs(y - self.codes.codes.T[:, labels]) + slip).max(0)
        slips = self.codes.slip(np.abs(y) + slip, self.u)
        return np.asarray(up(away + slips) + TINY < 0.5)

    def _by_mixed(self, y: Floats, slip: Floats, labels: Ints) -> Floats:
        """Whether the label of a code or distribution leads by more than the rounding of two logits
        (`MixedHead`), wherever features are."""
        head = self.mixed
        assert head is not None
        z = Balls(y, slip)
        parts = z[head.at], z[head.own]
        found, lead = head.leader(*parts)
        rounded = 2 * up(gamma(head.width + 2, self.u) * head.terms(*parts)) + TINY
        return np.asarray((found == labels) & (lead > rounded))

    def _by_logits(self, y: Floats, slip: Floats, labels: Ints) -> Floats:
        """Whether every token's label leads all others, by more than both may be off."""
        size, bias = np.abs(self.weight), self.bias[:, None]
        terms = np.count_nonzero(self.weight, axis=1)[:, None] + 1
        share = terms * self.u
        share = np.where(share < ROUNDED, share / (1 - share), np.inf)
        share = share + gamma(len(y) + 1)  # that of a run, and that of the next lines
        step, leads = max(1, LOGITS // len(bias)), np.empty(y.shape[1], bool)
        for i in range(0, y.shape[1], step):
            part = slice(i, i + step)
            logits = self.weight @ y[:, part] + bias
            total = size @ (np.abs(y[:, part]) + slip[:, part]) + np.abs(bias)
            away = up(size @ slip[:, part] * (1 + gamma(len(y))) + share * total) + TINY
            chosen = labels[part][None]
            own = np.take_along_axis(np.nextafter(logits - away, -np.inf), chosen, 0)
            rivals = np.nextafter(logits + away, np.inf)
            np.put_along_axis(rivals, chosen, -np.inf, 0)
            leads[part] = (own > rivals.max(0)).all(0)
        return leads


def _plain(values: Floats) -> bool:
    size = np.abs(values)
    return bool(((size == 0) | ((size >= PLAIN[0]) & (size <= PLAIN[1]))).all())
