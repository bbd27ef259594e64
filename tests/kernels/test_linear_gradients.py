"""Gradients of rank1_attention(method="linear"): finite differences, and those of the table."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from kernels import attention_problems as hard
from kernels.attention_problems import EXACT, LARGEST, SINGLE, Problem, attend, row
from rankone.kernels import rank1_attention

whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


def linear(query, key, value, **given):
    return rank1_attention(query, key, value, method="linear", **given)


def gaussian(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


# Finite differences.


@whether_causal
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("q", "n"), [(1, 1), (4, 4), (5, 3), (3, 5), (9, 9), (13, 13), (17, 6)])
def test_gradients_are_those_of_finite_differences(q, n, padded, causal, monkeypatch):
    hard.small_blocks(monkeypatch)
    problem = hard.random_problem(n, 1.0, q=q, causal=causal, padded=padded, seed=q)
    parts = [part.requires_grad_() for part in problem[:3]]
    assert gradcheck(lambda *parts: attend(Problem(*parts, *problem[3:]), "linear"), parts)


@whether_causal
def test_gradients_of_vectors_in_a_batch_that_broadcasts(causal, monkeypatch):
    hard.small_blocks(monkeypatch)
    shapes = ((2, 1, 6), (3, 6), (1, 3, 6, 2))
    parts = [gaussian(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes)]
    lengths = torch.tensor([[6, 4, 0]])
    assert gradcheck(lambda *parts: linear(*parts, causal=causal, lengths=lengths), parts)


@whether_causal
def test_gradients_where_keys_tie_and_queries_are_zero(causal, monkeypatch):
    hard.small_blocks(monkeypatch)
    query = row(2.0, -2.0, 0.0, 1.0, 0.0, -1.0)
    key = row(1.0, 1.0, 0.0, 0.0, 1.0, 0.0)
    parts = [part.requires_grad_() for part in (query, key, gaussian(6))]
    assert gradcheck(lambda *parts: linear(*parts, causal=causal), parts)


# The gradients of the table of scores.


@given(problem=hard.problems(sizes=(1, 2, 3, 17, 64)), leaf=st.sampled_from([4, 1024]))
def test_gradients_equal_those_of_the_direct_way(problem, leaf):
    with pytest.MonkeyPatch.context() as patch:
        hard.small_blocks(patch, leaf)
        hard.assert_gradients_as_direct(problem)


@given(problem=hard.problems(sizes=(1, 2, 17, 64)))
def test_gradients_of_single_numbers_are_single_but_as_good(problem):
    query, key, value, *rest = problem
    query, key = (part.clamp(-1e15, 1e15) for part in (query, key))  # products stay in range
    value = value.where(value.abs() > 1e-30, 0.0)
    hard.assert_gradients_as_direct(Problem(query, key, value, *rest).to(torch.float32), SINGLE)


@whether_causal
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("scale", [0.0, 1e-5, 1.0, 30.0, 1e3, 1e6, 1e12], ids="{:g}".format)
def test_gradients_of_many_keys_equal_those_of_the_direct_way(scale, padded, causal, monkeypatch):
    hard.small_blocks(monkeypatch, 200)
    hard.assert_gradients_as_direct(
        hard.random_problem(520, scale, q=450, causal=causal, padded=padded)
    )


@whether_causal
@pytest.mark.parametrize("shape", hard.SHAPES)
@pytest.mark.parametrize("scale", [1.0, 1e6, pytest.param(1e100, marks=pytest.mark.slow)])
def test_gradients_for_keys_of_any_shape_and_size(shape, scale, causal, monkeypatch):
    hard.small_blocks(monkeypatch, 48)
    rng = np.random.default_rng(3)
    key = hard.column(shape, scale, 120, rng)
    query, value = (torch.from_numpy(x) for x in rng.normal(size=(2, 120)))
    hard.assert_gradients_as_direct(Problem(query, key, value, causal))


@whether_causal
@pytest.mark.parametrize("offset", [1e6, 1e15], ids="{:g}".format)
def test_gradients_of_values_far_from_0(offset, causal):
    query, key, value, *_ = hard.random_problem(500, 3.0)
    hard.assert_gradients_as_direct(Problem(query, key, offset + value, causal))


@whether_causal
@pytest.mark.parametrize("scale", [1e100, 1e290], ids="{:g}".format)
def test_saturated_scores_have_no_gradient_but_for_values(scale, causal, monkeypatch):
    hard.small_blocks(monkeypatch, 64)
    problem = hard.random_problem(500, scale, causal=causal)
    grad = gaussian(500)
    _, of_query, of_key, of_value = hard.gradients(problem, grad, "linear")
    assert not of_query.any()
    assert not of_key.any()
    expected = hard.gradients(problem, grad, "direct")[3]
    hard.assert_within(of_value, expected, EXACT * grad.abs().sum().item())


EXTREME = {
    "a query of 0 and keys far apart": (row(0.0, 1e-307), row(0.0, 1e307)),
    "a key that stands for a mask": (row(0.5, -0.5, 1.0), row(-LARGEST, 0.3, 0.4)),
    "a query of 0 and a key that stands for a mask": (row(0.5, 0.0), row(-1e308, 0.3, 0.4)),
    "the largest query": (row(LARGEST, -LARGEST), row(0.0, 1.0)),
    "the largest query, one key": (row(LARGEST, -LARGEST), row(3.0)),
    "the largest queries, the smallest keys": (row(1e306, -1e306), row(1e-306, 2e-306, 3e-306)),
    "the largest of both": (row(1e308, -1e308), row(8e307, -8e307, 0.0)),
    "only denormal numbers": (row(5e-324, -1e-310), row(-5e-324, 1e-309)),
}


@whether_causal
@pytest.mark.parametrize(("query", "key"), EXTREME.values(), ids=EXTREME)
def test_gradients_at_the_ends_of_the_range_of_numbers(query, key, causal):
    value = torch.linspace(-0.1, 0.1, len(key), dtype=torch.float64)
    hard.assert_gradients_as_direct(Problem(query, key, value, causal))


def test_a_distance_beyond_the_largest_number_leaves_finite_gradients():
    parts = [row(0.5, -0.5), row(-LARGEST, 0.3, LARGEST), row(1.0, 2.0, 3.0)]
    for part in parts:
        part.requires_grad_()
    of_query, of_key, of_value = torch.autograd.grad(linear(*parts).sum(), parts)
    assert of_query.tolist() == [0.0, 0.0]
    assert of_key.tolist() == [0.0, 0.0, 0.0]
    hard.assert_within(of_value, row(1.0, 0.0, 1.0), EXACT)


@pytest.mark.parametrize(("far", "size"), [(1e294, 1e20), (1e260, 1e100)], ids=str)
def test_products_beyond_the_largest_number_that_weigh_nothing_do_not_matter(
    far, size, monkeypatch
):
    """Of a distance and a value: where distances are brought down, and where they are not."""
    hard.small_blocks(monkeypatch)
    key = row(*[-far] * 4, *[0.0] * 4)
    value = row(size, size, size, 0.0, 0.0, 0.0, 0.0, 0.0)
    problem = Problem(torch.ones(8, dtype=torch.float64), key, value, True)
    grad = torch.ones(8, dtype=torch.float64)
    assert hard.gradients(problem, grad, "direct")[1].tolist() == [0.0] * 8
    assert hard.gradients(problem, grad, "linear")[1].tolist() == [0.0] * 8


# Graphs.


@whether_causal
@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)], ids=str)
def test_only_some_inputs_may_want_a_gradient(wanted, causal):
    def grads(needed):
        parts = list(gaussian(3, 30))
        for i in needed:
            parts[i].requires_grad_()
        out = linear(*parts, causal=causal)
        return torch.autograd.grad(out.sin().sum(), [parts[i] for i in needed])

    everything = grads((0, 1, 2))
    for i, gradient in zip(wanted, grads(wanted), strict=True):
        assert torch.equal(gradient, everything[i])


def test_no_graph_without_inputs_that_want_one():
    assert not linear(*gaussian(3, 30)).requires_grad
    with torch.no_grad():
        assert not linear(*gaussian(3, 30).requires_grad_()).requires_grad


@whether_causal
def test_one_tensor_may_be_query_key_and_value(causal):
    x = gaussian(9).requires_grad_()
    assert gradcheck(lambda x: linear(x, x, x, causal=causal), (x,))


@whether_causal
def test_gradients_flow_through_two_layers(causal):
    parts = [part.requires_grad_() for part in gaussian(3, 7)]

    def twice(query, key, value):
        hidden = linear(query, key, value, causal=causal)
        return linear(hidden, key, hidden * value, causal=causal) + hidden

    assert gradcheck(twice, parts)


def test_backward_twice_gives_the_same_and_leaves_the_result_alone():
    parts = [part.requires_grad_() for part in gaussian(3, 40)]
    out = linear(*parts)
    before = out.detach().clone()
    first = torch.autograd.grad(out.sum(), parts, retain_graph=True)
    second = torch.autograd.grad(out.sum(), parts)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert torch.equal(out, before)


def test_changing_an_input_before_backward_is_an_error():
    parts = [part.clone().requires_grad_() for part in gaussian(3, 20)]
    key = parts[1] * 1.0
    out = linear(parts[0], key, parts[2])
    with torch.no_grad():
        key.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@whether_causal
def test_strides_do_not_matter(causal):
    shapes = {"query": (40, 3), "key": (40, 2), "value": (4, 40)}
    bases = [gaussian(*shape).requires_grad_() for shape in shapes.values()]

    def views(query, key, value):
        return query[:, 1], key.flip(0)[:, 0], value.mT

    grad = gaussian(4, 40).mT  # not contiguous either
    strided = torch.autograd.grad(linear(*views(*bases), causal=causal), bases, grad)
    packed = [part.contiguous() for part in views(*bases)]
    out = linear(*packed, causal=causal)
    expected = torch.autograd.grad(out, bases, grad.contiguous())
    assert all(torch.equal(a, b) for a, b in zip(strided, expected, strict=True))


@whether_causal
def test_expanded_inputs_collect_the_gradients_of_all_rows(causal):
    parts = [part[:1].requires_grad_() for part in gaussian(3, 3, 12)]
    out = linear(*(part.expand(5, 12) for part in parts), causal=causal)
    grad = torch.ones((), dtype=torch.float64).expand(5, 12)
    found = torch.autograd.grad(out, parts, grad)
    alone = torch.autograd.grad(linear(*parts, causal=causal).sum(), parts)
    for part, expected in zip(found, alone, strict=True):
        hard.assert_within(part, 5 * expected, EXACT)


@whether_causal
def test_padding_gets_no_gradient_whatever_it_holds(causal):
    query, key, value = gaussian(3, 2, 12)
    lengths = torch.tensor([7, 0])
    there = torch.arange(12) < lengths[:, None]
    for hidden in (1e6, -LARGEST, torch.inf, torch.nan):
        parts = [query.clone(), key.where(there, hidden), value.where(there, hidden)]
        for part in parts:
            part.requires_grad_()
        out = linear(*parts, causal=causal, lengths=lengths)
        of_query, of_key, of_value = torch.autograd.grad(out.sum(), parts)
        assert torch.isfinite(of_query).all()
        assert not of_query[1].any()
        for part in (of_key, of_value):
            assert not part[~there].any()
            assert part[there].any()


@whether_causal
def test_second_derivatives_equal_those_of_the_direct_way(causal):
    def second(method):
        parts = [part.requires_grad_() for part in gaussian(3, 30)]
        out = rank1_attention(*parts, causal=causal, method=method)
        first = torch.autograd.grad(out.sin().sum(), parts, create_graph=True)
        return torch.autograd.grad(sum(part.square().sum() for part in first), parts)

    for found, expected in zip(second("linear"), second("direct"), strict=True):
        hard.assert_within(found, expected, 1e-11 * hard.largest(expected))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("moved", range(3), ids=["query", "key", "value"])
def test_forward_mode_is_right_or_refused(moved):
    parts, step = list(gaussian(3, 8)), gaussian(8, seed=1)

    def along(method):
        def of(part):
            given = [*parts[:moved], part, *parts[moved + 1 :]]
            return rank1_attention(*given, method=method)

        return torch.func.jvp(of, (parts[moved],), (step,))[1]

    try:
        found = along("linear")
    except (NotImplementedError, RuntimeError):
        return
    hard.assert_within(found, along("direct"), 1e-10)


def test_an_optimiser_finds_the_values_again():
    # A gradient of the wrong sign or size would not get there.
    query, key, value = gaussian(3, 300)
    target = linear(2 * query, key, value)
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([scale], max_iter=50, line_search_fn="strong_wolfe")

    def loss():
        optimiser.zero_grad()
        off = (linear(scale * query, key, value) - target).square().sum()
        off.backward()
        return off

    optimiser.step(loss)
    assert abs(scale.item() - 2) < 1e-5
