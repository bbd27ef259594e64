"""Edits: what it would take to correct a token, its neighbours included.

A label is rarely wrong alone: an entity has a type, and I-LOC cannot follow O. So a token is judged
by the best labelling of its sentence that differs from the given one in a single run around it, at
every token of the run: the scores of the labels that change, less what they lose by following each
other less likely than before. (They gain nothing by following each other more likely, or runs of a
rare entity would grow without end.) The best run through every token is found by two passes over
the sentence, as in Viterbi's algorithm, with a few candidates for each token.

Labels that are no entity tags are judged one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.audit.suspects.tags import Tags
from rankone.audit.suspects.votes import Numbers, Scores
from rankone.corpus.corpus import Corpus

CANDIDATES = 10  # labels of a token that are tried, its own the first of them
NEVER = -1e4  # the log odds of what a scheme forbids
Steps = NDArray[np.int8]


@dataclass(frozen=True)
class Edits:
    """The best edit through each token: its log odds against the given labels, how many tokens it
    changes, and its label there.

    ``label[i]`` counts among ``candidates[i]``, whose first is the given label.
    ``before[i, k]`` is the candidate of token i - 1 if token i takes candidate k, -1 if the edit
    begins there; ``after`` likewise.
    """

    odds: Floats
    length: Numbers
    label: Steps
    candidates: Numbers
    before: Steps
    after: Steps

    def run(self, token: int) -> tuple[int, list[int]]:
        """The first token of the edit through a token, and the labels from there on."""
        step = int(self.label[token])
        first, labels = token, [int(self.candidates[token, step])]
        k = step
        while (k := int(self.before[first, k])) >= 0:
            first -= 1
            labels.insert(0, int(self.candidates[first, k]))
        last, k = token, step
        while (k := int(self.after[last, k])) >= 0:
            last += 1
            labels.append(int(self.candidates[last, k]))
        return first, labels


def best_edits(corpus: Corpus, labels: Numbers, scores: Scores, follows: Floats | None) -> Edits:
    """The best edit through each token.

    ``follows[y, z]`` says how likely label z follows y; the last row and column stand for the ends
    of a sentence. Without it every edit is a single token.
    """
    candidates = _candidates(scores, labels)
    chosen = np.take_along_axis(scores, candidates, axis=1).astype(np.float64)
    gains = chosen - chosen[:, :1]
    gains[:, 0] = NEVER  # an edit ends where a label stays
    gains[labels < 0] = NEVER  # and where none is asked for
    odds, label = gains[:, 1].copy(), np.ones(len(labels), dtype=np.int8)
    before, after = (np.full(candidates.shape, -1, dtype=np.int8) for _ in range(2))
    length = np.ones(len(labels), dtype=np.int32)
    if follows is not None:
        given = np.where(labels >= 0, labels, len(follows) - 1).astype(np.int32)
        odds[:] = NEVER
        _search(corpus.offsets, given, candidates, gains, follows, odds, label, before, after)
        _measure(label, before, after, length)
    odds[labels < 0] = NEVER
    return Edits(odds, length, label, candidates, before, after)


def follow_counts(corpus: Corpus, tags: Tags) -> Ints:
    """How often each tag follows each other one; the last row and column are the ends of
    sentences, and what nothing is asked of."""
    labels, size = tags.ids, len(tags.names)
    ends = np.full(corpus.n_sentences, size)
    firsts, lasts = corpus.offsets[:-1], corpus.offsets[1:] - 1
    inner = np.flatnonzero(corpus.positions[1:] > 0)
    asked = np.where(labels >= 0, labels, size)
    before = np.concatenate([asked[inner], ends, asked[lasts]])
    after = np.concatenate([asked[inner + 1], asked[firsts], ends])
    counts = np.bincount(before * (size + 1) + after, minlength=(size + 1) ** 2)
    return np.asarray(counts.reshape(size + 1, size + 1))


def follow_odds(counts: Ints, names: Sequence[str]) -> Floats:
    """How much more often entity tags follow each other than by chance, as logarithms.

    I-X follows B-X and I-X only.
    """
    size, table = len(names), counts + 0.5
    odds = np.log(table * table.sum() / table.sum(0) / table.sum(1)[:, None])
    for z, tag in enumerate(names):
        if tag.startswith("I-"):
            wrong = [y for y in range(size + 1) if y == size or names[y][1:] != tag[1:]]
            odds[wrong, z] = NEVER
    return np.asarray(odds)


def _candidates(scores: Scores, labels: Numbers) -> Numbers:
    """The given label, then the best others."""
    count = min(CANDIDATES, scores.shape[1])
    ranked = scores.copy()
    rows = np.flatnonzero(labels >= 0)
    ranked[rows, labels[rows]] = np.inf
    some = np.argpartition(-ranked, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(ranked, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1).astype(np.int32)


@njit(nogil=True, cache=True)
def _search(
    offsets: Ints,
    given: Numbers,
    candidates: Numbers,
    gains: Floats,
    follows: Floats,
    odds: Floats,
    label: Steps,
    before: Steps,
    after: Steps,
) -> None:
    """`into` has the best odds of an edit up to a token, itself included, by its candidate there;
    `out` those of what comes after the token."""
    tokens, count = candidates.shape
    end = len(follows) - 1
    into, out = np.empty((tokens, count)), np.empty((tokens, count))
    for s in range(len(offsets) - 1):
        for i in range(offsets[s], offsets[s + 1]):
            previous = given[i - 1] if i > offsets[s] else end
            as_it_is = follows[previous, given[i]]
            for k in range(count):
                best = min(follows[previous, candidates[i, k]] - as_it_is, 0.0)
                if i > offsets[s]:
                    for j in range(count):
                        step = follows[candidates[i - 1, j], candidates[i, k]] - as_it_is
                        through = into[i - 1, j] + min(step, 0.0)
                        if through > best:
                            best, before[i, k] = through, j
                into[i, k] = best + gains[i, k]
        for i in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            following = given[i + 1] if i + 1 < offsets[s + 1] else end
            as_it_is = follows[given[i], following]
            for k in range(count):
                best = min(follows[candidates[i, k], following] - as_it_is, 0.0)
                if i + 1 < offsets[s + 1]:
                    for j in range(count):
                        step = follows[candidates[i, k], candidates[i + 1, j]] - as_it_is
                        through = min(step, 0.0) + gains[i + 1, j] + out[i + 1, j]
                        if through > best:
                            best, after[i, k] = through, j
                out[i, k] = best
        for i in range(offsets[s], offsets[s + 1]):
            for k in range(1, count):
                if into[i, k] + out[i, k] > odds[i]:
                    odds[i], label[i] = into[i, k] + out[i, k], k


@njit(nogil=True, cache=True)
def _measure(label: Steps, before: Steps, after: Steps, length: Numbers) -> None:
    """How many tokens the best edit through each token changes."""
    for i in range(len(label)):
        at, step = i, before[i, label[i]]
        while step >= 0:
            at -= 1
            length[i] += 1
            step = before[at, step]
        at, step = i, after[i, label[i]]
        while step >= 0:
            at += 1
            length[i] += 1
            step = after[at, step]
