"""Definition 2 for given weights, in float64: how far apart are context ids that must differ?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import frexp

import numpy as np
from flint import arb
from numpy.typing import NDArray

from rankone.certify.rounding import Balls, Floats, Ints, gamma
from rankone.nn.exact_layers import norm
from rankone.theory.closest import closest_pair

CRAMPED = 8.0  # a gap of fewer radii than this is measured again, with more digits
PATIENCE = 16  # pairs per context that are compared one by one


@dataclass(frozen=True)
class ContextIds:
    """The context ids q = x + moved of all contexts, that of token `tokens[i]` of the corpus at i.

    ``place[i]`` numbers x: where it is equal, x is the same vector exactly. ``along`` is
    direction . moved, which is known more precisely than q where x is large. Of q itself only a
    projection of its midpoint is kept (``shade``, on `sideways`), how far the midpoint is off
    (``reach``) and how long q can be (``size``); ``locate`` computes q again, (d, k) of k contexts.
    """

    tokens: Ints
    place: Ints
    direction: Floats
    along: Balls
    shade: Floats
    reach: NDArray[np.float32]
    size: NDArray[np.float32]
    locate: Callable[[Ints], Balls]

    def replaced(self, at: Ints, along: Balls, q: Balls) -> ContextIds:
        """Better known context ids in place of those number `at` (in order)."""
        old = Balls(self.along.mid.copy(), self.along.rad.copy())
        old[at] = along
        shade, reach, size = self.shade.copy(), self.reach.copy(), self.size.copy()
        shade[at], reach[at], size[at] = outline(q)

        def locate(wanted: Ints) -> Balls:
            found = self.locate(wanted)
            i = np.minimum(np.searchsorted(at, wanted), len(at) - 1)
            new = at[i] == wanted
            found[:, new] = q[:, i[new]]
            return found

        return replace(self, along=old, shade=shade, reach=reach, size=size, locate=locate)

    @property
    def length(self) -> arb:
        """|direction|."""
        return norm([arb(g) for g in self.direction.tolist()])


def sideways(dim: int) -> Floats:
    """A direction that is shorter than 1, up to rounding, and orthogonal to nothing in particular.

    Projections of two points on it are no further apart than the points.
    """
    drawn = np.random.default_rng(0).uniform(0.5, 1.0, dim)
    return np.asarray(drawn / drawn.sum())


def lengths(columns: Floats) -> Floats:
    """Euclidean norms, off by at most d/2 + 4 roundings, and too small by 2^-500 of the largest.

    A power of two brings the largest entry to about 1, so no square overflows, and what vanishes
    does not matter beside it.
    """
    largest = float(np.abs(columns).max(initial=0.0))
    if not 0 < largest < np.inf:
        return np.asarray(np.abs(columns).max(0))
    unit = 2.0 ** -max(min(frexp(largest)[1], 1000), -1000)
    x = columns * unit
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", x, x)) / unit)


def outline(q: Balls) -> tuple[Floats, NDArray[np.float32], NDArray[np.float32]]:
    """shade, reach and size of columns q; the latter two rounded up."""
    grow = 1 + gamma(len(q.mid) + 8)
    reach, size = (
        x * grow + float(x.max(initial=0.0)) * 2.0**-400 for x in (lengths(q.rad), lengths(q.mid))
    )
    with np.errstate(over="ignore"):
        above = [
            np.nextafter(x.astype(np.float32), np.float32(np.inf)) for x in (reach, size + reach)
        ]
    return sideways(len(q.mid)) @ q.mid, above[0], above[1]


@dataclass
class Gaps:
    """A lower bound of all distances that floats can decide, its pair, and what they cannot.

    ``same`` are clusters of tokens with one x that lie too close to be told apart, ``different``
    clusters of tokens some of which have different x.
    """

    lower: arb = field(default_factory=lambda: arb("inf"))
    pair: tuple[int, int] | None = None
    same: list[list[int]] = field(default_factory=list)
    different: list[list[int]] = field(default_factory=list)

    def offer(self, lower: arb, pair: tuple[int, int]) -> None:
        if self.pair is None or lower < self.lower:
            self.lower, self.pair = lower, pair

    @property
    def unsure(self) -> set[int]:
        return {token for cluster in (*self.same, *self.different) for token in cluster}


def measure(ids: ContextIds) -> Gaps:
    """Every pair of contexts, in the time of two sorts."""
    gaps = Gaps()
    _same_place(ids, gaps)
    _different_places(ids, gaps)
    return gaps


def _same_place(ids: ContextIds, gaps: Gaps) -> None:
    """Tokens with the same x differ by what attention adds: |q - q'| >= |along - along'| / |dir|.

    They are sorted by `along`. If R is the largest radius and two neighbours are g apart, all to
    the left of the gap is at least g - 2R away from all to its right, so neighbours are enough.
    """
    order = by_place(ids.place, ids.along.mid)
    place, mid = np.take(ids.place, order), np.take(ids.along.mid, order)
    R = float(ids.along.rad.max())
    same = place[1:] == place[:-1]
    gap = np.nextafter(mid[1:] - mid[:-1], 0.0)
    sure = gap > CRAMPED * R
    at = np.flatnonzero(same & sure)
    if len(at):
        i = int(at[gap[at].argmin()])
        lower = (arb(float(gap[i])) - 2 * arb(R)) / ids.length
        one, other = ids.tokens[order[i : i + 2]].tolist()
        gaps.offer(lower.lower(), (one, other))
    gaps.same.extend(ids.tokens[order[a:b]].tolist() for a, b in _runs(same & ~sure))


def by_place(place: Ints, along: Floats) -> Ints:
    """The order by place, and by `along` where that is equal: a lexsort, two or three times faster.

    A single sort of whole numbers will do: the place and, in the low bits, `along` in steps of a
    fraction of its range. Only where both agree, which is rare, is there something left to sort.
    """
    low, span = float(along.min()), float(np.ptp(along)) or 1.0
    bits = min(50, 62 - int(place.max()).bit_length())  # floats hold no more without rounding up
    key = ((along - low) / span * (2.0**bits - 1)).astype(np.int64)
    np.bitwise_or(key, place << bits, out=key)
    order = np.argsort(key)
    key = np.take(key, order)
    for a, b in _runs(key[1:] == key[:-1]):
        order[a:b] = order[a:b][np.argsort(along[order[a:b]])]
    return order


def _different_places(ids: ContextIds, gaps: Gaps) -> None:
    """Tokens with different x, as far as they may be closer than the smallest gap so far.

    Shades of q and q' are no further apart than q and q' themselves. So they are sorted, and
    compared with neighbours 1, 2, 3, ... ranks away until none is within reach. Where that would be
    too many pairs, `closest_pair` knows what to do.
    """
    dim, p = len(ids.direction), ids.shade
    R = float(ids.reach.max())
    slip = 4 * gamma(dim + 4) * float(ids.size.max())  # twice what a projection is off by
    order = np.argsort(p)
    p, place = p[order], ids.place[order]
    # beyond this distance (of midpoints) a pair is of no interest, or not to be found closer
    best = np.inf
    if gaps.pair is not None:  # and so much more, as a computed distance may be too small
        best = float((gaps.lower + 2 * arb(R)).upper()) * (1 + gamma(dim + 8))
    pair, compared = None, 0
    near: list[tuple[int, int]] = []
    for lag in range(1, len(p)):
        left = np.flatnonzero(p[lag:] - p[:-lag] <= max(best, CRAMPED * R) + slip)
        if not len(left):
            break
        left = left[place[left] != place[left + lag]]
        compared += len(left)
        if compared > PATIENCE * len(p):
            return _by_points(ids, R, gaps)
        if not len(left):
            continue
        one, other = order[left], order[left + lag]
        p_one, p_other = ids.locate(one), ids.locate(other)
        R = max(R, *(float(outline(q)[1].max()) for q in (p_one, p_other)))
        distance = lengths(p_other.mid - p_one.mid)
        cramped = distance <= CRAMPED * R
        near.extend(zip(one[cramped].tolist(), other[cramped].tolist(), strict=True))
        free = np.where(cramped, np.inf, distance)
        if free.min() < best:
            i = int(free.argmin())
            best, pair = float(free[i]), (int(one[i]), int(other[i]))
    if pair is not None:
        lower = arb(best) * (1 - arb(gamma(dim + 8))) - 2 * arb(R)
        gaps.offer(lower.lower(), (int(ids.tokens[pair[0]]), int(ids.tokens[pair[1]])))
    gaps.different.extend([int(ids.tokens[i]), int(ids.tokens[j])] for i, j in near)
    return None


def _by_points(ids: ContextIds, R: float, gaps: Gaps) -> None:
    points = ids.locate(np.arange(len(ids.tokens)))
    R = max(R, float(outline(points)[1].max()))
    found = closest_pair(points.mid.T, groups=ids.place, among="different")
    if found is None:
        return
    if found.lower > CRAMPED * R:
        i, j = found.pair
        gaps.offer(
            (arb(found.lower) - 2 * arb(R)).lower(), (int(ids.tokens[i]), int(ids.tokens[j]))
        )
    else:
        gaps.different.append(ids.tokens.tolist())


def _runs(joined: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Maximal runs of neighbours that are joined, as (first, behind the last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], joined, [0]])))
    for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield a, b + 1
