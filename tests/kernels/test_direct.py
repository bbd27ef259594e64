"""rank1_attention against the same fraction evaluated to 60 digits."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import dense_truth as truth
from rankone.kernels import direct, rank1_attention

each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def column(*entries):
    return torch.tensor(entries, dtype=torch.float64)


def expected(query, key, value, mask=None):
    """Sentence by sentence of a batch (batch, q) and (batch, n)."""
    shape = (*query.shape, key.shape[-1])
    M = np.ones(shape, dtype=bool) if mask is None else mask.expand(shape).numpy()
    batch = zip(query.numpy(), key.numpy(), value.numpy(), M, strict=True)
    return np.stack([truth.boltzmann(*sentence) for sentence in batch])


def drawn_problem(data, dtype):
    """Query, key, value and mask; queries and keys may differ in number."""
    batch, q, n = (data.draw(st.integers(1, 4)) for _ in range(3))
    seed = data.draw(st.integers(0, 10_000))
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (
        torch.randn(batch, size, generator=generator, dtype=torch.float64).to(dtype)
        for size in (q, n, n)
    )
    mask = truth.random_mask(batch, q, n, seed=seed)
    return 3 * query, key, value, mask


@pytest.mark.filterwarnings("ignore:.*one token each")
@each_dtype
@given(data=st.data())
def test_equals_the_fraction(dtype, data):
    query, key, value, _ = drawn_problem(data, dtype)
    out = rank1_attention(query, key, value)
    assert out.dtype == dtype
    truth.assert_close(out, expected(query, key, value))


@each_dtype
@given(data=st.data())
def test_equals_the_fraction_over_the_keys_that_are_seen(dtype, data):
    query, key, value, mask = drawn_problem(data, dtype)
    out = rank1_attention(query, key, value, mask=mask)
    truth.assert_close(out, expected(query, key, value, mask))


@given(data=st.data())
def test_one_mask_for_all_queries_or_for_the_whole_batch(data):
    query, key, value, mask = drawn_problem(data, torch.float64)
    for shared in (mask[:, :1], mask[:1], mask[0], mask[:1, :1]):
        out = rank1_attention(query, key, value, mask=shared)
        truth.assert_close(out, expected(query, key, value, shared))


@pytest.mark.parametrize("scores", [1, 60, 100, 240])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", ["no", "for all queries", "for each query"])
def test_no_more_scores_are_held_at_once_than_allowed(scores, causal, masked, monkeypatch):
    generator = torch.Generator().manual_seed(2)
    shapes = ((2, 3, 7), (2, 3, 5), (2, 3, 5, 2))
    parts = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    rows = {"no": None, "for all queries": 1, "for each query": 7}[masked]
    mask = None if rows is None else truth.random_mask(2, 3, rows, 5, seed=3)
    whole = direct.direct_attention(*parts, causal=causal, mask=mask)
    held = []

    def attend(query, key, *rest):
        held.append(query.numel() * key.shape[-1])
        return made(query, key, *rest)

    made = direct._attend
    monkeypatch.setattr(direct, "_attend", attend)
    monkeypatch.setattr(direct, "SCORES", scores)
    truth.assert_close(direct.direct_attention(*parts, causal=causal, mask=mask), whole)
    assert max(held) == {1: 30, 60: 60, 100: 90, 240: 210}[scores]  # of 6 rows, 7 queries, 5 keys


def test_batch_axes_may_be_none_or_several():
    generator = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 2, 3, 4, generator=generator, dtype=torch.float64)
    mask = truth.random_mask(2, 3, 4, 4, seed=1)
    out = rank1_attention(query, key, value, mask=mask)
    for at in np.ndindex(2, 3):
        lone = rank1_attention(query[at], key[at], value[at], mask=mask[at])
        truth.assert_close(out[at], lone)
        truth.assert_close(lone, truth.boltzmann(query[at], key[at], value[at], mask[at].numpy()))


@pytest.mark.parametrize("query", [-1e6, -1.0, 0.0, 1.0, 1e6])
def test_a_single_key_gives_its_value(query):
    assert rank1_attention(column(query), column(7.0), column(3.0)).tolist() == [3.0]


def test_equal_keys_give_the_mean():
    out = rank1_attention(column(5.0, -5.0), column(2.0, 2.0), column(1.0, 4.0))
    assert out.tolist() == [2.5, 2.5]


def test_a_zero_query_gives_the_mean():
    assert rank1_attention(column(0.0), column(-1e3, 0.0, 1e3), column(1.0, 2.0, 6.0)) == 3.0


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    ("query", "keys_at", "apart"), [(1e6, 1.0, 1e-6), (1.1, 1e6, 1.0), (1e3, 1e3, 1e-3)]
)
def test_scores_of_a_million_keep_their_digits(query, keys_at, apart, sign):
    # Products rounded before they are subtracted would be off by 1e6 times the rounding unit.
    key = keys_at + apart * column(0.0, -0.3, 0.7, 1.1, -1.9)
    y, value = sign * column(query), column(1.0, -2.0, 0.5, 3.0, -1.0)
    found = rank1_attention(y, key, value).item()
    exact = truth.boltzmann(y, key, value).item()
    assert abs(found - exact) < 1e-14


def test_scores_far_apart_pick_the_extreme_key():
    key, value = column(-1e6, 3.0, 1e6), column(1.0, 2.0, 5.0)
    assert rank1_attention(column(1e6, -1e6), key, value).tolist() == [5.0, 1.0]


@pytest.mark.parametrize("query", [-1e6, -2.0, 0.0, 2.0, 1e6])
def test_a_query_that_sees_nothing_gets_zero(query):
    key, value = column(1e6, -1e6, 5.0), column(1.0, 2.0, 3.0)
    mask = torch.zeros(1, 3, dtype=torch.bool)
    assert rank1_attention(column(query), key, value, mask=mask).tolist() == [0.0]


HIDDEN = [
    pytest.param(x, y, id=f"key {x:g}, query {y:g}") for x in (-1e6, 1e6) for y in (-3.0, 3.0)
]


@pytest.mark.parametrize(("hidden", "query"), HIDDEN)
def test_a_masked_key_beyond_the_extreme_does_not_matter(hidden, query):
    y, key, value = column(query), column(0.5, -0.5, hidden), column(1.0, 2.0, 1e300)
    found = rank1_attention(y, key, value, mask=torch.tensor([[True, True, False]]))
    truth.assert_close(found, truth.boltzmann(y, key[:2], value[:2]))


@pytest.mark.parametrize(("hidden", "query"), HIDDEN)
def test_a_masked_key_beyond_the_extreme_leaves_the_gradient_alone(hidden, query):
    mask = torch.tensor([[True, True, False]])
    problem = column(query), column(0.5, -0.5, hidden), column(1.0, 2.0, 3.0)
    y, key, value = (part.requires_grad_() for part in problem)
    found = torch.autograd.grad(rank1_attention(y, key, value, mask=mask).sum(), (y, key, value))

    seen = y, key[:2], value[:2]
    wanted = torch.autograd.grad(rank1_attention(*seen).sum(), seen)
    truth.assert_close(found[0], wanted[0])
    for gradient, part in zip(found[1:], wanted[1:], strict=True):
        truth.assert_close(gradient, torch.cat([part, column(0.0)]))


@pytest.mark.parametrize("query", [-3.0, 3.0])
def test_a_query_that_sees_nothing_has_no_gradient(query):
    problem = column(query), column(1e6, -1e6), column(1.0, 2.0)
    for part in problem:
        part.requires_grad_()
    rank1_attention(*problem, mask=torch.zeros(1, 2, dtype=torch.bool)).sum().backward()
    for part in problem:
        assert not part.grad.any()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_finite_differences(seed, masked):
    generator = torch.Generator().manual_seed(seed)
    problem = torch.randn(3, 2, 4, generator=generator, dtype=torch.float64)
    query, key, value = (part.clone().requires_grad_() for part in problem)
    mask = truth.random_mask(2, 4, 4, seed=seed) if masked else None
    assert gradcheck(lambda *parts: rank1_attention(*parts, mask=mask), (query, key, value))


def test_gradients_where_two_keys_tie():
    key = column(1.0, 1.0, 0.0).requires_grad_()
    query, value = column(2.0, -2.0).requires_grad_(), column(1.0, 5.0, 2.0).requires_grad_()
    assert gradcheck(rank1_attention, (query, key, value))


@pytest.mark.parametrize("masked", [False, True])
def test_vmap_is_a_batch(masked):
    """Where no number may decide what is done, as in a transform, a mask holds too."""
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(3, 4, 6, generator=generator, dtype=torch.float64)
    mask = truth.random_mask(4, 6, 6, seed=1) if masked else None
    mapped = torch.vmap(
        lambda *row: rank1_attention(*row[:3], mask=row[3], method="direct"),
        in_dims=(0, 0, 0, 0 if masked else None),
    )(*parts, mask)
    truth.assert_close(mapped, expected(*parts, mask))
