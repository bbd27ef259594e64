"""Lemma 6: what lowering one entry far below the largest adds to boltz."""

import math

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from paper.problems import bits, boltz, exceeds
from rankone.errors import VectorError
from rankone.theory import lemma6


@st.composite
def lowered(draw):
    """a and b that differ in the last entry, in a just over log n + 3 below the largest."""
    n = draw(st.sampled_from([2, 3, 5, 40]))
    spread = draw(st.sampled_from([0.0, 1e-3, 2.0, 30.0]))
    rest = [-spread * draw(st.floats(0, 1)) for _ in range(n - 2)]
    slack = draw(st.sampled_from([1e-12, 1e-6, 0.1, 5.0]))
    drop = draw(st.sampled_from([1e-9, 1e-3, 1.0, 20.0, 300.0]))
    top = draw(st.sampled_from([0.0, 7.0, -100.0]))
    last = top - (math.log(n) + 3 + slack)
    head = draw(st.permutations([top, *(top + x for x in rest)]))
    return [*head, last], [*head, last - drop]


def rise(a, b):
    """boltz(b) - boltz(a)."""
    with ctx.workprec(bits(a, b)):
        return boltz(b) - boltz(a)


@given(problem=lowered())
def test_the_rise_exceeds_the_bound(problem):
    a, b = problem
    claim = lemma6(a, b)
    assert claim.ok
    assert exceeds(rise(a, b), claim.log_bound)


def test_the_bound_is_eq_103():
    a, b = [1.0, 0.5, -5.0], [1.0, 0.5, -7.0]
    share = math.exp(-7) / (math.e + math.exp(0.5) + math.exp(-7))
    log_n, delta = math.log(3), 6.0
    assert math.exp(lemma6(a, b).log_bound) == pytest.approx(
        2 * (delta + 2 - log_n - 1) * share, rel=1e-14
    )
    ball = lemma6(*([arb(x) for x in row] for row in (a, b))).log_bound
    assert ball.rad() < 1e-13
    assert lemma6(a, b).log_bound <= ball


def test_the_bound_is_within_its_share_of_the_truth():
    """For small a_n - b_n far below the largest the bound is the derivative, but for log n."""
    a, b = [0.0, -40.0], [0.0, -40.0 - 1e-6]
    ratio = float(rise(a, b)) / math.exp(lemma6(a, b).log_bound)
    assert 1 < ratio < 1.02


def test_outside_the_hypothesis_it_can_fail():
    a, b = [0.0, -0.5], [0.0, -3.0]
    claim = lemma6(a, b)
    assert claim.broken.startswith("max - a_n = 0.5")
    assert claim.log_bound is None
    assert claim.missing == pytest.approx(math.log(2) + 2.5, rel=1e-15)
    p = math.exp(-3.0) / (1 + math.exp(-3.0))
    log_bound = math.log(2.5 * (0.5 + 2.5 - math.log(2) - 1) * p)  # eq. 103 all the same
    assert not exceeds(rise(a, b), log_bound)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ([0.0, 1.0, -9.0], [0.0, 2.0, -10.0], "entry 1 is"),
        ([0.0, -9.0], [0.0, -9.0], "not above"),
        ([0.0, -9.0], [0.0, -8.0], "not above"),
        ([0.0, -3.0], [0.0, -8.0], "log n + 3"),
    ],
)
def test_the_broken_condition_is_named(a, b, why):
    claim = lemma6(a, b)
    assert not claim.ok
    assert why in claim.broken
    assert claim.log_bound is None
    assert (claim.missing is None) == ("log n + 3" not in why)


@pytest.mark.parametrize(("a", "b"), [([0.0], [-9.0]), ([0.0, -9.0], [0.0, 1.0, -9.0]), ([], [])])
def test_vectors_of_the_wrong_length_are_refused(a, b):
    with pytest.raises(VectorError):
        lemma6(a, b)
