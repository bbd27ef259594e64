"""Corollary 1: how many parameters, in each way of counting them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone.errors import SettingError
from rankone.nn import FeedForward, Rank1Attention, SelfAttention
from rankone.theory import parameter_counts

sizes = st.tuples(*(st.integers(1, 6) for _ in range(4)))


def entries(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


@given(size=sizes)
def test_the_counts_are_those_of_the_networks(size):
    n, sentences, dim, head_size = size
    counts = parameter_counts(n, sentences, dim, head_size)
    feedforward = FeedForward(dim, n * sentences)
    assert counts.attention_dense == entries(SelfAttention(dim, head_size=head_size))
    assert counts.attention_rank1 == entries(Rank1Attention(dim))
    assert counts.feedforward_dense == entries(feedforward)
    # one direction, a threshold and a column of W2 per unit
    shared = (
        feedforward.weight1[0].numel() + feedforward.bias1.numel() + feedforward.weight2.numel()
    )
    assert counts.feedforward_shared == shared


@given(size=sizes)
def test_the_papers_count(size):
    """Two factors for each of four matrices; d networks of 2 nN + d numbers (Zhang et al.)."""
    n, sentences, dim, head_size = size
    counts = parameter_counts(n, sentences, dim, head_size)
    assert counts.attention_factors == sum(head_size + dim for _ in range(4))
    assert counts.feedforward_separate == sum(2 * n * sentences + dim for _ in range(dim))
    assert counts.paper == counts.attention_factors + counts.feedforward_separate
    assert counts.positions == n * dim


def test_the_size_of_conll():
    """14,041 sentences of 45 tokens in 128 dimensions: sharing halves the paper's count."""
    counts = parameter_counts(45, 14_041, 128)
    assert counts.paper == 4 * 129 + 128 * (2 * 45 * 14_041 + 128)
    assert counts.feedforward_shared < 0.51 * counts.paper
    assert set(counts.to_json()) == set(vars(counts))


def test_sizes_must_be_positive():
    sizes = {"n": 1, "sentences": 1, "dim": 1, "head_size": 1}
    for name in sizes:
        for odd in (0, -1, 1.5, 2.0, np.nan, "2", None, True):
            with pytest.raises(SettingError, match=f"^{name} = .* is not a whole number of 1"):
                parameter_counts(**{**sizes, name: odd})
    assert type(parameter_counts(*np.array([45, 14_041, 128, 1])).paper) is int
