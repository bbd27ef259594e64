"""Infinities and NaN: the linear method gives what the table of scores gives."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels.attention_problems import Problem, attend, gradients, row
from rankone.kernels import ragged_attention, rank1_attention

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


# The definition: IEEE arithmetic on the scores and weights of the keys that are seen, no others.

QUERIES = row(0.0, -0.0, 1.5, -1.5, 1e-320, torch.inf, -torch.inf, torch.nan)
KEYS = torch.tensor(list(product([0.3, -0.7, *ODD], repeat=3)), dtype=torch.float64)
CHANNELS = [(1.0, 2.0, 4.0), (1.0, torch.inf, 2.0), (torch.nan, 1.0, -torch.inf)]
VALUES = torch.tensor(CHANNELS, dtype=torch.float64).T.expand(len(KEYS), 3, 3)
TRIANGLE = torch.ones(3, 3, dtype=torch.bool).tril()


def literal(query, key, value, seen):
    scores = query.unsqueeze(-1) * key.unsqueeze(-2)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1).unsqueeze(-1)
    return torch.where(seen.unsqueeze(-1), weights * value.unsqueeze(-3), 0.0).sum(-2)


@pytest.mark.parametrize("method", ["direct", "linear"])
def test_every_way_to_be_infinite_is_that_of_the_definition(method):
    query = QUERIES.expand(len(KEYS), -1)
    expected = literal(query, KEYS, VALUES, torch.ones(len(QUERIES), 3, dtype=torch.bool))
    assert_same(rank1_attention(query, KEYS, VALUES, method=method), expected)


@pytest.mark.parametrize("way", ["direct", "linear", "mask", "sentences"])
@pytest.mark.parametrize("y", QUERIES.tolist(), ids=str)
def test_every_way_to_be_infinite_in_what_is_seen_so_far(y, way):
    query = torch.full((len(KEYS), 3), y, dtype=torch.float64)
    expected = literal(query, KEYS, VALUES, TRIANGLE)
    if way == "mask":
        found = rank1_attention(query, KEYS, VALUES, mask=TRIANGLE)
    elif way == "sentences":
        offsets = np.arange(0, 3 * len(KEYS) + 1, 3)
        value, expected = VALUES[..., 0], expected[..., 0]
        columns = (x.flatten() for x in (query, KEYS, value))
        found = ragged_attention(*columns, offsets, causal=True).view_as(expected)
    else:
        found = rank1_attention(query, KEYS, VALUES, causal=True, method=way)
    assert_same(found, expected)


@pytest.mark.parametrize("end", [torch.inf, -torch.inf], ids=str)
@pytest.mark.parametrize("zero", [0.0, -0.0], ids=str)
@pytest.mark.parametrize("way", ["direct", "linear", "sentences"])
def test_a_query_of_0_beside_an_infinite_key_is_not_a_number(way, zero, end):
    """0 times infinity; the smallest queries of either sign are numbers, for one of the ends."""
    query, key, value = row(zero, 5e-324, -5e-324), row(0.5, end, 0.5), row(1.0, 2.0, 3.0)
    if way == "sentences":
        found = ragged_attention(query, key, value, np.array([0, 3]))
    else:
        found = rank1_attention(query, key, value, method=way)
    up, down = (torch.nan, 2.0) if end > 0 else (2.0, torch.nan)
    assert_same(found, row(torch.nan, up, down))


@pytest.mark.parametrize("end", [torch.inf, -torch.inf], ids=str)
@pytest.mark.parametrize("side", [0, 1], ids=["low", "high"])
@pytest.mark.parametrize("way", ["direct", "linear", "sentences"])
def test_an_infinite_value_counts_if_its_key_weighs_anything(way, side, end):
    """Else it is 0 times infinity. e^-1000 is 0 in floating point, e^-700 is not."""
    query, key = row(1000.0, 700.0, -700.0, -1000.0), row(0.0, 1.0, 0.0, 1.0)
    value = torch.full((4,), 5.0, dtype=torch.float64)
    value[side] = end
    if way == "sentences":
        found = ragged_attention(query, key, value, np.array([0, 4]))
    else:
        found = rank1_attention(query, key, value, method=way)
    expected = row(torch.nan, end, end, end) if side == 0 else row(end, end, end, torch.nan)
    assert_same(found, expected)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("spoiled", [0, 1], ids=["query", "key"])
def test_a_nan_of_any_bits_is_a_nan(spoiled, sign):
    bits = torch.full((1,), (1 << 63) - 1 if sign > 0 else -1)  # all of them 1
    parts = list(torch.ones(3, 4, dtype=torch.float64))
    parts[spoiled] = bits.view(torch.float64).expand(4)
    assert torch.isnan(rank1_attention(*parts, method="linear")).all()


@each_odd
@pytest.mark.parametrize("spoiled", [0, 1], ids=["key", "value"])
def test_what_a_query_does_not_see_may_be_anything_and_gets_no_gradient(spoiled, odd):
    parts = list(torch.randn(3, 6, generator=torch.Generator().manual_seed(1)).double())
    mask = torch.ones(6, 6, dtype=torch.bool).tril(-1)
    expected = gradients(Problem(*parts, False, mask), torch.ones(6), "direct")
    parts[1 + spoiled][5] = odd
    found = gradients(Problem(*parts, False, mask), torch.ones(6), "direct")
    for part, same in zip(found, expected, strict=True):
        assert_same(part, same)


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
