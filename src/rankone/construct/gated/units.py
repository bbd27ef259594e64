"""The hidden units of all groups, from the averages of all contexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.construct.problem import Problem, joined

FEW = 256  # contexts of a word that may share one group, whatever their positions
WIDE = 10.0  # gaps are wanted that are so many times as wide as the noise at their ends
DIRECTIONS = 64  # tried for every group
GRID = 64  # coordinates of directions are multiples of 1 / GRID
BUDGET = 0.1  # how far off a group may be before a way with wider gaps is tried
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


@dataclass(frozen=True)
class Groups:
    """The contexts of the groups (`first` to `last` of the columns), and how far off each is."""

    first: Ints
    last: Ints
    off: Floats
    tokens: Ints
    labels: Ints
    averages: Floats
    least_units: int  # for this kind of readout: one for every label of a word but the usual one
    min_gap: float

    def closest(self) -> tuple[int, int, float]:
        """Two contexts of the worst group with different labels, and their distance."""
        worst = int(self.off.argmax())
        part = slice(self.first[worst], self.last[worst])
        tokens, labels, a = self.tokens[part], self.labels[part], self.averages[part]
        best = (int(tokens[0]), int(tokens[-1]), np.inf)
        for i in range(len(tokens)):
            distance = np.abs(a - a[i]).max(1) + np.where(labels == labels[i], np.inf, 0.0)
            j = int(distance.argmin())
            if distance[j] < best[2]:
                best = (int(tokens[i]), int(tokens[j]), float(distance[j]))
        return best


def directions_for(heads: int) -> Floats:
    """The same for every corpus: single heads first, then others, their sizes adding up to 1."""
    rng = np.random.default_rng(heads)
    drawn = rng.standard_normal((DIRECTIONS, heads))
    drawn /= np.abs(drawn).sum(1, keepdims=True)
    found = np.concatenate([np.eye(heads), np.rint(drawn * GRID) / GRID])
    return found[: len(drawn)] if heads > 1 else np.eye(1)


def find_units(
    problem: Problem, averages: Floats, usual: Ints, height: float, one_hot: bool, more: float = 0.0
) -> tuple[Groups, Units]:
    """Units for every word that has other labels than its usual one. `more` roundings put averages
    off, of keys and values that are on no grid."""
    from rankone.kernels.compiled.group_units import fit_words  # compiled code: loaded when used

    contexts, ids = problem.contexts, joined([part.token_ids for part in problem.parts])
    places = joined([part.positions for part in problem.parts])
    words, labels = ids[contexts], problem.labels[contexts]
    several = np.zeros(len(usual), bool)
    several[words[labels != usual[words]]] = True
    kept = contexts[several[words]]
    where = places[kept] if problem.placed else np.zeros(len(kept), np.int64)
    # the order must not depend on where in the corpus a context stands
    order = np.lexsort((*averages[kept].T, where, ids[kept]))
    kept, where = kept[order], where[order]
    words, labels, a = ids[kept], problem.labels[kept], np.ascontiguousarray(averages[kept])
    bounds = np.flatnonzero(np.diff(words, prepend=-1, append=-1))
    unit = 2.0**-24 if problem.dtype == "float32" else 2.0**-53
    terms = 8.0 + more + MEAN_SIZE * (8.0 + 2.0 * seen_tokens(problem, kept))
    noise = np.asarray(unit * terms, dtype=np.float64)
    whole, other, groups, off = fit_words(
        bounds,
        where,
        labels,
        a,
        noise,
        usual[words[bounds[:-1]]],
        directions_for(a.shape[1]),
        FEW,
        WIDE,
        unit,
        BUDGET if problem.dtype == "float32" else 1e-7,
        one_hot,
        height,
    )
    count = groups[:, 1] - groups[:, 0]
    at = np.repeat(groups[:, 2], count)
    placed = np.repeat(groups[:, 4], count) * problem.placed > 0
    units = Units(
        words[at],
        np.where(placed, where[at], -1),
        usual[words[at]],
        whole[:, 1],
        other[:, 0, None] * directions_for(a.shape[1])[whole[:, 0]],
        other[:, 1],
        other[:, 2],
    )
    pairs = np.unique(words * (labels.max(initial=0) + 1) + labels)
    least = len(pairs) - len(bounds) + 1
    gap = np.abs(other[:, 0] * other[:, 2])
    widest = float(height / gap.max(initial=0.0)) if gap.any() else np.inf
    return Groups(groups[:, 2], groups[:, 3], off, kept, labels, a, least, widest), units


def seen_tokens(problem: Problem, tokens: Ints) -> Ints:
    """How many tokens the attention of each of these averages over."""
    if problem.causal:
        return joined([part.positions for part in problem.parts])[tokens] + 1
    lengths = joined([part.lengths for part in problem.parts])
    return np.repeat(lengths, lengths)[tokens]
