"""The whole token classifier against table lookup, positions, eq. 4 for each block, linear head."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dense_truth as truth
from rankone.nn import Architecture, TokenClassifier, padding_mask

VOCABULARY, LABELS, D, N = 7, 3, 4, 5
LENGTHS = torch.tensor([5, 1, 3])
IDS = torch.tensor([[3, 1, 3, 0, 6], [2, 2, 2, 2, 2], [6, 5, 4, 0, 1]])
ATTENTIONS, FEEDFORWARDS = ["rank1", "softmax", "hardmax"], ["dense", "rank1"]

each_kind = pytest.mark.parametrize(
    ("attention", "feedforward"), list(product(ATTENTIONS, FEEDFORWARDS))
)
each_depth = pytest.mark.parametrize("depth", [0, 1, 2])
each_positions = pytest.mark.parametrize("positions", [0, N, N + 3])
whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def classifier(dtype=torch.float64, seed=0, **shape):
    sizes = {"vocabulary": VOCABULARY, "labels": LABELS, "dim": D, "hidden": 6}
    shape = Architecture(**sizes, heads=2, head_size=2, **shape)
    return truth.randomize(TokenClassifier(shape, dtype=dtype), seed)


def expected(of, network, ids, mask=None):
    """Sentence by sentence; the mask is narrowed to the past if the network is causal."""
    batch, n = ids.shape
    mask = np.ones((batch, n, n), dtype=bool) if mask is None else mask.expand(batch, n, n).numpy()
    past = np.tri(n, dtype=bool) if network.shape.causal else True
    return np.stack([of(network, i, M & past).T for i, M in zip(ids.tolist(), mask, strict=True)])


@each_dtype
@whether_causal
@each_positions
@each_depth
@each_kind
def test_logits_equal_the_equations(attention, feedforward, depth, positions, causal, dtype):
    network = classifier(
        dtype,
        attention=attention,
        feedforward=feedforward,
        depth=depth,
        positions=positions,
        causal=causal,
    )
    logits = network(IDS)
    assert logits.dtype == dtype
    truth.assert_close(logits, expected(truth.logits_of, network, IDS))


@whether_causal
@each_kind
def test_features_under_any_mask_equal_the_equations(attention, feedforward, causal):
    network = classifier(attention=attention, feedforward=feedforward, causal=causal, depth=2)
    mask = truth.random_mask(3, N, N, seed=1)
    found = network.features(IDS, mask)
    truth.assert_close(found, expected(truth.features_of, network, IDS, mask))


@whether_causal
@each_kind
def test_padding_given_as_real_tokens_equals_the_equations(attention, feedforward, causal):
    network = classifier(attention=attention, feedforward=feedforward, causal=causal, positions=N)
    mask = padding_mask(LENGTHS, N)
    found = network(IDS, mask[:, 0])
    truth.assert_close(found, expected(truth.logits_of, network, IDS, mask))


@each_dtype
@whether_causal
@each_positions
@each_kind
def test_a_padded_batch_equals_each_sentence_alone(
    attention, feedforward, positions, causal, dtype
):
    network = classifier(
        dtype,
        attention=attention,
        feedforward=feedforward,
        depth=2,
        positions=positions,
        causal=causal,
    )
    batch = network(IDS, torch.arange(N) < LENGTHS[:, None])
    for logits, ids, length in zip(batch, IDS, LENGTHS.tolist(), strict=True):
        truth.assert_close(logits[:length], network(ids[None, :length])[0])


@each_kind
def test_what_stands_in_the_padding_does_not_matter(attention, feedforward):
    network = classifier(attention=attention, feedforward=feedforward, depth=2)
    real = torch.arange(N) < LENGTHS[:, None]
    other = torch.where(real, IDS, (IDS + 3) % VOCABULARY)
    assert torch.equal(network(IDS, real)[real], network(other, real)[real])


@each_kind
def test_a_causal_network_does_not_see_the_future(attention, feedforward):
    network = classifier(attention=attention, feedforward=feedforward, depth=2, causal=True)
    whole = network(IDS)
    for length in range(1, N):
        truth.assert_close(whole[:, :length], network(IDS[:, :length]))


@each_kind
@given(order=st.permutations(range(N)), seed=st.integers(0, 100))
def test_without_positions_permuting_the_tokens_permutes_the_logits(
    attention, feedforward, order, seed
):
    network = classifier(seed=seed, attention=attention, feedforward=feedforward, depth=2)
    truth.assert_close(network(IDS[:, order]), network(IDS)[:, order])


def test_positions_tell_equal_tokens_apart():
    network = classifier(positions=N)
    first, second = network(torch.tensor([[2, 2]]))[0]
    assert not torch.allclose(first, second)


@each_positions
def test_embedding_is_a_row_of_the_table_and_one_of_the_positions(positions):
    network = classifier(positions=positions)
    truth.assert_close(network.embed(IDS), expected(truth.embedding_of, network, IDS))


def test_more_tokens_than_positions_are_refused():
    network = classifier(positions=N - 1)
    with pytest.raises(ValueError, match="5 tokens, but the table of positions has 4"):
        network(IDS)


@whether_causal
@each_positions
@each_kind
def test_expanding_changes_nothing(attention, feedforward, positions, causal):
    network = classifier(
        attention=attention,
        feedforward=feedforward,
        depth=2,
        positions=positions,
        causal=causal,
    )
    mask = torch.arange(N) < LENGTHS[:, None]
    truth.assert_close(network.expand()(IDS, mask), network(IDS, mask))


def test_an_expanded_network_shares_its_tables_and_head():
    network = classifier(positions=N)
    full = network.expand()
    assert full.table is network.table
    assert full.positions is network.positions
    assert full.head is network.head


@each_kind
def test_the_shape_of_an_expanded_network_is_its_own(attention, feedforward):
    full = classifier(attention=attention, feedforward=feedforward).expand()
    rebuilt = TokenClassifier(full.shape)
    rebuilt.load_state_dict(full.state_dict())
    assert torch.equal(rebuilt(IDS), full(IDS))


@each_positions
def test_assembling_from_parts_gives_the_same_network(positions):
    whole = classifier(positions=positions, depth=2, causal=True)
    parts = (whole.table, whole.positions, whole.blocks, whole.head)
    again = TokenClassifier.assemble(whole.shape, *parts)
    assert torch.equal(again(IDS), whole(IDS))
    assert again.state_dict().keys() == whole.state_dict().keys()


@each_kind
def test_gradients_reach_the_table_the_positions_and_the_head(attention, feedforward):
    network = classifier(attention=attention, feedforward=feedforward, depth=2, positions=N)
    network(IDS).square().sum().backward()
    for p in (network.table, network.positions, network.head.weight, network.head.bias):
        assert p.grad.abs().sum() > 0


@each_kind
def test_training_on_padded_sentences_keeps_every_gradient_finite(attention, feedforward):
    network = classifier(attention=attention, feedforward=feedforward, depth=2, positions=N)
    real = torch.arange(N) < torch.tensor([5, 0, 3])[:, None]
    network(IDS, real)[real].square().sum().backward()
    for name, p in network.named_parameters():
        assert p.grad is None or p.grad.isfinite().all(), name
