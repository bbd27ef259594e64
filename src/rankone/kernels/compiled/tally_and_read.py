"""Steps 1 and 5: add points to the moments of their cells, read the polynomials of cells at points.

Every point is touched in four loops, two of them in the forward pass; everything in between costs
the same for ten points as for ten million. With numpy's error model 0 / 0 is NaN: an exception
would cost a branch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.kernels.compiled.compiler import FUSED, compiled
from rankone.kernels.compiled.exponential import exponential
from rankone.kernels.compiled.placement import CellGrid, Ends, locate, locate_dense, nearer_end
from rankone.kernels.compiled.polynomials import add_powers, read2, read4


class KeyRange(NamedTuple):
    """Keys `first` to `last` of a row, with their values; `there` is empty if all of them count."""

    key: Floats
    value: Floats
    there: Bools
    first: int
    last: int
    ends: Ends
    grid: CellGrid


class QueryRange(NamedTuple):
    """Queries `first` to `last` of a row, and the ends of the keys that they look at."""

    query: Floats
    first: int
    last: int
    ends: Ends
    grid: CellGrid


@compiled(fastmath=FUSED, error_model="numpy")
def tally_keys(keys: KeyRange, table: Floats) -> None:
    """Moments of (value, 1) in the cells of the keys, values relative to that of the nearer end."""
    key, value, there, first, last, ends, grid = keys
    masked = len(there) > 0
    if grid.dense and not masked:  # a separate loop, a sixth faster
        origin, starts = grid.origin, grid.slots[:, 0].copy()
        for i in range(first, last):
            point, half = nearer_end(np.float64(key[i]), ends)
            cell, t = locate_dense(point, half, origin, starts)
            add_powers(table, cell, t, value[i] - ends.values[half], 1.0)
        return
    for i in range(first, last):
        if masked and not there[i]:
            continue
        point, half = nearer_end(np.float64(key[i]), ends)
        cell, t = locate(point, half, grid)
        add_powers(table, cell, t, value[i] - ends.values[half], 1.0)


@compiled(fastmath=FUSED, error_model="numpy")
def read_queries(queries: QueryRange, table: Floats, out: Floats) -> None:
    """The mean of the values."""
    query, first, last, ends, grid = queries
    if grid.dense:
        origin, starts = grid.origin, grid.slots[:, 0].copy()
        for i in range(first, last):
            y = np.float64(query[i])
            half = np.uint64(y < 0.0)
            cell, t = locate_dense(abs(y), half, origin, starts)
            weighted, weights = read2(table, cell, t)
            out[i] = ends.values[half] + weighted / weights
        return
    for i in range(first, last):
        y = np.float64(query[i])
        half = np.uint64(y < 0.0)
        cell, t = locate(abs(y), half, grid)
        weighted, weights = read2(table, cell, t)
        out[i] = ends.values[half] + weighted / weights


@compiled(fastmath=FUSED, error_model="numpy")
def gather_queries(
    queries: QueryRange,
    key: Floats,
    value: Floats,
    anchor: Ints,
    table: Floats,
    weighted: Floats,
    total: Floats,
) -> None:
    """Add the sums over these keys, relative to the anchor of each query, to those of others."""
    query, first, last, ends, grid = queries
    for i in range(first, last):
        y = np.float64(query[i])
        half = np.uint64(y < 0.0)
        cell, t = locate(abs(y), half, grid)
        scale = exponential(y * (ends.keys[half] - key[anchor[i]]))
        above, below = read2(table, cell, t)
        weighted[i] += scale * (above + (ends.values[half] - value[anchor[i]]) * below)
        total[i] += scale * below


@compiled(fastmath=FUSED, error_model="numpy")
def turn_queries(
    queries: QueryRange,
    key: Floats,
    anchor: Ints,
    grad: Floats,
    out: Floats,
    total: Floats,
    table: Floats,
    grad_query: Floats,
    moments: Floats,
) -> None:
    """The gradient of the queries; and moments of w and w out in their cells.

    w is the gradient divided by the sum of the weights: `total`, or that of these keys alone.

    The lanes of the table are the sums of value, 1, value d and d, with d the distance of a key
    from the end that belongs to the query; the gradient needs the distance from the anchor. All
    values are relative to that of the end.
    """
    query, first, last, ends, grid = queries
    for i in range(first, last):
        y = np.float64(query[i])
        half = np.uint64(y < 0.0)
        cell, t = locate(abs(y), half, grid)
        mean = out[i] - ends.values[half]
        weighted, weights, above, below = read4(table, cell, t)
        slope = (above - mean * below) * (2.0 * np.int64(half) - 1.0)
        if len(anchor) == 0:
            w = grad[i] / weights
        else:
            shift = ends.keys[half] - key[anchor[i]]
            w = grad[i] / total[i] * exponential(y * shift)
            if w == 0.0:  # the rest may be infinite
                continue
            slope += shift * (weighted - mean * weights)
        grad_query[i] += w * slope
        add_powers(moments, cell, t, w, w * mean)


@compiled(fastmath=FUSED, error_model="numpy")
def read_keys(keys: KeyRange, table: Floats, grad_key: Floats, grad_value: Floats) -> None:
    """The gradients of keys and values.

    The lanes are the sums of w, of w y out, and of w y over the queries y >= 0 and y < 0.
    """
    key, value, there, first, last, ends, grid = keys
    masked = len(there) > 0
    for i in range(first, last):
        if masked and not there[i]:
            continue
        point, half = nearer_end(np.float64(key[i]), ends)
        cell, t = locate(point, half, grid)
        weights, means, up, down = read4(table, cell, t)
        grad_value[i] += weights
        turned = (value[i] - ends.values[0]) * up + (value[i] - ends.values[1]) * down
        grad_key[i] += turned - means
