"""What the heads of a network with a window average, in balls."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb, ctx

from rankone.arrays import Floats, Ints
from rankone.certification.attention_balls import array, averages_of
from rankone.certification.ball_arithmetic import Balls, gamma, sparse, up
from rankone.deadline import tick
from rankone.nn import TokenClassifier
from rankone.nn.layers import Head

FARTHEST = 600.0  # the weight of the first token is e to minus that at least: a normal number
LAID_OUT = 1 << 18  # tokens of windows that are laid out at once
BITS = 128


class WindowAverages:
    """What the heads of a network with a window average, (heads' rows, tokens).

    Where all tokens ask the same query, and their keys differ by their positions alone, weights are
    e^(-decay j) for the token j places back, for the exact number ``decay`` of each head: `faded`.
    Otherwise windows are laid out as sentences.
    """

    def __init__(self, network: TokenClassifier) -> None:
        assert network.step is not None
        self.table, self.step = array(network.table), array(network.step)
        self.window, self.kind = network.shape.window, network.blocks[0].attention.kind
        heads = [head.map(array) for head in network.blocks[0].attention.heads]
        read = [w for h in heads for w in (h.key, h.query, h.value)]
        self.read = np.flatnonzero(np.any([w.any(0) for w in read], axis=0))
        self.heads = [
            Head(h.key[:, self.read], h.query[:, self.read], h.value[:, self.read], h.output)
            for h in heads
        ]
        self.decays = self._decays()
        self.powers = [] if self.decays is None else [Powers(x, self.window) for x in self.decays]

    def __call__(self, ids: Ints, starts: Ints, first: int = 0) -> Balls:
        """For texts ``starts[j]:starts[j + 1]``, from token number `first` on."""
        inner = np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))
        faded = self.decays is not None
        parts = self._faded(ids, inner) if faded else self._laid_out(ids, inner)
        mid, rad = (np.concatenate([getattr(p, x) for p in parts]) for x in ("mid", "rad"))
        return Balls(mid[:, first:], rad[:, first:])

    def _faded(self, ids: Ints, inner: Ints) -> list[Balls]:
        pairs = zip(self.heads, self.powers, strict=True)
        return [powers.averages(self.values(head, ids), inner) for head, powers in pairs]

    def values(self, head: Head[Floats], ids: Ints) -> Balls:
        """What a head averages: exact if it copies a coordinate."""
        used = np.flatnonzero(head.value.any(0))
        columns = [np.take(np.ascontiguousarray(self.table[:, i]), ids) for i in self.read[used]]
        x = np.stack(columns) if columns else np.zeros((0, len(ids)))
        return sparse(head.value[:, used], Balls(x, np.zeros_like(x)))

    def _laid_out(self, ids: Ints, inner: Ints) -> list[Balls]:
        rows = [len(h.value) for h in self.heads]
        outs = [Balls(*np.empty((2, count, len(ids)))) for count in rows]
        lengths = np.minimum(inner + 1, self.window)
        for n in np.unique(lengths).tolist():
            of_length = np.flatnonzero(lengths == n)
            step = max(1, LAID_OUT // n)
            for i in range(0, len(of_length), step):
                tick()
                own = of_length[i : i + step]
                near = (own[:, None] + np.arange(1 - n, 1)).ravel()
                x = self._seen(ids[near], np.tile(np.arange(n), len(own)))
                starts = np.arange(0, len(near) + 1, n)
                for head, out in zip(self.heads, outs, strict=True):
                    key, query, value = (sparse(w, x) for w in (head.key, head.query, head.value))
                    found = averages_of(key, query, value, starts, causal=False, kind=self.kind)
                    out[:, own] = found[:, n - 1 :: n]
        return outs

    def _seen(self, ids: Ints, where: Ints) -> Balls:
        """X + E in the coordinates that heads read, at places counted from the window's first."""
        x, e = self.table[ids][:, self.read].T, self.step[self.read]
        moving = np.flatnonzero(e)
        out = Balls(np.ascontiguousarray(x), np.zeros(x.shape))
        added = Balls.rounded(e[moving, None] * where)
        out[moving] = out[moving] + added
        return out

    def _decays(self) -> list[float] | None:
        if self.kind != "softmax":
            return None
        table, step = self.table[:, self.read], self.step[self.read]
        found = []
        for head in self.heads:
            keys, asked = (np.flatnonzero(w.any(0)) for w in (head.key, head.query))
            same = (table[:, [*keys, *asked]] == table[0, [*keys, *asked]]).all()
            if len(head.key) != 1 or not same:
                return None
            query = exact_dot(head.query[0, asked], table[0, asked])
            decay = query * exact_dot(head.key[0, keys], step[keys])
            if not 0 <= decay * (self.window - 1) <= FARTHEST or Fraction(float(decay)) != decay:
                return None
            found.append(float(decay))
        return found


class Powers:
    """Softmax averages sum_j r^j v_(k-j) / sum_j r^j over the last `window` tokens, r = e^-decay.

    Sums over 1, 2, 4, ... tokens are each made of two of the sums before: s_2m(k) = s_m(k) + r^m
    s_m(k-m). Those over the window consist of sums over powers of two. A term passes through at
    most L = log2(window) steps of the first kind and L + 1 of the second. With u the unit of
    rounding, r^m comes from Arb, and is off by less than 2u of itself; a product and a sum make 4u
    of it at most. The division by sum_j r^j, which is off by 2u, too, takes another 4u. So the
    average is off by gamma_(8L+8) of that of |v|, which is no larger than the largest |v|.
    """

    def __init__(self, decay: float, window: int) -> None:
        self.decay, self.window = decay, window
        self.error = gamma(8 * window.bit_length() + 8)

    @cached_property
    def totals(self) -> Floats:
        """sum_(j<n) r^j for n = 1, 2, ..., window."""
        found, total = [], arb(0)
        with ctx.workprec(BITS):
            for j in range(self.window):
                tick()
                total += (-arb(self.decay) * j).exp()
                found.append(float(total.mid()))
        return np.array(found)

    def share(self, m: int) -> float:
        """r^m."""
        with ctx.workprec(BITS):
            return float((-arb(self.decay) * m).exp().mid())

    def averages(self, values: Balls, inner: Ints) -> Balls:
        """For rows of values, and the places of their tokens in texts that lie end to end."""
        mid = np.stack([self._sums(row, inner) for row in values.mid])
        mid /= self.totals[np.minimum(inner, self.window - 1)]
        most, widest = (
            np.abs(x).max(1, keepdims=True, initial=0.0) for x in (values.mid, values.rad)
        )
        rad = up(self.error * (most + widest) + widest)
        return Balls(mid, np.broadcast_to(rad, mid.shape))

    def _sums(self, values: Floats, inner: Ints) -> Floats:
        power, size, length = values, 1, 0
        found = values
        while True:
            if self.window & size:
                found = self._joined(found, power, length, inner) if length else power
                length += size
            if 2 * size > self.window:
                return found
            power, size = self._joined(power, power, size, inner), 2 * size

    def _joined(self, x: Floats, y: Floats, m: int, inner: Ints) -> Floats:
        """x(k) + r^m y(k - m), or x(k) alone where the text has begun since."""
        out = x.copy()
        if m < len(x):
            earlier = y[:-m] * self.share(m)
            earlier[inner[m:] < m] = 0.0
            out[m:] += earlier
        return out


def exact_dot(a: Sequence[float] | Floats, b: Sequence[float] | Floats) -> Fraction:
    """a . b as a fraction."""
    pairs = zip(map(float, a), map(float, b), strict=True)
    return sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))
