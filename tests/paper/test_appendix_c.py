"""Appendix C: masks, where two vectors may have different numbers of visible entries."""

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from paper.problems import SLACKS, distance, exceeds, needed, pairs, visible_pairs
from rankone.errors import VectorError
from rankone.theory import appendix_c, boltzmann, lemma7

inf = math.inf


@given(pair=visible_pairs())
def test_the_distance_exceeds_the_bound(pair):
    a, b = pair
    claim = appendix_c(a, b)
    assert claim.ok
    assert claim.n == max(len(a), len(b))
    assert exceeds(distance(a, b), claim.log_bound)


@given(
    n=st.sampled_from([2, 3, 8, 21, 22, 60, 300]),
    k=st.sampled_from([1, 2, 3, 10**6]),
    slack=st.sampled_from(SLACKS),
)
def test_a_set_that_begins_another_is_told_apart(n, k, slack):
    """The new case: a is the first k entries of b, all gaps at the threshold."""
    step = needed(n) + slack
    b = [-step * i for i in range(n)]
    a = b[: min(k, n - 1)]
    claim = appendix_c(a, b)
    assert claim.ok
    assert exceeds(distance(a, b), claim.log_bound)


def test_lemma_7_as_it_stands_fails_there():
    """(log n)^2 e^{-(a_1 - b_{k+1})} with n = 21 visible entries, one of them in common."""
    n = 21
    step = needed(n) + 1e-9
    b = [-step * i for i in range(n)]
    printed = 2 * math.log(math.log(n)) - step
    assert not exceeds(distance(b[:1], b), printed)
    assert exceeds(distance(b[:1], b), appendix_c(b[:1], b).log_bound)


@given(pair=visible_pairs())
def test_eq_16_survives_masks(pair):
    """(log n)^2 e^{-2r}, r the largest |a_k|: n numbers in [-r, r] make 2r exceed (n-1) delta."""
    a, b = pair
    n = max(len(a), len(b))
    centre = (max(a + b) + min(a + b)) / 2
    a, b = ([x - centre for x in row] for row in (a, b))
    r = max(abs(x) for x in a + b)
    if n >= 2:
        assert exceeds(distance(a, b), 2 * math.log(math.log(n)) - 2 * r)


@given(gap=st.floats(3.0, 1e6, exclude_min=True))
def test_one_visible_entry_each(gap):
    """log 1 + 1 = 1, so e^{-gap} is claimed, and the gap itself is the distance."""
    claim = appendix_c([0.0], [gap])
    assert claim.ok
    assert claim.log_bound == pytest.approx(-gap, rel=1e-15)
    assert lemma7([0.0], [gap]).log_bound == -inf
    assert exceeds(distance([0.0], [gap]), claim.log_bound)


@given(pair=pairs())
def test_with_nothing_masked_it_is_lemma_7_with_another_factor(pair):
    a, b = pair
    n, claim, plain = len(a), appendix_c(a, b), lemma7(a, b)
    assert (claim.delta, claim.threshold) == (plain.delta, plain.threshold)
    if n > 1:
        factor = math.log(math.log(n) + 1) - 2 * math.log(math.log(n))
        assert claim.log_bound == pytest.approx(plain.log_bound + factor, rel=1e-12)
        assert (claim.log_bound > plain.log_bound) == (n <= 5)


@given(pair=visible_pairs(), places=st.lists(st.integers(0, 12), max_size=5))
def test_masked_entries_may_stand_anywhere(pair, places):
    """Eq. 133: -inf contributes to neither side."""
    a, b = pair
    padded = list(a)
    for place in places:
        padded.insert(place, -inf)
    assert appendix_c(padded, b) == appendix_c(a, b)
    assert boltzmann(padded) == pytest.approx(boltzmann(a), rel=1e-13, abs=1e-300)


def test_the_broken_condition_is_named():
    close = appendix_c([0.0], [0.0, -3.0])
    assert "are 3.00000000000 apart" in close.broken
    assert "occurs twice in vector 1" in appendix_c([0.0], [0.0, 0.0]).broken
    assert appendix_c([0.0, -inf], [-inf, 0.0]).broken == "a and b are equal as sets"


def test_outside_the_hypothesis_it_can_fail():
    """A repeated entry need not change boltz; an entry near the largest hardly does."""
    claim = appendix_c([0.0], [0.0, 0.0])
    assert not claim.ok
    assert distance([0.0], [0.0, 0.0]) == 0
    near = appendix_c([0.0], [0.0, -0.01])
    assert not near.ok
    assert not exceeds(distance([0.0], [0.0, -0.01]), near.log_bound)


def test_numbers_in_arb_and_in_arrays():
    a, b = [0.0, -9.0], [0.0, -9.0, -20.0]
    found = appendix_c([arb(x) for x in a], [arb(x) for x in b])
    assert found.log_bound.overlaps((arb(3).log() + 1).log() - 20)
    assert appendix_c(np.array(a), np.array(b)).log_bound <= found.log_bound


def test_a_query_that_sees_nothing_has_no_average():
    with pytest.raises(VectorError, match="empty"):
        appendix_c([-inf, -inf], [0.0])
