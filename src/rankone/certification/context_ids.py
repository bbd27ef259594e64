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


@dataclass(frozen=True)
class ContextIds:
    """The context ids q = x + moved of all contexts, that of token `tokens[i]` of the corpus at i.

    ``place[i]`` numbers x: equal numbers mean exactly the same vector. ``along`` is
    direction . moved, which is known more precisely than q where x is large. Of q itself only a
    projection of its midpoint is kept (``shade``, on `sideways`), its error (``reach``) and an
    upper bound on its norm (``size``); ``locate`` computes moved and q again, (d, k) for k
    contexts. ``straight``: attention moves all tokens along one line, that of ``direction``.
    """

    tokens: Ints
    place: Ints
    direction: Floats
    along: Balls
    shade: Floats
    reach: Floats
    size: Floats
    locate: Callable[[Ints], tuple[Balls, Balls]]
    straight: bool

    def replaced(self, at: Ints, along: Balls, moved: Balls, q: Balls) -> ContextIds:
        """Replace context ids number `at` (in order) by more precise ones."""
        old = Balls(self.along.mid.copy(), self.along.rad.copy())
        old[at] = along
        shade, reach, size = self.shade.copy(), self.reach.copy(), self.size.copy()
        shade[at], reach[at], size[at] = outline(q)

        def locate(wanted: Ints) -> tuple[Balls, Balls]:
            found = self.locate(wanted)
            i = np.minimum(np.searchsorted(at, wanted), len(at) - 1)
            new = at[i] == wanted
            for part, better in zip(found, (moved, q), strict=True):
                part[:, new] = better[:, i[new]]
            return found

        return replace(self, along=old, shade=shade, reach=reach, size=size, locate=locate)

    @property
    def length(self) -> arb:
        """|direction|."""
        return norm([arb(g) for g in self.direction.tolist()])


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
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", x, x)) / unit)


def spare(dim: int) -> float:
    """Relative error of a distance: d/2 + 1 roundings in `lengths` and one in the differences.

    There is room for two more, in whatever is computed from it.
    """
    return gamma(dim + 4)


def outline(q: Balls) -> tuple[Floats, Floats, Floats]:
    """shade, reach and size of columns q; the latter two rounded up."""
    grow = 1 + spare(len(q.mid))
    reach, size = (
        x * grow + np.nanmax(x, initial=0.0) * 2.0**-400 for x in (lengths(q.rad), lengths(q.mid))
    )
    return sideways(len(q.mid)) @ q.mid, reach, (size + reach) * grow
