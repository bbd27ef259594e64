"""Infinities and NaN: the linear method gives what the table of scores gives."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels.attention_problems import Problem, attend, gradients, row
from rankone.kernels import rank1_attention

whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
each_odd = pytest.mark.parametrize("odd", [torch.inf, -torch.inf, torch.nan], ids=str)

ODD = [torch.inf, -torch.inf, torch.nan]


def limited(x, limit):
    """What is finite is no larger than that."""
    return x.where(~torch.isfinite(x), x.clamp(-limit, limit))


@st.composite
def spoiled_problems(draw):
    """Queries, keys and vectors of values with a few that are not finite."""
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    q, n = draw(st.integers(1, 6)), draw(st.integers(1, 6))

    def numbers(*shape):
        x = rng.normal(size=shape) * rng.choice([1.0, 1e3, 1e200])
        x[rng.random(shape) < 0.2] = 0.0
        spoiled = rng.random(shape) < draw(st.sampled_from([0.0, 0.1, 0.3]))
        return torch.from_numpy(np.where(spoiled, rng.choice(ODD, shape), x))

    query, key, value = numbers(q), numbers(n), limited(numbers(n, 2), 1e3)
    mask = torch.from_numpy(rng.random((1, n)) < 0.7) if draw(st.booleans()) else None
    return Problem(query, key, value, draw(st.booleans()), mask)


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-9, equal_nan=True)


@given(problem=spoiled_problems())
def test_the_result_is_that_of_the_direct_way(problem):
    assert_same(attend(problem, "linear"), attend(problem, "direct"))


@given(problem=spoiled_problems())
def test_the_result_in_single_is_that_of_the_direct_way(problem):
    parts = (limited(part, 1e30).float() for part in problem[:3])
    problem = Problem(*parts, *problem[3:])
    found, expected = (attend(problem, method) for method in ("linear", "direct"))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-3, equal_nan=True)


@given(problem=spoiled_problems())
def test_gradients_are_nan_at_least_where_those_of_the_direct_way_are(problem):
    grad = torch.ones(*problem.query.shape, 2, dtype=torch.float64)
    found, expected = (gradients(problem, grad, method)[1:] for method in ("linear", "direct"))
    for part, truth in zip(found, expected, strict=True):
        assert not torch.isfinite(part[~torch.isfinite(truth)]).any()
        both = torch.isfinite(part) & torch.isfinite(truth)
        size = truth[both].abs().amax().item() if both.any() else 0.0
        torch.testing.assert_close(part[both], truth[both], rtol=1e-9, atol=1e-9 * (1 + size))


@whether_causal
@each_odd
@pytest.mark.parametrize("spoiled", range(3), ids=["query", "key", "value"])
@pytest.mark.parametrize("at", [0, 7, 29])
def test_one_number_that_is_not_finite(at, spoiled, odd, causal):
    generator = torch.Generator().manual_seed(at)
    parts = list(torch.randn(3, 30, generator=generator, dtype=torch.float64))
    parts[spoiled][at] = odd
    problem = Problem(*parts, causal)
    assert_same(attend(problem, "linear"), attend(problem, "direct"))


@whether_causal
@each_odd
def test_other_rows_and_channels_are_left_alone(odd, causal):
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 4, 20, generator=generator, dtype=torch.float64)
    value = torch.randn(4, 20, 3, generator=generator, dtype=torch.float64)
    given = {"causal": causal, "method": "linear"}
    before = rank1_attention(query, key, value, **given)
    query[0, 3], key[1, 5], value[2, 7, 1] = odd, odd, odd
    parts = [part.requires_grad_() for part in (query, key, value)]
    after = rank1_attention(*parts, **given)
    same = torch.ones_like(before, dtype=torch.bool)
    same[0, 3], same[1], same[2, :, 1] = False, False, False
    assert_same(after[same], before[same])
    assert torch.isnan(after[0, 3]).all()
    assert not torch.isfinite(after[1]).all()
    assert not torch.isfinite(after[2, :, 1]).all()
    for gradient in torch.autograd.grad(after.sum(), parts):
        assert torch.isfinite(gradient[3]).all()
        assert gradient[3].any()


@whether_causal
def test_nothing_but_numbers_that_are_not_finite(causal):
    for odd in ODD:
        for odd_value in (*ODD, 1.0):
            parts = torch.full((2, 5), odd, dtype=torch.float64)
            value = torch.full((5,), odd_value, dtype=torch.float64)
            problem = Problem(*parts, value, causal)
            assert torch.isnan(attend(problem, "direct")).all()
            assert torch.isnan(attend(problem, "linear")).all()


def test_infinities_that_are_seen_by_no_query_do_not_matter():
    query, key, value = row(1.0, 2.0), row(0.0, 1.0, torch.inf), row(1.0, 2.0, 5.0)
    out = rank1_attention(query, key, value, causal=True, method="linear")
    expected = rank1_attention(query, key[:2], value[:2], causal=True, method="direct")
    assert_same(out, expected)


@each_odd
def test_a_gradient_that_is_not_finite_stays_so(odd):
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(3, 2, 20, generator=generator, dtype=torch.float64)
    grad = torch.ones(2, 20, dtype=torch.float64)
    grad[0, 4] = odd
    found = gradients(Problem(*parts), grad, "linear")[1:]
    expected = gradients(Problem(*parts), grad, "direct")[1:]
    for part, truth in zip(found, expected, strict=True):
        assert not torch.isfinite(part[~torch.isfinite(truth)]).any()
        assert_same(part[1], truth[1])  # the other row
    assert_same(found[0][torch.isfinite(expected[0])], expected[0][torch.isfinite(expected[0])])
