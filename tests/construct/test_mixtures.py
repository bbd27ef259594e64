"""Contexts with several labels, and their distributions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone.construct.mixtures import LIFT, Mixtures


def test_shares_and_leaders():
    contexts = np.array([0, 0, 0, 3, 4, 4, 6, 6, 6, 6])
    labels = np.array([2, 1, 1, 0, 1, -1, 1, 2, 1, 1])
    wanted = np.array([1, 1, 1, 0, 1, 1, 1, 1, 1, 1])
    found = Mixtures.find(contexts, labels, wanted)
    assert found.of.tolist() == [0, 0, 0, -1, -1, -1, 1, 1, 1, 1]
    columns = found.columns(3, found.leaders(wanted), 0.125)
    assert columns[:, 0] == pytest.approx([0, LIFT + np.log(2 / 3), LIFT + np.log(1 / 3)])
    assert columns[:, 1] == pytest.approx([0, LIFT + np.log(3 / 4), LIFT + np.log(1 / 4)])


def test_equal_shares_are_one_distribution_unless_another_label_leads():
    contexts = np.array([0, 0, 2, 2, 4, 4, 4, 4])
    labels = np.array([0, 1, 0, 1, 0, 0, 1, 1])
    wanted = np.array([0, 0, 1, 1, 0, 0, 0, 0])
    found = Mixtures.find(contexts, labels, wanted)
    assert found.of.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    columns = found.columns(2, found.leaders(wanted), 0.125)
    assert columns.T.tolist() == [
        [LIFT + np.log(0.5) + 0.125, LIFT + np.log(0.5)],
        [LIFT + np.log(0.5), LIFT + np.log(0.5) + 0.125],
    ]


def test_none():
    found = Mixtures.find(np.arange(3), np.array([0, 1, 0]), np.array([0, 1, 0]))
    assert len(found) == 0
    assert found.of.tolist() == [-1] * 3
    assert found.columns(2, found.leaders(np.array([0, 1, 0])), 0.1).shape == (2, 0)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 3)), min_size=1, max_size=40))
def test_the_softmax_of_a_column_is_the_share_of_each_label(pairs):
    contexts = np.array([c for c, _ in pairs])
    labels = np.array([label for _, label in pairs])
    counts = {c: Counter(label for d, label in pairs if d == c and label >= 0) for c, _ in pairs}
    top = {c: max(n, key=n.get) if n else -1 for c, n in counts.items()}
    wanted = np.array([top[c] for c, _ in pairs])
    found = Mixtures.find(contexts, labels, wanted)
    columns = found.columns(4, found.leaders(wanted), 0.0)
    for context, number in zip(contexts, found.of, strict=True):
        own = counts[context]
        assert (number >= 0) == (len(own) > 1)
        if number >= 0:
            shares = np.exp(columns[:, number] - columns[:, number].max())
            shares /= shares.sum()
            expected = [own[label] / own.total() for label in range(4)]
            assert shares == pytest.approx(expected, abs=1e-12)
            assert columns[top[context], number] == columns[:, number].max()
