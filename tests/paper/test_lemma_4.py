"""Lemma 4: the derivative of boltz, and where it is negative."""

import math

import pytest
from flint import arb, ctx
from hypothesis import example, given

from paper.problems import below_the_rest, bits, derivatives
from rankone.errors import SettingError, VectorError
from rankone.theory import gradient, lemma4


@given(problem=below_the_rest(1))
def test_the_derivative_is_negative_under_the_hypothesis(problem):
    a, i = problem
    assert lemma4(a, i).ok
    with ctx.workprec(bits(a)):
        assert derivatives(a, i)[0] < 0


@given(problem=below_the_rest(1))
@example(problem=([0.0, -1e4], 1))
def test_eq_83_is_the_derivative(problem):
    a, i = problem
    with ctx.workprec(bits(a)):
        slope = gradient([arb(x) for x in a])[i]
        assert slope.overlaps(derivatives(a, i)[0])
        assert slope.rel_accuracy_bits() > 80


def test_outside_the_hypothesis_the_derivative_may_be_positive():
    for a in ([0.0, 0.0], [0.0, -1.2], [0.0, 0.0, 0.0, -0.9]):
        i = len(a) - 1
        assert lemma4(a, i).broken.startswith(f"max - a[{i}] = ")
        assert derivatives(a, i)[0] > 0


@pytest.mark.parametrize("n", [2, 3, 10, 1000])
def test_the_border_is_decided_to_the_last_bit(n):
    """The floats on both sides of log n + 1, which is none: one is refused, one accepted."""
    with ctx.workprec(100):
        border = arb(n).log() + 1
        x = float(border)
        under, over = (x, math.nextafter(x, 9)) if x < border else (math.nextafter(x, 0), x)
        zeros = [0.0] * (n - 1)
        assert not lemma4([*zeros, -under], n - 1).ok
        assert lemma4([*zeros, -over], n - 1).ok
    assert not lemma4([*zeros, -under], n - 1).ok  # nor with fewer bits


def test_the_largest_entry_never_qualifies():
    assert not lemma4([0.0, -50.0], 0).ok
    assert lemma4([0.0, -50.0], 0).missing == pytest.approx(math.log(2) + 1, rel=1e-15)
    assert not lemma4([3.0], 0).ok


def test_the_answer_is_in_the_kind_of_the_question():
    floats, balls = lemma4([0.0, -5.0], 1), lemma4([arb(0), arb(-5)], 1)
    assert (type(floats.delta), type(balls.delta)) == (float, arb)
    assert balls.threshold.contains(arb(2).log() + 1)
    assert floats.to_json() == {
        "ok": True,
        "says": "Lemma 4: d boltz(a) / d a[1] < 0",
        "n": 2,
        "delta": 5.0,
        "threshold": float(arb(2).log() + 1),
        "missing": None,
        "broken": None,
    }


@pytest.mark.parametrize(
    "a", [[], [math.nan, 0.0], [0.0, -math.inf], [arb(1) / 3, arb(0)]], ids=str
)
def test_what_is_not_a_vector_of_exact_numbers_is_refused(a):
    with pytest.raises(VectorError):
        lemma4(a, 0)


@pytest.mark.parametrize("i", [-1, 2, 0.0, True, "0", None], ids=repr)
def test_what_is_no_place_is_refused(i):
    with pytest.raises(SettingError, match=r"i = 2 cannot be used|not a whole number"):
        lemma4([0.0, -9.0], i)
