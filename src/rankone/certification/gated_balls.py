"""A network with gates in float64 balls: only what is read, and only the units that can be active.

`Gatekeeper` proves from the weights which units a token can reach; all others are 0. On the
coordinates of gates X + E has one term that is not 0, and attention adds nothing there. So the
gates of a token's own group are what they are for its row and position: exactly 0 for codes, and
known up to rounding for given vectors. Their coordinates need not be looked at. Of the others
only those are held in balls that a head or a unit reads or writes, or that the labels depend on.
The rest of a context id is X + E, of which its norm takes a sum of squares: one term per word and
one per position for coordinates that only one of the two tables has, the others one by one.
Texts may be long, and words frequent: tokens come in pieces, and of large groups only the units
that may be active are looked at (`Crowds`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.certification.attention_balls import array, averages_of
from rankone.certification.ball_arithmetic import Balls, gamma, sparse, up
from rankone.certification.crowds import Crowds, Doubt
from rankone.certification.rare import Rare, by_place
from rankone.certification.window_averages import WindowAverages
from rankone.certification.windows import bare_table
from rankone.deadline import tick
from rankone.nn import TokenClassifier
from rankone.nn.gated import GatedFeedForward
from rankone.nn.gatekeeper import Gatekeeper, gated_layer_of
from rankone.nn.windows import stretches
from rankone.spans import SPAN, places, spans

HUGE = 2.0**400  # no square of a smaller number overflows
HELD = 1 << 23  # numbers in the features that are evaluated at once
PAIRS = 1 << 22  # of a token and a unit that are looked at at once


@dataclass(frozen=True)
class Reached:
    """Pairs of a token and a unit that it can reach, and what the unit sees: z lies in ``seen``."""

    token: Ints
    unit: Ints
    seen: Balls


@dataclass(frozen=True)
class GatedChunk:
    """Tokens `first:last` of the corpus: rows of the table, and positions.

    ``moved`` is what attention adds to the coordinates `GatedBalls.written`, ``features`` the
    output in `GatedBalls.out`. ``starts`` are the offsets of the sentences, or the parts of them
    that a window sees, among the tokens ``around`` (None: just these), from number ``lead`` of
    which on these stand.
    """

    first: int
    last: int
    ids: Ints
    positions: Ints
    starts: Ints
    moved: Balls
    reached: Reached
    features: Balls
    around: Ints | None = None
    lead: int = 0


class GatedBalls:
    """Runs a network of one block with gates over sentences ``offsets[j]:offsets[j + 1]``.

    ``written`` are the coordinates that some head writes, ``out`` those that the labels depend on.
    """

    def __init__(self, network: TokenClassifier, keeper: Gatekeeper, layer: GatedFeedForward):
        self.keeper, self.causal = keeper, network.shape.causal
        self.table = bare_table(network)
        self.windows = WindowAverages(network) if network.shape.window else None
        self.columns: dict[tuple[int, int], Floats] = {}
        self.placed = network.positions is not None
        self.positions = np.zeros((1, network.shape.dim))
        if network.positions is not None:
            self.positions = array(network.positions)
        attention = network.blocks[0].attention
        heads = [head.map(array) for head in attention.heads]
        output = np.concatenate([head.output for head in heads], axis=1)
        self.written = np.flatnonzero(output.any(1))
        self.kind, self.output = attention.kind, output[self.written]
        asked = [w for head in heads for w in (head.key, head.query, head.value)]
        self.read = np.flatnonzero(np.any([w.any(0) for w in asked], axis=0))
        self.heads = [
            replace(h, key=h.key[:, self.read], query=h.query[:, self.read]) for h in heads
        ]
        self.values = [h.value[:, self.read] for h in heads]
        self.out = np.flatnonzero(array(network.head.weight).any(0))
        if not len(self.out):  # no labels: all features are asked for
            self.out = np.arange(network.shape.dim)
        self.reads, self.writes = layer.reads.numpy(), layer.writes.numpy()
        self.slopes, self.bias, self.amplitude = map(
            array, (layer.slopes, layer.bias1, layer.amplitude)
        )
        self.gates, self.penalty = len(layer.gates), array(layer.penalty)  # proved to be positive
        self.held = layer.position.numpy() > 0
        codes = array(layer.codes)
        given = self.out, codes, self.table, self.positions, self.written
        self.rare = Rare.of(self.writes, *given)
        self.common = np.setdiff1d(np.arange(len(self.out)), self.rare.codes.column)
        self.codes = codes.T
        # coordinates in `out` that units write and that are not rare, and the codes there
        i = np.flatnonzero(np.isin(self.writes, self.out) & ~self.rare.there)
        self.dense = np.searchsorted(self.out, self.writes[i])
        self.dense_codes = np.ascontiguousarray(codes[:, i])
        self.plus, self.minus = layer.plus.numpy(), layer.minus.numpy()
        self.o_slip = gamma(2) * float(np.abs(codes).max(initial=0.0))
        if (codes == np.rint(codes)).all() and np.abs(codes).max(initial=0.0) <= 2.0**50:
            self.o_slip = 0.0
        self.crowds = Crowds(keeper, self.slopes, self.bias, self.gates)
        self.doubt: Doubt | None = Doubt()  # None: all units are looked at
        self._norms()

    @classmethod
    def of(cls, network: TokenClassifier) -> GatedBalls | None:
        """None for a network of another kind, where its weights do not prove that the other units
        are 0, and for weights so large that squares overflow."""
        keeper, layer = Gatekeeper.of(network, inexact=True), gated_layer_of(network)
        if keeper is None or layer is None:
            return None
        made = cls(network, keeper, layer)
        sizes = np.abs(made.table).max(), np.abs(made.positions).max(initial=0.0)
        return made if max(sizes) <= HUGE else None

    def run(self, token_ids: Ints, offsets: Ints, size: int = SPAN) -> Iterator[GatedChunk]:
        """Evaluate sentences or texts, about `size` tokens at a time."""
        size = min(size, max(1, HELD // len(self.out)))
        if self.windows is not None:
            for first, last, starts in stretches(offsets, self.windows.window, size):
                lead = int(starts[-1]) - (last - first)
                around = token_ids[first - lead : last]
                moved = self.moved(around, places(starts), starts, lead)
                yield self._chunk(first, around, starts, lead, moved)
            return
        for a, b in spans(offsets, size):
            first, last = int(offsets[a]), int(offsets[b])
            starts, ids = offsets[a : b + 1] - first, token_ids[first:last]
            where = places(starts)
            moved = self.moved(ids, where, starts)
            for i, j in self._pieces(ids, where, size):
                yield self._chunk(first + i, ids, starts, i, moved[:, i:j])

    def _pieces(self, ids: Ints, where: Ints, size: int) -> Iterator[tuple[int, int]]:
        """About `size` tokens at a time, fewer where groups have many units."""
        tokens, groups = self.keeper.groups(ids, where, self.gates, self.crowds.there)
        units = np.bincount(tokens, np.diff(self.keeper.first)[groups], len(ids))
        so_far, i = np.cumsum(units), 0
        while i < len(ids):
            before = so_far[i - 1] if i else 0.0
            j = int(np.searchsorted(so_far, before + PAIRS, side="right"))
            j = min(max(j, i + 1), i + size, len(ids))
            yield i, j
            i = j

    def _chunk(self, first: int, around: Ints, starts: Ints, lead: int, moved: Balls) -> GatedChunk:
        tick()
        own = slice(lead, lead + moved.mid.shape[1])
        ids, where = around[own], places(starts)[own]
        reached = self.reached(ids, where, moved)
        features = self.features(ids, where, moved, reached)
        given = ids, where, starts, moved, reached, features, around, lead
        return GatedChunk(first, first + len(ids), *given)

    def embed(self, at: Ints, ids: Ints, where: Ints) -> Balls:
        """X + E in some coordinates: exact where one of the two is always 0."""
        out = Balls(np.empty((len(at), len(ids))), np.zeros((len(at), len(ids))))
        for row, i in enumerate(at.tolist()):
            out.mid[row] = np.take(self._column(0, i), ids)
            if self.placed and self.positions[:, i].any():
                out.mid[row] += np.take(self._column(1, i), where)
                out.rad[row] = Balls.rounded(out.mid[row]).rad
        return out

    def moved(self, ids: Ints, where: Ints, starts: Ints, lead: int = 0) -> Balls:
        """What attention adds, from token number `lead` on."""
        if self.windows is not None:
            return sparse(self.output, self.windows(ids, starts, lead))
        x, parts = self.embed(self.read, ids, where), []
        for head, weight in zip(self.heads, self.values, strict=True):
            key, query = sparse(head.key, x), sparse(head.query, x)
            value = key if head.shared else sparse(weight, x)
            parts.append(averages_of(key, query, value, starts, self.causal, self.kind))
        mid, rad = (np.concatenate([getattr(p, part) for p in parts]) for part in ("mid", "rad"))
        return sparse(self.output, Balls(mid, rad))

    def _after(self, at: Ints, ids: Ints, where: Ints, moved: Balls) -> Balls:
        """The context ids in some coordinates."""
        h = self.embed(at, ids, where)
        for row, i in enumerate(at.tolist()):
            there = np.flatnonzero(self.written == i)
            if len(there):
                h[row] = h[row] + moved[there[0]] if h.mid[row].any() else moved[there[0]]
        return h

    def reached(self, ids: Ints, where: Ints, moved: Balls) -> Reached:
        """z = slopes . a + bias and what the own gates give, for units of every token's group; of
        large groups only those where it may be above 0."""
        a = self._after(self.reads, ids, where, moved)
        others = ids, where, self.gates, self.crowds.there
        if self.crowds.plain and self.doubt is not None:
            own = self.keeper.groups(*others)
            pairs = [self.crowds.screened(*own, a, self.doubt)]
        else:
            pairs = [self.keeper.reached(*others)]
        if self.crowds.there.any():
            assert self.doubt is not None
            pairs.append(self.crowds.reached(self.keeper.word[ids], a, self.doubt))
        token, unit = (np.concatenate(column) for column in zip(*pairs, strict=True))
        mid, sizes = self.bias[unit], np.abs(self.bias[unit])
        rad, terms = np.zeros_like(mid), len(self.reads) + 1
        if not self.keeper.exact:
            fine, slip = self.keeper.fines(ids[token], where[token], self.held[unit])
            fine, rad = self.penalty[unit] * fine, up(self.penalty[unit] * slip)
            mid, sizes, terms = mid + fine, sizes + np.abs(fine), terms + 2
        for row in range(len(self.reads)):
            steep = self.slopes[unit, row]
            term = steep * a.mid[row, token]
            mid, sizes = mid + term, sizes + np.abs(term)
            rad += np.abs(steep) * a.rad[row, token]
        return Reached(token, unit, Balls(mid, up(rad + gamma(terms) * sizes)))

    def features(self, ids: Ints, where: Ints, moved: Balls, reached: Reached) -> Balls:
        """H + sum_j o_j relu(z_j), in the coordinates `out`."""
        h = self.base(ids, where)
        for k in np.flatnonzero(np.isin(self.out, self.written)).tolist():
            h[k] = self._after(self.out[k : k + 1], ids, where, moved)[0]
        awake = np.flatnonzero(~(reached.seen.upper() <= 0))  # the others are exactly 0
        token, unit, seen = reached.token[awake], reached.unit[awake], reached.seen[awake]
        amplitude = self.amplitude[unit]
        z = np.maximum(seen.mid, 0.0) * amplitude
        off = up(seen.rad * np.abs(amplitude) + gamma(1) * np.abs(z))
        tokens = len(ids)
        count = np.bincount(token, minlength=tokens)
        size = np.abs(z)
        added, sizes, slips = self.summed(
            token, unit, z, size, off, self.o_slip * (size + off), tokens
        )
        some = np.flatnonzero(count)  # to the others nothing is added
        for row, k in enumerate(self.dense.tolist()):
            terms, slip, mid = count[some], slips[row, some], h.mid[k, some]
            whole = np.abs(mid) + sizes[row, some] + slip
            h.mid[k, some] = mid + added[row, some]
            more = slip * (1 + gamma(terms + 2)) + gamma(terms + 1) * whole
            h.rad[k, some] = up(h.rad[k, some] + more)
        self._add_rare(h, token, unit, Balls(z, off), 2 * count)
        return h

    def summed(
        self,
        token: Ints,
        unit: Ints,
        z: Floats,
        size: Floats,
        slip: Floats,
        more: Floats,
        tokens: int,
    ) -> Floats:
        """Sums over pairs of a token and a unit, for the coordinates `dense`: of what is written if
        the unit sees z, and of its size and slip (`add_written`)."""
        from rankone.kernels.compiled.written import add_written  # compiled code: loaded when used

        sums, parts = np.zeros((3, len(self.dense), tokens)), np.stack([z, size, slip, more])
        add_written(sums, token, unit, parts, self.dense_codes, self.plus, self.minus)
        return sums

    def _add_rare(self, h: Balls, token: Ints, unit: Ints, z: Balls, count: Ints) -> None:
        """The same for rare coordinates, up to `count` terms for a token."""
        pair, place, write = self.rare_writes(unit)
        size = np.abs(write)
        parts = write * z.mid[pair], size * np.abs(z.mid[pair]), size * z.rad[pair]
        at, (added, sizes, slips) = by_place(place, token[pair], *parts)
        whole, count = np.abs(h.mid[at]) + sizes + slips, count[at[1]]
        h.mid[at] += added
        more = slips * (1 + gamma(count + 3)) + gamma(count + 2) * whole
        h.rad[at] = up(h.rad[at] + more)

    def base(self, ids: Ints, where: Ints) -> Balls:
        """X + E in the coordinates `out`."""
        h = Balls(*np.zeros((2, len(self.out), len(ids))))
        h[self.common] = self.embed(self.out[self.common], ids, where)
        token, k, value = self.rare.words.at(ids)
        h.mid[k, token] = value
        return h

    def rare_writes(self, unit: Ints) -> tuple[Ints, Ints, Floats]:
        """What units write to rare coordinates, as which of them, the place in `out`, and the
        number: plus and minus by themselves, so these are exact."""
        if not len(self.rare.codes.column):
            nothing = np.empty(0, np.int64)
            return nothing, nothing, np.empty(0)
        plus, minus = (self.rare.codes.at(rows[unit]) for rows in (self.plus, self.minus))
        (one, k, value), (other, k_, value_) = plus, minus
        return (
            np.concatenate([one, other]),
            np.concatenate([k, k_]),
            np.concatenate([value, -value_]),
        )

    def written_by(self, unit: Ints, i: int) -> Floats:
        """What units write to coordinate number i of `writes`, off by at most ``o_slip``."""
        column = self.codes[i]
        return np.asarray(column[self.plus[unit]] - column[self.minus[unit]])

    def heights(self) -> Floats:
        """The largest number that each unit writes, off as much."""
        every, most = np.arange(len(self.bias)), np.zeros(len(self.bias))
        for i in range(len(self.writes)):
            np.maximum(most, np.abs(self.written_by(every, i)), out=most)
        return most

    def located(self, ids: Ints, where: Ints, moved: Balls) -> tuple[Balls, Balls]:
        """What attention adds to some tokens and their context ids, in all coordinates."""
        every = np.arange(self.table.shape[1])
        full = Balls(*np.zeros((2, len(every), len(ids))))
        full[self.written] = moved
        return full, self._after(every, ids, where, moved)

    def sizes(self, ids: Ints, where: Ints, moved: Balls) -> Floats:
        """Upper bounds on the norms of context ids."""
        squares = self.of_word[ids]
        if self.placed:
            squares = squares + self.of_place[where]
        h = self._after(self.apiece, ids, where, moved)
        for mid, rad in zip(h.mid, h.rad, strict=True):
            squares = squares + (np.abs(mid) + rad) ** 2
        grow = 1 + gamma(self.table.shape[1] + 16)
        return np.asarray(np.sqrt(squares) * grow + 2.0**-500)

    def _norms(self) -> None:
        """Sums of squares over the coordinates of one table only, and which coordinates are left.

        Neither in these nor where heads write is anything added to a number of the other table.
        """
        rest = np.ones(self.table.shape[1], bool)
        rest[self.written] = False
        word, place = rest & ~self.positions.any(0), rest & ~self.table.any(0)
        place &= ~word
        with np.errstate(over="ignore"):
            self.of_word = (self.table[:, word] ** 2).sum(1)
            self.of_place = (self.positions[:, place] ** 2).sum(1)
        self.apiece = np.flatnonzero(~(word | place))

    def _column(self, which: int, i: int) -> Floats:
        """A column of the table, or of that of positions, kept once it was asked for."""
        if (which, i) not in self.columns:
            table = (self.table, self.positions)[which]
            self.columns[which, i] = np.ascontiguousarray(table[:, i])
        return self.columns[which, i]
