"""A linear model of a token's neighbourhood, and what it says of tokens it has not seen.

Softmax regression on hashed windows, by AdaGrad. Sentences are drawn into folds; the tokens of a
fold are judged by a model of the others. This is done twice with other folds, and averaged. Folds
share nothing, so they run on threads of their own. Of a large corpus a model sees some sentences
only, so that its lessons fit in memory and its steps in minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rankone.audit.suspects.threads import in_threads
from rankone.audit.suspects.view import Ground, Place, View
from rankone.audit.suspects.votes import Numbers, Scores
from rankone.audit.windows import Keys, mixed
from rankone.corpus.parted import PartedCorpus
from rankone.engines import Ref, Shared, Table
from rankone.engines.engine import stacked

DRAWS, FOLDS, PASSES, RATE = 2, 5, 2, 0.2
BITS = 18  # of a hashed window: rows of the table of weights
SETTLED = 1e-6  # a squared gradient that changes nothing any more
LESSONS = 2_000_000  # tokens that the models learn from, about
SEED = 0
FoldsOf = NDArray[np.int8]  # (draws, sentences)
Models = dict[str, Scores]  # weights by draw and fold


@dataclass(frozen=True)
class HeldOut:
    """The models, and the folds that the sentences of each part were drawn into."""

    models: list[Ref]
    folds: list[Ref]


def train(
    corpus: PartedCorpus, ground: Shared, places: Sequence[Place], kinds: int, seed: int = SEED
) -> HeldOut:
    """Models of all folds."""
    engine, rng, parts = corpus.engine, np.random.default_rng(seed), corpus.parts
    drawn = [_draw(rng, [part.sentences for part in parts]) for _ in range(DRAWS)]
    folds = [engine.put({"folds": np.stack(each)}) for each in zip(*drawn, strict=True)]
    seeds = rng.integers(1 << 32, size=(DRAWS, FOLDS))
    share = min(1.0, LESSONS / max(corpus.n_asked, 1))
    calls = [
        (ground, part.columns, place, fold, share)
        for part, place, fold in zip(parts, places, folds, strict=True)
    ]
    some = engine.each(lessons, calls)
    (whole,) = engine.each(stacked_lessons, [(some,)])
    engine.drop(some)
    together = max(1, min(FOLDS, engine.room // (4 * kinds << BITS)))
    models = engine.each(
        learn,
        [
            (whole, draw, [*range(k, min(k + together, FOLDS))], seeds[draw].tolist(), kinds)
            for draw in range(DRAWS)
            for k in range(0, FOLDS, together)
        ],
    )
    engine.drop([whole])
    return HeldOut(models, folds)


def _draw(rng: np.random.Generator, sizes: Sequence[int]) -> list[FoldsOf]:
    """The fold of each sentence, part after part."""
    return [rng.integers(FOLDS, size=size).astype(np.int8) for size in sizes]


def lessons(
    ground: Ground, columns: Table, place: Place, folds: Table, share: float
) -> dict[str, NDArray[Any]]:
    """The rows, labels and folds of the asked tokens of this share of all sentences."""
    view, fold = View.of(ground, columns, place), folds["folds"]
    numbers = np.arange(place.before, place.before + view.corpus.n_sentences)
    drawn = mixed(numbers) >> np.uint64(32) < share * (1 << 32)
    found = []
    for sentences, _, some in view.slices():
        if share < 1:
            chosen = np.flatnonzero(drawn[sentences])
            some, of = some.picked(chosen), fold[:, sentences][:, chosen]
        else:
            of = fold[:, sentences]
        asked = np.flatnonzero(some.tags.ids >= 0)
        found.append(
            {
                "rows": hashed(some.looks.linear())[asked],
                "labels": some.tags.ids[asked],
                "folds": of.T[some.corpus.sentence_of[asked]],
            }
        )
    return stacked(found)


def stacked_lessons(tables: list[Table]) -> Table:
    return stacked(tables)


def learn(table: Table, draw: int, numbers: list[int], seeds: list[int], kinds: int) -> Table:
    """The models that have not seen these folds."""
    fold, labels, rows = table["folds"][:, draw], table["labels"], table["rows"]

    def model(k: int) -> Scores:
        known = np.flatnonzero(fold != k).astype(np.int32)
        return _train(rows, labels, np.random.default_rng(seeds[k]).permutation(known), kinds)

    found = in_threads(model, numbers)
    return {_name(draw, k): weights for k, weights in zip(numbers, found, strict=True)}


def expected(view: View, folds: FoldsOf, models: Models) -> Scores:
    """The logarithms of the probabilities of every label for each token, by models that have not
    seen its sentence."""
    rows, kinds = hashed(view.looks.linear()), len(view.tags.names)
    found = np.zeros((DRAWS, len(rows), kinds), dtype=np.float32)
    for draw in range(DRAWS):
        fold = folds[draw][view.corpus.sentence_of]
        for k in range(FOLDS):
            tokens = np.flatnonzero(fold == k).astype(np.int32)
            _judge(rows, models[_name(draw, k)], tokens, found[draw])
    return normalised(np.asarray(np.mean(found, axis=0)))


def normalised(scores: Scores) -> Scores:
    """The logarithms of the probabilities that scores stand for."""
    return np.asarray(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def hashed(windows: list[Keys]) -> Numbers:
    """The rows of the table of weights for each token."""
    rows = np.empty((len(windows[0]), len(windows)), dtype=np.int32)
    for t, key in enumerate(windows):
        rows[:, t] = mixed(np.full(len(key), t), key) >> np.uint64(64 - BITS)
    return rows


def _name(draw: int, fold: int) -> str:
    return f"{draw}, {fold}"


@njit(nogil=True, cache=True, fastmath=True)
def _train(rows: Numbers, labels: Numbers, order: Numbers, kinds: int) -> Scores:
    weights = np.zeros((1 << BITS, kinds), np.float32)
    spent = np.full(1 << BITS, SETTLED, np.float32)  # squared gradients so far
    slope = np.empty(kinds, np.float32)
    for _ in range(PASSES):
        for i in order:
            slope[:] = 0
            for row in rows[i]:
                for label in range(kinds):
                    slope[label] += weights[row, label]
            _softmax(slope)
            slope[labels[i]] -= 1
            size = np.float32(0)
            for label in range(kinds):
                size += slope[label] * slope[label]
            if size < SETTLED:
                continue
            for row in rows[i]:
                spent[row] += size
                step = np.float32(RATE) / np.sqrt(spent[row])
                for label in range(kinds):
                    weights[row, label] -= step * slope[label]
    return weights


@njit(nogil=True, cache=True, fastmath=True)
def _softmax(values: NDArray[np.float32]) -> None:
    largest = values.max()
    total = np.float32(0)
    for label in range(len(values)):
        values[label] = np.exp(values[label] - largest)
        total += values[label]
    for label in range(len(values)):
        values[label] /= total


@njit(nogil=True, cache=True)
def _judge(rows: Numbers, weights: Scores, tokens: Numbers, scores: Scores) -> None:
    for i in tokens:
        for row in rows[i]:
            for label in range(weights.shape[1]):
                scores[i, label] += weights[row, label]
