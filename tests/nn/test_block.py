"""The Transformer block against eq. 4."""

from itertools import product

import pytest
import torch

import dense_truth as truth
from rankone.nn import (
    Block,
    FeedForward,
    Rank1Attention,
    Rank1FeedForward,
    SelfAttention,
    causal_mask,
    padding_mask,
)

BATCH, N, D = 3, 5, 4
ATTENTIONS = {
    "rank1": Rank1Attention,
    "softmax": lambda dim, dtype: SelfAttention(dim, heads=2, head_size=3, dtype=dtype),
    "hardmax": lambda dim, dtype: SelfAttention(dim, heads=2, kind="hardmax", dtype=dtype),
}
FEEDFORWARDS = {"dense": FeedForward, "rank1": Rank1FeedForward}
MASKS = {
    "none": None,
    "padding": padding_mask(torch.tensor([5, 1, 3]), N),
    "causal": causal_mask(N),
    "random": truth.random_mask(BATCH, N, N, seed=1),
}

each_kind = pytest.mark.parametrize(
    ("attention", "feedforward"), list(product(ATTENTIONS, FEEDFORWARDS))
)
each_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def block_and_tokens(attention, feedforward, dtype=torch.float64, seed=0):
    block = Block(
        ATTENTIONS[attention](D, dtype=dtype), FEEDFORWARDS[feedforward](D, 6, dtype=dtype)
    )
    z = torch.randn(BATCH, N, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return truth.randomize(block, seed), z.to(dtype)


@each_dtype
@each_mask
@each_kind
def test_a_batch_equals_the_equation(attention, feedforward, mask, dtype):
    block, z = block_and_tokens(attention, feedforward, dtype)
    truth.assert_close(block(z, mask), truth.by_sentence(truth.block_of, block, z, mask))


@each_dtype
@each_mask
@each_kind
def test_expanding_changes_nothing(attention, feedforward, mask, dtype):
    block, z = block_and_tokens(attention, feedforward, dtype, seed=1)
    truth.assert_close(block.expand()(z, mask), block(z, mask))


@each_kind
def test_an_expanded_block_has_no_factors(attention, feedforward):
    block, _ = block_and_tokens(attention, feedforward)
    full = block.expand()
    assert isinstance(full.attention, SelfAttention)
    assert isinstance(full.feedforward, FeedForward)
