"""Evaluator against the network's own forward pass, one sentence at a time.

tests/test_seven_ways.py compares it with the equations, for every kind of network.
"""

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dense_truth as truth
from rankone.kernels import ragged
from rankone.nn import Architecture, Evaluator, Model, TokenClassifier, evaluate, load, rank1_heads
from rankone.nn.kinds import ATTENTIONS, FEEDFORWARDS
from rankone.spans import spans

VOCABULARY, D, LONGEST = 9, 4, 12
LENGTHS = [3, 1, 12, 5, 1, 3, 7, 12, 2]
KINDS = list(product(ATTENTIONS, FEEDFORWARDS))

each_kind = pytest.mark.parametrize(("attention", "feedforward"), KINDS)
each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


def classifier(seed=0, dtype=torch.float64, **shape):
    sizes = {"vocabulary": VOCABULARY, "labels": 2, "dim": D, "hidden": 6}
    taken = ATTENTIONS[shape.get("attention", "rank1")].takes
    heads = {name: size for name, size in {"heads": 2, "head_size": 3}.items() if name in taken}
    shape = truth.sized(Architecture(**sizes, **heads, **shape))
    return truth.randomize(TokenClassifier(shape, dtype=dtype), seed)


def sentences(lengths, seed=0):
    offsets = np.cumsum([0, *lengths])
    return np.random.default_rng(seed).integers(0, VOCABULARY, offsets[-1]), offsets


def evaluated(network, ids, offsets):
    return Evaluator(network).run(ids, offsets, lambda z: z.T)


def alone(network, ids, offsets):
    rows = [network.features(torch.from_numpy(ids[None, a:b]))[0] for a, b in pairwise(offsets)]
    return torch.cat(rows)


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


@pytest.mark.parametrize("chunk", [1, 13])
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
    lengths = [np.diff(chunk.offsets) for chunk in Evaluator(classifier()).embedded(ids, offsets)]
    assert np.concatenate(lengths).tolist() == LENGTHS
    assert all(part.sum() <= chunk or len(part) == 1 for part in lengths)


@whether_causal
@each_kind
def test_small_tables_of_scores_change_nothing(monkeypatch, attention, feedforward, causal):
    network = classifier(attention=attention, feedforward=feedforward, causal=causal)
    ids, offsets = sentences(LENGTHS)
    monkeypatch.setattr(evaluate, "NUMBERS_HELD", 20)
    monkeypatch.setattr(ragged, "SCORES", 20)
    truth.assert_close(evaluated(network, ids, offsets), alone(network, ids, offsets))


def test_tables_are_filled_and_not_overfilled(monkeypatch):
    """Scores of sentences of one length, and hidden units: as many at a time as there is room."""
    network = classifier(attention="softmax", feedforward="dense")  # 2 heads, 6 hidden units
    block, asked, fed = network.blocks[0], [], []
    block.attention.register_forward_pre_hook(lambda _, args: asked.append(tuple(args[0].shape)))
    block.feedforward.register_forward_pre_hook(lambda _, args: fed.append(len(args[0])))
    monkeypatch.setattr(evaluate, "NUMBERS_HELD", 40)
    evaluated(network, *sentences([3, 3, 3, 3, 5, 1, 1]))
    assert sorted(asked) == [(1, 5, D), (2, 1, D), (2, 3, D), (2, 3, D)]  # 2 heads, 2 times 3 x 3
    assert fed == [6, 6, 6, 1]  # 6 rows of 6 units
    fed.clear()
    monkeypatch.setattr(evaluate, "NUMBERS_HELD", 5)
    evaluated(network, *sentences([2, 1]))
    assert fed == [1, 1, 1]


def test_no_sentences_have_no_features():
    assert evaluated(classifier(), *sentences([])).shape == (0, D)


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


@torch.no_grad()
def swallowing(network):
    """Coordinate 0 is 1e8 + 3 - 1e8, which float32 makes 0; no layer reads it."""
    network.table[:, 0], network.positions[:, 0] = 1e8, 3.0
    block = network.blocks[0]
    for name, p in (*block.attention.named_parameters(), *block.feedforward.named_parameters()):
        if name in ("v1", "v2", "key", "query", "value", "weight1", "direction"):
            p[..., 0] = 0.0
    if block.feedforward.kind == "gated":
        subtracting(block.feedforward)
    else:
        block.feedforward.bias2[0] = -1e8
    return network


def subtracting(layer):
    """The first unit, without gates, takes 1e8 from coordinate 0, and no other one writes there."""
    layer.gates[:, 0], layer.codes[:, 0], layer.codes[1, 0] = 0.0, 0.0, 1.0
    layer.writes.copy_(torch.arange(len(layer.writes)))
    layer.reads.copy_(1 + torch.arange(len(layer.reads)))
    layer.plus[layer.plus == 1], layer.minus[layer.minus == 1] = 0, 0
    layer.word[0], layer.position[0], layer.plus[0], layer.minus[0] = 0, 0, 1, 0
    layer.slopes[0], layer.bias1[0], layer.amplitude[0] = 0.0, 1.0, -1e8
    layer.codes[1, 1:] = 0.0


