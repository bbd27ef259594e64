"""A contextual mapping on the grid: keys and a query that make all context ids differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.distinct_sums import distinct_sums
from rankone.arrays import Floats, Ints


@dataclass(frozen=True)
class GridMapping:
    """Keys x_l = key(t) / widest + place l, t the number of token l, and one query y for all make

        c = sum_l x_l e^(y x_l) / sum_l e^(y x_l),   s = V k + t + 1/2 c / range

    (V k only with positions): the context id of token k on the line that the readout looks along.
    A token moves it by 1, its context by less than 1/2; so different tokens are apart, as in
    eq. 28, and ``gap``, the smallest distance of two ids, is that of contexts of one token, if it
    has several. ``keys`` are the integers key(t), from 0 up to ``widest``, or None for t itself;
    ``query`` is y.
    """

    keys: Ints | None
    widest: int
    query: float
    place: float = 0.0
    gap: float = math.inf

    def range(self, n: int) -> float:
        """The largest key."""
        return 1.0 + self.place * (n - 1)


def choose_mapping(grid: CellGrid, sequences: Ints) -> GridMapping:
    """The candidate with the largest gap between context ids, measured over the whole grid."""
    measured = (replace(m, gap=measure_gap(grid, m, sequences)) for m in candidates(grid))
    return max(measured, key=lambda mapping: mapping.gap)


def candidates(grid: CellGrid) -> Iterator[GridMapping]:
    """Three ways to tell contexts apart by one number.

    *Sums* (d = 1 or n = 2). F1 may send a cell to any key, so take keys with distinct sums: a query
    y near 0 makes c the mean plus at most y / 4, for its derivative is a variance, and
    y = 1 / (n widest) leaves three quarters of the smallest gap, 1 / (n widest). For n = 2 there is
    one other token, c grows with its key for all y <= 1, and the keys are the cells' numbers.

    *Powers* (d > 1). F1 acts on coordinates one by one, and sums of such keys cannot tell
    {(0, 0), (1, 1)} from {(0, 1), (1, 0)}. The softmax can: c = mean + y variance + O(y^2), the
    power sums of the numbers of the tokens, one below the other. The best y is of the order
    of 1 / (n V); too small a y brings the second too close together, too large a y mixes the two.

    *Digits* (positions, n > 2). With e^(y place) = B, a multiple of V, token l has a weight of
    about B^l: c is a number written in base B whose digits are the tokens.
    """
    d, D, n, V = grid.d, grid.cells, grid.n, grid.tokens
    last = max(1, V - 1)
    if n <= 2:
        yield GridMapping(None, last, 0.5)
    elif grid.positions:
        for place in (4.0, 8.0):
            for base in (2.0, 4.0, 8.0):
                yield GridMapping(None, last, math.log(base * V) / place, place)
    elif d == 1:
        keys = distinct_sums(D, n - 1)
        widest = max(1, int(keys.max()))
        yield GridMapping(keys, widest, 1 / (n * widest))
    else:
        for power in range(4, 15):
            yield GridMapping(None, last, 2 ** (power / 4) / (n * V))


def measure_gap(grid: CellGrid, mapping: GridMapping, sequences: Ints) -> float:
    """The smallest distance of two context ids on the line; infinite if there is only one."""
    x = keys_of(grid, mapping, sequences)
    c = (weights(mapping, x) * x).sum(1)
    own = sequences + grid.tokens * np.arange(grid.n) if grid.positions else sequences
    s = (own + 0.5 * c[:, None] / mapping.range(grid.n))[grid.owners(sequences)]
    s.sort()
    return float(np.diff(s).min(initial=math.inf))


def keys_of(grid: CellGrid, mapping: GridMapping, sequences: Ints) -> Floats:
    """x_l of every token of the sequences."""
    key = sequences if mapping.keys is None else mapping.keys[sequences]
    return np.asarray(key / mapping.widest + mapping.place * np.arange(grid.n))


def weights(mapping: GridMapping, x: Floats) -> Floats:
    """The softmax of y x_l over a sequence."""
    exponentials = np.exp(mapping.query * (x - x.max(1, keepdims=True)))
    return np.asarray(exponentials / exponentials.sum(1, keepdims=True))
