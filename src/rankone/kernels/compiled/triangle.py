"""Causal attention inside a short range, score by score."""

from __future__ import annotations

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.kernels.compiled.compiler import SUMS, compiled
from rankone.kernels.compiled.exponential import exponential


@compiled()
def prefix_extremes(query: Floats, key: Floats, there: Bools, anchor: Ints) -> None:
    """The key up to each query with most weight: the largest, or the least if y < 0; else -1."""
    low, high = -1, -1
    for k in range(len(query)):
        if k < len(key) and (len(there) == 0 or there[k]):
            low = k if low < 0 or key[k] < key[low] else low
            high = k if high < 0 or key[k] > key[high] else high
        anchor[k] = low if query[k] < 0.0 else high


@compiled(fastmath=SUMS)
def gather_triangle(
    query: Floats,
    key: Floats,
    value: Floats,
    there: Bools,
    anchor: Ints,
    first: int,
    last: int,
    weighted: Floats,
    total: Floats,
) -> None:
    """For each query of a range, add the sums over the keys of the range up to it."""
    last = min(last, len(query))
    x, u = np.empty(last - first), np.empty(last - first)
    count = np.empty(last - first, np.int64)  # of keys up to a query
    found = 0
    for k in range(first, last):
        if k < len(key) and (len(there) == 0 or there[k]):
            x[found], u[found] = key[k], value[k]
            found += 1
        count[k - first] = found
    for k in range(first, last):
        if count[k - first] == 0:
            continue
        y, end, centre = np.float64(query[k]), key[anchor[k]], value[anchor[k]]
        above, below = 0.0, 0.0
        for i in range(count[k - first]):
            weight = exponential(y * (x[i] - end))
            above += weight * (u[i] - centre)
            below += weight
        weighted[k] += above
        total[k] += below


@compiled()
def divide(value: Floats, anchor: Ints, weighted: Floats, total: Floats, mean: Floats) -> None:
    """The means, when all sums are complete; 0 for a query that sees nothing."""
    for k in range(len(mean)):
        mean[k] = value[anchor[k]] + weighted[k] / total[k] if anchor[k] >= 0 else 0.0


@compiled(fastmath=SUMS)
def turn_triangle(
    query: Floats,
    key: Floats,
    value: Floats,
    there: Bools,
    anchor: Ints,
    grad: Floats,
    out: Floats,
    total: Floats,
    first: int,
    last: int,
    grad_query: Floats,
    grad_key: Floats,
    grad_value: Floats,
) -> None:
    """What these scores contribute to the three gradients."""
    last = min(last, len(query))
    x, u, at = np.empty(last - first), np.empty(last - first), np.empty(last - first, np.int64)
    grad_x, grad_u = np.zeros(last - first), np.zeros(last - first)
    found = 0
    for k in range(first, last):
        if k < len(key) and (len(there) == 0 or there[k]):
            x[found], u[found], at[found] = key[k], value[k], k
            found += 1
        if found == 0:
            continue
        y, end, mean = np.float64(query[k]), key[anchor[k]], np.float64(out[k])
        w = grad[k] / total[k]
        slope = 0.0
        for i in range(found):
            weight = w * exponential(y * (x[i] - end))
            part = weight * (u[i] - mean)
            grad_u[i] += weight
            grad_x[i] += y * part
            slope += (x[i] - end) * part
        grad_query[k] += slope
    for i in range(found):
        grad_key[at[i]] += grad_x[i]
        grad_value[at[i]] += grad_u[i]
