"""Masks: True where a query (second to last axis) may attend to a key (last axis)."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rankone.nn import causal_mask, padding_mask
from rankone.nn.masks import and_causal, per_query

CPU = torch.device("cpu")


def test_padding_mask_shows_the_first_tokens_of_each_sentence():
    assert padding_mask(torch.tensor([0, 2, 3]), 3).tolist() == [
        [[False, False, False]],
        [[True, True, False]],
        [[True, True, True]],
    ]


def test_causal_mask_shows_a_token_itself_and_those_before_it():
    assert causal_mask(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


@given(n=st.integers(1, 6))
def test_the_last_token_of_a_causal_mask_sees_all_and_the_first_only_itself(n):
    assert causal_mask(n).sum(-1).tolist() == list(range(1, n + 1))


def test_no_mask_stays_none():
    assert per_query(None) is None


def test_causality_alone_is_the_causal_mask():
    assert torch.equal(and_causal(None, 4, CPU), causal_mask(4))


def test_a_mask_of_real_tokens_is_the_padding_mask():
    lengths = torch.tensor([1, 4, 2])
    real = torch.arange(4) < lengths[:, None]
    found = per_query(real)
    assert torch.equal(found, padding_mask(lengths, 4))


def test_a_square_batch_of_real_tokens_is_still_padding():
    real = torch.tensor([[True, False], [True, True]])
    found = per_query(real)
    assert found.tolist() == [[[True, False]], [[True, True]]]


@pytest.mark.parametrize("padding", [False, True])
@given(batch=st.integers(1, 3), n=st.integers(1, 4), data=st.data())
def test_causality_is_a_conjunction_entry_by_entry(padding, batch, n, data):
    shape = (batch, n) if padding else (batch, n, n)
    count = torch.Size(shape).numel()
    bits = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    mask = torch.tensor(bits).view(shape)
    found = and_causal(per_query(mask), n, CPU).expand(batch, n, n)
    for b, query, key in np.ndindex(batch, n, n):
        seen = mask[b, key] if padding else mask[b, query, key]
        assert found[b, query, key] == (seen and key <= query)
