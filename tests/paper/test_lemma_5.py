"""Lemma 5: where boltz is concave in one entry."""

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from paper.problems import below_the_rest, bits, derivatives
from rankone.theory import lemma4, lemma5, second_derivative


@given(problem=below_the_rest(3))
def test_the_second_derivative_is_negative_under_the_hypothesis(problem):
    a, i = problem
    assert lemma5(a, i).ok
    assert lemma4(a, i).ok  # its threshold is lower
    with ctx.workprec(bits(a)):
        assert derivatives(a, i)[1] < 0


@given(problem=below_the_rest(3))
def test_eq_97_is_the_second_derivative(problem):
    a, i = problem
    with ctx.workprec(bits(a)):
        bend = second_derivative([arb(x) for x in a])[i]
        assert bend.overlaps(derivatives(a, i)[1])
        assert bend.rel_accuracy_bits() > 80


@pytest.mark.parametrize(("a", "i"), [([0.0, 0.0], 1), ([0.0, -2.0], 1), ([0.0, 0.0, -1.5], 2)])
def test_outside_the_hypothesis_boltz_may_be_convex(a, i):
    assert lemma5(a, i).broken.startswith(f"max - a[{i}] = ")
    assert derivatives(a, i)[1] > 0


@given(slack=st.floats(1e-12, 3.0), n=st.sampled_from([2, 7, 100]))
def test_short_of_the_threshold_it_is_not_claimed(slack, n):
    border = float(arb(n).log() + 3)
    assert not lemma5([0.0] * (n - 1) + [slack - border], n - 1).ok
