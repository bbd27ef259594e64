"""Sentences laid end to end: padding them and back, and networks that need no padding."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

import dense_truth as truth
from rankone.kernels import batched, ragged
from rankone.nn import Architecture, TokenClassifier
from rankone.nn.ragged import Ragged

VOCABULARY, LABELS, D, LONGEST = 7, 3, 4, 6
ATTENTIONS, FEEDFORWARDS = ["rank1", "softmax", "hardmax"], ["dense", "rank1"]

each_kind = pytest.mark.parametrize(
    ("attention", "feedforward"), list(product(ATTENTIONS, FEEDFORWARDS))
)
whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)

lengths_of_any_kind = st.lists(st.integers(0, LONGEST), max_size=5)


def laid(lengths):
    return Ragged(np.cumsum([0, *lengths]))


def drawn_rows(count, *shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, *shape, generator=generator, dtype=torch.float64)


# Padding.


@given(lengths=lengths_of_any_kind, seed=st.integers(0, 100))
def test_padding_puts_zeros_behind_the_end_of_each_sentence(lengths, seed):
    sentences, rows = laid(lengths), drawn_rows(sum(lengths), D, seed=seed)
    padded = sentences.pad(rows)
    assert padded.shape == (len(lengths), max(lengths, default=0), D)
    if lengths:
        assert torch.equal(padded, pad_sequence(list(rows.split(lengths)), batch_first=True))


@given(lengths=lengths_of_any_kind)
def test_the_mask_tells_the_real_tokens(lengths):
    mask = laid(lengths).mask
    assert mask.dtype == torch.bool
    assert mask.shape == (len(lengths), max(lengths, default=0))
    for line, length in zip(mask.tolist(), lengths, strict=True):
        assert line == [True] * length + [False] * (len(line) - length)


@given(lengths=lengths_of_any_kind, seed=st.integers(0, 100))
def test_the_mask_takes_the_rows_out_of_the_padding_again(lengths, seed):
    sentences, rows = laid(lengths), drawn_rows(sum(lengths), D, seed=seed)
    assert torch.equal(sentences.pad(rows)[sentences.mask], rows)


@given(lengths=lengths_of_any_kind)
def test_positions_count_from_the_start_of_each_sentence(lengths):
    sentences = laid(lengths)
    assert sentences.positions.dtype == torch.int64
    assert sentences.positions.tolist() == [k for length in lengths for k in range(length)]
    assert sentences.lengths.tolist() == lengths


@each_dtype
def test_padding_keeps_the_type_and_gives_each_row_its_own_gradient(dtype):
    sentences, rows = laid([2, 0, 3, 1]), drawn_rows(6, D).to(dtype).requires_grad_()
    padded = sentences.pad(rows)
    assert padded.dtype == dtype
    grad = drawn_rows(4 * 3, D, seed=1).to(dtype).reshape(padded.shape)
    (found,) = torch.autograd.grad(padded, rows, grad)
    assert torch.equal(found, grad[sentences.mask])


def test_rows_that_lie_anyhow_are_padded_alike():
    sentences, rows = laid([2, 3, 1]), drawn_rows(D, 6).T
    assert not rows.is_contiguous()
    assert torch.equal(sentences.pad(rows), sentences.pad(rows.contiguous()))


# Networks.


def classifier(dtype=torch.float64, seed=0, **shape):
    sizes = {"vocabulary": VOCABULARY, "labels": LABELS, "dim": D, "hidden": 6}
    shape = Architecture(**sizes, heads=2, head_size=2, **shape)
    return truth.randomize(TokenClassifier(shape, dtype=dtype), seed)


def ragged_logits(network, ids, sentences):
    return network.ragged(functional.embedding(ids, network.table), sentences)


def padded_logits(network, ids, sentences):
    """By the forward pass of the network; the padding holds a word that is not its own."""
    padded = torch.full(sentences.mask.shape, VOCABULARY - 1).masked_scatter(sentences.mask, ids)
    return network(padded, sentences.mask)[sentences.mask]


def with_gradients(of, network, ids, sentences):
    """Logits, and the gradients of every parameter for some loss that depends on all of them."""
    logits = of(network, ids, sentences)
    weights = drawn_rows(len(ids), LABELS, seed=2).to(logits.dtype)
    loss = (weights * logits).sum() + logits.square().sum()
    names, parameters = zip(*network.named_parameters(), strict=True)
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return {"logits": logits, **dict(zip(names, found, strict=True))}


def assert_same(found, wanted):
    """Equal up to rounding, relative to the largest number of each tensor."""
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        if tensor is None:  # hardmax has no gradient for keys and queries
            assert found[name] is None, name
            continue
        size = max(1.0, tensor.detach().abs().max().item())
        truth.assert_close(found[name] / size, tensor / size)


@st.composite
def networks(draw, attentions=ATTENTIONS):
    """Of every kind and depth, with positions (exactly as many as needed, or more) or none."""
    return classifier(
        draw(st.sampled_from([torch.float64, torch.float32])),
        seed=draw(st.integers(0, 1000)),
        attention=draw(st.sampled_from(attentions)),
        feedforward=draw(st.sampled_from(FEEDFORWARDS)),
        depth=draw(st.integers(1, 3)),
        positions=draw(st.sampled_from([0, LONGEST, LONGEST + 2])),
        causal=draw(st.booleans()),
    )


@st.composite
def texts(draw):
    """Word ids of sentences, none empty, and where each begins."""
    lengths = draw(st.lists(st.integers(1, LONGEST), min_size=1, max_size=5))
    words = st.lists(st.integers(0, VOCABULARY - 1), min_size=sum(lengths), max_size=sum(lengths))
    return torch.tensor(draw(words)), laid(lengths)


@given(network=networks(["rank1", "softmax"]), text=texts())
def test_logits_and_all_gradients_are_those_of_the_padded_network(network, text):
    assert_same(
        with_gradients(ragged_logits, network, *text), with_gradients(padded_logits, network, *text)
    )


@given(network=networks(), text=texts())
def test_logits_equal_the_equations_for_each_sentence(network, text):
    ids, sentences = text
    found = ragged_logits(network, ids, sentences)
    assert found.dtype == network.table.dtype
    for a, b in pairwise(sentences.offsets):
        past = np.tri(b - a, dtype=bool) if network.shape.causal else None
        wanted = truth.logits_of(network, ids[a:b].tolist(), past).T
        size = max(1.0, np.abs(wanted).max())
        truth.assert_close(found[a:b] / size, wanted / size)


@whether_causal
@pytest.mark.parametrize("positions", [0, LONGEST])
@each_kind
def test_the_gradients_of_the_rows_are_those_of_the_table(
    attention, feedforward, positions, causal
):
    network = classifier(
        attention=attention, feedforward=feedforward, positions=positions, causal=causal, depth=2
    )
    ids, sentences = torch.tensor([3, 1, 3, 0, 2, 2, 6, 3]), laid([3, 1, 4])
    rows = network.table.detach()[ids].requires_grad_()
    (found,) = torch.autograd.grad(network.ragged(rows, sentences).square().sum(), rows)
    (wanted,) = torch.autograd.grad(
        padded_logits(network, ids, sentences).square().sum(), network.table
    )
    summed = torch.zeros_like(wanted).index_add_(0, ids, found)
    assert_same({"table": summed}, {"table": wanted})


@whether_causal
@each_dtype
def test_long_sentences_take_linear_time_and_give_the_same(dtype, causal, monkeypatch):
    network = classifier(dtype, depth=2, positions=LONGEST, causal=causal)
    ids, sentences = torch.tensor([3, 1, 3, 0, 2, 2, 6, 3]), laid([3, 1, 4])
    short = with_gradients(ragged_logits, network, ids, sentences)
    for room in (ragged, batched):
        monkeypatch.setattr(room, "SWITCH", 9)
    assert_same(with_gradients(ragged_logits, network, ids, sentences), short)


@whether_causal
@pytest.mark.parametrize("positions", [0, LONGEST])
@pytest.mark.parametrize("feedforward", FEEDFORWARDS)
@pytest.mark.parametrize("attention", ["rank1", "softmax"])
def test_no_sentence_at_all_gives_no_logits_and_no_gradient(
    attention, feedforward, positions, causal
):
    # The share of a process when a batch has fewer sentences than there are processes.
    network = classifier(
        attention=attention, feedforward=feedforward, positions=positions, causal=causal, depth=2
    )
    rows = torch.empty(0, D, dtype=torch.float64, requires_grad=True)
    logits = network.ragged(rows, laid([]))
    assert logits.shape == (0, LABELS)
    dense = [p for name, p in network.named_parameters() if name != "table"]
    for gradient in torch.autograd.grad(logits.sum(), [*dense, rows]):
        assert not gradient.any()


@whether_causal
@each_kind
def test_sentences_do_not_see_each_other(attention, feedforward, causal):
    network = classifier(attention=attention, feedforward=feedforward, causal=causal, depth=2)
    ids = torch.tensor([3, 1, 3, 0, 2, 2, 6, 3])
    before = ragged_logits(network, ids, laid([3, 1, 4]))
    ids[3] = 5
    after = ragged_logits(network, ids, laid([3, 1, 4]))
    same = torch.arange(8) != 3
    assert torch.equal(after[same], before[same])
    assert not torch.equal(after[3], before[3])
