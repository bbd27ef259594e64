"""The context ids of a corpus in float64: what is kept of them to bound their distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import frexp

import numpy as np
from flint import arb

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import Balls, gamma
from rankone.nn.arb_network import norm
from rankone.spans import SPAN


@dataclass(frozen=True)
class ContextIds:
    """The context ids q = x + moved of all contexts, that of token `tokens[i]` of the corpus at i.

    ``place[i]`` numbers x: equal numbers mean exactly the same vector, and context ids of different
    places are at least ``apart`` away from each other. ``along`` is direction . moved, which is
    known more precisely than q where x is large, ``size`` an upper bound on the norm of q, and
    ``locate`` computes moved and q again, (d, k) for k contexts. ``straight``: attention moves all
    tokens along one line, that of ``direction``. What attention adds is ``kept`` if it differs
    from 0 in the few coordinates ``rows`` only. Of q a projection of its midpoint on `sideways` is
    kept (``shade``), and its error (``reach``); both are None where they are not likely to be
    needed, and computed by `outlined`.
    """

    tokens: Ints
    place: Ints
    direction: Floats
    along: Balls
    shade: Floats | None
    reach: Floats | None
    size: Floats
    locate: Callable[[Ints], tuple[Balls, Balls]]
    straight: bool
    rows: Ints | None = None
    kept: Balls | None = None
    apart: float = 0.0

    def moved(self, at: Ints) -> Balls:
        """What attention adds, in the coordinates where it adds something."""
        return self.locate(at)[0] if self.kept is None else self.kept[:, at]

    def outlined(self) -> tuple[Floats, Floats]:
        """shade and reach."""
        if self.shade is not None and self.reach is not None:
            return self.shade, self.reach
        shade, reach = np.empty((2, len(self.tokens)))
        for i in range(0, len(shade), SPAN):
            part = slice(i, i + SPAN)
            shade[part], reach[part], _ = outline(self.locate(np.arange(len(shade))[part])[1])
        return shade, reach

    def replaced(self, at: Ints, along: Balls, moved: Balls, q: Balls) -> ContextIds:
        """Replace context ids number `at` (in order) by more precise ones."""
        old = Balls(self.along.mid.copy(), self.along.rad.copy())
        old[at] = along
        new, size = outline(q), self.size.copy()
        shade, reach = (None if x is None else x.copy() for x in (self.shade, self.reach))
        size[at] = new[2]
        if shade is not None and reach is not None:
            shade[at], reach[at] = new[:2]
        kept = self.kept
        if kept is not None and self.rows is not None:
            kept = Balls(kept.mid.copy(), kept.rad.copy())
            kept[:, at] = moved[self.rows]

        def locate(wanted: Ints) -> tuple[Balls, Balls]:
            found = self.locate(wanted)
            i = np.minimum(np.searchsorted(at, wanted), len(at) - 1)
            new = at[i] == wanted
            for part, better in zip(found, (moved, q), strict=True):
                part[:, new] = better[:, i[new]]
            return found

        return replace(
            self, along=old, shade=shade, reach=reach, size=size, kept=kept, locate=locate
        )

    @property
    def length(self) -> arb:
        """|direction|."""
        return length_of(self.direction)


def length_of(direction: Floats) -> arb:
    return norm([arb(g) for g in direction.tolist()])


def sideways(dim: int) -> Floats:
    """A generic direction of length at most 1.

    Projections of two points on it are no further apart than the points. (In one dimension it is
    1 itself; in more its entries, none above 2/3, add up to about 1, so its length is below 0.9.)
    """
    drawn = np.random.default_rng(0).uniform(0.5, 1.0, dim)
    return np.asarray(drawn / drawn.sum())


def lengths(columns: Floats) -> Floats:
    """Euclidean norms, off by at most d/2 + 1 roundings, and too small by 2^-500 of the largest.

    A power of two scales the largest entry to about 1, so no square overflows, and what underflows
    is negligible next to it. NaN for columns that are not finite.
    """
    largest = float(np.abs(columns).max(initial=0.0))
    if not largest < np.inf:
        finite = np.isfinite(columns).all(0)
        found = np.full(columns.shape[1], np.nan)
        found[finite] = lengths(columns[:, finite])
        return found
    unit = 2.0 ** -max(min(frexp(largest)[1], 1000), -1000)
    x = columns * unit
    squares = np.zeros(x.shape[1])
    for row in x:  # one after the other, however many columns there are
        squares += row * row
    return np.asarray(np.sqrt(squares) / unit)


def spare(dim: int) -> float:
    """Relative error of a distance: d/2 + 1 roundings in `lengths` and one in the differences.

    There is room for two more, in whatever is computed from it.
    """
    return float(gamma(dim + 4))


def outline(q: Balls) -> tuple[Floats, Floats, Floats]:
    """shade, reach and size of columns q; the latter two rounded up."""
    grow, reach, size = 1 + spare(len(q.mid)), grown(q.rad), grown(q.mid)
    return sideways(len(q.mid)) @ q.mid, reach, (size + reach) * grow


def grown(columns: Floats) -> Floats:
    """The norms of columns, rounded up."""
    x = lengths(columns)
    return np.asarray(x * (1 + spare(len(columns))) + np.nanmax(x, initial=0.0) * 2.0**-400)
