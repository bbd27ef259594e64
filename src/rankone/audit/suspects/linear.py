"""A linear model of a token's neighbourhood, and what it says of tokens it has not seen.

Softmax regression on hashed windows, by AdaGrad. Sentences are drawn into folds; the tokens of a
fold are judged by a model of the others. This is done twice with other folds, and averaged. Folds
share nothing, so they run on threads of their own.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.audit.suspects.votes import Numbers, Scores
from rankone.audit.windows import Keys, mixed

DRAWS, FOLDS, PASSES, RATE = 2, 5, 2, 0.2
BITS = 18  # of a hashed window: rows of the table of weights
SETTLED = 1e-6  # a squared gradient that changes nothing any more


def held_out_scores(
    windows: list[Keys], labels: Numbers, kinds: int, sentence_of: Ints, seed: int
) -> Scores:
    """The score of every label for each token, from a model that has not seen its sentence."""
    rng = np.random.default_rng(seed)
    rows = np.empty((len(labels), len(windows)), dtype=np.int32)
    for t, key in enumerate(windows):
        salted = mixed(np.full(len(key), t), key)
        rows[:, t] = salted >> np.uint64(64 - BITS)
    sentences = int(sentence_of[-1]) + 1
    folds = [rng.integers(FOLDS, size=sentences)[sentence_of] for _ in range(DRAWS)]
    seeds = rng.integers(1 << 32, size=(DRAWS, FOLDS))

    def judged(draw: int) -> Scores:
        fold, scores = folds[draw], np.zeros((len(labels), kinds), dtype=np.float32)

        def run(k: int) -> None:
            known = np.flatnonzero((fold != k) & (labels >= 0)).astype(np.int32)
            order = np.random.default_rng(seeds[draw, k]).permutation(known)
            weights = _train(rows, labels, order, kinds)
            _judge(rows, weights, np.flatnonzero(fold == k).astype(np.int32), scores)

        list(pool.map(run, range(FOLDS)))
        return scores

    with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
        return np.asarray(np.mean([judged(draw) for draw in range(DRAWS)], axis=0))


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
