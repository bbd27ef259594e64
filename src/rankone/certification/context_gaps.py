"""Definition 2 in float64: how far apart are the context ids that must differ?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import SLACK, Balls, gamma
from rankone.certification.context_ids import ContextIds, grown, length_of, lengths, spare
from rankone.deadline import tick
from rankone.spans import SPAN
from rankone.theory.closest import closest_pair

CRAMPED = 8.0  # radii: a smaller gap is measured again, with more digits
PATIENCE = 16  # pairs per context that are compared one by one
MANY = 1 << 15  # contexts of which those of different x are not compared if they are far apart
NONE = (-1, -1)  # in place of a pair


@dataclass
class Gaps:
    """A lower bound on all distances that float64 can decide, its pair, and what it cannot decide.

    ``same`` are clusters of tokens with the same x that are too close for float64, ``different``
    clusters in which some tokens have different x.
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


@dataclass(frozen=True)
class Widest:
    """The largest radii of all contexts: of `along`, and of what attention adds, as a norm (0 where
    that is not kept, and found as pairs are compared)."""

    along: float
    moved: float

    @classmethod
    def of(cls, ids: ContextIds) -> Widest:
        along = float(ids.along.rad.max(initial=0.0))
        return cls(along, 0.0 if ids.kept is None else norm_of(ids.kept))


def norm_of(balls: Balls) -> float:
    """The largest radius of these columns, as a norm."""
    parts = (balls.rad[:, i : i + SPAN] for i in range(0, balls.rad.shape[1], SPAN))
    return max((float(grown(rad).max(initial=0.0)) for rad in parts), default=0.0)


@dataclass(frozen=True)
class Nearest:
    """Of some contexts, the pair that is closest among those that float64 can tell apart, its
    `distance` as computed, and clusters of tokens that are too close for that. ``reach`` is the
    largest radius.

    Nothing depends on the order of the contexts: of pairs at equal distance the first one counts.
    """

    distance: float = inf
    pair: tuple[int, int] = NONE
    clusters: tuple[tuple[int, ...], ...] = ()
    reach: float = 0.0

    @classmethod
    def merged(cls, parts: Iterable[Nearest]) -> Nearest:
        """Of all contexts, from those of separate places."""
        parts = list(parts)
        least = min(parts, key=lambda part: (part.distance, part.pair))
        clusters = sorted(cluster for part in parts for cluster in part.clusters)
        reach = max(part.reach for part in parts)
        return cls(least.distance, least.pair, tuple(clusters), reach)


def measure_gaps(ids: ContextIds) -> Gaps:
    """Bound the distance of every pair of contexts, in the time of two sorts."""
    gaps = gaps_of(nearest(ids, Widest.of(ids)), ids.direction, ids.straight)
    if needs_others(gaps, ids.apart, len(ids.tokens)):
        different_places(ids, gaps)
    return gaps


def gaps_of(found: Nearest, direction: Floats, straight: bool) -> Gaps:
    """The bound for contexts with the same x."""
    gaps = Gaps(same=[list(cluster) for cluster in found.clusters])
    if found.distance < inf:
        gaps.offer(lower_bound(found, direction, straight), found.pair)
    return gaps


def lower_bound(found: Nearest, direction: Floats, straight: bool) -> arb:
    if straight:
        return ((arb(found.distance) - 2 * arb(found.reach)) / length_of(direction)).lower()
    known = arb(found.distance) * (1 - arb(spare(len(direction))))
    return (known - 2 * arb(found.reach)).lower()


def needs_others(gaps: Gaps, apart: float, contexts: int) -> bool:
    """Whether contexts with different x may be closest, and have to be compared. Of many that are
    known to be far `apart`, that alone is the bound."""
    if gaps.pair is not None and gaps.lower < apart:
        return False
    if apart > 0 and contexts > MANY:
        gaps.lower, gaps.pair = arb(apart) * (1 - arb(2) ** -40), None  # at least that
        return False
    return True


