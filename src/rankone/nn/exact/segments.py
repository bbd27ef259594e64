"""Feed-forward layers between two attentions, applied to many columns at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from flint import arb

from rankone.deadline import tick
from rankone.nn.exact.network import ExactFeedForward, Row, Sparse, dot
from rankone.nn.exact.numbers import ONE, ZERO, Number, Vector, middle
from rankone.nn.exact.pieces import Bent, Line, Points

WIDE = 16  # hidden units from which a layer that looks along one line is summed along it


def apply(
    layers: Sequence[ExactFeedForward],
    columns: Sequence[Vector],
    live: Callable[[int], frozenset[int]],
) -> list[Vector]:
    """The columns after these layers. ``live(i)`` are the coordinates that are read by layer i of
    them or later; the others need not be computed, and come out as they went in, or as 0.

    As soon as all columns differ in one live coordinate only, they lie on a line.
    """
    found = [list(column) for column in columns]
    bent = [layer.activation == "relu" for layer in layers]
    for i, layer in enumerate(layers):
        alive = live(i)
        varying = _varying(found, alive) if len(found) > 1 and all(bent[i:]) else None
        if varying is not None:
            return _along_line(layers[i:], found, varying, partial(_later, live, i))
        direction = _direction(layer) if layer.hidden >= WIDE else None
        if direction is not None and len(found) > 1:
            found = _wide(layer, found, direction, live(i + 1))
        else:
            found = [_direct(layer, column) for column in found]
    return found


def _later(live: Callable[[int], frozenset[int]], first: int, i: int) -> frozenset[int]:
    return live(first + i)


def _direct(layer: ExactFeedForward, h: Vector) -> Vector:
    """Eq. 3 for one column."""
    tick()
    hidden = [a + b for a, b in zip(layer.weight1.times(h), layer.bias1, strict=True)]
    if layer.activation == "tanh":
        active: Vector = [arb(x).tanh() for x in hidden]
    else:
        active = [_relu(x) for x in hidden]
    out = layer.weight2.times(active)
    return [x + y + b for x, y, b in zip(h, out, layer.bias2, strict=True)]


def _relu(x: Number) -> Number:
    if isinstance(x, arb):
        return arb.max(x, arb(0)) if not x <= 0 else ZERO
    return x if x > 0 else ZERO


def _varying(columns: Sequence[Vector], live: frozenset[int]) -> int | None:
    """The one live coordinate in which columns differ; None if there are more."""
    found = None
    first = columns[0]
    for c in sorted(live):
        x = first[c]
        if isinstance(x, arb) or any(isinstance(z[c], arb) or z[c] != x for z in columns):
            if found is not None:
                return None
            found = c
    return min(live, default=None) if found is None else found


def _line_of(numbers: Sequence[Number]) -> tuple[list[int], Points]:
    """The order of numbers on the line, and the line."""
    known = [middle(x) for x in numbers]
    order = sorted(range(len(known)), key=lambda i: known[i][0])
    return order, Points([known[i][0] for i in order], max(radius for _, radius in known))


def _along_line(
    layers: Sequence[ExactFeedForward],
    columns: list[Vector],
    varying: int,
    live: Callable[[int], frozenset[int]],
) -> list[Vector]:
    try:
        order, points = _line_of([z[varying] for z in columns])
    except ValueError:
        return [[arb("nan")] * len(z) for z in columns]
    start: dict[int, Line] = {c: (columns[0][c], ZERO) for c in live(0)}  # type: ignore[misc]
    bent = Bent(points, {**start, varying: (ZERO, ONE)})
    for i, layer in enumerate(layers):
        bent.apply(layer, live(i + 1))
    for c in live(len(layers)):
        for i, x in zip(order, bent.values(c), strict=True):
            columns[i][c] = x
    return columns


def _direction(layer: ExactFeedForward) -> Row | None:
    """The row of W1 of which all others are multiples, if there is one."""
    rows = [row for row in layer.weight1.rows if row]
    if not rows or layer.activation != "relu":
        return None
    (first, scale), *_ = rows[0]
    for row in rows:
        if row[0][0] != first or len(row) != len(rows[0]):
            return None
        share = row[0][1] / scale
        if any(a[0] != b[0] or a[1] != share * b[1] for a, b in zip(row, rows[0], strict=True)):
            return None
    return rows[0]


def _wide(
    layer: ExactFeedForward, columns: list[Vector], direction: Row, live: frozenset[int]
) -> list[Vector]:
    """Units that all read multiples of one number s are summed piece by piece."""
    s = [dot(direction, z) for z in columns]
    try:
        order, points = _line_of(s)
    except ValueError:
        return [[arb("nan")] * len(z) for z in columns]
    scale = direction[0][1]
    rows = (((0, row[0][1] / scale),) if row else () for row in layer.weight1.rows)
    along = ExactFeedForward(
        Sparse(tuple(rows), len(layer.bias2) + 1),
        layer.bias1,
        Sparse(((), *layer.weight2.rows), layer.hidden),
        (ZERO, *layer.bias2),
    )
    bent = Bent(points, {0: (ZERO, ONE)})  # coordinate 0 is s, all others move up by one
    bent.apply(along, {c + 1 for c in live})
    for c in live:
        for i, x in zip(order, bent.values(c + 1), strict=True):
            columns[i][c] += x
    return columns
