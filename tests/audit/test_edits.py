"""Edits against trying all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone import Corpus
from rankone.audit.suspects.edits import (
    CANDIDATES,
    NEVER,
    _candidates,
    best_edits,
    follow_counts,
    follow_odds,
)
from rankone.audit.suspects.tags import Tags

TAGS = ["O", "B-X", "I-X", "B-Y"]


def corpus_of(*labels: list[str]) -> Corpus:
    return Corpus.from_sentences([([f"w{i}" for i in range(len(row))], row) for row in labels])


def gain(old: list[int], new: list[int], scores: np.ndarray, follows: np.ndarray) -> float:
    """What the new labels score more, less what steps between them lose."""
    end = len(follows) - 1
    steps = [zip([end, *labels], [*labels, end], strict=True) for labels in (old, new)]
    lost = sum(min(follows[b] - follows[a], 0.0) for a, b in zip(*steps, strict=True))
    return lost + sum(
        scores[i, z] - scores[i, y] for i, (y, z) in enumerate(zip(old, new, strict=True))
    )


@given(st.integers(1, 5), st.integers(0, 10**6))
def test_the_best_run_through_every_token(length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_labels = tuple(int(y) for y in rng.integers(3, size=length))
    corpus = corpus_of([f"L{y}" for y in given_labels], ["L0", "L1", "L2"])
    labels = np.array([corpus.label_names.index(f"L{y}") for y in given_labels], dtype=np.int32)
    whole = corpus.label_ids.astype(np.int32)
    scores = rng.normal(size=(corpus.n_tokens, 3)).astype(np.float32)
    follows = rng.normal(size=(4, 4))
    edits = best_edits(corpus, whole, scores, follows)
    old = labels.tolist()
    for token in range(length):
        options = []
        for first in range(token + 1):
            for last in range(token, length):
                for run in product(range(3), repeat=last - first + 1):
                    new = [*old[:first], *run, *old[last + 1 :]]
                    if all(new[i] != old[i] for i in range(first, last + 1)):
                        options.append((gain(old, new, scores, follows), first, list(run)))
        best, first, run = max(options)
        assert edits.odds[token] == pytest.approx(best, abs=1e-4)
        assert edits.run(token) == (first, run)
        assert edits.length[token] == len(run)


def test_without_steps_every_edit_is_one_token() -> None:
    corpus = corpus_of(["L0", "L1", "L0"])
    scores = np.array([[0, 2, 1], [4, 0, 5], [3, 1, 2]], dtype=np.float32)
    labels = corpus.label_ids.astype(np.int32)
    edits = best_edits(corpus, labels, scores, None)
    assert [edits.run(i) for i in range(3)] == [(0, [1]), (1, [2]), (2, [2])]
    assert edits.odds.tolist() == [2.0, 5.0, -1.0]


def test_how_likely_labels_follow_each_other() -> None:
    corpus = corpus_of(["O", "B-X", "I-X", "O"], ["B-Y", "O"])
    tags = Tags.of(corpus)
    odds = follow_odds(follow_counts(corpus, tags), tags.names)
    number = {name: i for i, name in enumerate(tags.names)}
    inner = number["I-X"]
    allowed = {number["B-X"], inner}
    for y in range(len(odds)):
        assert (odds[y, inner] > NEVER / 2) == (y in allowed)
    # 8 steps and 25 halves: O, I-X once, I-X before 1 + 2.5, O after 3 + 2.5
    counts = np.full((5, 5), 0.5)
    end = 4
    for y, z in [("O", "B-X"), ("B-X", "I-X"), ("I-X", "O"), ("B-Y", "O")]:
        counts[number[y], number[z]] += 1
    for y, z in [(end, number["O"]), (number["O"], end), (end, number["B-Y"]), (number["O"], end)]:
        counts[y, z] += 1
    y, z = number["I-X"], number["O"]
    expected = np.log(counts[y, z] * counts.sum() / counts[y].sum() / counts[:, z].sum())
    assert odds[y, z] == pytest.approx(expected, abs=1e-12)


def test_a_token_that_nothing_is_asked_of_is_not_part_of_an_edit() -> None:
    corpus = corpus_of(["L0", "L1", "L0"])
    labels = np.array([0, -1, 0], dtype=np.int32)
    scores = np.array([[0, 5], [0, 5], [0, 5]], dtype=np.float32)
    edits = best_edits(corpus, labels, scores, np.zeros((3, 3)))
    assert edits.run(0) == (0, [1])
    assert edits.odds.tolist() == [5.0, NEVER, 5.0]


def test_the_best_candidates_are_tried_the_given_label_first() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 25)).astype(np.float32)
    labels = rng.integers(25, size=50).astype(np.int32)
    found = _candidates(scores, labels)
    for row, label, each in zip(scores, labels, found, strict=True):
        best = [y for y in np.argsort(-row).tolist() if y != label][: CANDIDATES - 1]
        assert each.tolist() == [label, *best]
