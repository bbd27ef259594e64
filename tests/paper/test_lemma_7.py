"""Lemma 7: how far apart boltz puts two vectors, from the first place where they differ."""

import math
import random

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from paper.problems import SLACKS, boltz, distance, exceeds, needed, pairs
from rankone.errors import VectorError
from rankone.theory import lemma7


@given(pair=pairs())
def test_the_distance_exceeds_the_bound(pair):
    a, b = pair
    claim = lemma7(a, b)
    assert claim.ok
    assert exceeds(distance(a, b), claim.log_bound)


@given(
    n=st.sampled_from([2, 3, 8, 20, 150]),
    k=st.floats(0, 1),
    slack=st.sampled_from(SLACKS),
    tails=st.tuples(st.booleans(), st.booleans()),
)
def test_the_tightest_packing_does_not_break_it(n, k, slack, tails):
    """Gaps at the threshold, k common entries, then a one step above b; the tails near or far."""
    step = needed(n) + slack
    k = min(n - 1, int(k * n))
    head = [-step * i for i in range(k)]
    rest = range(n - k - 1)
    a, b = (
        [*head, -step * (k + first), *(-step * (k + 2 + i + (n if far else 0)) for i in rest)]
        for first, far in ((0, tails[0]), (1, tails[1]))
    )
    claim = lemma7(a, b)
    assert claim.ok
    assert exceeds(distance(a, b), claim.log_bound)


def test_the_bound_is_eq_117():
    a, b = [9.0, -5.0, 1.0], [9.0, -30.0, -5.0]  # k = 1, a_1 - b_{k+1} = 9 + 5
    expected = 2 * math.log(math.log(3)) - 14
    claim = lemma7(a, b)
    assert claim.ok
    assert claim.delta == 6.0
    assert claim.log_bound == pytest.approx(expected, abs=1e-13)
    assert claim.log_bound <= lemma7(*([arb(x) for x in row] for row in (a, b))).log_bound


@given(pair=pairs(), seed=st.integers(0, 99))
def test_neither_order_nor_names_matter(pair, seed):
    a, b = pair
    mixed = random.Random(seed).sample(a, len(a))
    assert lemma7(a, b) == lemma7(b, a) == lemma7(mixed, b)


def test_one_entry():
    """(log 1)^2 = 0: the lemma says only that they differ; what holds is the gap itself."""
    claim = lemma7([0.0], [-3.5])
    assert claim.ok
    assert claim.log_bound == -math.inf
    assert distance([0.0], [-3.5]) == 3.5


def test_too_close_together_two_vectors_can_collide():
    """x e^x / (1 + e^x) falls and rises again: some (0, x) and (0, y) have one average."""
    with ctx.workprec(200):
        target = boltz([0, -4])
        low, high = arb(-1.2), arb(0)  # here it rises, from below the target to above
        for _ in range(60):
            middle = ((low + high) / 2).mid()
            low, high = (middle, high) if boltz([0, middle]) < target else (low, middle)
        x = float(low)
    claim = lemma7([0.0, x], [0.0, -4.0])
    assert "apart, not more than 2 log n + 3" in claim.broken
    assert distance([0.0, x], [0.0, -4.0]) < 1e-15
    assert claim.log_bound is None
    assert math.log(2) ** 2 * math.exp(-4) > 1e-3  # eq. 117 without the hypothesis


def test_repeated_entries_break_it():
    """(0, 0, y, y) weighs 0 and y as (0, y) does, and the rest of b is far below."""
    y = -needed(4) - 1
    a, b = [0.0, 0.0, y, y], [0.0, y, 4 * y, 5 * y]
    claim = lemma7(a, b)
    assert "occurs twice in vector 0" in claim.broken
    assert claim.log_bound is None
    assert claim.missing is None  # the distances are fine
    assert not exceeds(distance(a, b), 2 * math.log(math.log(4)) + y)  # eq. 117 all the same


def test_equal_sets_are_not_told_apart():
    claim = lemma7([0.0, 9.0], [9.0, 0.0])
    assert claim.broken == "a and b are equal as sets"
    assert claim.log_bound is None
    assert claim.missing is None


@pytest.mark.parametrize("n", [2, 5, 100])
def test_a_gap_short_of_the_threshold_is_refused(n):
    rest = [-1000.0 * i for i in range(1, n)]
    for step, ok in ((needed(n) - 1e-12, False), (needed(n) + 1e-12, True)):
        claim = lemma7([0.0, *rest], [-step, *rest])
        assert claim.ok is ok
        assert claim.delta == step


def test_numbers_beyond_float64():
    """The literal constants give logits of 1e21 and more; arb takes any."""
    far = arb(2) ** 5000
    claim = lemma7([arb(0), -far], [arb(0), -2 * far])
    assert claim.ok
    assert claim.log_bound < -1.9 * far
    assert claim.log_bound.overlaps(2 * arb(2).log().log() - 2 * far)


def test_vectors_of_different_lengths_are_refused():
    with pytest.raises(VectorError, match="appendix_c"):
        lemma7([0.0, 9.0], [0.0])
