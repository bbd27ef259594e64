"""Lemma 2: a unit vector on which no two of finitely many points come too close; and the directions
of keys and queries that need the fewest digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankone.arrays import Floats
from rankone.construct.theorem2.rational import below, exact_dot, unit
from rankone.construct.vectors import LARGEST, SMALLEST
from rankone.errors import RankOneError, VectorError
from rankone.theory.closest import as_points
from rankone.theory.pair_search import U

Method = Literal["auto", "sample", "best", "plane"]
Query = Literal["shared", "separate"]

SLIGHT = 1e-290  # a projected distance below this counts as 0: it would round in absolute terms
HELD = 1 << 22  # projected points held at once
IN_PLANE = 4096  # points up to which all their pairs are held at once


@dataclass(frozen=True)
class Projection:
    """sqrt(8 / (pi d)) / N^2 |x - x'| <= |v^T (x - x')| <= |x - x'|   (eq. 72, Lemma 2).

    ``ratio`` is the least |v^T (x - x')| / |x - x'| over the N ``points``, to be compared with
    ``lemma_ratio`` = sqrt(8 / (pi d)) / N^2; ``gap`` is the least |v^T (x - x')|. Both are infinite
    for one point, and otherwise proved: they are not above the exact figures of the float64 vector
    ``v``, whose exact norm lies in [1 - 2^-50, 1]. So the right inequality holds by Cauchy-Schwarz,
    and ``ok`` says that the left one does.
    """

    v: Floats
    ratio: float
    lemma_ratio: float
    gap: float
    points: int
    draws: int
    method: str

    @property
    def ok(self) -> bool:
        return self.ratio >= self.lemma_ratio * (1 + 8 * U)  # five roundings are in the latter

    def to_json(self) -> dict[str, Any]:
        figures = {"ratio": self.ratio, "lemma_ratio": self.lemma_ratio, "gap": self.gap}
        finite = {name: x if math.isfinite(x) else None for name, x in figures.items()}
        what = {"points": self.points, "draws": self.draws, "method": self.method}
        return {"ok": self.ok, "v": self.v.tolist(), **finite, **what}


def find_projection(
    vectors: ArrayLike, *, draws: int = 1000, seed: int = 0, method: Method = "auto"
) -> Projection:
    """A unit vector v for Lemma 2, measured.

    "sample" draws unit vectors until one satisfies the lemma, which each does with probability
    above 1/N (a pair fails with probability below 2/N^2, and there are N (N - 1) / 2). "best" draws
    `draws` of them and keeps the one with the largest ratio. "plane", for d = 2, has the largest
    ratio there is: |v^T (x - x')| / |x - x'| is the sine of the angle between v and the normal of
    x - x', so v belongs in the middle of the largest angle between neighbouring normals. There are
    at most N (N - 1) / 2 of them on the half circle, so the ratio is at least
    sin(pi / (N (N - 1))). "auto" is "plane" where it can be and "best" elsewhere; for d = 1 there
    is nothing to choose.
    """
    points = point_set(vectors)
    size, dim = points.shape
    if method not in ("auto", "sample", "best", "plane"):
        raise RankOneError(f"no method {method!r}", remedy="give auto, sample, best or plane")
    if method == "plane" and dim != 2:
        raise VectorError(f"a plane has 2 dimensions, not {dim}", remedy='give method="best"')
    if dim == 1 or size == 1:
        return measure(points, np.eye(dim)[0], draws=0, method="only")
    if method == "plane" or (method == "auto" and dim == 2 and size <= IN_PLANE):
        return measure(points, _in_largest_angle(points), draws=0, method="plane")
    directions = draw_directions(dim, draws, seed)
    if method == "sample":
        for drawn, v in enumerate(directions, start=1):
            found = measure(points, v, draws=drawn, method=method)
            if found.ok:
                return found
        raise VectorError(
            f"none of {draws} unit vectors keeps {size} points as far apart as Lemma 2 demands",
            remedy="raise draws: each succeeds with a probability above 1 / (number of points)",
        )
    return measure(points, _best(points, directions), draws=draws, method="best")


def measure(points: Floats, v: Floats, *, draws: int, method: str) -> Projection:
    """The figures of `v`, which is brought to exact norm 1 - 2^-50 to 1, on the given points.

    Only neighbours on v need to be looked at. For the gap this is plain; and if y_0, ..., y_k
    follow each other on v, |y_0 - y_k| <= sum |y_(i-1) - y_i| while the projected distances add up,
    so the ratio of y_0 and y_k is not below the least ratio of neighbours.

    ``ratio`` is rounded down by more than rounding can have put it up, with u = 2^-53: the
    projected distance is rounded once; each entry of x - x' once, and again where it is divided by
    the largest, so that squares neither overflow, nor underflow and matter; squares and their sum
    add d, the root halves it all and rounds, two divisions follow: less than (d + 8) u.
    """
    v = unit(v)
    size, dim = points.shape
    s = np.array(exact_dot(points, v), dtype=object)
    order = np.argsort(s)
    delta = np.diff(s[order])
    return Projection(
        v=v,
        ratio=_least_ratio(np.diff(points[order], axis=0), delta) * (1 - (dim + 8) * U),
        lemma_ratio=math.sqrt(8 / (math.pi * dim)) / size**2,
        gap=below(min(delta, default=math.inf)),
        points=size,
        draws=draws,
        method=method,
    )


def draw_directions(dim: int, draws: int, seed: int) -> Floats:
    """Unit vectors, uniform on the sphere; a row each."""
    if draws < 1:
        raise RankOneError(f"{draws} draws", remedy="give at least one draw")
    drawn = np.random.default_rng(seed).standard_normal((draws, dim))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def projected(x: Floats, directions: Floats) -> Iterator[Floats]:
    """v^T x for a block of directions at a time: a row per point, a column per direction."""
    step = 1 + HELD // len(x)
    for i in range(0, len(directions), step):
        yield x @ directions[i : i + step].T


def point_set(vectors: ArrayLike) -> Floats:
    """The points as float64: of a size that can be squared, and no two alike, as a set has it."""
    points = as_points(vectors) + 0.0  # -0.0 becomes 0.0
    size = float(np.abs(points).max(initial=0.0))
    if not len(points) or not (size == 0 or SMALLEST < size < LARGEST):
        raise VectorError(
            f"points as large as {size:.0e}" if len(points) else "no points",
            remedy="give a row per point, all scaled so that their numbers are of order 1",
        )
    if len(np.unique(points, axis=0)) < len(points):
        what = "two points are the same, so no vector can tell them apart"
        raise VectorError(what, remedy="give each point once")
    return points


def _in_largest_angle(points: Floats) -> Floats:
    """The middle of the largest angle between neighbouring normals of the differences x - x'."""
    a, b = np.triu_indices(len(points), k=1)
    dx, dy = (points[a] - points[b]).T
    normals = np.sort(np.arctan2(dx, -dy) % np.pi)
    angles = np.diff(normals, append=normals[0] + np.pi)
    widest = int(angles.argmax())
    middle = float(normals[widest] + angles[widest] / 2)
    return np.array([math.cos(middle), math.sin(middle)])


def _best(points: Floats, directions: Floats) -> Floats:
    """The direction with the largest ratio; most are out at a pair that is very close on them."""
    diameter = 2.1 * float(np.linalg.norm(points - points.mean(0), axis=1).max())
    most, chosen = 0.0, 0
    columns = (s for block in projected(points, directions) for s in block.T)
    for i, s in enumerate(columns):
        order = np.argsort(s)
        delta = np.diff(s[order])
        near = np.flatnonzero(delta < most * diameter)
        if _least_ratio(points[order[near + 1]] - points[order[near]], delta[near]) >= most:
            most, chosen = _least_ratio(np.diff(points[order], axis=0), delta), i
    return np.asarray(directions[chosen])


def _least_ratio(differences: Floats, projected: NDArray[Any]) -> float:
    """The least quotient of a projected distance and the norm of its difference."""
    delta = projected.astype(np.float64)
    delta[delta < SLIGHT] = 0.0
    largest = np.abs(differences).max(1)
    norms = np.sqrt(np.square(differences / largest[:, None]).sum(1))
    return float((delta / largest / norms).min(initial=np.inf))


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
