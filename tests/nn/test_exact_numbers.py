"""Exact numbers: what they are made from, how they are written, their size, and balls."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx, fmpq
from hypothesis import example, given
from hypothesis import strategies as st

from rankone.nn.exact.numbers import PLAIN, ball, bits, exact, middle, parsed, power, written

fractions = st.fractions() | st.builds(
    Fraction, st.integers(-(1 << 200), 1 << 200), st.integers(1, 1 << 200)
)


def plain(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


@given(fractions, st.integers(), st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_taken_as_the_fraction_it_is(x: Fraction, n: int, y: float) -> None:
    assert plain(exact(x)) == x
    assert exact(exact(x)) == exact(x)
    assert plain(exact(n)) == n
    assert plain(exact(y)) == Fraction(y)


@pytest.mark.parametrize("odd", [float("inf"), float("nan")])
def test_what_is_no_number_is_refused(odd: Any) -> None:
    with pytest.raises((ValueError, OverflowError)):
        exact(odd)


@given(fractions)
@example(Fraction(PLAIN))
@example(Fraction(-PLAIN - 1, PLAIN + 2))
@example(Fraction(1, PLAIN))
@example(Fraction(0))
def test_what_is_written_reads_back(x: Fraction) -> None:
    text = written(exact(x))
    assert plain(parsed(text)) == x
    top, _, bottom = text.partition("/")
    assert (bottom == "") == (x.denominator == 1)
    for part, number in ((top, x.numerator), (bottom or "1", x.denominator)):
        assert part.lstrip("-").startswith("0x") == (abs(number) > 1 << 53)


def test_a_number_longer_than_python_prints_is_written() -> None:
    long = 10 ** (2 * sys.get_int_max_str_digits())
    text = written(exact(Fraction(-long, 3)))
    assert text == f"{hex(-long)}/3"
    assert plain(parsed(text)) == Fraction(-long, 3)


@pytest.mark.parametrize(
    ("text", "number"), [("-3/4", Fraction(-3, 4)), ("0x1f/2", Fraction(31, 2)), ("-0", 0)]
)
def test_spellings(text: str, number: Fraction) -> None:
    assert plain(parsed(text)) == number


@pytest.mark.parametrize("text", ["", "x", "1e5", "0.5", "1/", "/2", "0x", "1//2", "007"])
def test_what_is_not_written_so_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parsed(text)


@pytest.mark.parametrize(
    ("x", "count"),
    [(0, 0), (1, 1), (-1, 1), (255, 8), (256, 9), (Fraction(1, 2), 2), (Fraction(-7, 8), 6)],
)
def test_bits_of_numerator_and_denominator(x: Any, count: int) -> None:
    assert bits(exact(x)) == count


@given(st.integers(-3000, 3000))
def test_powers_of_two(exponent: int) -> None:
    assert plain(power(exponent)) == Fraction(2) ** exponent


@given(fractions, st.integers(10, 300))
def test_a_ball_holds_its_fraction(x: Fraction, precision: int) -> None:
    with ctx.workprec(precision):
        found = ball(exact(x))
        at, radius = map(plain, middle(found))
        assert at - radius <= x <= at + radius
        assert radius <= abs(x) * Fraction(2) ** (2 - precision)
        assert ball(found) is found
    assert middle(exact(x)) == (exact(x), 0)


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300))
def test_midpoint_and_radius_of_a_ball(mid: float, rad: float) -> None:
    at, radius = map(plain, middle(arb(mid, rad)))
    assert at == Fraction(mid)
    assert Fraction(rad) <= radius <= Fraction(rad) * Fraction(1 + 2**-20) + Fraction(2) ** -1074


@pytest.mark.parametrize("odd", [arb("nan"), arb("inf"), arb(0, arb("inf"))])
def test_balls_without_a_middle(odd: arb) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        middle(odd)