@each_kind
def test_a_network_in_float32_runs_in_float32(attention, feedforward):
    """As its own forward pass does; float64 would find a 3 that float32 has lost."""
    kind = {"attention": attention, "feedforward": feedforward, "positions": LONGEST}
    network = swallowing(classifier(dtype=torch.float32, **kind))
    ids, offsets = sentences(LENGTHS)
    wide = Evaluator(network, torch.float64).run(ids, offsets, lambda z: z.T)
    found, expected = evaluated(network, ids, offsets), alone(network, ids, offsets)
    assert (wide.dtype, found.dtype) == (np.float64, np.float32)
    truth.assert_close(found, expected)
    assert np.abs(wide - found)[:, 0].min() > 0.5
    truth.assert_close(wide, alone(network.double(), ids, offsets), torch.float32)


@each_kind
def test_half_types_run_in_float32(attention, feedforward):
    """numpy has no bfloat16, and the kernels take no half types."""
    network = classifier(dtype=torch.bfloat16, attention=attention, feedforward=feedforward)
    ids, offsets = sentences(LENGTHS)
    found = evaluated(network, ids, offsets)
    assert found.dtype == np.float32
    truth.assert_close(found, alone(network.float(), ids, offsets))


@each_dtype
@each_kind
def test_a_saved_network_comes_back_in_its_type(attention, feedforward, dtype, tmp_path):
    network = classifier(dtype=dtype, attention=attention, feedforward=feedforward)
    model = Model(network, tuple("abcdefgh"), ("X", "Y"))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.network.dtype == model.network.dtype == dtype
    ids, offsets = sentences(LENGTHS)
    assert (evaluated(again.network, ids, offsets) == evaluated(network, ids, offsets)).all()
    assert (again.label_ids(ids, offsets) == model.label_ids(ids, offsets)).all()


@each_kind
def test_a_network_with_one_part_in_float32_is_evaluated_in_float64(attention, feedforward):
    network = classifier(attention=attention, feedforward=feedforward)
    network.table = torch.nn.Parameter(network.table.detach().float())
    ids, offsets = sentences(LENGTHS)
    found = evaluated(network, ids, offsets)
    truth.assert_close(found, alone(network.double(), ids, offsets))


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


def expanded(heads, head_size, seed=0):
    """A softmax network whose matrices have rank 1, with vectors of its own for each of them."""
    network = classifier(seed, attention="softmax", positions=LONGEST)
    rng = torch.Generator().manual_seed(seed)
    layer = network.blocks[0].attention
    with torch.no_grad():
        for name in ("key", "query", "value"):
            u = torch.randn(heads, head_size, 1, generator=rng, dtype=torch.float64)
            v = torch.randn(heads, 1, D, generator=rng, dtype=torch.float64)
            setattr(layer, name, torch.nn.Parameter(u * v))
        size = (heads, D, head_size)
        output = torch.randn(size, generator=rng, dtype=torch.float64)
        layer.output = torch.nn.Parameter(output)
    return network


@whether_causal
@pytest.mark.parametrize(("heads", "head_size"), [(1, 1), (1, 5), (3, 2)])
def test_matrices_of_rank_1_are_recognised(heads, head_size, causal):
    network = expanded(heads, head_size)
    object.__setattr__(network.shape, "causal", causal)
    assert len(evaluate.rank1_heads(network.blocks[0].attention)) == heads
    ids, offsets = sentences(LENGTHS)
    truth.assert_close(evaluated(network, ids, offsets), alone(network, ids, offsets))


@pytest.mark.parametrize("name", ["key", "query", "value"])
@pytest.mark.parametrize("head", [0, 2])
def test_a_matrix_that_has_not_rank_1_is_not_taken_for_one(name, head):
    network = expanded(3, 2)
    with torch.no_grad():
        getattr(network.blocks[0].attention, name)[head, 1, 3] *= 1 + 1e-14
    assert evaluate.rank1_heads(network.blocks[0].attention) is None
    ids, offsets = sentences(LENGTHS)
    truth.assert_close(evaluated(network, ids, offsets), alone(network, ids, offsets))


def test_hardmax_is_never_taken_for_softmax():
    network = expanded(1, 2)
    network.blocks[0].attention.kind = "hardmax"
    assert evaluate.rank1_heads(network.blocks[0].attention) is None


def test_factors_of_a_matrix():
    rng = np.random.default_rng(0)
    for u, a in ((rng.normal(size=3), rng.normal(size=5)), (np.eye(3)[1], np.eye(5)[2])):
        found = rank1_heads.factors(np.outer(u, a))
        assert found is not None
        np.testing.assert_allclose(np.outer(*found), np.outer(u, a), rtol=1e-15)
    u, a = rank1_heads.factors(np.zeros((2, 3)))
    assert not np.outer(u, a).any()
    assert rank1_heads.factors(np.eye(2)) is None


def test_long_sentences_of_a_causal_softmax_take_their_scores_in_pieces(monkeypatch):
    """Rows of the mask are made with the scores; some queries alone give the same rows."""
    network = classifier(attention="softmax", causal=True)
    layer = network.blocks[0].attention
    z = torch.randn(2, 11, D, dtype=torch.float64)
    padding = torch.arange(11) < torch.tensor([[11], [7]])
    for mask in (None, padding[:, None]):
        for causal in (False, True):
            whole = layer(z, mask, causal=causal)
            monkeypatch.setattr("rankone.nn.attention.SCORES", 25)
            with torch.no_grad():
                truth.assert_close(layer(z, mask, causal=causal), whole)
                asking = torch.tensor([[4, 0, 4, 6], [6, 1, 2, 3]])
                found = layer.at(z, asking, mask, causal=causal)
            monkeypatch.undo()
            truth.assert_close(found, whole[torch.arange(2)[:, None], asking])
