"""Feed-forward layers along a line: every coordinate is a piecewise linear function of one number.

A deep readout sees a context as one number s. All contexts between two bends of its units go
through the same linear map, so they are pushed through the layers together: the cost of a layer
grows with the number of pieces, not with the number of contexts. A coordinate that a layer does
not read costs nothing there; what is added to it waits until it is read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from flint import arb, fmpq

from rankone.deadline import tick
from rankone.nn.exact.network import ExactFeedForward, Row
from rankone.nn.exact.numbers import ZERO, Number, ball

Line = tuple[fmpq, fmpq]  # (a, b) stands for a + b s
Range = tuple[int, int]  # points number i to j - 1
Pieces = tuple[list[int], list[Line]]  # where each piece begins, and its line
FLAT: Line = (ZERO, ZERO)


class Points:
    """Numbers s in increasing order, each known up to the same ``radius``.

    With one radius for all, a unit that is surely active at one point is so at all points beyond
    it.
    """

    def __init__(self, middles: Sequence[fmpq], radius: fmpq = ZERO) -> None:
        self.middles, self.radius = middles, radius

    def __len__(self) -> int:
        return len(self.middles)

    def active(self, line: Line, within: Range) -> tuple[Range, Range]:
        """The points of a range at which a + b s > 0, and those at which that is in doubt."""
        (a, b), (i, j) = line, within
        if not b:
            return ((i, j) if a > 0 else (i, i)), (i, i)
        slip = self.radius * b if b > 0 else -self.radius * b
        s = self.middles
        first, last = a + b * s[i], a + b * s[j - 1]
        if min(first, last) >= slip:
            return (i, j), (i, i)
        if max(first, last) <= -slip:
            return (i, i), (i, i)
        if b > 0:  # inactive, in doubt, active
            no, yes = (-slip - a) / b, (slip - a) / b
            below, above = bisect_right(s, no, i, j), bisect_left(s, yes, i, j)
            return (max(below, above), j), (below, max(below, above))
        yes, no = (slip - a) / b, (-slip - a) / b  # active, in doubt, inactive
        below, above = bisect_right(s, yes, i, j), bisect_left(s, no, i, j)
        return (i, min(below, above)), (min(below, above), above)

    def value(self, i: int, line: Line) -> Number:
        """a + b s at point number i."""
        a, b = line
        if not b:
            return a
        middle = a + b * self.middles[i]
        if not self.radius:
            return middle
        return arb(middle) + arb(0, ball(abs(self.radius * b)))


class Bent:
    """The coordinates of a state, each piecewise linear in s, as layers go by.

    Where the sign of a unit is in doubt, its preactivation is at most 2 ``radius`` |b|; it counts
    as 0, and what it might have written is kept as ``slack``. A point with slack in a coordinate
    that a layer reads is lost.
    """

    def __init__(self, points: Points, start: Mapping[int, Line]) -> None:
        self.points = points
        self.pieces: dict[int, Pieces] = {c: ([0], [line]) for c, line in start.items()}
        self.waiting: defaultdict[int, list[tuple[int, int, Line]]] = defaultdict(list)
        self.slack: defaultdict[int, dict[int, fmpq]] = defaultdict(dict)
        self.lost: set[int] = set()

    def apply(self, layer: ExactFeedForward, wanted: Iterable[int]) -> None:
        """H + W2 relu(W1 H + b1) + b2, for the coordinates that are `wanted` later."""
        tick()
        wanted = {*wanted}
        reads = sorted(layer.reads)
        self.lost.update(*(self.slack[c] for c in reads if c in self.slack))
        starts, states = self._runs(reads)
        ends = [*starts[1:], len(self.points)]
        units = list(zip(layer.weight1.rows, layer.bias1, _columns(layer), strict=True))
        added: dict[int, list[tuple[int, int, Line]]] = defaultdict(list)
        for i, j, state in zip(starts, ends, states, strict=True):
            for c, i_, j_, line in self._contributions(units, state, (i, j), wanted):
                added[c].append((i_, j_, line))
        for c, more in added.items():
            self.waiting[c].extend(more)
        for c, b in enumerate(layer.bias2):
            if b and c in wanted:
                self.waiting[c].append((0, len(self.points), (b, ZERO)))

    def lines(self, c: int) -> Pieces:
        """The pieces of a coordinate."""
        if self.waiting[c]:
            own = self.pieces.get(c, ([0], [FLAT]))
            self.pieces[c] = _summed(own, self.waiting.pop(c), len(self.points))
        return self.pieces.setdefault(c, ([0], [FLAT]))

    def values(self, c: int) -> list[Number]:
        """A coordinate at every point."""
        starts, lines = self.lines(c)
        found = list[Number]()
        for (i, j), line in zip(pairwise([*starts, len(self.points)]), lines, strict=True):
            found.extend(self.points.value(k, line) for k in range(i, j))
        for k, slack in self.slack.get(c, {}).items():
            found[k] = ball(found[k]) + arb(0, ball(slack))
        for k in self.lost:
            found[k] = arb("nan")
        return found

    def _runs(self, reads: Sequence[int]) -> tuple[list[int], list[dict[int, Line]]]:
        """The ranges on which all these coordinates are linear, and their lines there."""
        pieces = {c: self.lines(c) for c in reads}
        starts = sorted({0}.union(*(starts for starts, _ in pieces.values())))
        states: list[dict[int, Line]] = [{} for _ in starts]
        for c, (own, lines) in pieces.items():
            if len(own) == len(starts):
                for state, line in zip(states, lines, strict=True):
                    state[c] = line
                continue
            at = -1
            for start, state in zip(starts, states, strict=True):
                if at + 1 < len(own) and own[at + 1] == start:
                    at += 1
                state[c] = lines[at]
        return starts, states

    def _contributions(
        self,
        units: Sequence[tuple[Row, fmpq, list[tuple[int, fmpq]]]],
        state: Mapping[int, Line],
        run: Range,
        wanted: set[int],
    ) -> Iterable[tuple[int, int, int, Line]]:
        """What the units add to coordinates on a range: (coordinate, from, to, line)."""
        i, j = run
        whole: dict[int, Line] = {}
        for row, bias, writes in units:
            a, b = bias, ZERO
            for c, weight in row:
                own = state[c]
                a += weight * own[0]
                if own[1]:
                    b += weight * own[1]
            (begin, end), doubt = self.points.active((a, b), run)
            if doubt[0] < doubt[1]:
                self._doubt(range(*doubt), 2 * abs(self.points.radius * b), writes, wanted)
            if begin == end:
                continue
            for c, weight in writes:
                if c not in wanted:
                    continue
                line = weight * a, weight * b
                if (begin, end) != (i, j):
                    yield c, begin, end, line
                elif c in whole:
                    known = whole[c]
                    whole[c] = known[0] + line[0], known[1] + line[1]
                else:
                    whole[c] = line
        for c, line in whole.items():
            if line[0] or line[1]:
                yield c, i, j, line

    def _doubt(
        self, places: range, most: fmpq, writes: list[tuple[int, fmpq]], wanted: set[int]
    ) -> None:
        for c, weight in writes:
            if c in wanted:
                known = self.slack[c]
                known.update((k, known.get(k, ZERO) + abs(weight) * most) for k in places)


def _columns(layer: ExactFeedForward) -> list[list[tuple[int, fmpq]]]:
    """What each unit writes: the columns of W2."""
    columns: list[list[tuple[int, fmpq]]] = [[] for _ in layer.bias1]
    for c, row in enumerate(layer.weight2.rows):
        for j, weight in row:
            columns[j].append((c, weight))
    return columns


def _summed(own: Pieces, more: list[tuple[int, int, Line]], end: int) -> Pieces:
    """Pieces plus lines on ranges; neighbours that continue each other become one."""
    ends = dict(zip(own[0], [*own[0][1:], end], strict=True))
    if all(ends.get(i) == j for i, j, _ in more):  # the usual case: ranges are whole pieces
        sums = dict(zip(*own, strict=True))
        for i, _, (a, b) in more:
            known = sums[i]
            sums[i] = known[0] + a, known[1] + b
        return _merged(sums.items())
    steps: dict[int, Line] = {}

    def step(at: int, a: fmpq, b: fmpq) -> None:
        known = steps.get(at)
        steps[at] = (a, b) if known is None else (known[0] + a, known[1] + b)

    before = FLAT
    for start, line in zip(*own, strict=True):
        step(start, line[0] - before[0], line[1] - before[1])
        before = line
    for i, j, (a, b) in more:
        step(i, a, b)
        if j < end:
            step(j, -a, -b)
    summed, a, b = list[tuple[int, Line]](), ZERO, ZERO
    for at in sorted(steps):
        rise = steps[at]
        a, b = a + rise[0], b + rise[1]
        summed.append((at, (a, b)))
    return _merged(summed)


def _merged(pieces: Iterable[tuple[int, Line]]) -> Pieces:
    """Pieces in order, those left out that continue the one before."""
    starts, lines = list[int](), list[Line]()
    for start, line in pieces:
        if not lines or line != lines[-1]:
            starts.append(start)
            lines.append(line)
    return starts, lines
