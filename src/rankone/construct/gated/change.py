"""A draft for a changed corpus, from that of the old one: only groups that are touched are fitted.

A group depends on its own contexts and on its word's usual label. Those change only for words, and
positions, of sentences that were taken out or put in. Everything else about a draft is either
copied, or made again from whole columns in the same way; so it is the draft that would be made from
the changed corpus alone, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.construct.gated.draw import GatedDraft, fits, fitting_for
from rankone.construct.gated.splice import Splice
from rankone.construct.gated.tables import usual_labels
from rankone.construct.gated.units import Contexts, Fitting, Groups, Units, fit_units
from rankone.construct.problem import Problem, pose

Rows = TypeVar("Rows", Groups, Units)


@dataclass(frozen=True)
class Changed:
    """The new draft, the contexts of all groups that were fitted, and how many groups these are."""

    draft: GatedDraft
    contexts: Ints
    groups: int


def change(
    old: GatedDraft, splice: Splice, *, length: int, positions: bool, strict: bool
) -> Changed | str:
    """The draft for the corpus of `splice`, or why all of it has to be made again."""
    before, corpus = old.problem, splice.corpus
    if corpus.label_names != before.corpus.label_names:
        return "the list of labels is another"
    same = {name: getattr(before, name) for name in ("causal", "heads", "dtype", "directions")}
    problem = pose([corpus], positions=positions, strict=strict, length=length, **same)
    if problem.placed != before.placed:
        return "there were no positions before, or there are none now"
    usual = usual_labels(problem)
    tables = old.tables.renewed(splice.rows, splice.fresh, length)
    if tables is None:
        return "codes are taken, or too short for the longest sentence"
    first = int(splice.kept.sum())
    start = int(corpus.offsets.searchsorted(first))
    averages = old.averages[splice.kept]
    if first < corpus.n_tokens:
        ids, spots = corpus.token_ids[first:], corpus.positions[first:]
        offsets = corpus.offsets[start:] - first
        new = tables.averages(ids, spots, offsets, problem.causal)
        averages = np.concatenate([averages, new])

    fitting = fitting_for(problem, tables.layout.heads, old.label_codes)
    touched = _touched(old, problem, splice, usual, fitting.few)
    groups, units, contexts = _fitted(problem, averages, usual, touched, fitting)
    draft = replace(
        old,
        problem=problem,
        tables=tables,
        averages=averages,
        usual=usual,
        groups=_merged(old.groups, groups, touched),
        units=_merged(old.units, units, touched),
    )
    if not draft.fits:
        return "contexts are too close for this number of heads"
    if not _still_fail(draft, touched.words, old.failed):
        return "fewer heads may do"
    return Changed(draft, contexts, len(groups.word))


@dataclass(frozen=True)
class Touched:
    """``whole[w]``: all groups of word w; ``pairs`` are single groups, by `key`. ``rank`` gives
    old words their new numbers (-1: gone)."""

    whole: Bools
    pairs: Ints
    words: Ints
    rank: Ints
    base: int

    def key(self, words: Ints, positions: Ints) -> Ints:
        return words * self.base + positions

    def has(self, words: Ints, positions: Ints) -> Bools:
        return self.whole[words] | np.isin(self.key(words, positions), self.pairs)


def _touched(old: GatedDraft, problem: Problem, splice: Splice, usual: Ints, few: int) -> Touched:
    """Words with few contexts may have one group for all positions, so they are fitted whole."""
    before, rows = old.problem, splice.rows
    size, words = len(problem.corpus.vocabulary), np.unique(splice.words)
    rank = np.full(len(before.corpus.vocabulary) + len(splice.fresh), -1)
    rank[rows] = np.arange(size)
    was = _counts(before, len(rank))[rows]
    now = _counts(problem, size)
    old_usual = np.append(old.usual[:-1], np.full(len(splice.fresh), -1))[rows]
    whole = np.zeros(size, bool)
    whole[words] = True
    if problem.placed:
        whole &= (was <= few) | (now <= few) | (old_usual != usual[:-1])
    base = max(before.longest, problem.longest) + 1
    single = ~whole[splice.words]
    pairs = splice.words[single] * base + splice.spots[single]
    return Touched(whole, pairs, words, rank, base)


def _counts(problem: Problem, size: int) -> Ints:
    """The contexts of every word."""
    return np.bincount(problem.columns[0][problem.contexts], minlength=size)


def _fitted(
    problem: Problem, averages: Floats, usual: Ints, touched: Touched, fitting: Fitting
) -> tuple[Groups, Units, Ints]:
    """The groups that are touched, their units and their contexts."""
    tokens, (ids, places) = problem.contexts, problem.columns
    near = np.zeros(len(touched.whole), bool)
    near[touched.words] = True
    tokens = tokens[near[ids[tokens]]]
    words = ids[tokens]
    several = np.zeros(len(touched.whole), bool)
    several[words[problem.labels[tokens] != usual[words]]] = True
    tokens = tokens[several[words]]
    words, spots = ids[tokens], places[tokens]
    whole = touched.whole[words]
    parts = tokens[whole], tokens[~whole & touched.has(words, spots)]
    found = [
        fit_units(Contexts.of(problem, averages, part), usual, how)
        for part, how in zip(parts, (fitting, replace(fitting, few=-1)), strict=True)
    ]
    groups, units = (_stacked(list(rows)) for rows in zip(*found, strict=True))
    return groups, units, np.concatenate(parts)


def _merged(old: Rows, new: Rows, touched: Touched) -> Rows:
    """Rows of groups that are not touched, with new numbers for their words, and the new ones, in
    the order of words and positions."""
    words = touched.rank[old.word]
    stay = words >= 0
    stay[stay] = ~touched.has(words[stay], old.position[stay])
    kept = _taken(replace(old, word=words), np.flatnonzero(stay))
    both = _stacked([kept, new])
    return _taken(both, np.lexsort((both.position, both.word)))


def _taken(rows: Rows, at: Ints) -> Rows:
    return type(rows)(**{f.name: getattr(rows, f.name)[at] for f in fields(rows)})


def _stacked(parts: list[Rows]) -> Rows:
    names = [f.name for f in fields(parts[0])]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return type(parts[0])(**columns)


def _still_fail(draft: GatedDraft, touched: Ints, failed: Mapping[int, str]) -> bool:
    """Whether every smaller number of heads still cannot hold the word that it failed on."""
    problem, index = draft.problem, draft.problem.corpus.vocabulary
    for heads, word in failed.items():
        if word not in index:
            return False
        number = index.index(word)
        if number not in touched:
            continue
        tokens, ids = problem.contexts, problem.columns[0]
        tokens = tokens[ids[tokens] == number]
        contexts = Contexts.of(problem, np.ascontiguousarray(draft.averages[:, :heads]), tokens)
        fitting = fitting_for(problem, heads, draft.label_codes)
        if fits(fit_units(contexts, draft.usual, fitting)[0]):
            return False
    return True
