"""The linear model against the same steps, written out."""

from __future__ import annotations

import numpy as np
import pytest

from rankone.audit.suspects import linear
from rankone.audit.suspects.linear import _judge, _train


def written_out(
    rows: np.ndarray, labels: np.ndarray, order: np.ndarray, kinds: int
) -> tuple[np.ndarray, int]:
    """The weights, and how many steps were left out as too small."""
    weights, spent = np.zeros((1 << linear.BITS, kinds)), np.full(1 << linear.BITS, linear.SETTLED)
    settled = 0
    for _ in range(linear.PASSES):
        for i in order:
            scores = weights[rows[i]].sum(axis=0)
            slope = np.exp(scores - scores.max())
            slope /= slope.sum()
            slope[labels[i]] -= 1
            if slope @ slope < linear.SETTLED:
                settled += 1
                continue
            for row in rows[i]:  # one by one: a row may come twice
                spent[row] += slope @ slope
                weights[row] -= linear.RATE / np.sqrt(spent[row]) * slope
    return weights, settled


def test_softmax_regression_by_adagrad() -> None:
    rng = np.random.default_rng(0)
    labels = np.array([0] * 400 + [1, 2] * 10, dtype=np.int32)  # the many settle before the few
    rows = rng.integers(40, size=(420, 24)).astype(np.int32)
    rows[:400] = np.arange(100, 124)
    order = np.arange(420, dtype=np.int32)
    weights = _train(rows, labels, order, 3)
    expected, settled = written_out(rows, labels, order, 3)
    assert 10 < settled < 700
    assert weights == pytest.approx(expected, abs=1e-4)
    scores = np.zeros((420, 3), dtype=np.float32)
    _judge(rows, weights, np.array([5, 410], dtype=np.int32), scores)
    assert scores[410] == pytest.approx(expected[rows[410]].sum(axis=0), abs=1e-3)
    assert (np.delete(scores, [5, 410], axis=0) == 0).all()
