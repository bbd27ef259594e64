"""Corollary 2: positions that keep the tokens apart, with eq. 48 repaired."""

import math
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rankone.errors import RankOneError
from rankone.theory import corollary2, theorem2


def norm2(x):
    return sum(y * y for y in x)


@st.composite
def tokens_at_positions(draw):
    """Tokens of norm below r_max, more than epsilon apart, plus positions: rational, as sqrt d is.

    Many lie close to r_max along (1, ..., 1), where two positions come nearest to each other.
    """
    root = draw(st.sampled_from([1, 2]))
    dim, n = root * root, draw(st.integers(1, 4))
    r_max = Fraction(draw(st.integers(1, 50)), 10)
    share = Fraction(draw(st.integers(-999_999, 999_999)), 10**6)
    along = [share * r_max / root] * dim
    scatter = [
        [Fraction(draw(st.integers(-99, 99)), 100) * r_max / dim for _ in range(dim)]
        for _ in range(2)
    ]
    edge = Fraction(999_999, 10**6) * r_max / root
    tokens = [along, [edge] * dim, [-edge] * dim, *scatter]
    tokens = [x for i, x in enumerate(tokens) if x not in tokens[:i]]
    closest = min(
        norm2(p - q for p, q in zip(x, y, strict=True)) for x, y in combinations(tokens, 2)
    )
    epsilon = Fraction(math.isqrt(int(closest * 10**20)), 10**10) * Fraction(999_999, 10**6)
    assume(epsilon > 0)
    step = (2 * r_max + epsilon) / root
    placed = [[y + k * step for y in x] for x in tokens for k in range(1, n + 1)]
    return r_max, epsilon, n, dim, placed


@given(problem=tokens_at_positions())
def test_tokens_with_positions_are_separated_as_claimed(problem):
    """Definition 1 in exact arithmetic, with the constants that the bound starts from."""
    r_max, epsilon, n, dim, placed = problem
    low, high = r_max + epsilon, r_max + n * (2 * r_max + epsilon)
    assert all(low**2 < norm2(x) < high**2 for x in placed)
    for x, y in combinations(placed, 2):
        assert norm2(p - q for p, q in zip(x, y, strict=True)) > epsilon**2
    bound = corollary2(float(r_max), float(epsilon), n=n, dim=dim, sentences=3)
    assert (bound.r_min, bound.r_max) == pytest.approx((float(low), float(high)), rel=1e-14)


@given(
    r_max=st.floats(1e-3, 1e3),
    share=st.floats(1e-6, 1),
    n=st.integers(1, 60),
    sentences=st.integers(1, 10**5),
)
def test_the_bound_is_theorem_2_for_the_sum(r_max, share, n, sentences):
    epsilon = 2 * r_max * share
    bound = corollary2(r_max, epsilon, n=n, dim=8, sentences=sentences)
    exact = Fraction(r_max), Fraction(epsilon)
    assert Fraction(bound.r_min) <= sum(exact)
    assert Fraction(bound.r_max) >= exact[0] + n * (2 * exact[0] + exact[1])
    assert bound.vocabulary == n * sentences
    again = theorem2(bound.r_min, bound.r_max, epsilon, vocabulary=n * sentences, n=n, dim=8)
    assert bound == again


def test_a_known_vocabulary_is_used():
    few = corollary2(1.0, 0.1, n=5, dim=4, sentences=1000, vocabulary=40)
    assert few.vocabulary == 40
    assert few.log_delta > corollary2(1.0, 0.1, n=5, dim=4, sentences=1000).log_delta


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0.0}, {"r_max": -1.0}, {"n": 0}, {"sentences": 0}, {"vocabulary": 4}],
    ids=str,
)
def test_conditions_that_are_not_met_are_refused(change):
    good = {"r_max": 1.0, "epsilon": 0.1, "n": 5, "dim": 4, "sentences": 10}
    corollary2(**good)
    with pytest.raises(RankOneError):
        corollary2(**{**good, **change})
