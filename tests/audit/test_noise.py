"""Weights learnt from made-up noise."""

from __future__ import annotations

import numpy as np
import pytest

from rankone.audit.suspects.noise import PULL, RATE, change_labels, learn_weights, sigmoid


def samples(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = rng.normal([-3.0, 0.0, 1.0], 1.5, size=(20_000, 3))
    changed = rng.normal([2.0, 0.0, -1.0], 1.5, size=(2_000, 3))  # the third speaks the other way
    return found.astype(np.float32), changed.astype(np.float32)


def test_the_weights_are_the_best_that_are_not_negative() -> None:
    found, changed = samples()
    prior = np.full(3, 0.2)
    weights, offset = learn_weights(found, changed, prior)
    assert weights[0] > 0.5
    assert weights[2] == 0.0
    rows = np.concatenate([found, changed]).astype(float)
    truth = np.repeat([0.0, 1.0], [len(found), len(changed)])
    share = RATE * len(found) / ((1 - RATE) * len(changed))
    counts = np.repeat([1.0, share], [len(found), len(changed)])
    off = counts * (sigmoid(rows @ weights + offset) - truth)
    slope = rows.T @ off + PULL * (weights - prior)
    assert slope[:2] == pytest.approx([0.0, 0.0], abs=0.05)
    assert slope[2] > 0  # less would be better, but it is 0 already


def test_the_score_is_the_share_of_wrong_labels() -> None:
    """Of what scores about p, the share p was changed, if one label in a hundred is."""
    rng = np.random.default_rng(1)
    found, changed = (rng.normal(m, 1.0, size=(n, 1)) for m, n in ((-1.0, 99_000), (1.0, 1_000)))
    weights, offset = learn_weights(found, changed, np.array([2.0]))
    chances = [sigmoid(rows @ weights + offset) for rows in (found, changed)]
    for low, high in ((0.05, 0.2), (0.2, 0.5), (0.5, 0.9)):
        as_found, as_changed = (chance[(chance > low) & (chance < high)] for chance in chances)
        share = len(as_changed) / (len(as_found) + len(as_changed))
        assert share == pytest.approx(np.concatenate([as_found, as_changed]).mean(), abs=0.06)


def test_a_changed_label_is_another_and_mostly_a_plausible_one() -> None:
    scores = np.tile(np.array([0.0, 8.0, -8.0], dtype=np.float32), (500, 1))
    labels = np.zeros(500, dtype=np.int32)
    drawn = change_labels(scores, labels, np.random.default_rng(0))
    assert (drawn != 0).all()
    assert (drawn == 1).mean() > 0.99
    assert scores[0, 0] == 0.0  # which is not changed
