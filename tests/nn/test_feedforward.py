"""The feed-forward layers against eq. 3."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.func import functional_call

import dense_truth as truth
from rankone.nn import FeedForward, Rank1FeedForward

D = 4
FACTORS = ("gain", "direction", "bias1", "out_direction", "out_gain", "bias2")

each_kind = pytest.mark.parametrize("kind", [FeedForward, Rank1FeedForward])
each_width = pytest.mark.parametrize("hidden", [0, 1, 7])
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def rows(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


@each_dtype
@each_width
@each_kind
def test_a_batch_equals_the_equation(kind, hidden, dtype):
    layer, h = truth.randomize(kind(D, hidden, dtype=dtype), 1), rows(3, 5, D, dtype=dtype)
    out = layer(h)
    assert out.dtype == dtype
    truth.assert_close(out, truth.by_sentence(truth.feedforward_of, layer, h))


@each_kind
def test_tokens_do_not_meet(kind):
    layer, h = truth.randomize(kind(D, 7, dtype=torch.float64), 2), rows(2, 3, 5, D)
    out = layer(h)
    for at in np.ndindex(2, 3, 5):
        truth.assert_close(out[at], layer(h[at]))


@each_dtype
@each_width
def test_expanding_rank_1_changes_nothing(hidden, dtype):
    layer = truth.randomize(Rank1FeedForward(D, hidden, dtype=dtype), 3)
    full, h = layer.expand(), rows(3, 5, D, dtype=dtype)
    assert full.weight1.shape == (hidden, D)
    truth.assert_close(full(h), layer(h))


def test_expanded_matrices_have_rank_1():
    full = truth.randomize(Rank1FeedForward(D, 7, dtype=torch.float64), 4).expand()
    assert torch.linalg.matrix_rank(full.weight1) == 1
    assert torch.linalg.matrix_rank(full.weight2) == 1


def test_assembling_keeps_the_vectors_in_their_places():
    sizes = {"gain": 7, "bias1": 7, "out_gain": 7}
    given_parts = {name: rows(sizes.get(name, D), seed=i) for i, name in enumerate(FACTORS)}
    layer = Rank1FeedForward.assemble(**given_parts)
    assert set(dict(layer.named_parameters())) == set(FACTORS)
    for name, part in given_parts.items():
        assert torch.equal(getattr(layer, name), part), name


@given(seed=st.integers(0, 1000), hidden=st.integers(0, 9))
def test_the_piecewise_function_times_the_out_direction_is_what_is_added(seed, hidden):
    layer = truth.randomize(Rank1FeedForward(D, hidden, dtype=torch.float64), seed)
    h = rows(6, D, seed=seed)
    f = layer.piecewise()((h @ layer.direction).detach().numpy())
    added = torch.from_numpy(f)[:, None] * layer.out_direction + layer.bias2
    truth.assert_close(h + added, layer(h))


@each_kind
def test_gradients_are_those_of_finite_differences(kind):
    layer = truth.randomize(kind(D, 5, dtype=torch.float64), 5)
    names = [name for name, _ in layer.named_parameters()]

    def out(h, *weights):
        return functional_call(layer, dict(zip(names, weights, strict=True)), (h,))

    assert gradcheck(out, (rows(2, 3, D).requires_grad_(), *layer.parameters()))


@each_kind
def test_gradients_reach_every_parameter(kind):
    layer = truth.randomize(kind(D, 7, dtype=torch.float64), 6)
    layer(rows(3, 5, D)).square().sum().backward()
    for name, p in layer.named_parameters():
        assert p.grad is not None, name
        assert p.grad.abs().sum() > 0, name
