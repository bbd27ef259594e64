"""Half-spaces that hold one word's vector and no other: the gates of given vectors.

Word w has a gate if some g and theta have g . x_w = theta and g . x_v < theta for all other v, that
is, if x_w is a corner of the convex hull of all vectors. Its margin theta - max_v g . x_v is scaled
to at least 1. Directions are tried in this order, each only for words without a good one so far:

1. g = S^-1 (x_w - mean) with the covariance S, which is right where the whitened vectors are about
   equally long,
2. g = x_w, which is right on a sphere around 0: there inner products are largest with oneself,
3. g = x_w - mean,
4. the whitened point nearest to 0 of the hull of all x_w - x_v. It has the widest margin for its
   length, and is 0 only if x_w is no corner. Non-negative least squares finds it (Lawson and Hanson
   1974, chapter 23) among some of the v; those beyond its edge join them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.errors import PrecisionError, RankOneError, VectorError

HELD = 1 << 22  # inner products at once
GOOD = 2.0**-5  # of the sizes of its terms: no other direction is tried for such a margin
POOR = 2.0**-9  # the nearest point of the hull is sought for smaller ones
FLAT = 1e-10  # of the largest variance: directions with less are left out of the whitening
FIRST, MORE = 64, 32  # other words that are looked at first, and that join them later
ROUNDS = 32
WIDE = 0.5  # of the widest margin is enough
TINY = 1e-20  # squared: a hull that comes so near to 0 holds it, as far as one can see
EVEN = 1e-13  # of slopes and shares: rounding


@dataclass(frozen=True)
class Gates:
    """A row of weights per word, ``-theta`` last. ``size`` bounds the terms of the word's own inner
    product, ``share`` is the margin over that."""

    words: Ints
    rows: Floats
    size: Floats
    share: Floats
    nearest: Ints


def find_gates(
    table: Floats, words: Ints, held: type[np.floating], terms: int, names: Sequence[str]
) -> Gates:
    """Gates for some rows of a table, as numbers of the type `held`; `terms` is how often a sum is
    rounded. Refused where there is none, or where rounding is as wide as the margin."""
    unit = float(np.finfo(held).eps) / 2
    scale = float(power(np.abs(table).max(initial=0.0)))
    x = table / scale
    mean = x[:-1].mean(0)
    centred = x - mean
    whiten = whitening(centred[:-1])
    best = Search(x, words, held)
    best.offer(np.arange(len(words)), centred[words] @ whiten @ whiten.T)
    for tried in (x, centred):
        left = np.flatnonzero(best.share < GOOD)
        best.offer(left, tried[words[left]])
    points = centred @ whiten
    left = np.flatnonzero(best.share < POOR)
    for i in left[np.argsort(best.share[left], kind="stable")].tolist():  # the least hopeful first
        part = np.array([i])
        for z in nearest_points(points, int(words[i]), centred[words[i]] @ whiten):
            best.offer(part, (whiten @ z)[None])
        best.check(part, unit * terms, names)
    best.check(np.arange(len(words)), unit * terms, names)
    return best.gates(scale, unit * terms)


class Search:
    """The best gate so far of every word."""

    def __init__(self, x: Floats, words: Ints, held: type[np.floating]) -> None:
        self.x, self.words, self.held = x, words, held
        self.rows = np.zeros((len(words), x.shape[1]))
        self.theta, self.margin = np.zeros(len(words)), np.zeros(len(words))
        self.size, self.share = np.ones(len(words)), np.full(len(words), -np.inf)
        self.nearest = np.zeros(len(words), np.int64)
        self.longest = float(np.linalg.norm(x, axis=1).max(initial=0.0))

    def offer(self, at: Ints, rows: Floats) -> None:
        """Take these directions for words number `at` where their share is larger."""
        rows = rows / power(np.abs(rows).max(1, initial=0.0))[:, None]
        rows = rows.astype(self.held).astype(np.float64)
        own = self.x[self.words[at]]
        theta = (rows * own).sum(1).astype(self.held).astype(np.float64)
        most, nearest = others(rows, self.x, self.words[at])
        size = (np.abs(rows) * np.abs(own)).sum(1) + np.abs(theta)
        share = (theta - most) / np.where(size > 0, size, 1.0)
        better = share > self.share[at]
        to = at[better]
        self.rows[to], self.theta[to], self.size[to] = rows[better], theta[better], size[better]
        self.margin[to], self.share[to] = (theta - most)[better], share[better]
        self.nearest[to] = nearest[better]

    def rounding(self, rounded: float) -> Floats:
        """What rounding may do to the inner product with any row, in any order of its terms."""
        length = np.linalg.norm(self.rows, axis=1) * self.longest
        return np.asarray(rounded * (length + np.abs(self.theta)))

    def check(self, at: Ints, rounded: float, names: Sequence[str]) -> None:
        """Refuse the word with the smallest share, unless rounding takes less than a quarter."""
        bad = at[~(self.margin[at] > 4 * self.rounding(rounded)[at])]
        if len(bad):
            worst = bad[self.share[bad].argmin()]
            raise self._refusal(int(worst), rounded, names)

    def _refusal(self, i: int, rounded: float, names: Sequence[str]) -> RankOneError:
        word, other = names[self.words[i]], int(self.nearest[i])
        near = f"that of {names[other]!r}" if other < len(names) else UNKNOWN
        share = float(self.share[i])
        wide = "vectors that are further apart"
        if share <= 0:
            return VectorError(
                f"the vector of {word!r} cannot be gated: no half-space was found that holds it "
                f"and no other, for it lies in the convex hull of the others, or all but; with the "
                f"best one {near} is level or beyond (margin {share:.1e} of the terms)",
                remedy=f"give {wide}, as with more dimensions or all of one length, or choose "
                "another way (memorize --construction line)",
            )
        name = np.dtype(self.held).name
        return PrecisionError(
            f"{name} cannot gate the vector of {word!r}: its margin to {near} is "
            f"{share:.1e} of the terms of their inner products, and rounding may take "
            f"{float(self.rounding(rounded)[i] / self.size[i]):.1e}",
            remedy=f"give {wide}{', choose float64' * (name == 'float32')}, or choose "
            "another way (memorize --construction line)",
        )

    def gates(self, scale: float, rounded: float) -> Gates:
        """Scaled by powers of two, so that margins less all rounding are from 1 to 2."""
        least = self.margin - self.rounding(rounded)
        up = 2.0 ** -np.floor(np.log2(least)) if len(least) else least
        rows = np.concatenate([self.rows * (up / scale)[:, None], -(self.theta * up)[:, None]], 1)
        return Gates(self.words, rows, self.size * up, self.share, self.nearest)


UNKNOWN = "the mean of all vectors, which stands for unknown words,"


def power(x: Floats | float) -> Floats:
    """The largest power of two that is no larger; 1 for 0."""
    size = np.asarray(x, dtype=np.float64)
    return np.asarray(2.0 ** np.floor(np.log2(np.where(size > 0, size, 1.0))))


def others(rows: Floats, x: Floats, own: Ints) -> tuple[Floats, Ints]:
    """The largest inner product of each of these rows with a row of x that is not its own."""
    most, nearest = np.empty(len(rows)), np.empty(len(rows), np.int64)
    for part, s in products(rows, x):
        index = np.arange(len(s))
        s[index, own[part]] = -np.inf
        nearest[part] = s.argmax(1)
        most[part] = s[index, nearest[part]]
    return most, nearest


def products(rows: Floats, x: Floats) -> Iterator[tuple[slice, Floats]]:
    """rows x^T, some rows at a time."""
    step = max(1, HELD // max(1, len(x)))
    for i in range(0, len(rows), step):
        yield slice(i, i + step), rows[i : i + step] @ x.T


def whitening(centred: Floats, floor: float = 0.0) -> Floats:
    """Columns W with W^T S W = 1 for the covariance S, where that is not flat; variances are raised
    by `floor` of the largest."""
    values, vectors = np.linalg.eigh(centred.T @ centred / max(1, len(centred)))
    largest = float(values.max(initial=0.0))
    kept = values > FLAT * largest
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept] + floor * largest))


def nearest_points(z: Floats, word: int, start: Floats) -> Iterator[Floats]:
    """Better and better directions for a word: the point nearest to 0 of the hull of z_w - z_v for
    some v, to which those beyond the edge are added."""
    own, near = z[word], np.empty(0, np.int64)
    behind = (own - z) @ start
    behind[word] = np.inf
    for turn in range(ROUNDS):
        size = min(MORE if turn else FIRST, len(z) - 1)
        near = np.union1d(near, np.argpartition(behind, size - 1)[:size])
        apart = own - z[near]
        furthest = float(np.linalg.norm(apart, axis=1).max()) or 1.0
        apart /= furthest
        share = nonnegative(np.append(apart.T, np.ones((1, len(near))), axis=0))
        found = share @ apart / share.sum()
        length = float(found @ found)
        yield found
        behind = (own - z) @ found
        behind[word] = np.inf
        if length <= TINY or behind.min() >= WIDE * furthest * length:
            return


def nonnegative(a: Floats) -> Floats:
    """x >= 0 with the least |a x - (0, ..., 0, 1)|: columns join one by one, and leave where their
    number would fall below 0."""
    wanted = np.append(np.zeros(len(a) - 1), 1.0)
    x, joined = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    for _ in range(3 * a.shape[1]):
        slope = np.where(joined, -np.inf, a.T @ (wanted - a @ x))
        new = int(slope.argmax())
        if slope[new] <= EVEN:
            break
        joined[new] = True
        while True:
            at = np.flatnonzero(joined)
            best = np.linalg.lstsq(a[:, at], wanted, rcond=None)[0]
            if (best > 0).all():
                break
            down = best <= 0
            step = (x[at] / np.where(down, np.maximum(x[at] - best, 1e-300), 1.0))[down].min()
            x[at] += step * (best - x[at])
            joined[at[down & (x[at] <= EVEN)]] = False
            if not joined[new]:  # rounding: it would not help
                return x
            x[~joined] = 0.0
        x[:] = 0.0
        x[at] = best
    return x
