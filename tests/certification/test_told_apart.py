"""Words and positions that are told apart by whole numbers that no head writes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone.certification.told_apart import _all_differ, least_distance
from rankone.nn import TokenClassifier

WORDS, PLACES = np.array([0, 1, 2, 3, 1]), np.array([0, 0, 1, 2, 2])


@pytest.fixture
def network() -> TokenClassifier:
    """Gated, with codes of words in coordinates 0 to 47 and of positions from 48 on."""
    sentences = [(["a", "b", "c"], ["x", "y", "x"]), (["c", "b", "a"], ["y", "x", "x"])]
    return rankone.memorize(sentences, construction="gated", dtype="float32").model.network


def test_codes_tell_apart(network: TokenClassifier) -> None:
    assert least_distance(network, WORDS, PLACES) == 1.0


def test_two_words_with_one_code(network: TokenClassifier) -> None:
    with torch.no_grad():
        network.table[3, :48] = network.table[1, :48]
        network.table[3, -2:] = network.table[1, -2:]
    assert least_distance(network, WORDS, PLACES) == 0.0
    assert least_distance(network, WORDS[:3], PLACES[:3]) == 1.0  # the word does not occur


def test_two_positions_with_one_code(network: TokenClassifier) -> None:
    assert network.positions is not None
    with torch.no_grad():
        network.positions[2, 48:52] = network.positions[1, 48:52]
    assert least_distance(network, WORDS, PLACES) == 0.0


def test_coordinates_that_a_head_writes_do_not_count(network: TokenClassifier) -> None:
    with torch.no_grad():
        network.blocks[0].attention.output[0, :48] = 1e-9  # type: ignore[union-attr, index]
        network.table[:, -2:] = 0
    assert least_distance(network, WORDS, PLACES) == 0.0


def test_coordinates_of_both_tables_do_not_count(network: TokenClassifier) -> None:
    """The code of a word and that of a position could make up for each other."""
    assert network.positions is not None
    with torch.no_grad():
        network.positions[2, :48] = 1.0
        network.table[:, -2:] = 0
    assert least_distance(network, WORDS, PLACES) == 0.0


def test_fractions_do_not_count(network: TokenClassifier) -> None:
    with torch.no_grad():
        network.table[:, :48] *= 0.5
        network.table[:, -2:] = 0
    assert least_distance(network, WORDS, PLACES) == 0.0


@given(st.integers(0, 10**9))
def test_equal_rows_against_a_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    span, columns = rng.choice([1, 2, 2**20, 2**51]), rng.integers(1, 90)
    rows = rng.integers(-span, span + 1, (rng.integers(1, 40), columns)).astype(float)
    if rng.integers(2):
        rows[-1] = rows[0]
        if rng.integers(2):  # different in one place
            rows[-1, rng.integers(columns)] += 1
    distinct = len({tuple(row) for row in rows.tolist()}) == len(rows)
    assert _all_differ(rows) == distinct
    some = rng.integers(2, size=columns).astype(bool)
    rows[0, some] += 0.5  # no longer whole in these columns
    whole = rows[:, (rows == np.rint(rows)).all(0)]
    distinct = len({tuple(row) for row in whole.tolist()}) == len(rows)
    assert _all_differ(rows) == distinct


def test_numbers_too_large_for_differences() -> None:
    assert _all_differ(np.array([[2.0**52], [-(2.0**52)]]))
    assert not _all_differ(np.array([[2.0**53], [-(2.0**53)]]))
