"""rank1_attention_ragged against rank1_attention, sentence by sentence."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dense_truth as truth
from rankone.errors import AttentionError
from rankone.kernels import ragged, ragged_attention, rank1_attention, rank1_attention_ragged
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
    monkeypatch.setattr(ragged, "SCORES", 10)
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


@whether_causal
@pytest.mark.parametrize("constant", [2.0, None], ids=str)
def test_empty_sentences_have_no_tokens(constant, causal):
    query, key, value, offsets = columns([2, 3, 1])
    if constant is not None:
        query[:] = constant
    expected = rank1_attention_ragged(query, key, value, offsets, causal=causal)
    with_empty = np.array([0, 0, 2, 2, 2, 5, 6, 6])
    found = rank1_attention_ragged(query, key, value, with_empty, causal=causal)
    np.testing.assert_array_equal(found, expected)
    tensors = [torch.from_numpy(part) for part in (query, key, value)]
    truth.assert_close(ragged_attention(*tensors, with_empty, causal=causal), expected)


def test_whole_numbers_are_numbers():
    query, key, value = np.arange(4), np.array([0, 1, 0, 1]), np.array([0, 1, 2, 3])
    found = rank1_attention_ragged(query, key, value, np.array([0, 4]))
    truth.assert_close(
        found, exactly(*(x.astype(float) for x in (query, key, value)), [0, 4], False)
    )


BAD_OFFSETS = {
    "beyond the end": [0, 2, 9],
    "short of the end": [0, 2],
    "not from 0": [1, 4],
    "falling": [0, 3, 2, 4],
    "negative": [0, -1, 4],
    "fractions": [0.0, 4.0],
    "none": [],
    "a table": [[0, 4]],
}


@pytest.mark.parametrize("offsets", BAD_OFFSETS.values(), ids=BAD_OFFSETS)
def test_offsets_that_are_not_those_of_the_columns_are_refused(offsets):
    """Compiled code would write where they say."""
    part = np.ones(4)
    for attend, make in ((rank1_attention_ragged, np.copy), (ragged_attention, torch.from_numpy)):
        with pytest.raises(AttentionError, match="ragged attention: columns of shape") as caught:
            attend(*(make(part) for _ in range(3)), np.array(offsets))
        assert "rising from 0 to n" in caught.value.remedy


@pytest.mark.parametrize("short", range(3))
def test_columns_of_different_lengths_are_refused(short):
    parts = [torch.ones(4) for _ in range(3)]
    parts[short] = torch.ones(3)
    with pytest.raises(AttentionError, match=r"\[\(3,\), \(4,\)\]"):
        ragged_attention(*parts, np.array([0, 4]))


def test_tables_are_no_columns():
    for attend, make in ((rank1_attention_ragged, np.ones), (ragged_attention, torch.ones)):
        with pytest.raises(AttentionError, match=r"\[\(4, 1\)\]"):
            attend(*(make((4, 1)) for _ in range(3)), np.array([0, 4]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_and_mixed_types_are_computed_in_single_or_wider(dtype):
    query, key, value, offsets = columns(LENGTHS)
    parts = [torch.from_numpy(part).to(dtype) for part in (query, key, value)]
    found = ragged_attention(*parts, offsets)
    assert found.dtype == dtype
    wide = ragged_attention(*(part.double() for part in parts), offsets)
    assert (found.double() - wide).abs().max() <= torch.finfo(dtype).eps * value.max()
    mixed = ragged_attention(parts[0].float(), parts[1].double(), parts[2].double(), offsets)
    truth.assert_close(mixed, wide)


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