def nearest(ids: ContextIds, widest: Widest) -> Nearest:
    """The closest of contexts with the same x; all contexts have radii up to `widest`."""
    if not len(ids.tokens):
        return Nearest(reach=widest.along if ids.straight else widest.moved)
    order = by_place(ids.place, ids.along.mid)
    if ids.straight:
        return _neighbours(ids, order, widest.along)
    # `along` is known up to its radius; beyond the threshold no two tokens can be closer
    length, slip = float(ids.length), 2 * widest.along
    sweep = Sweep(ids, order, ids.along.mid[order], alike=True, scale=length, slip=slip)
    return sweep.run(inf, widest.moved)


def _neighbours(ids: ContextIds, order: Ints, R: float) -> Nearest:
    """Tokens with the same x, where attention moves all tokens along one line.

    Then |q - q'| = |along - along'| / |direction|, and `order` is the order on the line. If R is
    the largest radius and two neighbours are g apart, all to the left of the gap is at least g - 2R
    away from all to its right, so neighbours are enough.
    """
    joined = np.zeros(len(order) - 1, dtype=np.bool_)
    least = inf, NONE
    for i in range(0, len(joined), SPAN):  # in pieces that fit in the cache
        part = order[i : i + SPAN + 1]
        place, mid = np.take(ids.place, part), np.take(ids.along.mid, part)
        same = place[1:] == place[:-1]
        gap = np.nextafter(mid[1:] - mid[:-1], -np.inf)
        sure = gap > CRAMPED * R
        joined[i : i + SPAN] = same & ~sure
        free = np.where(same & sure, gap, np.inf)
        least = min(least, first_of(free, ids.tokens[part[:-1]], ids.tokens[part[1:]]))
    clusters = (sorted(ids.tokens[order[a:b]].tolist()) for a, b in _runs(joined))
    return Nearest(*least, tuple(sorted(map(tuple, clusters))), R)


def first_of(distance: Floats, one: Ints, other: Ints) -> tuple[float, tuple[int, int]]:
    """The smallest distance, and of the pairs of tokens that have it the first."""
    least = float(distance.min(initial=inf))
    if least == inf:
        return inf, NONE
    at = np.flatnonzero(distance == least)
    pairs = np.sort(np.stack([one[at], other[at]]), axis=0)
    i = np.lexsort(pairs[::-1])[0]
    return least, (int(pairs[0, i]), int(pairs[1, i]))


def different_places(ids: ContextIds, gaps: Gaps) -> None:
    """Tokens with different x that may be closer than the smallest gap so far.

    Exact shades of q and q' are no further apart than q and q' themselves; each is off by a sum's
    rounding.
    """
    shade, reach = ids.outlined()
    slip = 2 * gamma(len(ids.direction)) * float(ids.size.max())
    R = float(reach.max())
    best = inf
    if gaps.pair is not None:  # plus a margin, since a computed distance may be too small
        best = float((gaps.lower + 2 * arb(R)).upper()) * (1 + spare(len(ids.direction)))

    order = np.argsort(shade)
    found = Sweep(ids, order, shade[order], alike=False, scale=1.0, slip=slip).run(best, R)
    gaps.different.extend(map(list, found.clusters))
    if found.distance < inf:
        gaps.offer(lower_bound(found, ids.direction, False), found.pair)


