"""Lemma 1: boltz separates vectors that differ as sets."""

import math
from itertools import combinations

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given

from paper.problems import bits, boltz, distance, exceeds, families, needed
from rankone.errors import VectorError
from rankone.theory import lemma1, lemma7


@given(vectors=families())
def test_outputs_are_separated_and_bounded(vectors):
    claim = lemma1(vectors)
    assert claim.ok
    r = max(abs(x) for row in vectors for x in row)
    for a in vectors:
        with ctx.workprec(bits(a)):
            assert abs(boltz(a)) <= r  # eq. 15
    for a, b in combinations(vectors, 2):
        if set(a) != set(b):
            assert exceeds(distance(a, b), claim.log_bound)  # eq. 16


@given(vectors=families())
def test_it_says_no_more_than_lemma_7(vectors):
    claim = lemma1(vectors)
    for a, b in combinations(vectors, 2):
        if set(a) != set(b) and len(a) > 1:
            assert claim.log_bound < lemma7(a, b).log_bound + 1e-9


def test_the_bound_is_eq_16():
    vectors = np.array([[-4.0, 3.0], [10.0, 3.0]])
    claim = lemma1(vectors)
    assert claim.ok
    assert (claim.n, claim.delta) == (2, 7.0)
    assert claim.log_bound == pytest.approx(2 * math.log(math.log(2)) - 20, abs=1e-13)


def test_the_order_within_a_vector_is_not_seen():
    """The claim is about sets: (10, 0) and (0, 10) are not told apart, nor is it said they are."""
    vectors = [[10.0, 0.0], [0.0, 10.0], [10.0, -10.0]]
    assert lemma1(vectors).ok
    assert distance(*vectors[:2]).contains(0)
    assert exceeds(distance(vectors[0], vectors[2]), lemma1(vectors).log_bound)


@pytest.mark.parametrize(
    ("vectors", "why"),
    [
        ([[0.0, 9.0], [9.0, 9.0]], "9.00000000000 occurs twice in vector 1"),
        ([[0.0, 9.0], [9.0, 9.5]], "9.00000000000 and 9.50000000000 are 0.5"),
        ([[0.0, needed(2) - 1e-12], [9.0, 0.0]], "not more than 2 log n + 3"),
    ],
)
def test_the_broken_condition_is_named(vectors, why):
    claim = lemma1(vectors)
    assert not claim.ok
    assert why in claim.broken
    assert claim.log_bound is None
    assert claim.to_json()["log_bound"] is None


def test_without_the_separation_it_fails_and_says_nothing():
    """Two points of x e^x / (1 + e^x) on both sides of its least value, almost level."""
    a, b = [0.3, -1.0], [0.3, -0.95595]
    claim = lemma1([a, b])
    assert not claim.ok
    assert claim.log_bound is None
    assert not exceeds(distance(a, b), 2 * math.log(math.log(2)) - 2 * 1.0)  # eq. 16 all the same


@pytest.mark.parametrize(("step", "short"), [(0.5, None), (-0.5, 0.5), (-(2.0**-40), 2.0**-40)])
def test_what_is_missing_is_rounded_up(step, short):
    """With that much more between the two numbers, and no less, the lemma applies."""
    vectors = [[0.0, needed(2) + step], [0.0, 100.0]]
    claim = lemma1(vectors)
    assert claim.ok is (short is None)
    if short is None:
        assert claim.missing is None
    else:
        assert claim.missing == pytest.approx(short, rel=1e-3)
        with ctx.workprec(200):
            assert arb(claim.delta) + arb(claim.missing) > 2 * arb(2).log() + 3
        assert claim.to_json()["missing"] == claim.missing


def test_arb_answers_in_arb_what_is_missing():
    claim = lemma1([[arb(0), arb(1)]])
    assert claim.missing.overlaps(2 * arb(2).log() + 2)
    assert claim.log_bound is None


def test_one_vector_for_many_is_named():
    with pytest.raises(VectorError, match=r"vector 0: 1\.0 is not a list") as caught:
        lemma1([1.0, 9.0])
    assert caught.value.remedy == "give lists of numbers, one per vector"
