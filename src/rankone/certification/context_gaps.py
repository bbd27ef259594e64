"""Definition 2 in float64: how far apart are the context ids that must differ?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import SLACK, Balls, gamma
from rankone.certification.context_ids import ContextIds, lengths, outline, spare
from rankone.deadline import tick
from rankone.spans import SPAN
from rankone.theory.closest import closest_pair

CRAMPED = 8.0  # radii: a smaller gap is measured again, with more digits
PATIENCE = 16  # pairs per context that are compared one by one
MANY = 1 << 15  # contexts of which those of different x are not compared if they are far apart


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


def measure_gaps(ids: ContextIds) -> Gaps:
    """Bound the distance of every pair of contexts, in the time of two sorts."""
    gaps = Gaps()
    order = by_place(ids.place, ids.along.mid)
    if ids.straight:
        _neighbours(ids, order, gaps)
    else:
        _same_place(ids, order, gaps)
    if gaps.pair is None or not gaps.lower < ids.apart:
        if ids.apart > 0 and len(ids.tokens) > MANY:
            gaps.lower, gaps.pair = arb(ids.apart) * (1 - arb(2) ** -40), None  # at least that
        else:
            _different_places(ids, gaps)
    return gaps


def _neighbours(ids: ContextIds, order: Ints, gaps: Gaps) -> None:
    """Tokens with the same x, where attention moves all tokens along one line.

    Then |q - q'| = |along - along'| / |direction|, and `order` is the order on the line. If R is
    the largest radius and two neighbours are g apart, all to the left of the gap is at least g - 2R
    away from all to its right, so neighbours are enough.
    """
    R = float(ids.along.rad.max())
    joined = np.zeros(len(order) - 1, dtype=np.bool_)
    least, at = np.inf, 0
    for i in range(0, len(joined), SPAN):  # in pieces that fit in the cache
        part = order[i : i + SPAN + 1]
        place, mid = np.take(ids.place, part), np.take(ids.along.mid, part)
        same = place[1:] == place[:-1]
        gap = np.nextafter(mid[1:] - mid[:-1], -np.inf)
        sure = gap > CRAMPED * R
        joined[i : i + SPAN] = same & ~sure
        free = np.where(same & sure, gap, np.inf)
        if free.min(initial=np.inf) < least:
            at, least = i + int(free.argmin()), float(free.min())
    if least < np.inf:
        one, other = ids.tokens[order[at : at + 2]].tolist()
        gaps.offer(((arb(least) - 2 * arb(R)) / ids.length).lower(), (one, other))
    gaps.same.extend(ids.tokens[order[a:b]].tolist() for a, b in _runs(joined))


def _same_place(ids: ContextIds, order: Ints, gaps: Gaps) -> None:
    """Tokens with the same x, wherever attention moves them: |q - q'| >= |along - along'| / |dir|.

    `along` is known up to its radius; beyond the threshold no two tokens can be closer.
    """
    length, slip = float(ids.length), 2 * float(ids.along.rad.max())
    sweep = Sweep(ids, order, ids.along.mid[order], alike=True, scale=length, slip=slip)
    gaps.same.extend(sweep.run(gaps, np.inf, 0.0))


def _different_places(ids: ContextIds, gaps: Gaps) -> None:
    """Tokens with different x that may be closer than the smallest gap so far.

    Exact shades of q and q' are no further apart than q and q' themselves; each is off by a sum's
    rounding.
    """
    shade, reach = ids.outlined()
    slip = 2 * gamma(len(ids.direction)) * float(ids.size.max())
    R = float(reach.max())
    best = np.inf
    if gaps.pair is not None:  # plus a margin, since a computed distance may be too small
        best = float((gaps.lower + 2 * arb(R)).upper()) * (1 + spare(len(ids.direction)))

    order = np.argsort(shade)
    sweep = Sweep(ids, order, shade[order], alike=False, scale=1.0, slip=slip)
    gaps.different.extend(sweep.run(gaps, best, R))


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

    def run(self, gaps: Gaps, best: float, R: float) -> list[list[int]]:
        """Offer the closest pair below `best`; returns the pairs closer than a few radii."""
        ids, place = self.ids, self.ids.place[self.order]
        pair, compared = None, 0
        near: list[list[int]] = []
        for lag in range(1, len(self.p)):
            tick()
            reach = (self.scale * max(best, CRAMPED * R) + self.slip) * SLACK
            left = self._within(lag, place, reach)
            if not len(left):
                break
            if not self.alike:
                left = left[place[left] != place[left + lag]]
            compared += len(left)
            if compared > PATIENCE * len(self.p):
                return self._by_points(gaps)
            if not len(left):
                continue
            one, other = self.order[left], self.order[left + lag]
            points = self._points(np.concatenate([one, other]))
            R = max(R, float(outline(points)[1].max()))
            distance = lengths(points.mid[:, len(one) :] - points.mid[:, : len(one)])
            cramped = ~(distance > CRAMPED * R)
            pairs = np.stack([ids.tokens[one], ids.tokens[other]], axis=1)
            near.extend(pairs[cramped].tolist())
            free = np.where(cramped, np.inf, distance)
            if free.min() < best:
                i = int(free.argmin())
                best, pair = float(free[i]), (int(pairs[i, 0]), int(pairs[i, 1]))
        if pair is not None:
            known = arb(best) * (1 - arb(spare(len(ids.direction))))
            gaps.offer((known - 2 * arb(R)).lower(), pair)
        return near

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

    def _by_points(self, gaps: Gaps) -> list[list[int]]:
        """Use `closest_pair` where there are too many pairs to compare one by one."""
        tokens = self.ids.tokens
        points = self._points(np.arange(len(tokens)))
        R = float(outline(points)[1].max())
        among: Literal["same", "different"] = "same" if self.alike else "different"
        found = closest_pair(points.mid.T, groups=self.ids.place, among=among)
        if found is None:
            return []
        if not found.lower > CRAMPED * R:
            if not self.alike:
                return [tokens.tolist()]
            place = self.ids.place[self.order]
            return [tokens[self.order[a:b]].tolist() for a, b in _runs(place[1:] == place[:-1])]
        pair = int(tokens[found.pair[0]]), int(tokens[found.pair[1]])
        gaps.offer((arb(found.lower) - 2 * arb(R)).lower(), pair)
        return []


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
