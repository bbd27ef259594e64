"""Which directions v for the keys and v' for the queries need the fewest digits."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rankone.construct.mapping import Floats
from rankone.construct.projection import (
    HELD,
    IN_PLANE,
    draw_directions,
    find_projection,
    projected,
)

Query = Literal["shared", "separate"]


def fewest_digits(
    x: Floats, points: Floats, query: Query, *, draws: int, seed: int
) -> tuple[Floats, Floats]:
    """v and v' with the least (S / gap) (max_t |v'^T t| / min_t |v'^T t|), of those that are tried.

    Logits reach max_t |u^T u'| |v'^T t| S with S = max v^T x - min v^T x, and |u^T u'| is as small
    as gap = min |v^T (x - y)| and min_t |v'^T t| allow, so the digits are proportional to this. In
    the plane the v of the largest ratio for `points` is tried with the draws.

    Where v' need not be v (footnote 3) each factor is made small for itself. v' should be even on
    the tokens `x`, whatever the signs: for the signs that a draw gives to the tokens, and for all
    signs positive, the least squares solution of v'^T x = sign is tried.
    """
    directions = draw_directions(x.shape[1], draws, seed)
    if x.shape[1] == 2 and len(points) <= IN_PLANE:
        directions = np.concatenate([directions, find_projection(points, method="plane").v[None]])
    span = np.concatenate([_span(p) for p in projected(x - x.mean(0), directions)])
    if query == "shared":
        best = (span * _unevenness(x, directions)).argmin()
        return directions[best], directions[best]
    signs = np.sign(directions[: max(1, HELD // len(x))] @ x.T)
    even = np.concatenate([signs, np.ones((1, len(x)))]) @ np.linalg.pinv(x).T
    tried = np.concatenate([directions, even[even.any(1)]])
    return directions[span.argmin()], tried[_unevenness(x, tried).argmin()]


def _span(columns: Floats) -> Floats:
    """S / gap of every column."""
    ordered = np.sort(columns, axis=0)
    gap = np.diff(ordered, axis=0).min(0, initial=np.inf)
    return _quotient(ordered[-1] - ordered[0], gap)


def _unevenness(x: Floats, directions: Floats) -> Floats:
    """max_t |v^T t| / min_t |v^T t| of every direction."""
    sizes = (np.abs(p) for p in projected(x, directions))
    return np.concatenate([_quotient(size.max(0), size.min(0)) for size in sizes])


def _quotient(a: Floats, b: Floats) -> Floats:
    """a / b, infinite where b is 0."""
    return np.asarray(np.divide(a, b, out=np.full(len(a), np.inf), where=b > 0))
