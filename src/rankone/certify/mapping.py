"""Definition 2 for given weights, in float64: how far apart are context ids that must differ?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from flint import arb
from numpy.typing import NDArray

from rankone.certify.rounding import Balls, Floats, Ints, gamma
from rankone.theory.closest import closest_pair

CRAMPED = 8.0  # a gap of fewer radii than this is measured again, with more digits
PATIENCE = 16  # pairs per context that are compared one by one


@dataclass(frozen=True)
class ContextIds:
    """The context ids of all contexts: q = x + moved, for token `tokens[i]` of the corpus.

    ``place[i]`` numbers x: where it is equal, x is the same vector exactly. ``along`` is
    direction . moved, which is known more precisely than q where x is large.
    """

    tokens: Ints
    place: Ints
    along: Balls
    q: Balls  # (d, contexts)
    direction: Floats

    @property
    def length(self) -> arb:
        """|direction|."""
        return sum((arb(g) * arb(g) for g in self.direction.tolist()), arb(0)).sqrt()


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
    order = np.lexsort((ids.along.mid, ids.place))
    place, tokens, mid = ids.place[order], ids.tokens[order], ids.along.mid[order]
    R = float(ids.along.rad.max())
    same = place[1:] == place[:-1]
    gap = np.nextafter(mid[1:] - mid[:-1], 0.0)
    sure = gap > CRAMPED * R
    at = np.flatnonzero(same & sure)
    if len(at):
        i = int(at[gap[at].argmin()])
        lower = (arb(float(gap[i])) - 2 * arb(R)) / ids.length
        gaps.offer(lower.lower(), (int(tokens[i]), int(tokens[i + 1])))
    gaps.same.extend(tokens[a:b].tolist() for a, b in _runs(same & ~sure))


def _different_places(ids: ContextIds, gaps: Gaps) -> None:
    """Tokens with different x, as far as they may be closer than the smallest gap so far.

    The projections of q and q' on a direction shorter than 1 are no further apart than q and q'
    themselves. So they are sorted, and compared with neighbours 1, 2, 3, ... ranks away until no
    projections are within reach. Where that would be too many, `closest_pair` knows what to do.
    """
    q, dim = ids.q, len(ids.direction)
    R = float(np.sqrt((q.rad**2).sum(0)).max()) * (1 + gamma(dim + 4))
    direction = np.random.default_rng(0).uniform(0.5, 1.0, dim)
    direction /= direction.sum()
    p = direction @ q.mid
    slip = 4 * gamma(dim + 4) * float(np.abs(q.mid).max())  # twice what a projection is off by
    order = np.argsort(p)
    p, place = p[order], ids.place[order]
    # beyond this distance (of midpoints) a pair is of no interest, or not to be found closer
    best = float((gaps.lower + 2 * arb(R)).upper()) if gaps.pair else np.inf
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
        one, other = order[left], order[left + lag]
        distance = np.sqrt(((q.mid[:, other] - q.mid[:, one]) ** 2).sum(0))
        cramped = distance <= CRAMPED * R
        near.extend(zip(one[cramped].tolist(), other[cramped].tolist(), strict=True))
        free = np.where(cramped, np.inf, distance)
        if len(free) and free.min() < best:
            i = int(free.argmin())
            best, pair = float(free[i]), (int(one[i]), int(other[i]))
    if pair is not None:
        lower = arb(best) * (1 - arb(gamma(dim + 8))) - 2 * arb(R)
        gaps.offer(lower.lower(), (int(ids.tokens[pair[0]]), int(ids.tokens[pair[1]])))
    gaps.different.extend([int(ids.tokens[i]), int(ids.tokens[j])] for i, j in near)
    return None


def _by_points(ids: ContextIds, R: float, gaps: Gaps) -> None:
    found = closest_pair(ids.q.mid.T, groups=ids.place, among="different")
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
