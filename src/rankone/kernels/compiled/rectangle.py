"""All keys of a range act on all queries of another, by the five steps: forward and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Bools, Floats, Ints
from rankone.kernels import chebyshev
from rankone.kernels.compiled import placement, tally_and_read, threads
from rankone.kernels.compiled.merge_and_refine import LANES
from rankone.kernels.compiled.placement import CellGrid
from rankone.kernels.compiled.tally_and_read import KeyRange, QueryRange
from rankone.kernels.compiled.transform import carry
from rankone.kernels.rescaling import LARGE

ALL: Bools = np.empty(0, np.bool_)
NONE: Ints = np.empty(0, np.int64)
Real = NDArray[Any]  # float32 or float64
Range = tuple[int, int]

PIECE = 1 << 16  # points that a thread takes at a time
PARTS = 16  # tables of moments for one range, at most


class UnfitError(Exception):
    """A number is not finite, or so large that the sums may not be."""


class Row(NamedTuple):
    """One row of a batch. `there` is ALL if there is no padding, `anchor` NONE unless causal."""

    query: Real
    key: Real
    value: Real
    there: Bools
    anchor: Ints


class Result(NamedTuple):
    """The means of the values; if causal, their sums until all is added, and those of weights."""

    out: Real
    total: Floats  # NONE unless causal


class Gradient(NamedTuple):
    """Gradients with respect to the result and to its inputs."""

    out: Real
    query: Floats
    key: Floats
    value: Floats


class Rectangle:
    """The scores of a range of keys and a range of queries of a row, for one or more threads."""

    def __init__(self, row: Row, keys: Range, queries: Range, threads: int = 1) -> None:
        self.row, self.keys, self.queries, self.threads = row, keys, queries, threads
        at = self._extremes(row.key, row.there, keys)
        self.empty = at[0] < 0
        if not self.empty:
            extremes = self._extremes(row.query, ALL, queries)
            self.frame = placement.frame(*row[:4], keys, queries, at, extremes)
            self._check(self.frame.ends.values)

    def forward(self, result: Result) -> None:
        """Means, if the row has no anchors; else sums, added to those of other rectangles."""
        row = self.row
        if self.empty:
            if not len(row.anchor):
                result.out[:] = 0.0
            return
        table = self._carry(self._tally_keys(), from_keys=True, placed=False)

        def read(range_: Range) -> None:
            queries = self._query_range(range_)
            if len(row.anchor):
                given = (row.key, row.value, row.anchor)
                tally_and_read.gather_queries(queries, *given, table, *result)
            else:
                tally_and_read.read_queries(queries, table, result.out)

        self._by_pieces(read, self.queries)

    def backward(self, result: Result, gradient: Gradient) -> None:
        """The gradients of queries, keys and values, added to those of other rectangles."""
        row = self.row
        if self.empty:
            return
        table = self._carry(self._tally_keys(), from_keys=True, placed=True)

        def turn(range_: Range, moments: Floats) -> None:
            given = (self._query_range(range_), row.key, row.anchor, gradient.out, *result)
            tally_and_read.turn_queries(*given, table, gradient.query, moments)

        moments = self._moments(turn, self.queries, self.frame.query)
        back = self._carry(moments, from_keys=False, placed=True)

        def read(range_: Range) -> None:
            given = (back, gradient.key, gradient.value)
            tally_and_read.read_keys(self._key_range(range_), *given)

        self._by_pieces(read, self.keys)

    def _key_range(self, range_: Range) -> KeyRange:
        row, frame = self.row, self.frame
        return KeyRange(row.key, row.value, row.there, *range_, frame.ends, frame.key)

    def _query_range(self, range_: Range) -> QueryRange:
        return QueryRange(self.row.query, *range_, self.frame.ends, self.frame.query)

    def _extremes(self, values: Real, there: Bools, range_: Range) -> tuple[int, int]:
        """The indices of the least and the largest value; -1 if there is none."""

        def look(piece: Range) -> Range:
            return placement.extremes(values, there, *piece)

        found = [ends for ends in self._by_pieces(look, range_) if ends[0] >= 0]
        lows, highs = zip(*(found or [(-1, -1)]), strict=True)
        low, high = min(lows, key=values.__getitem__), max(highs, key=values.__getitem__)
        if low >= 0:
            self._check(values[[*lows, *highs]].astype(np.float64))
        return low, high

    def _check(self, numbers: Floats) -> None:
        """Refuse unfit numbers. Causal rows are checked before: a rectangle sees a part of them."""
        if not len(self.row.anchor) and not np.abs(numbers).max() < LARGE:  # or NaN
            raise UnfitError

    def _tally_keys(self) -> Floats:
        def tally(range_: Range, table: Floats) -> None:
            tally_and_read.tally_keys(self._key_range(range_), table)

        moments = self._moments(tally, self.keys, self.frame.key)
        self._check(moments)
        return moments

    def _moments(
        self, add: Callable[[Range, Floats], None], range_: Range, grid: CellGrid
    ) -> Floats:
        """The sum of the tables that `add` fills, one for each part of the range."""
        size = len(grid.octaves) * chebyshev.CELLS_PER_OCTAVE * chebyshev.TERMS * LANES

        def tally(part: Range) -> Floats:
            table = np.zeros(size)
            add(part, table)
            return table

        parts = threads.parts(*range_, max(PIECE, size), PARTS)
        total, *others = threads.share(tally, parts, self.threads)
        for table in others:
            total += table
        return np.asarray(total)

    def _carry(self, moments: Floats, *, from_keys: bool, placed: bool) -> Floats:
        fixed = (chebyshev.refinement(), chebyshev.nodes())
        table: Floats = carry(moments, self.frame, from_keys, placed, *fixed)
        return table

    def _by_pieces(self, work: Callable[[Range], Any], range_: Range) -> list[Any]:
        return threads.share(work, threads.pieces(*range_, PIECE), self.threads)
