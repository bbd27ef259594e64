"""What floats leave undecided: the network in Arb balls, with more digits until they decide."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

import numpy as np
from flint import arb, ctx

from rankone.certify.coincide import Place, coincide
from rankone.certify.labels import Decoded, Head
from rankone.certify.mapping import ContextIds, Gaps
from rankone.certify.rounding import Balls, Floats, Ints, U
from rankone.nn import TokenClassifier
from rankone.nn.exact import ExactNetwork, Vector, dot, exact_network

FIRST = 128  # bits
GOOD = 10  # bits of a gap that must be known for it to count, unless the cap is reached
TESTS = 4  # pairs per precision that are tested for being one and the same
MANY = 1 << 15  # bits from which on a second core pays

Progress = Callable[[str, float], None]
T = TypeVar("T")


class Referee:
    """The exact-real network on single tokens of a corpus, at rising precision up to a cap.

    ``bits`` is the largest precision used, ``tokens`` holds the tokens that were looked at, and
    ``undecided`` those for which the cap was not enough.
    """

    def __init__(
        self, network: TokenClassifier, rows: Ints, offsets: Ints, cap: int, progress: Progress
    ) -> None:
        self.network, self.rows, self.offsets = network, rows, offsets
        self.cap, self.progress = cap, progress
        self.bits, self.needed = 0, 0
        self.tokens, self.undecided = set[int](), set[int]()

    def refine(self, ids: ContextIds, at: Ints) -> ContextIds:
        """Context ids number `at` once more, now off by no more than their rounding to float64."""
        along, q = (Balls(b.mid.copy(), b.rad.copy()) for b in (ids.along, ids.q))
        direction = [arb(g) for g in ids.direction.tolist()]
        pending = at.tolist()
        for net in self._rising(bool(pending)):
            late = []
            for i in self._watch(pending):
                token = int(ids.tokens[i])
                moved, q_i = self._context_id(net, token)
                numbers = [dot(direction, moved), *q_i]
                scale = max(abs(x.mid()) for x in numbers)
                if not all(x.rad() <= scale * 2.0**-60 for x in numbers):
                    late.append(i)
                    continue
                mid, rad = _floats(numbers)
                along.mid[i], along.rad[i] = mid[0], rad[0]
                q.mid[:, i], q.rad[:, i] = mid[1:], rad[1:]
            pending = late
            if not pending:
                break
        self.undecided.update(int(ids.tokens[i]) for i in pending)
        return ContextIds(ids.tokens, ids.place, along, q, ids.direction)

    def separate(self, ids: ContextIds, gaps: Gaps) -> tuple[int, int] | None:
        """Decide the clusters of `gaps`; those that stay undecided stay in it.

        Returns a pair that is proved to have one context id, as soon as one is found.
        """
        for net in self._rising(bool(gaps.unsure)):
            tests = TESTS
            for clusters, view in ((gaps.same, self._by_moved), (gaps.different, self._by_q)):
                pending = []
                for cluster in self._watch(clusters):
                    found, tight = view(net, ids, cluster)
                    if tight is None:
                        for lower, pair in found:
                            gaps.offer(lower, pair)
                        continue
                    pending.append(cluster)
                    if tests:
                        tests -= 1
                        if coincide(self.network, *map(self.place, tight)):
                            return tight
                clusters[:] = pending
            if not gaps.unsure:
                break
            self._expect(net)
        self.undecided.update(gaps.unsure)
        return None

    def decode(self, head: Head, decoded: Decoded, tokens: Ints) -> None:
        """Decide the labels of tokens; what is found is written into `decoded`."""
        pending = tokens.tolist()
        for net in self._rising(bool(pending)):
            late = []
            for token in self._watch(pending):
                self.tokens.add(token)
                label, off, values = head.exact(net.features(*self.place(token)))
                if not off < 0.5:
                    late.append(token)
                    continue
                decoded.labels[token] = label
                decoded.off[token] = float(off.upper()) * (1 + 4 * U)
                decoded.values.mid[:, token], decoded.values.rad[:, token] = _floats(values)
            pending = late
            if not pending:
                break
        self.undecided.update(pending)

    def place(self, token: int) -> Place:
        """The sentence of a token, as rows of the table, and its position in it."""
        j = int(np.searchsorted(self.offsets, token, side="right")) - 1
        start = int(self.offsets[j])
        return self.rows[start : self.offsets[j + 1]].tolist(), token - start

    def _context_id(self, net: ExactNetwork, token: int) -> tuple[Vector, Vector]:
        """What attention adds to the token, and the context id."""
        self.tokens.add(token)
        ids, k = self.place(token)
        moved = net.blocks[0][0].output(net.context_averages(ids, k))
        return moved, [x + y for x, y in zip(net.embed(ids[k], k), moved, strict=True)]

    def _by_moved(
        self, net: ExactNetwork, ids: ContextIds, cluster: list[int]
    ) -> tuple[list[tuple[arb, tuple[int, int]]], tuple[int, int] | None]:
        """Tokens with one x, sorted by what attention adds along the direction."""
        direction = [arb(g) for g in ids.direction.tolist()]
        along = [(dot(direction, self._context_id(net, i)[0]), i) for i in cluster]
        return self._neighbours(along, ids.length)

    def _by_q(
        self, net: ExactNetwork, ids: ContextIds, cluster: list[int]
    ) -> tuple[list[tuple[arb, tuple[int, int]]], tuple[int, int] | None]:
        """Tokens with any x: two by their distance, more by a projection."""
        points = [(self._context_id(net, i)[1], i) for i in cluster]
        if len(points) == 2:
            (q, i), (q_, j) = points
            distance = sum(((a - b) ** 2 for a, b in zip(q, q_, strict=True)), arb(0)).sqrt()
            return self._neighbours([(arb(0), i), (distance, j)], arb(1))
        weights = np.random.default_rng(0).uniform(0.5, 1.0, len(ids.direction)).tolist()
        direction = [arb(w) for w in weights]
        length = sum((w * w for w in direction), arb(0)).sqrt()
        return self._neighbours([(dot(direction, q), i) for q, i in points], length)

    def _neighbours(
        self, values: list[tuple[arb, int]], length: arb
    ) -> tuple[list[tuple[arb, tuple[int, int]]], tuple[int, int] | None]:
        """Gaps between neighbours on the line, divided by `length`; or a pair that is too close."""
        values.sort(key=lambda item: item[0].mid())
        final = ctx.prec >= self.cap
        found = []
        for (a, i), (b, j) in pairwise(values):
            gap = b - a
            if not gap > 0 or not (final or gap.is_exact() or gap.rel_accuracy_bits() > GOOD):
                return [], (i, j)
            found.append(((gap / length).lower(), (i, j)))
        return found, None

    def _rising(self, wanted: bool) -> Iterator[ExactNetwork]:
        """Networks at twice the precision each time, or at what is known to be needed."""
        bits, self.needed = min(FIRST, self.cap), 0
        while wanted:
            self.bits = max(self.bits, bits)
            with precision(bits):
                yield exact_network(self.network)
            if bits >= self.cap:
                break
            bits = min(self.cap, max(2 * bits, self.needed))

    def _expect(self, net: ExactNetwork) -> None:
        """Weights that differ by a factor 2^b are told from nothing with a little over b bits."""
        attention = net.blocks[0][0]
        if self.needed or attention.kind != "softmax":
            return
        for h in range(len(attention.heads)):
            sizes = [_exponent(weights[h]) for weights in attention.weights.values()]
            self.needed = max(self.needed, max(sizes) - min(sizes) + FIRST)

    def _watch(self, items: list[T]) -> Iterator[T]:
        for i, item in enumerate(items):
            self.progress(f"exact, {ctx.prec:,} bits", i / len(items))
            yield item


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Arb at so many bits, on all cores if they are many."""
    threads = ctx.threads
    with ctx.workprec(bits):
        ctx.threads = (os.cpu_count() or 1) if bits >= MANY else 1
        try:
            yield
        finally:
            ctx.threads = threads


def _exponent(x: arb) -> int:
    mantissa, exponent = x.mid().man_exp()
    return int(exponent) + int(mantissa).bit_length()


def _floats(numbers: Iterable[arb]) -> tuple[Floats, Floats]:
    """Balls as float64 midpoints and radii."""
    numbers = list(numbers)
    mid = np.array([float(x.mid()) for x in numbers])
    off = [float((x - arb(m)).abs_upper()) for x, m in zip(numbers, mid.tolist(), strict=True)]
    return mid, np.nextafter(np.array(off), np.inf)
