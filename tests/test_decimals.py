"""Decimal strings of bounds: on the safe side, close, and of any size."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan

import pytest
from flint import arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st

from rankone.decimals import ceiled, floored, log10


@example(1.0)
@example(-1.0)
@example(999999.5)
@example(5e-324)
@example(1.7976931348623157e308)
@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
def test_floats(x: float) -> None:
    low, high, exact = Decimal(floored(x)), Decimal(ceiled(x)), Decimal(x)
    assert low < exact < high
    assert high - low < abs(exact) * Decimal("3e-5")


@given(st.integers(-(10**7), 10**7), st.floats(1, 10, exclude_max=True), st.sampled_from([1, -1]))
def test_numbers_beyond_floats(exponent: int, mantissa: float, sign: int) -> None:
    with ctx.workprec(100):
        x = sign * arb(mantissa) * arb(10) ** exponent
        low, high = arb(floored(x)), arb(ceiled(x))
        assert low < x < high
        assert high - low < abs(x) * 3e-5


@given(st.floats(0.1, 10), st.floats(1e-30, 0.05))
def test_balls_count_with_their_ends(mid: float, rad: float) -> None:
    x = arb(mid, rad)
    assert Decimal(floored(x)) < Decimal(mid) - Decimal(rad)
    assert Decimal(ceiled(x)) > Decimal(mid) + Decimal(rad)


def test_zero_and_what_is_not_finite() -> None:
    assert (floored(0.0), ceiled(arb(0))) == ("0", "0")
    assert (floored(inf), ceiled(inf)) == ("inf", "inf")
    assert (floored(nan), ceiled(nan)) == ("-inf", "inf")
    assert floored(arb("[0 +/- inf]")) == "-inf"


def test_logarithms() -> None:
    assert log10(floored(1000.0)) == pytest.approx(3, abs=1e-5)
    assert log10(floored(arb(10) ** -103118)) == pytest.approx(-103118, abs=1e-5)
    assert log10("0") == -inf