@dataclass
class Sweep:
    """The closest pair of tokens with the same x (`alike`) or with different ones.

    ``p`` are numbers in increasing order (if alike, for each x by itself) such that two tokens
    whose numbers differ by more than ``scale`` T + ``slip`` are at least T apart. So each is
    compared with those 1, 2, 3, ... ranks away until none is within reach. If alike, what attention
    adds is compared, otherwise the context ids.
    """

    ids: ContextIds
    order: Ints
    p: Floats
    alike: bool
    scale: float
    slip: float

    def run(self, best: float, R: float) -> Nearest:
        """The closest pair, if it is closer than `best`, and the pairs closer than a few radii;
        these are up to R, or more if pairs that are compared show that."""
        place = self.ids.place[self.order]
        least, compared = (best, NONE), 0
        near: list[Ints] = []
        for lag in range(1, len(self.p)):
            tick()
            reach = (self.scale * max(least[0], CRAMPED * R) + self.slip) * SLACK
            left = self._within(lag, place, reach)
            if not len(left):
                break
            if not self.alike:
                left = left[place[left] != place[left + lag]]
            compared += len(left)
            if compared > PATIENCE * len(self.p):
                return self._by_points(best, R)
            step = len(left) if self.ids.kept is None or not self.alike else SPAN
            for i in range(0, len(left), max(1, step)):
                one, other = self.order[left[i : i + step]], self.order[left[i : i + step] + lag]
                points = self._points(np.concatenate([one, other]))
                R = max(R, float(grown(points.rad).max()))
                distance = lengths(points.mid[:, len(one) :] - points.mid[:, : len(one)])
                cramped = ~(distance > CRAMPED * R)
                tokens = self.ids.tokens[one], self.ids.tokens[other]
                near.append(np.stack(tokens, axis=1)[cramped])
                found = first_of(np.where(cramped, np.inf, distance), *tokens)
                least = min(least, found)
        pairs = np.sort(np.concatenate([np.empty((0, 2), np.int64), *near]), axis=1)
        clusters = tuple(sorted(map(tuple, pairs.tolist())))
        return Nearest(*(least if least[1] != NONE else (inf, NONE)), clusters, R)

    def _within(self, lag: int, place: Ints, reach: float) -> Ints:
        """Where a number is no more than `reach` below the one `lag` ranks up."""
        found = []
        for i in range(0, len(self.p) - lag, SPAN):
            end = min(i + SPAN, len(self.p) - lag)
            within = self.p[i + lag : end + lag] - self.p[i:end] <= reach
            if self.alike:
                within &= place[i + lag : end + lag] == place[i:end]
            found.append(i + np.flatnonzero(within))
        return np.concatenate(found)

    def _points(self, at: Ints) -> Balls:
        return self.ids.moved(at) if self.alike else self.ids.locate(at)[1]

    def _by_points(self, best: float, R: float) -> Nearest:
        """Use `closest_pair` where there are too many pairs to compare one by one."""
        tokens = self.ids.tokens
        points = self._points(np.arange(len(tokens)))
        R = max(R, norm_of(points))
        among: Literal["same", "different"] = "same" if self.alike else "different"
        found = closest_pair(points.mid.T, groups=self.ids.place, among=among)
        if found is None:
            return Nearest(reach=R)
        if not found.lower > CRAMPED * R:
            runs = [(0, len(tokens))]
            if self.alike:
                place = self.ids.place[self.order]
                runs = list(_runs(place[1:] == place[:-1]))
            clusters = (sorted(tokens[self.order[a:b]].tolist()) for a, b in runs)
            return Nearest(clusters=tuple(sorted(map(tuple, clusters))), reach=R)
        i, j = found.pair
        distance = float(lengths(points.mid[:, [i]] - points.mid[:, [j]])[0])
        if distance * (1 - spare(len(self.ids.direction))) > found.lower:  # others are as close
            distance = found.lower
        one, other = sorted(tokens[[i, j]].tolist())
        return Nearest(distance, (one, other), (), R) if distance < best else Nearest(reach=R)


def by_place(place: Ints, along: Floats) -> Ints:
    """The order by place, and by `along` where that is equal: a lexsort, two or three times faster.

    One sort of integers: the place and, in the low bits, `along` in steps of a fraction of its
    range. Only ties in both, which are rare, are sorted again.
    """
    half = along / 2  # so that the range is finite
    low, span = float(half.min()), float(np.ptp(half)) or 1.0
    bits = min(50, 62 - int(place.max()).bit_length())  # more would round up in float64
    half -= low
    half /= span
    half *= 2.0**bits - 1
    key = half.astype(np.int64)
    np.bitwise_or(key, place << bits, out=key)
    order = np.argsort(key)
    key = np.take(key, order)
    ties = np.concatenate([[False], key[1:] == key[:-1], [False]])
    tied = np.flatnonzero(ties[1:] | ties[:-1])
    late = order[tied]
    order[tied] = late[np.lexsort((along[late], key[tied]))]
    return order


def _runs(joined: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Maximal runs of joined neighbours, as (first, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], joined, [0]])))
    for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield a, b + 1
