"""Slips in Lemmas 1, 6 and 7 and their proofs (eq. 94 to 131), judged in ball arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from paper.problems import boltz, pairs
from rankone.theory.lemmas import lemma1, lemma6, lemma7

Numbers = list[arb]
Pair = tuple[Numbers, Numbers, int]


@pytest.fixture(autouse=True, scope="module")
def precision() -> Iterator[None]:
    """Enough bits for every difference below; a comparison of balls is true only if certain."""
    with ctx.workprec(3000):
        yield


def numbers(*values: float) -> Numbers:
    return [arb(value) for value in values]


def log(x: int) -> arb:
    return arb(x).log()


def ordered(pair: tuple[list[float], list[float]]) -> Pair:
    """As Lemma 7 wants them: decreasing, k entries in common, then a above b. And k."""
    a, b = (sorted(x, reverse=True) for x in pair)
    a, b = max(a, b), min(a, b)
    k = next(k for k in range(len(a)) if a[k] != b[k])
    return numbers(*a), numbers(*b), k


any_pair = pairs(max_n=6).map(ordered)
sharing_pair = any_pair.filter(lambda pair: pair[2] >= 1)


def gap(a: Numbers, b: Numbers) -> arb:
    return abs(boltz(a) - boltz(b))


def test_lemma_1_is_about_sets() -> None:
    """Lemma 1 claims a gap "for a^(i) != a^(j)"; but boltz does not see the order.

    a = (10, 0) and b = (0, 10) are different, 10 > 2 log 2 + 3 apart, within r = 10.5, and their
    gap is 0. Repair: for vectors that differ as sets.
    """
    a, b = numbers(10, 0), numbers(0, 10)
    assert a != b
    assert arb(10) > 2 * log(2) + 3
    assert gap(a, b) < log(2) ** 2 * (-2 * arb(10.5)).exp()


@given(pair=any_pair, data=st.data())
def test_lemma_1_repaired(pair: Pair, data: st.DataObject) -> None:
    """Lemma 1 for sets: in any order of their entries, vectors of different sets lie apart."""
    a, b, _ = pair
    claim = lemma1([a, b])
    assert claim.ok, claim.broken
    assert gap(data.draw(st.permutations(a)), data.draw(st.permutations(b))) > claim.log_bound.exp()


def test_eq_101_multiplies_bounds_of_different_signs() -> None:
    """Eq. 101 replaces p < 1/4 and x < -2 in (1 - 2p) x + 1 by their bounds; it is right.

    1 - 2p > 1/2 is positive and x negative, so the product is below 1/2 times -2. Shown on a grid
    up to the border, where it is 0.
    """
    quarter, two = Fraction(1, 4), Fraction(2)
    assert (1 - 2 * quarter) * -two + 1 == 0
    for i in range(1, 50):
        for j in range(1, 50):
            p, x = quarter * (1 - Fraction(i, 50)), -two - Fraction(j, 50)
            assert (1 - 2 * p) * x + 1 < 0


def test_lemma_6_words_the_difference_the_wrong_way_round() -> None:
    """Lemma 6 calls eq. 103 a lower bound of boltz(a) - boltz(b); the formula has b - a.

    a = (0, -10), b = (0, -11): raising the last entry lowers boltz, so a - b is negative.
    """
    a, b = numbers(0, -10), numbers(0, -11)
    claim = lemma6(a, b)
    assert claim.ok
    assert boltz(a) - boltz(b) < 0
    assert boltz(b) - boltz(a) > claim.log_bound.exp() > 0


def test_eq_106_to_109_illustrate_rightly() -> None:
    """(8, 6, 5) is not 2 log 3 + 3 apart, so no lemma covers the sketch; its inequalities hold."""
    value = {a: boltz(numbers(*a)) for a in [(8, 6, 5), (4, 3, 1), (8, 3, 1), (8, 3, 3), (8, 6)]}
    assert not lemma7(numbers(8, 6, 5), numbers(8, 3, 1)).ok
    assert value[8, 6, 5] > value[4, 3, 1]  # eq. 106
    assert value[8, 3, 1] > value[8, 3, 3]  # eq. 107: 7.9602, 7.9335
    assert value[8, 6, 5] < value[8, 6]  # eq. 108: 7.6456, 7.7616
    merged = boltz([arb(8), 3 + log(2)])  # eq. 109: 7.9427
    assert abs(merged - value[8, 3, 3]) < 0.01
    assert value[8, 6] < value[8, 3, 3] < merged


def printed_114(a: Numbers, delta: arb) -> bool:
    return all(a[i] - a[j] > delta for i in range(len(a)) for j in range(i))


def test_eq_114_has_its_indices_swapped() -> None:
    """Eq. 114 asks a_i - a_j > delta for i > j, of vectors "in a decreasing order".

    No decreasing vector of two entries has that. Vectors that do have it increase, and for them
    eq. 117 fails: a = (0, 20), b = (0, 10), k = 1 lie 10 apart, and (log 2)^2 e^10 = 10582. Repair:
    i < j; decreasing, the same numbers are as far apart as eq. 117 says.
    """
    a, b, delta = numbers(0, 20), numbers(0, 10), 2 * log(2) + 3
    assert not printed_114(a[::-1], delta)
    assert printed_114(a, delta)
    assert printed_114(b, delta)
    assert gap(a, b) < log(2) ** 2 * (-(a[0] - b[1])).exp()
    claim = lemma7(a[::-1], b[::-1])
    assert claim.ok
    assert gap(a, b) > claim.log_bound.exp()


@given(pair=any_pair)
def test_lemma_7_repaired(pair: Pair) -> None:
    """Eq. 117 with i < j in eq. 114, written out here and as the library has it."""
    a, b, k = pair
    n = len(a)
    assert all(x - y > 2 * log(n) + 3 for v in (a, b) for x, y in pairwise(v))
    bound = log(n) ** 2 * (-(a[0] - b[k])).exp()
    assert gap(a, b) > bound
    claim = lemma7(a, b)
    assert claim.ok
    assert claim.log_bound.exp().overlaps(bound)


@given(pair=sharing_pair)
def test_eq_120_is_an_equality_for_k_n_minus_1(pair: Pair) -> None:
    """Eq. 120: boltz(a) < boltz(a_1..a_{k+1}) and boltz(b) > boltz(a_1..a_k, b_{k+1}, ..).

    For k = n - 1 both sides are the same vector, so neither is strict. Repair: <= and >=. (Strict
    it is for every smaller k.)
    """
    a, b, k = pair
    n = len(a)
    upper, lower = a[: k + 1], [*a[:k], *[b[k]] * (n - k)]
    if k == n - 1:
        assert upper == a
        assert lower == b
    else:
        assert boltz(a) < boltz(upper)
        assert boltz(b) > boltz(lower)


@given(pair=any_pair)
def test_eq_122_is_right(pair: Pair) -> None:
    """Eq. 122: n - k equal entries act as one entry higher by log(n - k), less a correction."""
    a, b, k = pair
    extra = log(len(a) - k)
    xi = sum((x.exp() for x in a[:k]), arb(0))
    one = (b[k] + extra).exp()
    right = boltz([*a[:k], b[k] + extra]) - extra * one / (xi + one)
    left = boltz([*a[:k], *[b[k]] * (len(a) - k)])
    assert abs(left - right) < arb(2) ** -1000


def test_eq_124_is_right() -> None:
    """Eq. 124 replaces log(n - k) + log(k + 1) by 2 log n: (n - k)(k + 1) <= n^2 for every k."""
    assert all((n - k) * (k + 1) <= n * n for n in range(1, 60) for k in range(n))


@given(pair=sharing_pair)
def test_eq_127_is_right(pair: Pair) -> None:
    """Eq. 127, all three inequalities, for gaps hardly above delta = 2 log n + 3."""
    a, b, k = pair
    delta, top = 2 * log(len(a)) + 3, a[0].exp()
    first = sum((x.exp() for x in a[:k]), arb(0)) + (b[k] + log(len(a) - k)).exp()
    second = sum((x.exp() for x in a[: k + 1]), arb(0))
    third = top * sum(((-delta * j).exp() for j in range(k + 1)), arb(0))
    assert first < second < third < 2 * top


@given(pair=sharing_pair)
def test_eq_128_ends_in_an_equality_for_k_n_minus_1(pair: Pair) -> None:
    """The last ">" of eq. 128 drops the factor e^log(n - k), which is 1 for k = n - 1.

    Repair: ">=". The claim stays strict, because the ">" before it is.
    """
    a, b, k = pair
    n = len(a)
    middle = (b[k] + log(n - k)).exp() / (2 * a[0].exp()) * 2 * log(n) ** 2
    last = log(n) ** 2 * (-(a[0] - b[k])).exp()
    assert middle.overlaps(last) if k == n - 1 else middle > last
    upper, lower = a[: k + 1], [*a[:k], *[b[k]] * (n - k)]
    assert boltz(lower) - boltz(upper) > middle


def test_eq_131_says_nothing_for_one_token() -> None:
    """After eq. 131, log n is called greater than (log n)^2 e^-(a_1 - b_1): for n = 1, 0 > 0.

    Eq. 117 holds for n = 1 all the same: the gap a_1 - b_1 is positive.
    """
    a, b = numbers(4), numbers(0)
    assert not log(1) > log(1) ** 2 * (-(a[0] - b[0])).exp()
    assert gap(a, b) == 4 > log(1) ** 2
    for n in range(2, 60):
        delta = 2 * log(n) + 3 + arb(2) ** -60
        assert delta / (1 + (n - 1) * (-delta).exp()) >= log(n) > log(n) ** 2 * (-delta).exp()
