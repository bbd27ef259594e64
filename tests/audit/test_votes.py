"""Votes against counting by hand."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone.audit.suspects.votes import A, Ballots, group_of, look_up, odds

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 3)), min_size=1, max_size=40)
KINDS = 4


def votes(keys: list[int], labels: list[int], token: int, label: int) -> float:
    others = Counter(
        y
        for i, (k, y) in enumerate(zip(keys, labels, strict=True))
        if k == keys[token] and i != token
    )
    return log((others[label] + A) / A)


def columns(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    keys, labels = map(list, zip(*found, strict=True))
    return np.array(keys, dtype=np.uint64) << np.uint64(40), np.array(labels, dtype=np.int32)


@given(rows)
def test_the_votes_of_all_others_with_the_same_key(found: list[tuple[int, int]]) -> None:
    keys, labels = columns(found)  # equal in the low bits
    group, first = group_of(keys)
    assert keys[first][group].tolist() == keys.tolist()
    ballots = Ballots.of_groups(group, labels, len(first), KINDS)
    scores = np.zeros((len(keys), KINDS), dtype=np.float32)
    ballots.add(group, 2.0, labels, scores)
    given_ = keys.tolist(), labels.tolist()
    expected = [[2 * votes(*given_, i, y) for y in range(KINDS)] for i in range(len(keys))]
    assert scores == pytest.approx(np.array(expected), rel=1e-6, abs=1e-6)


@given(st.lists(rows, min_size=1, max_size=4))
def test_ballots_of_parts_add_up(parts: list[list[tuple[int, int]]]) -> None:
    """However the tokens are cut, the votes are the same, and each ballot is there once."""
    sent, keys_of, groups = [], [], []
    for part in parts:
        keys, labels = columns(part)
        group, first = group_of(keys)
        sent.append(Ballots.of_groups(group, labels, len(first), KINDS))
        keys_of.append(keys[first])
        groups.append(group)
    every, first = group_of(np.concatenate(keys_of))
    number, united = Ballots.joined(sent).united(every, len(first), KINDS)
    bounds = united.starts.tolist()
    pairs = list(zip(united.label.tolist(), united.count.tolist(), strict=True))
    ballots = [tuple(pairs[a:b]) for a, b in pairwise(bounds)]
    assert len(set(ballots)) == len(ballots)
    counts: dict[int, Counter[int]] = {}
    for key, label in (row for part in parts for row in part):
        counts.setdefault(key, Counter())
        if label >= 0:
            counts[key][label] += 1
    cuts = np.cumsum([len(keys) for keys in keys_of])[:-1]
    for part, group, mine in zip(parts, groups, np.split(number[every], cuts), strict=True):
        for (key, _), g in zip(part, group.tolist(), strict=True):
            assert Counter(dict(ballots[mine[g]])) == counts[key]


def test_many_different_ballots() -> None:
    """More than the first table has room for."""
    labels, groups = np.tile([0, 1], 3000).astype(np.int32), np.repeat(np.arange(3000), 2)
    one = Ballots.of_groups(groups.astype(np.int32), labels, 3000, 2)
    counts = np.arange(1, 6001, dtype=np.int32)
    each = np.arange(3000, dtype=np.int32)
    twice = Ballots.joined([Ballots(one.starts, one.label, counts)] * 2)
    number, united = twice.united(np.tile(each, 2), 3000, 2)
    assert number.tolist() == each.tolist()
    assert united.count.tolist() == (2 * counts).tolist()
    number, united = twice.united(np.arange(6000, dtype=np.int32), 6000, 2)
    assert number.tolist() == each.tolist() * 2
    assert united.count.tolist() == counts.tolist()


@given(rows, st.data())
def test_odds_between_two_labels(found: list[tuple[int, int]], data: st.DataObject) -> None:
    keys, labels = map(list, zip(*found, strict=True))
    tokens = data.draw(st.lists(st.integers(0, len(keys) - 1), min_size=1))
    pairs = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in tokens]
    own, other = (np.array(column, dtype=np.int32) for column in zip(*pairs, strict=True))
    counts = np.array(
        [[sum(k == keys[i] and z == y for k, z in found) for y in range(KINDS)] for i in tokens]
    )
    out = odds(counts, np.array(labels, dtype=np.int32)[tokens], own, other)
    expected = [
        votes(keys, labels, i, z) - votes(keys, labels, i, y)
        for i, (y, z) in zip(tokens, pairs, strict=True)
    ]
    assert out == pytest.approx(np.array(expected), rel=1e-6, abs=1e-6)


@given(st.lists(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_looking_up(keys: list[int], wanted: set[int]) -> None:
    order = list(wanted)
    found = look_up(np.array(keys, np.uint64), np.array(order, np.uint64))
    assert found.tolist() == [order.index(key) if key in wanted else -1 for key in keys]
