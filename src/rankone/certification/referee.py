"""The referee: the network in Arb balls, at rising precision, for what float64 leaves undecided."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import inf, isfinite, nextafter
from typing import Protocol, TypeVar

import numpy as np
from flint import arb, ctx

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import Balls
from rankone.certification.coincide import Place, coincide
from rankone.certification.context_gaps import Gaps
from rankone.certification.context_ids import ContextIds, sideways
from rankone.certification.float_evaluation import Readings
from rankone.certification.label_heads import Head
from rankone.deadline import TimeIsUpError, time_left
from rankone.nn import TokenClassifier
from rankone.nn.arb_network import ArbNetwork, Vector, added, dot, in_balls, norm
from rankone.nn.evaluate import Numbers
from rankone.progress import Progress

FIRST = 128  # bits
GOOD = 10  # correct bits that a gap must have to count, unless the cap is reached
TESTS = 4  # pairs per precision that are tested for equality
MANY = 1 << 15  # bits above which a second core pays off
PER_BIT = 2e-7  # seconds per bit of one exponential, which cannot be interrupted

T = TypeVar("T")
Pair = tuple[int, int]
Neighbours = tuple[list[tuple[arb, Pair]], Pair | None]


class Open(Protocol):
    """What is known of the tokens that are open, by their numbers."""

    run_values: dict[int, Numbers]
    off: dict[int, float]
    labels: dict[int, int]
    margin: arb
    worst: int
    distance: float


class Referee:
    """The exact network on single tokens of a corpus, at rising precision up to a cap.

    ``bits`` is the largest precision used, ``tokens`` the tokens that were evaluated, and
    ``undecided`` those whose context ids `refine` could not make sharp at the cap.
    """

    def __init__(
        self, network: TokenClassifier, rows: Ints, offsets: Ints, cap: int, progress: Progress
    ) -> None:
        self.network, self.rows, self.offsets = network, rows, offsets
        self.cap, self.progress = cap, progress
        self.bits, self.needed = 0, 0
        self.tokens, self.undecided = set[int](), set[int]()
        self.only: Ints | None = None  # coordinates of features that heads are given: None for all

    def refine(self, ids: ContextIds, at: Ints) -> ContextIds:
        """Recompute context ids number `at`, so that only their rounding to float64 is left."""
        if not len(at):
            return ids
        direction = [arb(g) for g in ids.direction.tolist()]
        found = np.empty((2, 1 + 2 * len(direction), len(at)))  # midpoints and radii
        pending = list(range(len(at)))
        for net in self._rising(True):
            late = []
            for i in self._watch(pending):
                moved, q = self._context_id(net, int(ids.tokens[at[i]]))
                numbers = [dot(direction, moved), *moved, *q]
                scale = max(abs(x.mid()) for x in numbers)
                found[:, :, i] = _floats(numbers)
                sharp = all(x.rad() <= scale * 2.0**-60 for x in numbers)
                if not sharp or not np.isfinite(found[:, :, i]).all():
                    late.append(i)
            pending = late
            if not pending:
                break
        self.undecided.update(int(ids.tokens[at[i]]) for i in pending)
        along, parts = Balls(*found[:, 0]), Balls(*found[:, 1:])
        return ids.replaced(at, along, parts[: len(direction)], parts[len(direction) :])

    def separate(self, direction: Floats, gaps: Gaps) -> Pair | None:
        """Decide the clusters of `gaps`, along this direction; undecided clusters stay in it.

        Returns a pair that is proved to have one context id, as soon as one is found. If the time
        limit is hit, `gaps` holds what is left.
        """
        for net in self._rising(bool(gaps.unsure)):
            tests = TESTS
            for part, clusters in enumerate((gaps.same, gaps.different)):
                pending, done = [], 0
                try:
                    for cluster in self._watch(clusters):
                        found, tight = self._apart(net, direction, cluster, part)
                        done += 1
                        if tight is None:
                            for lower, pair in found:
                                gaps.offer(lower, pair)
                            continue
                        pending.append(cluster)
                        if tests:
                            tests -= 1
                            if coincide(self.network, *map(self.place, tight)):
                                return tight
                finally:
                    clusters[:] = pending + clusters[done:]
            if not gaps.unsure:
                break
            self._expect(net)
        return None

    def decode(self, head: Head, readings: Readings | Open) -> None:
        """Decide the open labels; results are written into `readings` as they are found."""
        pending = [i for i in sorted(readings.run_values) if not readings.off[i] < 0.5]
        for net in self._rising(bool(pending)):
            late = []
            for token in self._watch(pending):
                self.tokens.add(token)
                features = net.features(*self.place(token))
                if self.only is not None:
                    features = [features[i] for i in self.only.tolist()]
                label, off, values = head.exact(features)
                if not off < 0.5:
                    late.append(token)
                    continue
                if (0.5 - off).lower() < readings.margin:
                    readings.margin, readings.worst = (0.5 - off).lower(), token
                readings.labels[token], readings.off[token] = label, 0.0
                for y, run in zip(values, readings.run_values[token].tolist(), strict=True):
                    away = float((y - run).abs_upper()) if isfinite(run) else inf
                    readings.distance = max(readings.distance, nextafter(away, inf))
            pending = late
            if not pending:
                break

    def fetch(self, tokens: Iterable[int]) -> None:
        """Make the sentences of these tokens known, where they are not."""

    def place(self, token: int) -> Place:
        """What the token sees, as rows of the table, and its own position there: the sentence, or
        what a window holds of it. (Of several layers that see the past, all of it is kept.)"""
        j = int(np.searchsorted(self.offsets, token, side="right")) - 1
        start, end = self.offsets[j : j + 2].tolist()
        shape = self.network.shape
        if shape.window:
            start = max(start, token + 1 - shape.window)
        if shape.causal and shape.depth == 1:
            end = token + 1
        return self.rows[start:end].tolist(), token - start

    def _context_id(self, net: ArbNetwork, token: int) -> tuple[Vector, Vector]:
        """What attention adds to the token, and the context id."""
        self.tokens.add(token)
        ids, k = self.place(token)
        moved = net.blocks[0][0].output(net.context_averages(ids, k))
        return moved, added(net.embed(ids[k], k), moved)

    def _apart(self, net: ArbNetwork, along: Floats, cluster: list[int], part: int) -> Neighbours:
        """Gaps of the tokens of a cluster: two by their distance, more along some direction.

        `part` 0 is what attention adds to them, for tokens with one x; 1 are their context ids.
        """
        points = [(self._context_id(net, i)[part], i) for i in cluster]
        final = ctx.prec >= self.cap
        if len(points) == 2:
            (a, i), (b, j) = points
            distance = norm([x - y for x, y in zip(a, b, strict=True)])
            return neighbours([(arb(0), i), (distance, j)], arb(1), final=final)
        found: Neighbours = ([], None)
        for numbers in (along, sideways(len(along))):
            direction = [arb(g) for g in numbers.tolist()]
            line = [(dot(direction, point), i) for point, i in points]
            found = neighbours(line, norm(direction), final=final)
            if found[1] is None:
                break
        return found

    def _rising(self, wanted: bool) -> Iterator[ArbNetwork]:
        """The network at twice the precision each time, or at the precision known to be needed."""
        bits, self.needed = min(FIRST, self.cap), 0
        while wanted:
            if bits * PER_BIT > time_left():
                raise TimeIsUpError
            self.bits = max(self.bits, bits)
            with precision(bits):
                yield in_balls(self.network)
            if bits >= self.cap:
                break
            bits = min(self.cap, max(2 * bits, self.needed))

    def _expect(self, net: ArbNetwork) -> None:
        """Adding weights of one query that differ by a factor 2^b takes a little over b bits."""
        attention = net.blocks[0][0]
        if self.needed or attention.kind != "softmax":
            return
        sizes = defaultdict[tuple[Hashable, int], list[int]](list)
        for (query, _), weights in attention.weights.items():
            for head, weight in enumerate(weights):
                mantissa, exponent = weight.mid().man_exp()
                sizes[query, head].append(int(exponent) + int(mantissa).bit_length())
        self.needed = FIRST + max(max(found) - min(found) for found in sizes.values())

    def _watch(self, items: list[T]) -> Iterator[T]:
        for i, item in enumerate(items):
            self.progress(f"exact, {ctx.prec:,} bits", i / len(items))
            yield item


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Arb at a given precision, on all cores if it is high."""
    threads = ctx.threads
    with ctx.workprec(bits):
        ctx.threads = (os.cpu_count() or 1) if bits >= MANY else 1
        try:
            yield
        finally:
            ctx.threads = threads


def neighbours(values: list[tuple[arb, int]], length: arb, *, final: bool) -> Neighbours:
    """Gaps of neighbours on a line, divided by `length`; or else a pair that is not separated.

    If every ball lies to the left of the next, no two are closer than some neighbours are. Unless
    this is the last precision (`final`), a gap counts only if it is known to `GOOD` bits.
    """
    values.sort(key=lambda item: item[0].mid())
    found = []
    for (a, i), (b, j) in pairwise(values):
        gap = b - a
        if not gap > 0 or not (final or gap.is_exact() or gap.rel_accuracy_bits() > GOOD):
            return [], (i, j)
        found.append(((gap / length).lower(), (i, j)))
    return found, None


def _floats(numbers: Iterable[arb]) -> tuple[Floats, Floats]:
    """Balls as float64 midpoints and radii."""
    numbers = list(numbers)
    mid = np.array([float(x.mid()) for x in numbers])
    off = [float((x - arb(m)).abs_upper()) for x, m in zip(numbers, mid.tolist(), strict=True)]
    return mid, np.nextafter(np.array(off), np.inf)
