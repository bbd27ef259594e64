"""Closest-pair search: a sweep along one direction, or tiles where the sweep is slow."""

from __future__ import annotations

from math import frexp, inf, ldexp, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.deadline import tick

U = 2.0**-53  # unit roundoff of float64
LOST = 2.0**-470  # more than a distance can lose to underflow, with numbers up to 2^480
PATIENCE = 8  # pairs per point that the sweep may compare
TILE = 1024  # rows of a tile: its squared distances fit a cache
CHUNK = 1 << 20  # numbers in one temporary array
FEW = 4096  # pairs of one tile that are compared one by one


class PairSearch:
    """Points in the order of their projections on one direction, and the best pair so far.

    ``x`` holds the points in that order (group by group if only pairs of the same group count),
    ``p`` their projections, ``order`` their rows in the input. The direction is v with |v| <= 1, so
    |x_i - x_j| >= |v (x_i - x_j)|. A projection p = fl(v fl(x - c)) errs by at most (d + 3) u R
    with R the largest |x - c|: one rounding in x - c, d in the product, the rest for terms of order
    u^2 (the centre c keeps R small). The ``slack`` 8 (d + 4) u R + LOST is more than two such
    errors, so a pair whose projections differ by more than sqrt(best) + slack is no closer than
    sqrt(best). In one dimension the coordinate itself is the projection, without error.

    ``best`` is the smallest computed squared distance, of the pair ``pair``; ``floor`` bounds the
    exact squared distances of pairs that were skipped as ties.
    """

    def __init__(self, points: Floats, groups: NDArray[Any], among: str) -> None:
        self.dim: int = points.shape[1]
        top = max(points.max(), -points.min())
        self.scale = ldexp(1.0, min(480 - frexp(top)[1], 1000))
        self.best, self.floor = inf, inf
        self.pair: tuple[int, int] | None = None
        self.among = among
        self.step = max(1, CHUNK // self.dim)
        p = self._project(points, direction(self.dim))
        self.order = np.lexsort((p, groups)) if among == "same" else np.argsort(p)
        if among == "different":
            self.order = _without_copies(points, groups, p, self.order)
        self.p = p[self.order]
        self.x = np.take(points, self.order, axis=0)  # several times faster than an index
        self.x *= self.scale
        self.groups = groups[self.order]

    def _project(self, points: Floats, v: Floats) -> Floats:
        self.slack = 0.0
        if self.dim == 1:
            return points[:, 0] * self.scale
        centre = points.mean(0) * self.scale
        p, radius = np.empty(len(points)), 0.0
        for a in range(0, len(points), self.step):
            y = points[a : a + self.step] * self.scale - centre
            p[a : a + self.step] = np.einsum("ij,j->i", y, v)  # the same for copies, unlike BLAS
            radius = max(radius, float(_squares(y).max()))
        self.slack = 8 * (self.dim + 4) * U * sqrt(radius) + LOST
        return p

    def reach(self) -> float:
        """Pairs whose projections differ by more are no closer than the best."""
        return sqrt(self.best) + self.slack

    def consider(self, i: Ints, j: Ints) -> None:
        """Compare these pairs by differences."""
        for a in range(0, len(i), self.step):
            tick()
            x, y = (np.take(self.x, k[a : a + self.step], axis=0) for k in (i, j))
            squares = _squares(np.subtract(x, y, out=x))
            k = int(squares.argmin())
            if squares[k] < self.best:
                self.best, self.pair = float(squares[k]), (int(i[a + k]), int(j[a + k]))

    def sweep(self) -> bool:
        """Compare points 1, 2, 3, ... ranks apart until none is within reach; False if impatient.

        A point whose partner at one rank is out of reach is done. Where only different groups
        count, a point starts after the run of its own group.
        """
        count = len(self.x)
        i = np.arange(count)
        j = i + 1
        if self.among == "different":
            changes = np.flatnonzero(self.groups[1:] != self.groups[:-1]) + 1
            j = np.append(changes, count)[np.searchsorted(changes, i, side="right")]
        patience = PATIENCE * count
        while self.best > 0:
            inside = j < count
            i, j = i[inside], j[inside]
            near = self.p[j] - self.p[i] <= self.reach()
            if self.among == "same":
                near &= self.groups[i] == self.groups[j]
            i, j = i[near], j[near]
            if not len(i):
                break
            patience -= len(i)
            if patience < 0:
                return False
            apart = self.groups[i] != self.groups[j] if self.among == "different" else slice(None)
            self.consider(i[apart], j[apart])
            j = j + 1
        return True

    def tiles(self) -> None:
        """Compare all pairs within reach, tile by tile, by matrix products."""
        count = len(self.x)
        size = min(TILE, max(64, 2 * CHUNK // self.dim))
        self.room = np.empty(size * size)
        dtype = np.float32 if self.dim <= 1 << 16 else np.float64
        bounds = [slice(a, min(a + size, count)) for a in range(0, count, size)]
        for k, rows in enumerate(bounds):
            for columns in bounds[k:]:
                if self._apart(rows, columns) or self.best == 0:
                    break
                self.tile(rows, columns, dtype)

    def _apart(self, rows: slice, columns: slice) -> bool:
        """Whether no pair of the tile, nor of one further right, is admissible and within reach."""
        last, first = rows.stop - 1, columns.start
        if first <= last:
            return False
        far = self.p[first] - self.p[last] > self.reach()
        return bool(far or (self.among == "same" and self.groups[first] != self.groups[last]))

    def tile(self, rows: slice, columns: slice, dtype: type[np.floating[Any]]) -> None:
        """Find the pairs i in `rows`, j in `columns` that may be closer than the best.

        With y = x - c, c the mean of the rows, S_ij = (-2 y_i, |y_i|^2, 1) (y_j, 1, |y_j|^2)^T is
        |x_i - x_j|^2 up to the error E = (2d + 10) u (r + r')^2, u the roundoff of `dtype` and
        r, r' the largest |y| of rows and columns. For in units of u (r + r')^2 the product errs by
        d + 2 in whatever order its terms are added, the squared norms by d (in float32 by 1, since
        they are added in float64), and rounding y changes a squared distance by 2; the other 6
        are for terms of order u^2. A power of two (``unit``) makes r + r' less than 1 and, if it
        is above LOST, at least 1/2, so underflow comes to less than (2d + 10) 2^-120. Pairs with
        S > best + E are then farther apart than the best.

        The others are compared by differences. If they are too many, float64 and the smaller radius
        of a quarter of the tile may tell them apart; if in float64 E is below a billionth of the
        best, they are ties, and S - E is what is proven of them.
        """
        tick()
        if self._apart(rows, columns) or self.best == 0:
            return
        centre = self.x[rows].mean(0)
        left, right = self.x[rows] - centre, self.x[columns] - centre
        squares = _squares(left), _squares(right)
        radius = (sqrt(squares[0].max()) + sqrt(squares[1].max())) * (1 + 2.0**-20) + LOST
        unit = ldexp(1.0, -frexp(radius)[1])
        u = float(np.finfo(dtype).eps) / 2
        error = (2 * self.dim + 10) * (u * (radius * unit) ** 2 + 2.0**-120)
        shape = len(left), len(right)
        product = self.room.view(dtype)[: shape[0] * shape[1]].reshape(shape)
        np.matmul(
            _columns(left, -2 * unit, squares[0], unit, 0, dtype),
            _columns(right, unit, squares[1], unit, 1, dtype).T,
            out=product,
        )

        def bound() -> float:
            """best + E, rounded up so far that it is no less in `dtype`; S never comes near 8."""
            return min(self.best * unit * unit + error, 8.0) * (1 + 4 * u)

        if rows == columns:
            product[np.tri(len(left), dtype=bool)] = inf
        elif product.min() > bound():
            return
        if self.among != "all":
            same = self.groups[rows, None] == self.groups[columns]
            product[same if self.among == "different" else ~same] = inf
        nearest = divmod(int(product.argmin()), len(right))
        if product[nearest] > bound():
            return
        self.consider(np.array([nearest[0] + rows.start]), np.array([nearest[1] + columns.start]))
        close = product <= bound()
        if np.count_nonzero(close) <= FEW:
            i, j = np.divmod(np.flatnonzero(close), len(right))
            self.consider(i + rows.start, j + columns.start)
        elif dtype is np.float64 and error <= 1e-9 * self.best * unit * unit:
            self.floor = min(self.floor, (float(product[nearest]) - error) / unit / unit)
        else:
            for upper in _halves(rows):
                for side in _halves(columns):
                    if side.start >= upper.start:
                        self.tile(upper, side, np.float64)


def direction(dim: int) -> Floats:
    """A generic direction v with |v| <= 1, always the same."""
    v = np.random.default_rng(0).standard_normal(dim)
    return np.asarray(v / (np.linalg.norm(v) * (1 + 2.0**-20)))


def _without_copies(points: Floats, groups: NDArray[Any], p: Floats, order: Ints) -> Ints:
    """Leave out points that follow their equal of the same group; a copy left in does no harm."""
    before, after = order[:-1], order[1:]
    maybe = np.flatnonzero((p[before] == p[after]) & (groups[before] == groups[after]))
    pieces = np.array_split(maybe, 1 + len(maybe) * points.shape[1] // CHUNK)
    equal = np.concatenate([(points[before[k]] == points[after[k]]).all(1) for k in pieces])
    return np.delete(order, maybe[equal] + 1)


def _squares(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _columns(
    y: Floats, factor: float, squares: Floats, unit: float, one: int, dtype: type[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """Columns `factor` y, the squared norms, and ones; the ones are column number `one`."""
    out = np.ones((len(y), y.shape[1] + 2), dtype)
    np.multiply(y, factor, out=out[:, 2:], casting="same_kind")
    out[:, 1 - one] = squares * unit * unit
    return out


def _halves(rows: slice) -> list[slice]:
    middle = (rows.start + rows.stop) // 2
    halves = slice(rows.start, middle), slice(middle, rows.stop)
    return [half for half in halves if half.start < half.stop]
