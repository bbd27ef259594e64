"""The hidden units of all groups, from the averages of all contexts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from rankone import choices
from rankone.arrays import Bools, Floats, Ints
from rankone.construct.gated.labels import BASE
from rankone.construct.gated.windows import unfaded
from rankone.construct.problem import Problem, joined

FEW = 256  # contexts of a word that may share one group, whatever their positions
WIDE = 10.0  # gaps are wanted that are so many times as wide as the noise at their ends
DIRECTIONS = 64  # tried for every group, at most
GRID = 64  # coordinates of directions are multiples of 1 / GRID
BUDGET = 0.1  # how far off a group may be before a way with wider gaps is tried, in float32
FINE_BUDGET = 1e-7  # and in float64
MEAN_SIZE = 0.6  # of a value, about


@dataclass(frozen=True)
class Units:
    """A row per unit: word, position (-1: any), usual label of the word, label, and weights."""

    word: Ints
    position: Ints
    usual: Ints
    label: Ints
    slopes: Floats
    bias: Floats
    amplitude: Floats

    def widest(self, height: float) -> float:
        """The smallest gap that a unit bridges: infinite if there is none."""
        steep = np.abs(self.slopes).sum(1) * np.abs(self.amplitude)
        return float(height / steep.max()) if steep.any() else np.inf


@dataclass(frozen=True)
class Groups:
    """A row per group: word, position (-1: any), and how far off its function may be, relative to
    its height."""

    word: Ints
    position: Ints
    off: Floats


@cache
def directions_for(heads: int, count: int = DIRECTIONS) -> Floats:
    """The same for every corpus: single heads first, then others, their sizes adding up to 1."""
    rng = np.random.default_rng(heads)
    drawn = rng.standard_normal((DIRECTIONS, heads))
    drawn /= np.abs(drawn).sum(1, keepdims=True)
    found = np.concatenate([np.eye(heads), np.rint(drawn * GRID) / GRID])
    return found[: min(count, DIRECTIONS)] if heads > 1 else np.eye(1)


@dataclass(frozen=True)
class Fitting:
    """What decides on the units of a group, besides its contexts."""

    dtype: choices.Dtype
    directions: Floats
    height: float  # what a wanted label gets at least
    one_hot: bool  # every label has a coordinate
    placed: bool  # there are positions
    few: int = FEW  # contexts of a word that may share one group; below 0: never
    more: float = 0.0  # roundings that put averages off, of keys and values that are on no grid

    @property
    def spread(self) -> float:
        """By how much a label may differ from another one in a coordinate, in units of the height.
        Digits do by most of their base, so groups should be as much less off, where they can."""
        return 1.0 if self.one_hot else BASE - 1.0

    @property
    def unit(self) -> float:
        """Of rounding."""
        return 2.0**-24 if self.dtype == "float32" else 2.0**-53

    def rounded(self, numbers: Floats) -> Floats:
        """The same as the weights of the network will have them."""
        return np.asarray(numbers.astype(self.dtype), np.float64)


@dataclass(frozen=True)
class Contexts:
    """Contexts with their word, position (0 if there are none), wanted label, averages, and the
    number of tokens that attention averages over. The order is by word, position, averages: it must
    not depend on where in the corpus a context stands."""

    words: Ints
    places: Ints
    labels: Ints
    averages: Floats
    seen: Ints

    @classmethod
    def of(cls, problem: Problem, averages: Floats, tokens: Ints) -> Contexts:
        """Those of these tokens; `averages` has a row for every token."""
        ids, places = (column[tokens] for column in problem.columns)
        a = np.ascontiguousarray(np.take(averages.T, tokens, axis=1).T)  # by heads: in order
        labels, seen = problem.wanted[tokens], seen_tokens(problem, tokens)
        return cls(ids, places, labels, a, seen).sorted(problem.length)

    def sorted(self, length: int) -> Contexts:
        """In order, for a table of so many positions (1: there is none)."""
        places = self.places if length > 1 else np.zeros(len(self.places), np.int64)
        keys, a = self.words * length + places, self.averages
        order = np.lexsort((a[:, 0], keys))
        same = (np.diff(keys[order]) == 0) & (np.diff(a[order, 0]) == 0)
        if same.any():  # rare: then the other heads decide
            order = np.lexsort((*a.T, keys))
        return replace(self, places=places).some(order)

    def some(self, kept: Bools | Ints) -> Contexts:
        """Only these, in this order."""
        return Contexts(**{name: getattr(self, name)[kept] for name in self.__annotations__})


def with_exceptions(problem: Problem, usual: Ints) -> Ints:
    """The contexts of words that have another label than their usual one somewhere."""
    contexts, (ids, _) = problem.contexts, problem.columns
    words, several = ids[contexts], np.zeros(len(usual), bool)
    several[words[problem.wanted[contexts] != usual[words]]] = True
    return contexts[several[words]]


def fit_units(contexts: Contexts, usual: Ints, fitting: Fitting) -> tuple[Groups, Units]:
    """Units for these words. A group depends on its own contexts only, and words with few contexts
    may have one for all positions."""
    # compiled code: loaded when used
    from rankone.kernels.compiled.group_units import fit_words
    from rankone.kernels.compiled.unit_rows import AMPLITUDE, BIAS, DIRECTION, GAIN

    words, bounds = contexts.words, np.flatnonzero(np.diff(contexts.words, prepend=-1, append=-1))
    terms = 8.0 + fitting.more + MEAN_SIZE * (8.0 + 2.0 * contexts.seen)
    labels, rows, groups, off = fit_words(
        bounds,
        contexts.places,
        contexts.labels,
        contexts.averages,
        np.asarray(fitting.unit * terms, dtype=np.float64),
        usual[words[bounds[:-1]]],
        fitting.directions,
        fitting.few,
        WIDE,
        fitting.unit,
        (BUDGET if fitting.dtype == "float32" else FINE_BUDGET) / fitting.spread,
        fitting.one_hot,
        fitting.height,
    )
    first = groups[:, 2]
    position = np.where((groups[:, 4] > 0) & fitting.placed, contexts.places[first], -1)
    count = groups[:, 1] - groups[:, 0]
    at = np.repeat(first, count)
    units = Units(
        words[at],
        np.repeat(position, count),
        usual[words[at]],
        labels,
        rows[:, GAIN, None] * rows[:, DIRECTION:],
        rows[:, BIAS],
        rows[:, AMPLITUDE],
    )
    return Groups(words[first], position, off), units


def least_units(words: Ints, labels: Ints, usual: Ints) -> int:
    """A lower bound for this kind of readout: a unit for every label of a word but its usual one,
    since no unit speaks for two labels or in two words."""
    other = labels != usual[words]
    pairs = words[other] * (int(labels.max(initial=0)) + 1) + labels[other]
    return len(np.unique(pairs))


def seen_tokens(problem: Problem, tokens: Ints) -> Ints:
    """How many tokens the attention of each of these averages over, about as much of each."""
    positions, lengths = (
        joined([getattr(part, name) for part in problem.parts]) for name in ("positions", "lengths")
    )
    if problem.causal:
        seen = positions[tokens] + 1
        return np.minimum(seen, unfaded(problem.window)) if problem.window else seen
    return np.repeat(lengths, lengths)[tokens]
