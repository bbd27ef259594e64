"""Evaluator against the network's own forward pass, one sentence at a time."""

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dense_truth as truth
from rankone.kernels import ragged
from rankone.nn import Evaluator, Network, TokenClassifier, evaluate
from rankone.spans import spans

VOCABULARY, D, LONGEST = 9, 4, 12
LENGTHS = [3, 1, 12, 5, 1, 3, 7, 12, 2]
KINDS = list(product(["rank1", "softmax", "hardmax"], ["dense", "rank1"]))

each_kind = pytest.mark.parametrize(("attention", "feedforward"), KINDS)
each_depth = pytest.mark.parametrize("depth", [1, 2])
each_positions = pytest.mark.parametrize("positions", [0, LONGEST])
whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


def classifier(seed=0, dtype=torch.float64, **shape):
    sizes = {"vocabulary": VOCABULARY, "labels": 2, "dim": D, "hidden": 6}
    shape = Network(**sizes, heads=2, head_size=3, **shape)
    return truth.randomize(TokenClassifier(shape, dtype=dtype), seed)


def sentences(lengths, seed=0):
    offsets = np.cumsum([0, *lengths])
    return np.random.default_rng(seed).integers(0, VOCABULARY, offsets[-1]), offsets


def evaluated(network, ids, offsets):
    return Evaluator(network).run(ids, offsets, lambda z: z.T)


def alone(network, ids, offsets):
    rows = [network.features(torch.from_numpy(ids[None, a:b]))[0] for a, b in pairwise(offsets)]
    return torch.cat(rows)


@whether_causal
@each_positions
@each_depth
@each_kind
def test_equals_the_forward_pass(attention, feedforward, depth, positions, causal):
    network = classifier(
        attention=attention,
        feedforward=feedforward,
        depth=depth,
        positions=positions,
        causal=causal,
    )
    ids, offsets = sentences(LENGTHS)
    truth.assert_close(evaluated(network, ids, offsets), alone(network, ids, offsets))


@given(
    kind=st.sampled_from(KINDS),
    lengths=st.lists(st.integers(1, LONGEST), min_size=1, max_size=8),
    seed=st.integers(0, 1000),
    causal=st.booleans(),
)
def test_equals_the_forward_pass_for_any_lengths(kind, lengths, seed, causal):
    attention, feedforward = kind
    network = classifier(
        seed, attention=attention, feedforward=feedforward, causal=causal, positions=LONGEST
    )
    ids, offsets = sentences(lengths, seed)
    truth.assert_close(evaluated(network, ids, offsets), alone(network, ids, offsets))


@pytest.mark.parametrize("chunk", [1, 13, 45])
@each_kind
def test_chunks_of_any_size_change_nothing(monkeypatch, attention, feedforward, chunk):
    network = classifier(attention=attention, feedforward=feedforward, positions=LONGEST)
    ids, offsets = sentences(LENGTHS)
    monkeypatch.setattr(evaluate, "spans", partial(spans, size=chunk))
    truth.assert_close(evaluated(network, ids, offsets), alone(network, ids, offsets))


@pytest.mark.parametrize("chunk", [1, 4, 13, 20])
def test_a_chunk_holds_whole_sentences_and_no_more_tokens_than_it_may(monkeypatch, chunk):
    ids, offsets = sentences(LENGTHS)
    monkeypatch.setattr(evaluate, "spans", partial(spans, size=chunk))
    lengths = [np.diff(part) for part, _ in Evaluator(classifier()).embedded(ids, offsets)]
    assert np.concatenate(lengths).tolist() == LENGTHS
    assert all(part.sum() <= chunk or len(part) == 1 for part in lengths)


@whether_causal
@each_kind
def test_small_tables_of_scores_change_nothing(monkeypatch, attention, feedforward, causal):
    network = classifier(attention=attention, feedforward=feedforward, causal=causal)
    ids, offsets = sentences(LENGTHS)
    monkeypatch.setattr(evaluate, "CELLS", 20)
    monkeypatch.setattr(ragged, "CELLS", 20)
    truth.assert_close(evaluated(network, ids, offsets), alone(network, ids, offsets))


@whether_causal
@pytest.mark.parametrize("feedforward", ["dense", "rank1"])
def test_a_query_that_is_constant_on_the_vocabulary(feedforward, causal):
    network = classifier(feedforward=feedforward, causal=causal)
    with torch.no_grad():
        network.table[:, 0] = 1.5
        network.blocks[0].attention.v2.copy_(torch.tensor([2.0, 0.0, 0.0, 0.0]))
    ids, offsets = sentences(LENGTHS)
    truth.assert_close(evaluated(network, ids, offsets), alone(network, ids, offsets))


@each_kind
def test_evaluating_leaves_the_network_as_it_was(attention, feedforward):
    network = classifier(attention=attention, feedforward=feedforward, positions=LONGEST)
    before = {name: p.clone() for name, p in network.state_dict().items()}
    evaluated(network, *sentences(LENGTHS))
    for name, p in network.state_dict().items():
        assert torch.equal(p, before[name]), name


def test_reading_is_done_on_columns_and_put_together_in_order(monkeypatch):
    network = classifier(depth=1)
    monkeypatch.setattr(evaluate, "spans", partial(spans, size=13))
    direction = np.array([1.0, -2.0, 0.5, 3.0])
    ids, offsets = sentences(LENGTHS)
    found = Evaluator(network).run(ids, offsets, lambda z: direction @ z)
    truth.assert_close(found, alone(network, ids, offsets) @ torch.from_numpy(direction))


@each_kind
def test_a_network_in_float32_is_evaluated_too(attention, feedforward):
    network = classifier(dtype=torch.float32, attention=attention, feedforward=feedforward)
    ids, offsets = sentences(LENGTHS)
    expected = alone(network, ids, offsets)
    truth.assert_close(evaluated(network, ids, offsets), expected, torch.float32)


def test_distant_scores_in_float32_do_not_vanish():
    network = classifier(dtype=torch.float32)
    with torch.no_grad():
        network.table.copy_(
            torch.linspace(0, 300, VOCABULARY)[:, None] * torch.tensor([0, 1, 0, 0])
        )
        network.table[:, 0] = 1.0
        network.blocks[0].attention.v1.copy_(torch.tensor([0.0, 1.0, 0.0, 0.0]))
        network.blocks[0].attention.v2.copy_(torch.tensor([1.0, 0.0, 0.0, 0.0]))
    ids, offsets = np.array([0, 1, 8, 7]), np.array([0, 2, 4])
    expected = alone(network, ids, offsets)
    truth.assert_close(evaluated(network, ids, offsets), expected, torch.float32)
