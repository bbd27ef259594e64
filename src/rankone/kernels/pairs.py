"""All keys of a range act on all queries of another: forward, and the gradients back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankone.kernels import cells, grid, points, threads
from rankone.kernels.cells import Bools, Floats, Grid, Ints
from rankone.kernels.transform import LANES, carry

ALL: Bools = np.empty(0, np.bool_)
NONE: Ints = np.empty(0, np.int64)
Real = NDArray[Any]  # float32 or float64
Range = tuple[int, int]


class Row(NamedTuple):
    """One row of a batch. `there` is ALL if nothing is padding, `anchor` NONE unless causal."""

    query: Real
    key: Real
    value: Real
    there: Bools
    anchor: Ints


class Result(NamedTuple):
    """The means of the values; if causal their sums, until all pairs are added. And the weights."""

    out: Real
    total: Floats


class Gradient(NamedTuple):
    """Of the result, and of what it was made from."""

    out: Real
    query: Floats
    key: Floats
    value: Floats


class Pair:
    """A range of keys and a range of queries of a row; `parts` threads may work on it."""

    def __init__(self, row: Row, keys: Range, queries: Range, parts: int = 1) -> None:
        self.row, self.keys, self.queries, self.parts = row, keys, queries, parts
        at = self._extremes(row.key, row.there, keys)
        self.empty = at[0] < 0
        if not self.empty:
            self.frame = cells.frame(
                *row[:4], keys, queries, at, self._extremes(row.query, ALL, queries)
            )

    def forward(self, result: Result) -> None:
        """Means, if the row has no anchors; else sums, added to those of other pairs."""
        row = self.row
        if self.empty:
            if not len(row.anchor):
                result.out[:], result.total[:] = 0.0, 0.0
            return
        table = self._carry(self._tally_keys(), from_keys=True, placed=False)

        def read(a: int, b: int) -> None:
            where = (a, b, self.frame.ends)
            if len(row.anchor):
                given = (*row[:3], *where, row.anchor)
                points.gather_queries(*given, self.frame.query, table, *result)
            else:
                points.read_queries(row.query, *where, self.frame.query, table, *result)

        self._split(read, self.queries)

    def backward(self, result: Result, gradient: Gradient) -> None:
        """The gradients of queries, keys and values, added to those of other pairs."""
        row = self.row
        if self.empty:
            return
        table = self._carry(self._tally_keys(), from_keys=True, placed=True)

        def turn(a: int, b: int) -> Floats:
            moments = _table(self.frame.query)
            given = (row.query, row.key, gradient.out, *result, a, b, self.frame.ends, row.anchor)
            points.turn_queries(*given, self.frame.query, table, gradient.query, moments)
            return moments

        moments = _sum(self._split(turn, self.queries))
        back = self._carry(moments, from_keys=False, placed=True)

        def read(a: int, b: int) -> None:
            given = (row.key, row.value, row.there, a, b, self.frame.ends)
            points.read_keys(*given, self.frame.key, back, gradient.key, gradient.value)

        self._split(read, self.keys)

    def _extremes(self, values: Real, there: Bools, range_: Range) -> tuple[int, int]:
        """Where the least and the largest are; -1 if nothing is there."""
        parts = self._split(lambda a, b: cells.extremes(values, there, a, b), range_)
        found = [part for part in parts if part[0] >= 0] or [(-1, -1)]
        lows, highs = zip(*found, strict=True)
        return min(lows, key=values.__getitem__), max(highs, key=values.__getitem__)

    def _tally_keys(self) -> Floats:
        row = self.row

        def tally(a: int, b: int) -> Floats:
            table = _table(self.frame.key)
            given = (row.key, row.value, row.there, a, b, self.frame.ends)
            points.tally_keys(*given, self.frame.key, table)
            return table

        return _sum(self._split(tally, self.keys))

    def _carry(self, moments: Floats, *, from_keys: bool, placed: bool) -> Floats:
        fixed = (grid.refinement(), grid.nodes())
        table: Floats = carry(moments, self.frame, from_keys, placed, *fixed)
        return table

    def _split(self, work: Callable[[int, int], Any], range_: Range) -> list[Any]:
        return threads.run(work, threads.pieces(*range_, self.parts))


def _table(cells: Grid) -> Floats:
    """Moments, all 0."""
    return np.zeros(len(cells.octaves) * grid.CELLS * grid.TERMS * LANES)


def _sum(tables: list[Floats]) -> Floats:
    first, *others = tables
    for other in others:
        first += other
    return first
