"""Numbers as decimal strings, rounded to the safe side: they may underflow every float."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from flint import arb

SHOWN = 6  # significant digits
# Another processor or library adds up in another order and finds radii that differ a little; what
# is written down leaves room for that, so that a certificate can be checked anywhere.
ROOM = 2.0**-20


def floored(x: arb | float) -> str:
    """A decimal number just below x."""
    return _rounded(x, -1)


def ceiled(x: arb | float) -> str:
    """A decimal number just above x."""
    return _rounded(x, 1)


def log10(text: str) -> float:
    """The logarithm of such a number."""
    value = Decimal(text)
    return float(value.log10()) if value > 0 else float("-inf")


def _rounded(x: arb | float, side: int) -> str:
    ball = x if isinstance(x, arb) else arb(x)
    if not ball.is_finite():
        return "inf" if side > 0 or ball > 0 else "-inf"
    ball = ball + side * ROOM * abs(ball)
    mid, rad, exponent = map(int, ball.mid_rad_10exp(SHOWN + 6))
    exact = Decimal(mid + side * rad).scaleb(0)
    context = Context(prec=SHOWN, rounding=ROUND_CEILING if side > 0 else ROUND_FLOOR)
    digits = context.plus(exact)
    # the exponent is put on by hand: it may be beyond what Decimal's own arithmetic allows
    sign, figures, shift = digits.as_tuple()
    assert isinstance(shift, int)
    mantissa = "".join(map(str, figures))
    power = exponent + shift + len(mantissa) - 1
    if not any(figures):
        return "0"
    text = f"{mantissa[0]}.{mantissa[1:].rstrip('0') or '0'}"
    return f"{'-' if sign else ''}{text}e{power:+03d}"
