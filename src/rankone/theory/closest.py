"""The closest pair of many points, and a proven lower bound on all distances."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import nextafter, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.errors import SettingError, VectorError
from rankone.plural import plural
from rankone.theory.numeric_input import as_floats, as_labels
from rankone.theory.pair_search import LOST, PairSearch, U

LARGEST = 2.0**900  # above this, norms and sums might overflow


@dataclass(frozen=True)
class ClosestPair:
    """The computed ``distance`` of the two points ``pair``, and a bound for all pairs.

    ``lower`` is at most the exact distance of every admissible pair, the coordinates taken as exact
    numbers, and strictly below it unless two points are equal.
    """

    distance: float
    lower: float
    pair: tuple[int, int]

    @property
    def ok(self) -> bool:
        """Whether the points of every admissible pair are proven to differ."""
        return self.lower > 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}


def closest_pair(
    points: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    among: Literal["all", "same", "different"] = "all",
) -> ClosestPair | None:
    """min |x_i - x_j| over pairs i < j: all, or those of the `same` or of `different` groups.

    Rounding. With u = 2^-53, the computed S = sum_k fl(x_ik - x_jk)^2 is at most (1 + u)^(d+2) q,
    q the exact squared distance: a difference errs by one rounding and is squared, a square adds
    one, the sum of d non-negative numbers d - 1 in whatever order. So D = fl(sqrt S) gives

        sqrt q >= (1 - (d/2 + 2) u) D,   and   lower = (1 - (d + 8) u) D - LOST

    leaves d/2 + 6 roundings for its own computation. The points are first multiplied by a power of
    two that makes their largest coordinate about 2^480, so nothing overflows, and what underflows
    (in a coordinate or in a square, 2^-1074 each) changes a distance by less than LOST; points
    that differ by less than 2^-940 of the largest coordinate may therefore count as equal.

    A pair that is skipped is proven to be no closer than the best D so far, see `PairSearch`.
    Where thousands of pairs tie with the closest to nine digits, one of them is returned, and
    `lower` lies below them all.
    """
    x = as_points(points)
    if among not in ("all", "same", "different"):
        raise SettingError(f"among = {among!r} cannot be used", remedy="use all, same or different")
    labels = np.zeros(len(x), dtype=np.int64)
    if among != "all":
        labels = as_labels(groups, len(x), "groups")
    if len(x) < 2:
        return None
    search = PairSearch(x, labels, among)
    if not search.sweep():
        search.tiles()
    if search.pair is None:
        return None
    first, second = sorted(int(search.order[i]) for i in search.pair)
    distance = sqrt(search.best)
    lower = (1 - (x.shape[1] + 8) * U) * sqrt(min(search.best, search.floor)) - LOST
    unscale = 1 / search.scale
    return ClosestPair(
        distance * unscale, nextafter(max(lower, 0.0) * unscale, 0.0), (first, second)
    )


def as_table(vectors: ArrayLike) -> Floats:
    """One vector per row; entries may be any floats."""
    x = as_floats(vectors, "a table of numbers")
    if x.ndim != 2 or x.shape[1] == 0:
        raise VectorError(
            f"an array of shape {x.shape} is not a table", remedy="give one vector per row"
        )
    return x


def as_points(points: ArrayLike) -> Floats:
    """One point per row; raises an error that names the first bad row."""
    x = as_table(points)
    if x.size and not max(x.max(), -x.min()) <= LARGEST:  # written so that NaN is caught
        finite = np.isfinite(x).all(1)
        bad, what = ~finite, "that is not finite"
        if finite.all():
            bad, what = np.abs(x).max(1) > LARGEST, f"beyond {LARGEST:.0e}"
        raise VectorError(
            f"a number {what} ({plural(int(bad.sum()), 'such row')})",
            where=f"row {bad.argmax() + 1}",
            remedy="give finite numbers; scale all vectors by one factor if they are large",
        )
    return x
