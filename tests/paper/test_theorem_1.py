"""Theorem 1: no layer of hardmax attention is a contextual mapping."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankone.errors import VectorError
from rankone.nn import SelfAttention
from rankone.theory import counter_example, hardmax_attention, indistinguishable

NUMBERS = {
    "few, so that scores are often equal": st.integers(-1, 1).map(float),
    "any": st.floats(-1e3, 1e3),
    "tiny, huge and between": st.sampled_from([0.0, 5e-324, -1e-200, 0.1, -1 / 3, 1e200]),
}
each_kind = pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)


@st.composite
def weights(draw, numbers):
    """Key, query, value and output of any number of heads of any size, and the dimension."""
    heads, size, dim = (draw(st.integers(1, 3)) for _ in range(3))
    drawn = [draw(arrays(np.float64, (heads, size, dim), elements=numbers)) for _ in range(3)]
    return [*drawn, draw(arrays(np.float64, (heads, dim, size), elements=numbers))], dim


def fractions(x):
    return np.vectorize(Fraction, otypes=[object])(x)


@each_kind
@given(data=st.data())
def test_no_weights_tell_the_two_sequences_apart(numbers, data):
    """In exact arithmetic, ties and all."""
    found, dim = data.draw(weights(numbers))
    v = data.draw(arrays(np.float64, dim, elements=st.floats(-1e9, 1e9)).filter(np.any))
    result = indistinguishable(*found, example=counter_example(v))
    assert result.ok
    assert result.heads == len(found[0])


@given(v=arrays(np.float64, 3, elements=st.floats(-1e300, 1e300)).filter(np.any))
def test_the_sequences_are_what_definition_2_wants_told_apart(v):
    """Multiples of one vector without rounding; different sets that share their ends."""
    found = counter_example(v)
    exact = fractions(found.direction)
    for steps, tokens in (((1, 2, 5, 6), found.first), ((1, 3, 4, 6), found.second)):
        assert (fractions(tokens) == np.outer(steps, exact)).all()
    assert found.direction == pytest.approx(v, rel=2.0**-50)
    first, second = ({tuple(x) for x in tokens} for tokens in (found.first, found.second))
    assert len(first) == len(second) == 4
    assert first & second == {tuple(found.first[k]) for k in found.shared}
    assert first != second


def paper_example(v, alphas=(1, 2, 3, 4)):
    """(alpha_1, alpha_2, alpha_4) v and (alpha_1, alpha_3, alpha_4) v, as the paper prints it."""
    a, b, c, d = alphas
    first, second = (np.outer(steps, v) for steps in ((a, b, d), (a, c, d)))
    return replace(counter_example(v), first=first, second=second, shared=(0, 2))


def test_the_papers_own_example_is_told_apart_by_the_mean():
    """W^K = 0 makes all scores equal: the mean is 7/3 in one sequence and 8/3 in the other."""
    one = np.ones((1, 1, 1))
    result = indistinguishable(0 * one, one, one, one, example=paper_example(np.ones(1)))
    assert not result.ok
    assert result.witness.place == 0
    assert (result.witness.first, result.witness.second) == (1 + Fraction(7, 3), 1 + Fraction(8, 3))
    assert result.to_json()["witness"]["first"] == "10/3"


@given(key=st.sampled_from([-2.0, 0.5]), query=st.sampled_from([-1.0, 3.0]))
def test_the_papers_own_example_works_where_no_scores_are_equal(key, query):
    one = np.ones((1, 1, 1))
    assert indistinguishable(key * one, query * one, one, one, example=paper_example([1.0])).ok


@given(data=st.data())
def test_the_exact_attention_is_eq_5(data):
    """The module of the networks on the same small integers, which it computes exactly too."""
    (key, query, value, output), dim = data.draw(
        weights(NUMBERS["few, so that scores are often equal"])
    )
    tokens = data.draw(arrays(np.float64, (4, dim), elements=st.integers(-2, 2).map(float)))
    layer = SelfAttention(dim, kind="hardmax", dtype=torch.float64)
    for name, w in (("key", key), ("query", query), ("value", value), ("output", output)):
        setattr(layer, name, torch.nn.Parameter(torch.from_numpy(w)))
    exact = hardmax_attention(*map(fractions, (tokens, key, query, value, output)))
    found = layer(torch.from_numpy(tokens)).detach().numpy()
    np.testing.assert_allclose(found, exact.astype(np.float64), rtol=0, atol=1e-13)


@pytest.mark.parametrize("v", [[0.0, 0.0], [np.nan], [np.inf], [1e308], [[1.0]], []], ids=str)
def test_directions_without_a_line_are_refused(v):
    with pytest.raises(VectorError):
        counter_example(v)


@pytest.mark.parametrize(
    "shapes",
    [
        [(1, 2, 3), (1, 2, 3), (1, 2, 3), (1, 2, 3)],
        [(1, 2, 3), (2, 2, 3), (1, 2, 3), (1, 3, 2)],
        [(2, 3), (2, 3), (2, 3), (3, 2)],
    ],
    ids=str,
)
def test_weights_that_do_not_fit_are_refused(shapes):
    with pytest.raises(VectorError, match="weights of shapes"):
        indistinguishable(*map(np.ones, shapes))


def test_an_example_of_another_dimension_is_refused():
    weights = [np.ones((1, 2, 3))] * 3 + [np.ones((1, 3, 2))]
    example = counter_example([1.0, 2.0])
    with pytest.raises(VectorError, match=r"tokens of shape \(4, 2\)"):
        indistinguishable(*weights, example=example)
