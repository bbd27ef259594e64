"""One unit for every exception: a half-space that holds its context, and no other of its word.

With many heads the averages of a word's contexts (of those at one position, where there are
positions) lie like the corners of a solid: for each there is a direction in which it is beyond all
others (`kernels/compiled/solitary.py`). A unit along it is 0 at all others, so whatever the corpus
holds, a context sees one unit at most, and sums stay short. Words that have a context without such
a direction get their units as in `levels`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from rankone.arrays import Floats, Ints, Singles
from rankone.construct.gated.levels import fit_levelled, level
from rankone.construct.gated.margins import widest_margin
from rankone.construct.gated.units import MEAN_SIZE, Contexts, Fitting, Groups, Units
from rankone.deadline import tick

Rows = TypeVar("Rows", Groups, Units)

BEND = 0.25  # where a unit begins, on the way from the nearest rival to its context
SMALL = 512  # contexts of a word: fewer are compared one by one, others by products of matrices
HELD = 1 << 21  # products of matrices that a thread holds at once: they stay in the cache
PARTS = 4  # that a thread gets of the points of a word, one after the other
FLOOR = 1e-6  # of the largest variance: the whitening of a large word stretches no further
HARD = 0.1  # off: then it is worth while to look for the widest margin
FEW_HARD = 1 << 20  # of these, times contexts of their word: more are left as they are
EXACT = 1e-7  # how far a unit may be off that writes the coordinate of a distribution


@dataclass(frozen=True)
class Sides:
    """Slopes of units (a row each), bias and amplitude, and how far what they write may be off,
    relative to 1, about. Infinite where there is no half-space."""

    slopes: Floats
    bias: Floats
    amplitude: Floats
    off: Floats

    def improved(self, at: Ints, others: Sides) -> Sides:
        """Those of `others` at these rows, where they are less off."""
        better = others.off < self.off[at]
        for name in self.__annotations__:
            getattr(self, name)[at[better]] = getattr(others, name)[better]
        return self

    @classmethod
    def everywhere(cls, count: int, heads: int) -> Sides:
        """Units that are 1 at all contexts."""
        return cls(np.zeros((count, heads)), np.ones(count), np.ones(count), np.zeros(count))


def fit_solitary(
    contexts: Contexts, usual: Ints, fitting: Fitting, mixed: int
) -> tuple[Groups, Units]:
    """The units of all words: half-spaces, or where contexts lie between others, as in `levels`."""
    groups, units = half_spaces(contexts, usual, fitting, mixed)
    crowded = np.unique(groups.word[~np.isfinite(groups.off)])
    if not len(crowded):
        return groups, units
    rest = contexts.some(np.isin(contexts.words, crowded))
    fitted = fit_levelled(rest, usual, fitting, mixed)
    return joined_rows(groups, fitted[0], crowded), joined_rows(units, fitted[1], crowded)


def fit_unmingled(
    contexts: Contexts, usual: Ints, fitting: Fitting, mixed: int
) -> tuple[Groups, Units]:
    """Half-spaces for words that want distributions, and `fit_levelled` for others: of what units
    add up at a context, rounding must leave nothing that is added to the logits of a distribution.
    """
    words = np.unique(contexts.words[contexts.labels >= mixed])
    mine = np.isin(contexts.words, words)
    groups, units = fit_levelled(contexts.some(~mine), usual, fitting, mixed)
    if not mine.any():
        return groups, units
    fitted = half_spaces(contexts.some(mine), usual, fitting, mixed)
    return joined_rows(groups, fitted[0], words), joined_rows(units, fitted[1], words)


def half_spaces(
    contexts: Contexts, usual: Ints, fitting: Fitting, mixed: int
) -> tuple[Groups, Units]:
    """One unit for every exception, or for all contexts of a group, if they have one label; two for
    those that want a distribution (the labels from number `mixed` on), if rounding would put off
    what a single one writes. A group is infinitely off if a context has no half-space."""
    from rankone.kernels.compiled import threads  # compiled code: loaded when used

    words, places, labels = contexts.words, contexts.places, contexts.labels
    bounds = starts_of(words, places, end=len(words))
    exception = labels != usual[words]
    least, most = (f.reduceat(labels, bounds[:-1]) for f in (np.minimum, np.maximum))
    noise = noise_of(contexts, fitting)
    alike = bounds[:-1][(least == most) & exception[bounds[:-1]]]
    found, at = [Sides.everywhere(len(alike), contexts.averages.shape[1])], [alike]
    with threads.alone():
        for i in np.flatnonzero(least < most).tolist():
            tick()
            a, b = bounds[i], bounds[i + 1]
            points = np.flatnonzero(exception[a:b])
            own = contexts.averages[a:b]
            found.append(sides_of(own, points, noise[a:b], fitting))
            at.append(a + points)
    where = np.concatenate(at)
    if not len(where):
        nothing = np.empty(0, np.int64)
        return Groups(nothing, nothing, np.empty(0)), no_units(contexts.averages.shape[1])
    order = np.argsort(where)
    columns = (np.concatenate([getattr(x, name) for x in found]) for name in Sides.__annotations__)
    sides, where = Sides(*(column[order] for column in columns)), where[order]
    word, place = words[where], places[where] if fitting.placed else np.full(len(where), -1)
    first = starts_of(word, place)
    groups = Groups(word[first], place[first], np.maximum.reduceat(sides.off, first))
    levelled = (labels[where] >= mixed) & (sides.off > EXACT)
    units = level(units_of(sides, word, place, usual[word], labels[where]), levelled, fitting)
    return groups, units


def joined_rows(rows: Rows, others: Rows, words: Ints) -> Rows:
    """Those of `others` in place of the rows of these words, in the order of words."""
    kept = ~np.isin(rows.word, words)
    columns = {
        field.name: np.concatenate([getattr(rows, field.name)[kept], getattr(others, field.name)])
        for field in fields(rows)
    }
    order = np.argsort(columns["word"], kind="stable")
    return type(rows)(**{name: column[order] for name, column in columns.items()})


def noise_of(contexts: Contexts, fitting: Fitting) -> Floats:
    """How far rounding may put off each average."""
    terms = 8.0 + MEAN_SIZE * (8.0 + 2.0 * contexts.seen)
    return np.asarray(fitting.unit * terms, dtype=np.float64)


def no_units(heads: int) -> Units:
    whole, other = np.empty(0, np.int64), np.empty(0)
    return Units(whole, whole, whole, whole, np.empty((0, heads)), other, other)


def starts_of(words: Ints, places: Ints, end: int | None = None) -> Ints:
    """Where another word or place begins, and the `end` if it is given."""
    new = np.append(True, (np.diff(words) != 0) | (np.diff(places) != 0))[: len(words)]
    return np.append(np.flatnonzero(new), [] if end is None else [end]).astype(np.int64)


def units_of(sides: Sides, word: Ints, place: Ints, usual: Ints, label: Ints) -> Units:
    """A row per unit."""
    return Units(word, place, usual, label, sides.slopes, sides.bias, sides.amplitude)


def sides_of(a: Floats, points: Ints, noise: Floats, fitting: Fitting) -> Sides:
    """The half-spaces of these contexts of a word with the averages `a` (contexts, heads)."""
    from rankone.kernels.compiled import solitary  # compiled code: loaded when used

    centred = a - a.mean(0)
    if len(a) <= SMALL:
        scale = np.sqrt(len(a[0]) / max((centred**2).sum(1).mean(), 1e-300))
        z = np.ascontiguousarray((centred * scale).T, np.float32)
        s = np.empty((len(points), len(z)), np.float32)
        nearest = np.empty((len(points), 1), np.int64)
        solitary.stand_out(z, points, s, nearest[:, 0])
        slopes, every = s.astype(np.float64) * scale, True
    else:
        slopes, nearest, every = _large(centred, points)
    found = _scaled(a, points, slopes, nearest, noise, fitting, every)
    hard = np.flatnonzero(~(found.off <= HARD))
    if not 0 < len(hard) * len(a) <= FEW_HARD:
        return found
    return found.improved(hard, _widest(a, points[hard], noise, fitting))


def _widest(a: Floats, points: Ints, noise: Floats, fitting: Fitting) -> Sides:
    """The same with the widest margins there are, which takes longer."""
    slopes = np.zeros((len(points), a.shape[1]))
    for i, point in enumerate(points.tolist()):
        tick()
        slopes[i] = widest_margin(a, point)
    return _scaled(a, points, slopes, points[:, None], noise, fitting, every=True)


def _large(centred: Floats, points: Ints) -> tuple[Floats, Ints, bool]:
    """Directions, and the points that stood in their way, by products of matrices."""
    from rankone.kernels.compiled import threads  # compiled code: loaded when used

    variance, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    whiten = axes / np.sqrt(np.maximum(variance, FLOOR * variance[-1]))
    z = np.ascontiguousarray(centred @ whiten, np.float32)
    search = _Search(z, points)
    share = -(-len(points) // (PARTS * threads.count()))
    threads.products(search.run, threads.pieces(0, len(points), share))
    return search.s.astype(np.float64) @ whiten.T, search.near, False


class _Search:
    """Directions ``s`` for some points, and which other points stood in the way of each (itself:
    nobody), the nearest one last."""

    def __init__(self, z: Singles, points: Ints) -> None:
        from rankone.kernels.compiled.solitary import REMEMBERED  # compiled: loaded when used

        self.z, self.points, self.s = z, points, z[points]
        self.near = np.repeat(points[:, None], REMEMBERED + 1, 1)

    def run(self, first: int, last: int) -> None:
        """Those of the points number `first` to `last` - 1."""
        from rankone.kernels.compiled import solitary  # compiled code: loaded when used

        z, left = self.z, np.arange(first, last)
        step = int(np.clip(HELD // len(z), 16, 4096))
        held = np.empty((step, len(z)), np.float32)
        for turn in range(solitary.ROUNDS):
            still = []
            for i in range(0, len(left), step):
                mine = left[i : i + step]
                own = self.points[mine]
                products = np.matmul(self.s[mine], z.T, out=held[: len(mine)])
                best, ahead = np.empty(len(mine), np.int64), np.empty(len(mine), np.float32)
                solitary.most_beyond(products, own, best, ahead)
                self.near[mine, -1] = best
                far = np.sqrt(((z[own] - z[best]) ** 2).sum(1))
                still.append(mine[ahead < solitary.ENOUGH * solitary.MARGIN * far])
            left = np.concatenate(still)
            if not len(left) or turn == solitary.ROUNDS - 1:
                return
            near = self.near[left]
            near[:, turn % solitary.REMEMBERED] = near[:, -1]
            self.near[left] = near
            count = np.full(len(left), min(turn + 1, solitary.REMEMBERED))
            some = self.s[left]
            solitary.project_all(some, z[self.points[left]], z[near[:, :-1]], count)
            self.s[left] = some


def _scaled(
    a: Floats,
    points: Ints,
    slopes: Floats,
    nearest: Ints,
    noise: Floats,
    fitting: Fitting,
    every: bool,
) -> Sides:
    """Units that are 1 at their points, from directions and the points that are nearest to them;
    with numbers of the type of the network, multiplied out in float64."""
    slopes = fitting.rounded(slopes)
    own = (slopes * a[points]).sum(1)
    top = np.full(len(points), -np.inf)
    for column in nearest.T:
        there = column != points
        along = (slopes * a[column]).sum(1)
        top = np.where(there, np.maximum(top, along), top)
    if every:  # a small word: all its contexts
        products = slopes @ a.T
        products[np.arange(len(points)), points] = -np.inf
        top = np.maximum(top, products.max(1))
    ahead = own - top
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gain = 2.0 ** np.ceil(-np.log2((1 - BEND) * ahead))
        bias = fitting.rounded(-gain * (top + BEND * ahead))
        slopes = slopes * gain[:, None]
        value = gain * own + bias
        sizes = np.abs(slopes * a[points]).sum(1) + np.abs(bias)
        # Roundings of different heads do not all go one way: a bound for any of them is far off.
        slip = np.sqrt((slopes**2).sum(1)) * noise[points]
        slip += fitting.unit * np.sqrt(a.shape[1] + 1) * sizes
        off = np.where((ahead > 0) & np.isfinite(value), slip / value, np.inf)
    bad = ~np.isfinite(off)
    slopes[bad], bias[bad], value[bad] = 0.0, 0.0, 1.0
    return Sides(slopes, bias, 1.0 / value, np.where(bad, np.inf, off))
