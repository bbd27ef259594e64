"""ragged_attention: every sentence by itself, forward and backward, as training uses it."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from kernels import attention_problems as hard
from kernels.attention_problems import EXACT, SINGLE, Problem, row
from rankone.kernels import batched, ragged, ragged_attention, rank1_attention

LENGTHS = [3, 1, 12, 5, 1, 3, 7, 2, 12]
TOLERANCE = {torch.float64: EXACT, torch.float32: SINGLE}
ODD = [torch.inf, -torch.inf, torch.nan]

whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def bounds(lengths):
    return np.cumsum([0, *lengths])


def columns(lengths, dtype=torch.float64, seed=0, scale=1.0):
    """Query, key and value of every token, and the offsets of the sentences."""
    rng = np.random.default_rng(seed)
    query, key, value = torch.from_numpy(rng.normal(size=(3, sum(lengths)))).to(dtype)
    return scale * query, key, value, bounds(lengths)


@st.composite
def paragraphs(draw, dtype):
    """Sentences of every shape and size of scores, as one problem and its offsets."""
    lengths = draw(st.lists(st.sampled_from([1, 1, 2, 3, 5, 17, 40]), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    limit = 1e295 if dtype == torch.float64 else 1e15  # products stay in range

    def numbers(n):
        shape, scale = draw(st.sampled_from(list(hard.SHAPES))), draw(st.sampled_from(hard.SCALES))
        return hard.column(shape, scale, n, rng, limit)

    def values(n):
        return torch.from_numpy(hard.VALUES[draw(st.sampled_from(list(hard.VALUES)))](rng, n))

    parts = (torch.cat([of(n) for n in lengths]) for of in (numbers, numbers, values))
    return Problem(*parts, draw(st.booleans())).to(dtype), bounds(lengths)


def sentences(problem, offsets):
    """The problem of each sentence, in float64."""
    wide = problem.to(torch.float64)
    return [Problem(*(x[a:b] for x in wide[:3]), problem.causal) for a, b in pairwise(offsets)]


def graded(attend, parts, grad):
    """The result, then the gradients of query, key and value."""
    leaves = [x.detach().clone().requires_grad_() for x in parts]
    out = attend(*leaves)
    return out, *torch.autograd.grad(out, leaves, grad)


def assert_as_alone(problem, offsets, seed=0):
    """Result and gradients are those of the table of scores of each sentence in float64.

    As exact as the linear method must be: relative to the size of the terms, not of their sum.
    """
    dtype = problem.query.dtype
    generator = torch.Generator().manual_seed(seed)
    grad = torch.randn(len(problem.query), generator=generator, dtype=torch.float64).to(dtype)
    found = graded(
        lambda *parts: ragged_attention(*parts, offsets, causal=problem.causal), problem[:3], grad
    )
    alone = sentences(problem, offsets)
    for (a, b), part in zip(pairwise(offsets), alone, strict=True):
        g = grad[a:b].double()
        wanted = hard.gradients(part, g, "direct")
        total, value = g.abs().sum().item(), hard.largest(part.value)
        apart = hard.largest(part.key.amax() - part.key.amin())
        sizes = (value, apart * hard.largest(g) * value, hard.largest(part.query) * total * value)
        floor = max(1.0, total) * hard.floor(problem)
        for x, y, size in zip(found, wanted, (*sizes, total), strict=True):
            assert x.dtype == dtype
            hard.assert_within(x[a:b], y, TOLERANCE[dtype] * size + floor)


# The truth: the fraction to 50 digits, and the table of scores of one sentence.


@each_dtype
@whether_causal
def test_equals_the_fraction(causal, dtype):
    query, key, value, offsets = columns(LENGTHS, dtype, scale=3.0)
    found = ragged_attention(query, key, value, offsets, causal=causal)
    assert found.dtype == dtype
    exact = map(hard.exact_mean, sentences(Problem(query, key, value, causal), offsets))
    hard.assert_within(found, torch.cat(list(exact)), TOLERANCE[dtype] * hard.largest(value))


@whether_causal
@pytest.mark.parametrize("scale", [1e3, 1e6, 1e12], ids="{:g}".format)
def test_large_scores_equal_the_fraction(scale, causal):
    query, key, value, offsets = columns([4, 1, 6], scale=scale)
    found = ragged_attention(query, key, value, offsets, causal=causal)
    exact = map(hard.exact_mean, sentences(Problem(query, key, value, causal), offsets))
    hard.assert_within(found, torch.cat(list(exact)), EXACT * hard.largest(value))


@whether_causal
def test_scores_of_a_million_keep_their_digits(causal):
    # Products rounded before they are subtracted would be off by 1e6 times the rounding unit.
    query, key, value, offsets = columns(LENGTHS)
    problem = Problem(1e6 + query, 1.0 + 1e-6 * key, value, causal)
    found = ragged_attention(*problem[:3], offsets, causal=causal)
    exact = torch.cat([hard.exact_mean(part) for part in sentences(problem, offsets)])
    hard.assert_within(found, exact, 1e-14)


@given(drawn=paragraphs(torch.float64))
def test_result_and_gradients_equal_those_of_each_sentence_alone(drawn):
    assert_as_alone(*drawn)


@given(drawn=paragraphs(torch.float32))
def test_those_of_single_numbers_are_single_but_as_good(drawn):
    assert_as_alone(*drawn)


@whether_causal
@each_dtype
@pytest.mark.parametrize("away", [1e2, 1e4], ids="{:g}".format)
def test_gradients_keep_their_digits_where_keys_are_far_from_zero(away, dtype, causal):
    query, key, _, offsets = columns(LENGTHS)
    assert_as_alone(Problem(query, away + key, away + key, causal).to(dtype), offsets)


# Gradients against finite differences.


@whether_causal
@pytest.mark.parametrize("lengths", [[1], [4], [3, 1, 5], [1, 1, 1]], ids=str)
def test_gradients_are_those_of_finite_differences(lengths, causal):
    *parts, offsets = columns(lengths, seed=len(lengths), scale=2.0)
    leaves = [part.clone().requires_grad_() for part in parts]
    assert gradcheck(lambda *parts: ragged_attention(*parts, offsets, causal=causal), leaves)


@whether_causal
def test_gradients_of_a_key_that_is_its_own_value(causal):
    query, key, _, offsets = columns([3, 1, 5], scale=2.0)
    leaves = [query.clone().requires_grad_(), key.clone().requires_grad_()]
    assert gradcheck(lambda y, x: ragged_attention(y, x, x, offsets, causal=causal), leaves)


@whether_causal
def test_gradients_where_keys_tie_and_queries_are_zero(causal):
    query = row(2.0, -2.0, 0.0, 1.0, 0.0, -1.0)
    key, value = row(1.0, 1.0, 0.0, 0.0, 1.0, 0.0), columns([6])[2]
    leaves = [part.clone().requires_grad_() for part in (query, key, value)]
    offsets = np.array([0, 4, 6])
    assert gradcheck(lambda *parts: ragged_attention(*parts, offsets, causal=causal), leaves)


@pytest.mark.parametrize("wanted", [[0], [1], [2], [0, 2], []], ids=str)
def test_only_the_gradients_that_are_asked_for(wanted):
    *parts, offsets = columns([3, 1, 5])
    whole = graded(lambda *p: ragged_attention(*p, offsets), parts, torch.ones(9))[1:]
    leaves = [part.clone().requires_grad_(i in wanted) for i, part in enumerate(parts)]
    out = ragged_attention(*leaves, offsets)
    assert out.requires_grad == bool(wanted)
    if wanted:
        out.sum().backward()
    for i, leaf in enumerate(leaves):
        assert torch.equal(leaf.grad, whole[i]) if i in wanted else leaf.grad is None


# Few and short sentences, and long ones.


@whether_causal
@each_dtype
def test_a_sentence_of_one_token_gives_its_value(dtype, causal):
    _, key, value, offsets = columns([1] * 5, dtype)
    query = torch.tensor([-1e6, -1.0, 0.0, 1.0, 1e6], dtype=dtype)
    out, dy, dx, du = graded(
        lambda *p: ragged_attention(*p, offsets, causal=causal),
        (query, key, value),
        torch.arange(5, dtype=dtype),
    )
    assert torch.equal(out, value)
    assert not dy.any()
    assert not dx.any()
    assert torch.equal(du, torch.arange(5, dtype=dtype))


@whether_causal
@each_dtype
def test_no_sentence_at_all_gives_nothing(dtype, causal):
    none = torch.empty(0, dtype=dtype)
    found = graded(
        lambda *p: ragged_attention(*p, np.array([0]), causal=causal), (none, none, none), none
    )
    for part in found:
        assert part.shape == (0,)
        assert part.dtype == dtype


@whether_causal
@each_dtype
@pytest.mark.parametrize("longest", [2, 12, 13], ids="from {} tokens on".format)
def test_where_one_sentence_is_long_nothing_changes(longest, dtype, causal, monkeypatch):
    *parts, offsets = columns(LENGTHS, dtype, scale=3.0)
    grad = columns(LENGTHS, dtype, seed=1)[0]
    short = graded(lambda *p: ragged_attention(*p, offsets, causal=causal), parts, grad)
    monkeypatch.setattr(ragged, "SWITCH", longest**2)
    monkeypatch.setattr(batched, "SWITCH", longest**2)  # the long ones take linear time
    long = graded(lambda *p: ragged_attention(*p, offsets, causal=causal), parts, grad)
    for before, after in zip(short, long, strict=True):
        hard.assert_within(after, before, 100 * TOLERANCE[dtype])


def test_the_compiled_loops_end_where_linear_time_begins(monkeypatch):
    called = []

    def told(*parts, **given):
        called.append(len(parts[0]))
        return rank1_attention(*parts, **given)

    monkeypatch.setattr(ragged, "SWITCH", 36)
    monkeypatch.setattr(ragged, "rank1_attention", told)
    ragged_attention(*columns([5, 1, 5]))
    assert called == []
    ragged_attention(*columns([5, 1, 6]))
    assert called == [5, 1, 6]


# Memory: how inputs are laid out, what is kept, what is changed.


@whether_causal
@each_dtype
def test_inputs_and_gradients_may_lie_anyhow(dtype, causal):
    query, key, value, offsets = columns(LENGTHS, dtype)
    grad = columns(LENGTHS, dtype, seed=1)[0]
    wanted = graded(
        lambda *p: ragged_attention(*p, offsets, causal=causal), (query, key, value), grad
    )
    table = torch.stack([query, key, value], dim=1).requires_grad_()
    spread = torch.stack([grad, -grad], dim=1)[:, 0]
    assert not table[:, 0].is_contiguous()
    assert not spread.is_contiguous()
    out = ragged_attention(*table.unbind(1), offsets, causal=causal)
    assert torch.equal(out, wanted[0])
    (found,) = torch.autograd.grad(out, table, spread)
    assert torch.equal(found.T, torch.stack(wanted[1:]))


@whether_causal
def test_one_number_for_all_tokens_and_a_gradient_that_is_the_same_for_all(causal):
    _, key, value, offsets = columns(LENGTHS)
    lone = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    ragged_attention(lone.expand(len(key)), key, value, offsets, causal=causal).sum().backward()
    whole = torch.full_like(key, 0.7)
    attend = lambda *p: ragged_attention(*p, offsets, causal=causal)  # noqa: E731
    gradient = graded(attend, (whole, key, value), torch.ones_like(key))[1]
    hard.assert_within(lone.grad, gradient.sum(), EXACT * gradient.abs().sum().item())


@whether_causal
def test_inputs_are_left_as_they_were(causal):
    *parts, offsets = columns(LENGTHS)
    before, bounds_before = [part.clone() for part in parts], offsets.copy()
    leaves = [part.requires_grad_() for part in parts]
    grad = columns(LENGTHS, seed=1)[0]
    given = grad.clone()
    ragged_attention(*leaves, offsets, causal=causal).backward(grad)
    for leaf, kept in zip([*leaves, grad], [*before, given], strict=True):
        assert torch.equal(leaf, kept)
    np.testing.assert_array_equal(offsets, bounds_before)


def test_going_back_twice_gives_the_same_twice():
    *parts, offsets = columns(LENGTHS)
    leaves = [part.requires_grad_() for part in parts]
    out = ragged_attention(*leaves, offsets)
    first = torch.autograd.grad(out.sum(), leaves, retain_graph=True)
    second = torch.autograd.grad(out.sum(), leaves)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("changed", range(4), ids=["query", "key", "value", "out"])
def test_what_changed_in_between_is_noticed(changed):
    *parts, offsets = columns([3, 2])
    leaf = torch.ones((), dtype=torch.float64, requires_grad=True)
    inputs = [part * leaf for part in parts]
    out = ragged_attention(*inputs, offsets)
    total = out.sum()
    with torch.no_grad():
        [*inputs, out][changed].add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_second_derivatives_are_refused_not_wrong():
    *parts, offsets = columns([3, 2])
    leaves = [part.requires_grad_() for part in parts]
    (first,) = torch.autograd.grad(
        ragged_attention(*leaves, offsets).square().sum(), leaves[0], create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


# Infinities and NaN, which a training run that diverges comes to.


@whether_causal
@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("spoiled", range(3), ids=["query", "key", "value"])
def test_a_number_that_is_not_finite_reaches_those_who_see_it_and_nobody_else(spoiled, odd, causal):
    for at, dtype in product([3, 5, 9], TOLERANCE):
        *parts, offsets = columns([3, 7, 4], dtype)
        parts[spoiled][at] = odd
        found = ragged_attention(*parts, offsets, causal=causal)
        for a, b in pairwise(offsets.tolist()):
            for k in range(a, b):
                key, value = (x[a : k + 1 if causal else b] for x in parts[1:])
                wanted = rank1_attention(parts[0][k : k + 1], key, value)
                torch.testing.assert_close(found[k : k + 1], wanted, equal_nan=True)
