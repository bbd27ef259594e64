"""A gated layer over many tokens: each looks up its group, and only that group's units are run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Bools, Floats, Ints
from rankone.deadline import tick
from rankone.nn.classifier import TokenClassifier
from rankone.nn.gatekeeper import Gatekeeper, gated_layer_of

if TYPE_CHECKING:
    from rankone.kernels.compiled.add_units import Groups, Pieces, Units

Numbers = NDArray[Any]

LARGE = 128  # units: of such a group, products of matrices say which may be active,
TOKENS = 16  # if it has so many tokens
HELD = 1 << 20  # products that are held at once: they stay in the cache
HUGE = 1e15  # slopes and averages are smaller, or single precision might not do
SINGLE = 2.0**-24


@dataclass(frozen=True)
class GatedLayer:
    """A gated layer that is added to columns in place, by looking up the group of each token. An
    open gate adds what it gives for the token's row and position, which is 0 for codes.

    ``singles`` are the slopes of large groups in single precision, by the number of the group.
    """

    keeper: Gatekeeper
    reads: Ints
    writes: Ints
    groups: Groups
    units: Units
    pieces: Pieces
    singles: dict[int, Large]
    placed: bool

    def __call__(self, h: Numbers, ids: Ints, spots: Ints) -> None:
        from rankone.kernels.compiled.add_units import add_units  # compiled code: loaded when used

        words = self.keeper.word[ids]
        own = np.flatnonzero(words)
        fines = np.zeros((2, len(own)))
        fines[:] = self.keeper.word_fine[0][ids[own]]
        place = np.zeros(len(own), np.int64)
        if self.placed:
            place = self.keeper.place[spots[own]]
            fines[1] += self.keeper.place_fine[0][spots[own]]
        added = np.zeros((len(self.writes), len(own)))
        a = h[np.ix_(self.reads, own)].astype(np.float64)
        done = self._large(added, a, words[own])
        given = self.groups, self.units, self.pieces, done
        add_units(added, a, words[own], place, fines, *given)
        h[np.ix_(self.writes, own)] += added.astype(h.dtype)

    def _large(self, added: Floats, a: Floats, words: Ints) -> Bools:
        """Add the large groups that have many tokens; says which ones."""
        done = np.zeros(len(self.groups.pairs), bool)
        if not self.singles or not np.abs(a).max(initial=0.0) < HUGE:
            return done
        order = np.argsort(words, kind="stable")
        bounds = np.searchsorted(words[order], np.arange(self.groups.gates + 1))
        for g, large in self.singles.items():
            word = int(self.groups.pairs[g]) // self.groups.gates
            tokens = order[bounds[word] : bounds[word + 1]]
            if len(tokens) >= TOKENS:
                done[g] = True
                large.add(added, a, tokens, self.units)
        return done

    def at(self, live: Ints) -> GatedLayer:
        """The same for columns that have these coordinates only."""
        reads, writes = (np.searchsorted(live, x) for x in (self.reads, self.writes))
        return replace(self, reads=reads, writes=writes)


@dataclass(frozen=True)
class Large:
    """The units of one group, from number ``first`` on, with ``slopes`` in single precision.

    A sum of H products in single precision, in any order, and of numbers that were rounded to it,
    is off by at most (H + 4) u |s| |a|, with the norms of slopes and averages. A unit may be active
    where the sum exceeds ``border`` - ``slip`` |a|.
    """

    first: int
    slopes: NDArray[np.float32]
    border: Floats
    slip: Floats

    @classmethod
    def of(cls, first: int, last: int, units: Units) -> Large | None:
        slopes, bias = units.slopes[first:last], units.bias[first:last]
        size = np.sqrt((slopes**2).sum(1))
        if not size.max(initial=0.0) < HUGE:
            return None
        share = (slopes.shape[1] + 4) * SINGLE * 1.01
        slip = share * size + 1e-30  # what is too small for single precision counts, too
        border = -bias - 2.0**-40 * np.abs(bias)
        return cls(first, slopes.astype(np.float32), border, slip)

    def add(self, added: Floats, a: Floats, tokens: Ints, units: Units) -> None:
        """Add what they write to these tokens."""
        from rankone.kernels.compiled import threads  # compiled code: loaded when used

        tick()
        share = -(-len(tokens) // threads.count())
        pieces = threads.pieces(0, len(tokens), max(TOKENS, share))
        threads.products(self._add, ((added, a, tokens[i:j], units) for i, j in pieces))

    def _add(self, added: Floats, a: Floats, tokens: Ints, units: Units) -> None:
        from rankone.kernels.compiled.add_units import add_beyond  # compiled code: loaded when used

        count = max(1, len(self.slopes))
        step = min(len(tokens), max(64, HELD // count))
        rows = min(count, max(1, HELD // step))
        held = np.empty((rows, step), np.float32)
        for i in range(0, len(tokens), step):
            some = tokens[i : i + step]
            mine = a[:, some]
            single = np.ascontiguousarray(mine, np.float32)
            longest = float(np.sqrt((mine**2).sum(0).max()))
            least = (self.border - self.slip * (longest + 1.0)).astype(np.float32)
            least = np.nextafter(least, np.float32(-np.inf))
            for j in range(0, count, rows):
                own = slice(j, j + rows)
                products = held[: len(least[own]), : len(some)]
                np.matmul(self.slopes[own], single, out=products)
                add_beyond(added, a, some, products, least[own], self.first + j, units)


def gated_layer(network: TokenClassifier, *, inexact: bool = True) -> GatedLayer | None:
    """The gated layer of a network of one block; None for other networks, and where the weights do
    not prove that units of other groups are 0 (without `inexact`, exactly in any order)."""
    keeper, layer = Gatekeeper.of(network, inexact=inexact), gated_layer_of(network)
    if keeper is None or layer is None:
        return None
    from rankone.kernels.compiled.add_units import Groups, Units, fold  # loaded when used

    def wide(name: str) -> Floats:
        return np.array(getattr(layer, name).detach().numpy(), np.float64, order="C")

    order, gates = keeper.order, len(layer.gates)
    units = Units(
        wide("slopes")[order],
        wide("bias1")[order],
        wide("penalty")[order],
        wide("amplitude")[order],
        wide("codes"),
        layer.plus.numpy()[order],
        layer.minus.numpy()[order],
    )
    starts = np.searchsorted(keeper.pairs, np.arange(gates + 1) * gates)
    groups = Groups(keeper.pairs, starts, keeper.first, gates)
    pieces = fold(keeper.first, units)
    sizes = np.diff(keeper.first)
    anywhere = (keeper.pairs % gates == 0) & (sizes >= LARGE) & (pieces.at < 0)
    singles = {}
    for g in np.flatnonzero(anywhere).tolist() if keeper.exact else []:
        large = Large.of(int(keeper.first[g]), int(keeper.first[g + 1]), units)
        if large is not None:
            singles[g] = large
    reads, writes = layer.reads.numpy(), layer.writes.numpy()
    placed = network.positions is not None
    return GatedLayer(keeper, reads, writes, groups, units, pieces, singles, placed)
