"""Linear-time attention on the CPU, over the rows and channels of a batch: whole, or causal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rankone.arrays import Bools, Ints
from rankone.kernels.compiled import threads
from rankone.kernels.compiled.rectangle import (
    ALL,
    NONE,
    Gradient,
    Range,
    Real,
    Rectangle,
    Result,
    Row,
)
from rankone.kernels.compiled.triangle import (
    divide,
    gather_triangle,
    prefix_extremes,
    turn_triangle,
)

LEAF = 512  # length of a range that is attended to score by score, if causal
LONG = 1 << 14  # points from which a single rectangle is worth several threads


def forward(
    query: Real, key: Real, value: Real, there: Bools | None, *, causal: bool
) -> tuple[Real, Real]:
    """The means (rows, c, q) of the values (rows, c, n), and, if causal, the sums of the weights.

    The sums are (rows, q) if causal, else (rows, 0). Weights are e^(y (x - x*)), where x* is the
    extreme key that the query sees; mean and sum are 0 if it sees none. Raises `UnfitError`, unless
    causal, for numbers that are not finite or too large.
    """
    (rows, q), channels = query.shape, value.shape[1]
    anchors = _anchors(query, key, there, causal)
    out = np.empty((rows, channels, q), query.dtype)
    for channel in range(channels):
        total = np.zeros((rows, q if causal else 0))
        sums = np.zeros((rows, q)) if causal else out[:, channel]
        given = _rows(query, key, value[:, channel], there, anchors)
        work = [(row, Result(sums[i], total[i])) for i, row in enumerate(given)]
        _sweep(work, causal, _forward_leaf, Rectangle.forward)
        if causal:
            for (row, result), mean in zip(work, out[:, channel], strict=True):
                divide(row.value, row.anchor, *result, mean)
    return out, total.astype(query.dtype, copy=False)


def backward(
    grad: Real,
    query: Real,
    key: Real,
    value: Real,
    there: Bools | None,
    out: Real,
    total: Real,
    *,
    causal: bool,
) -> tuple[Real, Real, Real]:
    """The gradients of query, key and value."""
    anchors = _anchors(query, key, there, causal)
    grads = np.zeros(query.shape), np.zeros(key.shape), np.zeros(value.shape)
    for channel in range(value.shape[1]):
        given = _rows(query, key, value[:, channel], there, anchors)
        work = [
            (
                row,
                Result(out[i, channel], total[i]),
                Gradient(grad[i, channel], grads[0][i], grads[1][i], grads[2][i, channel]),
            )
            for i, row in enumerate(given)
        ]
        _sweep(work, causal, _backward_leaf, Rectangle.backward)
    of_query, of_key, of_value = (x.astype(query.dtype, copy=False) for x in grads)
    return of_query, of_key, of_value


def _rows(
    query: Real, key: Real, value: Real, there: Bools | None, anchors: list[Ints]
) -> Iterator[Row]:
    for i, anchor in enumerate(anchors):
        yield Row(query[i], key[i], value[i], ALL if there is None else there[i], anchor)


def _anchors(query: Real, key: Real, there: Bools | None, causal: bool) -> list[Ints]:
    """The key with the largest weight for each query, known in advance: sums need no rescaling."""
    if not causal:
        return [NONE] * len(query)
    anchors = np.empty(query.shape, np.int64)
    for i, anchor in enumerate(anchors):
        prefix_extremes(query[i], key[i], ALL if there is None else there[i], anchor)
    return list(anchors)


def _forward_leaf(row: Row, result: Result, first: int, last: int) -> None:
    gather_triangle(*row, first, last, *result)


def _backward_leaf(row: Row, result: Result, gradient: Gradient, first: int, last: int) -> None:
    turn_triangle(*row, gradient.out, *result, first, last, *gradient[1:])


def _sweep(
    work: list[tuple[Any, ...]],
    causal: bool,
    leaf: Callable[..., None],
    act: Callable[..., None],
) -> None:
    """Let each key act on each query that sees it. If causal, first triangles along the diagonal,
    then squares that double in size: the left half of a range acts on its right half.

    Work that is done at the same time touches different queries and different keys.
    """
    row: Row = work[0][0]
    if causal:
        starts = range(0, len(row.query), LEAF)
        threads.run(leaf, [(*item, a, a + LEAF) for item in work for a in starts])

    def rectangle(item: tuple[Any, ...], keys: Range, queries: Range, count: int) -> None:
        act(Rectangle(item[0], keys, queries, count), *item[1:])

    for level in _levels(len(row.query), len(row.key), causal):
        tasks = [(item, *ranges) for item in work for ranges in level]
        if len(tasks) >= threads.count() or len(row.query) + len(row.key) < LONG:
            threads.run(rectangle, [(*task, 1) for task in tasks])
        else:
            for task in tasks:
                rectangle(*task, threads.count())


def _levels(q: int, n: int, causal: bool) -> Iterator[list[tuple[Range, Range]]]:
    """Ranges (keys, queries) whose rectangles can be worked on together."""
    if not causal:
        yield [((0, n), (0, q))]
        return
    size = LEAF
    while size < q:
        starts = range(0, min(n, q - size), 2 * size)
        yield [((a, min(a + size, n)), (a + size, min(a + 2 * size, q))) for a in starts]
        size *= 2
