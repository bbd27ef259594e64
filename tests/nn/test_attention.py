"""Self-attention against eq. 2, 5 and 20."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.func import functional_call

import dense_truth as truth
from rankone.nn import Rank1Attention, SelfAttention, causal_mask, padding_mask
from rankone.nn.attention import hardmax

BATCH, N, D = 3, 5, 4
MASKS = {
    "none": None,
    "padding": padding_mask(torch.tensor([5, 1, 3]), N),
    "causal": causal_mask(N),
    "per sentence": truth.random_mask(BATCH, N, N, seed=1),
    "for all sentences": truth.random_mask(N, N, seed=2),
    "nothing seen": torch.zeros(BATCH, N, N, dtype=torch.bool),
}
LAYERS = {
    "rank 1": lambda dtype: Rank1Attention(D, dtype=dtype),
    "softmax, 1 head": lambda dtype: SelfAttention(D, dtype=dtype),
    "softmax, 2 heads of 3": lambda dtype: SelfAttention(D, heads=2, head_size=3, dtype=dtype),
    "hardmax, 1 head": lambda dtype: SelfAttention(D, kind="hardmax", dtype=dtype),
    "hardmax, 3 heads of 2": lambda dtype: SelfAttention(
        D, heads=3, head_size=2, kind="hardmax", dtype=dtype
    ),
}
DTYPES = [torch.float64, torch.float32]

each_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
each_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS.keys())
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
smooth_layer = pytest.mark.parametrize(
    "make", [LAYERS["rank 1"], LAYERS["softmax, 2 heads of 3"]], ids=["rank 1", "softmax"]
)


def tokens(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


@each_dtype
@each_mask
@each_layer
def test_a_batch_equals_the_equation(make, mask, dtype):
    layer, z = truth.randomize(make(dtype), 3), tokens(BATCH, N, D, dtype=dtype)
    out = layer(z, mask)
    assert out.dtype == dtype
    truth.assert_close(out, truth.by_sentence(truth.attention_of, layer, z, mask))


@each_layer
@pytest.mark.parametrize("batch", [(), (1,), (2, 3)], ids=str)
def test_any_number_of_batch_axes(make, batch):
    layer, z = truth.randomize(make(torch.float64), 4), tokens(*batch, N, D)
    mask = truth.random_mask(*batch, N, N, seed=5)
    out = layer(z, mask)
    truth.assert_close(out, truth.by_sentence(truth.attention_of, layer, z, mask))


@each_layer
@pytest.mark.parametrize("causal", [False, True])
def test_padding_of_one_sequence_may_have_one_axis(make, causal):
    layer, z = truth.randomize(make(torch.float64), 5), tokens(N, D)
    there = torch.tensor([True, False, True, True, False])
    found, expected = (layer(z, mask, causal=causal) for mask in (there, there.expand(N, N)))
    truth.assert_close(found, expected)


@each_layer
def test_a_single_token_attends_to_itself(make):
    layer, z = truth.randomize(make(torch.float64), 6), tokens(BATCH, 1, D)
    truth.assert_close(layer(z), truth.by_sentence(truth.attention_of, layer, z))


@each_layer
def test_a_query_that_sees_nothing_stays_as_it_is(make):
    layer, z = truth.randomize(make(torch.float64), 7), tokens(BATCH, N, D)
    assert torch.equal(layer(z, MASKS["nothing seen"]), z)


@each_layer
def test_masked_tokens_do_not_matter(make):
    layer, z = truth.randomize(make(torch.float64), 8), tokens(BATCH, N, D)
    changed = z.clone()
    changed[:, 3:] = 1e3
    mask = padding_mask(torch.tensor([3, 3, 3]), N)
    truth.assert_close(layer(changed, mask)[:, :3], layer(z[:, :3]))


@each_layer
@pytest.mark.parametrize("odd", [torch.nan, torch.inf, -torch.inf], ids=str)
def test_masked_tokens_may_be_anything(make, odd):
    layer, z = truth.randomize(make(torch.float64), 8), tokens(BATCH, N, D)
    changed = z.clone()
    changed[:, 4:] = odd
    for seen in ({"mask": padding_mask(torch.tensor([4, 2, 0]), N)}, {"causal": True}):
        assert torch.equal(layer(changed, **seen)[:, :4], layer(z, **seen)[:, :4])


@pytest.mark.parametrize("causal", [False, True])
@each_mask
@pytest.mark.parametrize("kind", ["softmax", "hardmax"])
def test_few_scores_are_held_at_once_unless_a_gradient_needs_them(kind, mask, causal, monkeypatch):
    asked = []

    def attend(self, query, *given, attend=SelfAttention._attend):
        asked.append(query.shape[-2])
        return attend(self, query, *given)

    monkeypatch.setattr(SelfAttention, "_attend", attend)
    layer = truth.randomize(SelfAttention(D, heads=2, kind=kind, dtype=torch.float64), 9)
    z = tokens(BATCH, N, D)
    whole = layer(z, mask, causal=causal)
    for scores, rows in ((N * N, [5]), (N * N - 1, [4, 1]), (2 * N, [2, 2, 1]), (0, [1] * N)):
        monkeypatch.setattr("rankone.nn.attention.SCORES", scores)
        asked.clear()
        with torch.no_grad():
            truth.assert_close(layer(z, mask, causal=causal), whole)
        assert asked == rows
        layer(z, mask, causal=causal)
        assert asked[len(rows) :] == [N]


def test_hardmax_shares_equally_among_the_largest():
    scores = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [-1.0, 0.0, -2.0]])
    third = 1 / 3
    assert hardmax(scores).tolist() == [
        [0.0, 0.5, 0.5],
        pytest.approx([third, third, third]),
        [0.0, 1.0, 0.0],
    ]


def integers(draw, *shape):
    """Small integers: their scores are exact, so ties are ties in any order of summation."""
    count = torch.Size(shape).numel()
    entries = draw(st.lists(st.integers(-2, 2), min_size=count, max_size=count))
    return torch.tensor(entries, dtype=torch.float64).view(shape)


@given(data=st.data())
def test_hardmax_attention_with_ties_equals_the_equation(data):
    draw = data.draw
    n, d, heads = draw(st.integers(1, 4)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    layer = SelfAttention(d, heads=heads, head_size=2, kind="hardmax", dtype=torch.float64)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(integers(draw, *p.shape))
    z, mask = integers(draw, 2, n, d), integers(draw, 2, n, n) > 0
    truth.assert_close(layer(z, mask), truth.by_sentence(truth.attention_of, layer, z, mask))


@each_layer
@given(order=st.permutations(range(N)), seed=st.integers(0, 100))
def test_permuting_the_tokens_permutes_the_result(make, order, seed):
    layer, z = truth.randomize(make(torch.float64), seed), tokens(N, D, seed=seed)
    truth.assert_close(layer(z[order]), layer(z)[order])


@each_layer
@given(order=st.permutations(range(N)), seed=st.integers(0, 100))
def test_permuting_tokens_and_mask_permutes_the_result(make, order, seed):
    layer, z = truth.randomize(make(torch.float64), seed), tokens(N, D, seed=seed)
    mask = truth.random_mask(N, N, seed=seed)
    truth.assert_close(layer(z[order], mask[order][:, order]), layer(z, mask)[order])


@each_dtype
@each_mask
@pytest.mark.parametrize("head_size", [1, 2, 5])
def test_expanding_rank_1_changes_nothing(head_size, mask, dtype):
    layer = truth.randomize(Rank1Attention(D, dtype=dtype), 9)
    z = tokens(BATCH, N, D, dtype=dtype)
    full = layer.expand(head_size)
    assert full.key.shape == (1, head_size, D)
    truth.assert_close(full(z, mask), layer(z, mask))


def test_expanded_matrices_have_rank_1():
    full = truth.randomize(Rank1Attention(D, dtype=torch.float64), 10).expand(3)
    assert [int(torch.linalg.matrix_rank(p[0])) for p in full.parameters()] == [1, 1, 1, 1]


def test_an_expanded_layer_is_a_copy():
    layer = truth.randomize(Rank1Attention(D), 11)
    full = layer.expand()
    before = full.key.clone()
    with torch.no_grad():
        layer.v1.zero_()
    assert torch.equal(full.key, before)


def test_assembling_keeps_the_vectors_in_their_places():
    v1, v2, output = tokens(3, D)
    layer = Rank1Attention.assemble(v1, v2, output)
    assert torch.equal(layer.v1, v1)
    assert torch.equal(layer.v2, v2)
    assert torch.equal(layer.output, output)
    assert {name for name, _ in layer.named_parameters()} == {"v1", "v2", "output"}


@smooth_layer
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_those_of_finite_differences(make, masked):
    layer = truth.randomize(make(torch.float64), 12)
    mask = torch.tensor([[1, 0, 0], [0, 0, 0], [1, 1, 1]], dtype=torch.bool) if masked else None
    names = [name for name, _ in layer.named_parameters()]

    def out(z, *weights):
        return functional_call(layer, dict(zip(names, weights, strict=True)), (z, mask))

    assert gradcheck(out, (tokens(2, 3, D).requires_grad_(), *layer.parameters()))


@each_layer
def test_gradients_reach_every_parameter(make):
    layer = truth.randomize(make(torch.float64), 13)
    layer(tokens(BATCH, N, D)).square().sum().backward()
    flat = {"key", "query"} if getattr(layer, "kind", None) == "hardmax" else set()
    for name, p in layer.named_parameters():
        reached = p.grad is not None and bool(p.grad.abs().sum() > 0)
        assert reached == (name not in flat), name


@pytest.mark.parametrize("huge", [-1e6, 1e6])
@smooth_layer
def test_gradients_are_finite_where_a_masked_token_is_huge(make, huge):
    layer, z = truth.randomize(make(torch.float64), 14), tokens(1, 3, D)
    z[0, 2] = huge
    mask = padding_mask(torch.tensor([2]), 3)
    layer(z.requires_grad_(), mask)[:, :2].sum().backward()
    for gradient in (z.grad, *(p.grad for p in layer.parameters())):
        assert gradient.isfinite().all()
