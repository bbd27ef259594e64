"""Cells: every word owns an interval of the line. What is in them, and in which order they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.construct.line.readout_units import Changes
from rankone.construct.problem import Problem
from rankone.spans import SPAN, spans

SLOT = 4.0  # a sequence id moves a token by at most 3/2 either way: 1/2 is left free on both sides
GUARD = 1.0  # so between the contexts of neighbouring cells there is at least this much


@dataclass(frozen=True)
class Tally:
    """For every word: one of its labels, whether it has several, and its number of labelled tokens;
    and the number of tokens with each label. Tallies of parts can be merged."""

    label: Ints  # -1: no token
    several: Bools
    counts: Ints
    labels: Ints

    @classmethod
    def of(cls, tokens: Ints, labels: Ints, words: int, kinds: int) -> Tally:
        label, several = np.full(words, -1), np.zeros(words, dtype=bool)
        label[tokens] = labels
        several[tokens[labels != np.take(label, tokens)]] = True
        counts = np.bincount(tokens, minlength=words), np.bincount(labels, minlength=kinds)
        return cls(label, several, *counts)

    def merge(self, other: Tally) -> Tally:
        differ = (self.label != other.label) & (self.label >= 0) & (other.label >= 0)
        return Tally(
            np.maximum(self.label, other.label),
            self.several | other.several | differ,
            self.counts + other.counts,
            self.labels + other.labels,
        )


@dataclass(frozen=True)
class Run:
    """Tokens with their labels; ``within`` is the place of a token relative to that of its cell.
    Once they are sorted by word, then along the line, runs of parts can be merged."""

    tokens: Ints
    labels: Ints
    within: Floats

    @classmethod
    def merge(cls, runs: Sequence[Run]) -> Run:
        if len(runs) == 1:
            return runs[0]
        tokens = np.concatenate([run.tokens for run in runs])
        labels = np.concatenate([run.labels for run in runs])
        within = np.concatenate([run.within for run in runs])
        return cls(tokens, labels, within).at(np.lexsort((within, tokens)))

    def at(self, some: Ints | Bools) -> Run:
        return Run(self.tokens[some], self.labels[some], self.within[some])


@dataclass(frozen=True)
class Cells:
    """``inside`` are the tokens of the words that have several labels.

    ``first`` and ``last`` are the labels at the two ends of every word's cell, ``counts`` the
    number of its tokens. A word without tokens, such as the unknown word, gets the most frequent
    label.
    """

    inside: Run
    first: Ints
    last: Ints
    counts: Ints
    several: Ints  # the words with several labels


def fill_cells(problem: Problem, within: Floats) -> Cells:
    """Sort the tokens part by part, but not those of words with one label: they need no order."""
    words, kinds = len(problem.corpus.vocabulary) + 1, len(problem.corpus.label_names)
    runs = []
    parts = zip(problem.parts, problem.targets.parts, pairwise(problem.bounds), strict=True)
    for part, targets, (a, b) in parts:
        run, asked = Run(part.token_ids, targets.labels, within[a:b]), targets.labels >= 0
        runs.append(run if asked.all() else run.at(asked))
    tally = reduce(Tally.merge, (Tally.of(run.tokens, run.labels, words, kinds) for run in runs))
    first = np.where(tally.label < 0, tally.labels.argmax(), tally.label)
    which = np.flatnonzero(tally.several)
    run = Run.merge([_sorted(run, tally.several, which) for run in runs])
    last = first.copy()
    first[run.tokens[::-1]] = run.labels[::-1]
    last[run.tokens] = run.labels
    return Cells(run, first, last, tally.counts, which)


def _sorted(run: Run, several: Bools, which: Ints) -> Run:
    """The tokens of the words with several labels, numbers `which`, in order.

    If there are many, they are first grouped by word; then a few whole groups at a time are sorted,
    so that they stay in the cache.
    """
    members = np.flatnonzero(np.take(several, run.tokens))
    number = np.zeros(which[-1] + 1 if len(which) else 0, dtype=np.int64)
    number[which] = np.arange(len(which))
    groups = np.take(number, run.tokens[members])
    counts = np.bincount(groups, minlength=len(which))
    if len(which) < 1 << 16:
        groups = groups.astype(np.uint16)  # numbers of 16 bits are sorted in linear time
    bounds = np.array([0, len(members)])
    if len(members) > 2 * SPAN:
        order = np.argsort(groups, kind="stable")
        members, groups, bounds = members[order], groups[order], np.append(0, np.cumsum(counts))
    places = run.within[members]
    for a, b in spans(bounds):
        part = slice(bounds[a], bounds[b])
        order = np.argsort(places[part])
        order = order[np.argsort(groups[part][order], kind="stable")]
        members[part] = members[part][order]
    return Run(np.repeat(which, counts), run.labels[members], run.within[members])


def order_cells(cells: Cells, all_apart: bool) -> Ints:
    """The rank of every token's cell, 0 for the one that ends at the number 0.

    Cells lie left of 0. Floating-point numbers are densest at 0, and a unit that bends the readout
    at theta is off by rounding in proportion to |theta| / gap; so the tokens with most contexts,
    whose gaps are the smallest, come nearest to 0.

    If `all_apart`, that is all: no two contexts may share a place. Otherwise only changes of
    label matter. Outermost lie the tokens with one label, side by side by label; then those with
    several, frequent ones further in by powers of 4, chained so that neighbours' labels agree.
    """
    size = len(cells.counts)
    if all_apart:
        line = np.argsort(cells.counts, kind="stable")
    else:
        single = np.ones(size, dtype=bool)
        single[cells.several] = False
        outer = np.flatnonzero(single)
        outer = outer[np.lexsort((cells.counts[outer], cells.first[outer]))]
        line = np.concatenate([outer, _inner(cells, int(cells.last[outer[-1]]))])
    rank = np.empty(size, dtype=np.int64)
    rank[line] = np.arange(size - 1, -1, -1)
    return rank


def _inner(cells: Cells, label: int) -> Ints:
    """The tokens with several labels from the outside in, next to `label`."""
    classes = np.log2(cells.counts[cells.several]) // 2
    chain: list[int] = []
    for frequency in np.unique(classes):
        tokens = cells.several[classes == frequency]
        ends = cells.first[tokens].tolist(), cells.last[tokens].tolist()
        chain += lay_dominoes(list(zip(tokens.tolist(), *ends, strict=True)), label)
        label = int(cells.last[chain[-1]])
    return np.array(chain, dtype=np.int64)


def changes_in_cells(cells: Cells, places: Floats) -> Changes:
    """Where labels change inside cells, and between them.

    The cell of token t begins at ``places[t] - 2``. Between two cells the change lies on their
    border, so that no sentence whatever can carry a token into it.
    """
    t, y, within = cells.inside.tokens, cells.inside.labels, cells.inside.within
    at = np.flatnonzero((t[1:] == t[:-1]) & (y[1:] != y[:-1]))
    line = np.argsort(places)
    between = np.flatnonzero(cells.last[line[:-1]] != cells.first[line[1:]])
    borders = places[line[between + 1]] - SLOT / 2
    return Changes(
        left=np.concatenate([places[t[at]] + within[at], borders - GUARD / 2]),
        right=np.concatenate([places[t[at + 1]] + within[at + 1], borders + GUARD / 2]),
        before=np.concatenate([y[at], cells.last[line[between]]]) + 1,
        after=np.concatenate([y[at + 1], cells.first[line[between + 1]]]) + 1,
        first=int(cells.first[line[0]]) + 1,
    )


def lay_dominoes(pieces: list[tuple[int, int, int]], end: int) -> list[int]:
    """The names of the pieces (name, left end, right end), in a row that continues from `end`.

    Pieces may not be turned. Greedy, in bulk where it can be: first all with two equal ends, then
    pairs that lead to another end and back. Nearly as few ends disagree as must, which is for each
    end what more pieces begin with it than stop with it, and the time is linear in the pieces.

    >>> lay_dominoes([(1, 5, 6), (2, 7, 5), (3, 6, 7)], 5)
    [1, 3, 2]
    """
    ways: dict[int, dict[int, list[int]]] = {}  # ways[a][b]: the pieces that lead from a to b
    for name, a, b in pieces:
        ways.setdefault(a, {}).setdefault(b, []).append(name)
    row: list[int] = []
    while ways:
        here = end if end in ways else max(ways, key=lambda a: len(ways[a]))
        there = here if here in ways[here] else max(ways[here], key=lambda b: len(ways[here][b]))
        out, back = ways[here][there], ways.get(there, {}).get(here, [])
        if there == here or there not in ways:  # equal ends, or an end where no piece begins
            row += out
            out.clear()
            end = there
        elif back:  # to and fro, as often as it goes
            pairs = list(zip(out, back, strict=False))
            row += [name for pair in pairs for name in pair]
            del out[: len(pairs)], back[: len(pairs)]
            end = here
        else:
            row.append(out.pop())
            end = there
        for a, b in ((here, there), (there, here)):
            if a in ways and not ways[a].get(b, True):
                del ways[a][b]
                if not ways[a]:
                    del ways[a]
    return row
