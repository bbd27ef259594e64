"""rank1_attention_ragged against rank1_attention, sentence by sentence."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dense_truth as truth
from rankone.kernels import ragged, rank1_attention, rank1_attention_ragged
from rankone.kernels.ragged import SAFE_SPREAD, by_length

LENGTHS = [3, 1, 12, 5, 1, 3, 7, 2, 12]

whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


def columns(lengths, seed=0):
    """Query, key and value of every token, and the offsets of the sentences."""
    offsets = np.cumsum([0, *lengths])
    return *np.random.default_rng(seed).normal(size=(3, offsets[-1])), offsets


def alone(query, key, value, offsets, causal):
    out = []
    for a, b in pairwise(offsets):
        mask = torch.from_numpy(np.tri(b - a, dtype=bool)) if causal else None
        parts = (torch.from_numpy(part[a:b]) for part in (query, key, value))
        out.append(rank1_attention(*parts, mask=mask))
    return torch.cat(out)


def exactly(query, key, value, offsets, causal):
    out = []
    for a, b in pairwise(offsets):
        M = np.tri(b - a, dtype=bool) if causal else None
        out.append(truth.boltzmann(query[a:b], key[a:b], value[a:b], M))
    return np.concatenate(out)


@whether_causal
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([1.0, 30.0, 1e4]),
)
def test_different_queries_equal_the_direct_way(lengths, seed, scale, causal):
    query, key, value, offsets = columns(lengths, seed)
    found = rank1_attention_ragged(scale * query, key, value, offsets, causal=causal)
    truth.assert_close(found, alone(scale * query, key, value, offsets, causal))


@whether_causal
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    seed=st.integers(0, 10_000),
    constant=st.sampled_from([-1e5, -300.0, -2.0, -0.0, 0.0, 0.5, 2.0, 300.0, 1e5]),
)
def test_one_query_for_all_equals_the_direct_way(lengths, seed, constant, causal):
    _, key, value, offsets = columns(lengths, seed)
    query = np.full_like(key, constant)
    found = rank1_attention_ragged(query, key, value, offsets, causal=causal)
    truth.assert_close(found, alone(query, key, value, offsets, causal))


@whether_causal
@pytest.mark.parametrize("constant", [-2.0, 0.0, 2.0, None], ids=str)
def test_equals_the_fraction(constant, causal):
    query, key, value, offsets = columns(LENGTHS)
    if constant is not None:
        query[:] = constant
    found = rank1_attention_ragged(query, key, value, offsets, causal=causal)
    truth.assert_close(found, exactly(query, key, value, offsets, causal))


@whether_causal
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("spread", [0.99 * SAFE_SPREAD, 1.01 * SAFE_SPREAD, 1e5])
def test_a_sentence_whose_scores_are_far_below_the_others_is_not_lost(spread, sign, causal):
    _, key, value, offsets = columns([2, 4, 3])
    key /= np.ptp(key)
    key[offsets[1] : offsets[2]] -= spread
    query = np.full_like(key, float(sign))
    found = rank1_attention_ragged(query, key, value, offsets, causal=causal)
    truth.assert_close(found, exactly(query, key, value, offsets, causal))


@whether_causal
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("spread", [0.99 * SAFE_SPREAD, 1.01 * SAFE_SPREAD, 1e5])
def test_a_prefix_whose_scores_are_far_below_the_rest_is_not_lost(spread, sign, causal):
    key = np.array([0.3, 0.0, 1.0, spread - 1.0, spread])
    value, offsets = np.array([1.0, -2.0, 3.0, 5.0, -4.0]), np.array([0, 5])
    query = np.full_like(key, float(sign))
    found = rank1_attention_ragged(query, sign * key, value, offsets, causal=causal)
    truth.assert_close(found, exactly(query, sign * key, value, offsets, causal))


@whether_causal
def test_one_query_for_all_keeps_its_digits_at_scores_of_a_million(causal):
    _, key, value, offsets = columns(LENGTHS)
    key = 1.0 + 1e-6 * key
    query = np.full_like(key, 1e6)
    found = rank1_attention_ragged(query, key, value, offsets, causal=causal)
    wanted = exactly(query, key, value, offsets, causal)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)


@whether_causal
@pytest.mark.parametrize("constant", [2.0, None], ids=str)
def test_tables_of_any_size_change_nothing(monkeypatch, constant, causal):
    query, key, value, offsets = columns(LENGTHS)
    if constant is not None:
        query[:] = constant
    whole = rank1_attention_ragged(query, key, value, offsets, causal=causal)
    monkeypatch.setattr(ragged, "CELLS", 10)
    parts = rank1_attention_ragged(query, key, value, offsets, causal=causal)
    truth.assert_close(parts, whole)


@whether_causal
@pytest.mark.parametrize("constant", [2.0, None], ids=str)
def test_the_columns_are_left_as_they_were(constant, causal):
    query, key, value, offsets = columns(LENGTHS)
    if constant is not None:
        query[:] = constant
    kept = [part.copy() for part in (query, key, value, offsets)]
    # Key and value are often the same array.
    rank1_attention_ragged(query, key, key, offsets, causal=causal)
    rank1_attention_ragged(query, key, value, offsets, causal=causal)
    for part, before in zip((query, key, value, offsets), kept, strict=True):
        np.testing.assert_array_equal(part, before)


@whether_causal
def test_no_sentences_give_nothing(causal):
    none = np.empty(0)
    out = rank1_attention_ragged(none, none, none, np.array([0]), causal=causal)
    assert out.shape == (0,)
    assert out is not none


@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=12), cells=st.integers(1, 60))
def test_by_length_gives_every_sentence_once_and_few_scores_at_a_time(lengths, cells):
    offsets = np.cumsum([0, *lengths])
    given_out = list(by_length(offsets, cells))
    found = sorted((int(start), length) for length, starts in given_out for start in starts)
    assert found == list(zip(offsets[:-1].tolist(), lengths, strict=True))
    for length, starts in given_out:
        assert len(starts) == 1 or len(starts) * length * length <= cells


def test_by_length_puts_equal_lengths_together():
    offsets = np.cumsum([0, 2, 1, 2, 1, 3])
    found = [(length, starts.tolist()) for length, starts in by_length(offsets, 100)]
    assert found == [(1, [2, 5]), (2, [0, 3]), (3, [6])]
