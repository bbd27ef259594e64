"""Groups of units: which of them may be active at which tokens; of large ones, by products of
matrices.

A word may have tens of thousands of contexts and units, nearly all of which are 0 at each context.
A sum of H products in single precision, in any order, of numbers that were rounded to it, is off by
at most (H + 4) u |s| |a| with u = 2^-24 and the norms of slopes and averages (Cauchy and Schwarz).
So where it does not exceed -b less this, what averages may be off and some rounding, the unit is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Bools, Floats, Ints
from rankone.certification.ball_arithmetic import Balls, gamma, up
from rankone.deadline import tick
from rankone.nn.gatekeeper import Gatekeeper

LEAST = 16  # units of a group that is looked at in this way
FEW = 1 << 12  # pairs of a token and a unit that are all taken
HELD = 1 << 21  # products held at once
SINGLE = 2.0**-24
HUGE = 1e15  # slopes are smaller, or single precision might overflow
LOST = 1e-28  # more than what underflows in single precision


@dataclass(frozen=True)
class Doubt:
    """How far a run may see something else than the exact network: what averages are off, as a
    norm, and which share of the bias."""

    averages: float = 0.0
    bias: float = 0.0


class Crowds:
    """The groups for any position that have many units. ``there`` marks them among all groups."""

    def __init__(self, keeper: Gatekeeper, slopes: Floats, bias: Floats, gates: int) -> None:
        self.keeper, self.gates = keeper, gates
        anywhere = keeper.pairs % gates == 0
        self.there: Bools = anywhere & (np.diff(keeper.first) >= LEAST)
        sizes = np.sqrt((slopes**2).sum(1)) * (1 + gamma(slopes.shape[1] + 4))
        self.plain = keeper.exact and bool((sizes < HUGE).all())
        if not self.plain:
            self.there[:] = False
        self.every = slopes, bias, sizes
        self.singles: NDArray[np.float32] = np.empty((0, slopes.shape[1]), np.float32)
        if self.there.any():
            order = keeper.order
            self.singles = slopes[order].astype(np.float32)
            self.sizes, self.bias = sizes[order], bias[order]
        self.group = np.full(gates, -1)  # by the gate of the word
        self.group[keeper.pairs[self.there] // gates] = np.flatnonzero(self.there)

    def screened(self, tokens: Ints, groups: Ints, a: Balls, doubt: Doubt) -> tuple[Ints, Ints]:
        """Pairs of a token and a unit that may be active, for pairs of a token and another group.

        In double precision a sum of H products and a few more numbers, and all that is computed
        of them later, is off by less than 2^-40 |s| |a| and 2^-40 |b|.
        """
        from rankone.kernels.compiled.screen import screen  # compiled code: loaded when used

        tick()
        near, off = (np.sqrt((x**2).sum(0)) * (1 + 2.0**-30) for x in (a.mid, a.rad))
        slip, share = 2.0**-40 * near + off + doubt.averages, doubt.bias + 2.0**-40
        first, order = self.keeper.first, self.keeper.order
        return screen(tokens, groups, first, order, a.mid, *self.every, slip, share, LOST)

    def reached(self, words: Ints, a: Balls, doubt: Doubt) -> tuple[Ints, Ints]:
        """Pairs of a token and a unit of its crowd that may be active, for tokens that open the
        gates `words` and have the averages `a`."""
        group = self.group[words]
        order = np.argsort(group, kind="stable")
        order = order[np.searchsorted(group[order], 0) :]
        bounds = np.flatnonzero(np.diff(group[order], prepend=-1, append=-1))
        found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for i, j in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            tokens, g = order[i:j], int(group[order[i]])
            first, last = int(self.keeper.first[g]), int(self.keeper.first[g + 1])
            if len(tokens) * (last - first) <= FEW:
                units = np.arange(first, last)
                found.append((np.repeat(tokens, len(units)), np.tile(units, len(tokens))))
            else:
                found += self._by_products(tokens, first, last, a, doubt)
        token, unit = (np.concatenate(column) for column in zip(*found, strict=True))
        return token, self.keeper.order[unit]

    def _by_products(
        self, tokens: Ints, first: int, last: int, a: Balls, doubt: Doubt
    ) -> list[tuple[Ints, Ints]]:
        found, step = [], min(len(tokens), max(64, HELD // (last - first)))
        rows = max(1, HELD // step)
        share = (len(a.mid) + 4) * SINGLE * (1 + 2.0**-10)
        grow = 1 + gamma(len(a.mid) + 8)
        for i in range(0, len(tokens), step):
            tick()
            some = tokens[i : i + step]
            mine = a[:, some]
            near, off = (float(np.sqrt((x**2).sum(0).max())) * grow for x in (mine.mid, mine.rad))
            single = mine.mid.astype(np.float32)
            for j in range(first, last, rows):
                own = slice(j, min(j + rows, last))
                slip = self.sizes[own] * (share * near + off + doubt.averages)
                slip += np.abs(self.bias[own]) * (doubt.bias + 2.0**-40) + LOST * (near + 1)
                border = (-self.bias[own] - up(slip)).astype(np.float32)
                border = np.nextafter(border, np.float32(-np.inf))
                seen = self.singles[own] @ single
                unit, token = np.nonzero(~(seen <= border[:, None]))  # also what is not a number
                found.append((some[token], j + unit))
        return found
