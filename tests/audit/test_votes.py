"""Votes against counting by hand."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone.audit.suspects.votes import A, Groups, Queries

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 3)), min_size=1, max_size=40)


def votes(keys: list[int], labels: list[int], token: int, label: int) -> float:
    others = Counter(
        y
        for i, (k, y) in enumerate(zip(keys, labels, strict=True))
        if k == keys[token] and i != token
    )
    return log((others[label] + A) / A)


@given(rows)
def test_the_votes_of_all_others_with_the_same_key(found: list[tuple[int, int]]) -> None:
    keys, labels = map(list, zip(*found, strict=True))
    groups = Groups.of(np.array(keys, dtype=np.uint64) << np.uint64(40))  # equal in the low bits
    scores = np.zeros((len(keys), 4), dtype=np.float32)
    groups.add(2.0, np.array(labels, dtype=np.int32), scores)
    expected = [[2 * votes(keys, labels, i, y) for y in range(4)] for i in range(len(keys))]
    assert scores == pytest.approx(np.array(expected), rel=1e-6, abs=1e-6)


@given(rows, st.data())
def test_odds_between_two_labels(found: list[tuple[int, int]], data: st.DataObject) -> None:
    keys, labels = map(list, zip(*found, strict=True))
    tokens = sorted(data.draw(st.lists(st.integers(0, len(keys) - 1), min_size=1)))
    pairs = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in tokens]
    own, other = (np.array(column, dtype=np.int32) for column in zip(*pairs, strict=True))
    out = np.zeros(len(tokens), dtype=np.float32)
    asked = Queries.of(np.array(tokens), own, other, len(keys))
    groups = Groups.of(np.array(keys, dtype=np.uint64))
    groups.odds(asked, np.array(labels, dtype=np.int32), out)
    expected = [
        votes(keys, labels, i, z) - votes(keys, labels, i, y)
        for i, (y, z) in zip(tokens, pairs, strict=True)
    ]
    assert out == pytest.approx(np.array(expected), rel=1e-6, abs=1e-6)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_members_of_a_group(keys: list[int]) -> None:
    groups = Groups.of(np.array(keys, dtype=np.uint64))
    group_of = groups.group_of(len(keys))
    for i, key in enumerate(keys):
        same = [j for j, other in enumerate(keys) if other == key]
        assert groups.members(i, group_of).tolist() == (same if len(same) > 1 else [])
