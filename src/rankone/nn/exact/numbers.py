"""Exact numbers: fractions of any size, how they are written, and how many bits they take."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, fmpq, fmpz

Exactly = int | float | Fraction | fmpq  # what an exact weight may be given as
Number = fmpq | arb  # what a network computes: a fraction, or a ball after a softmax
Vector = list[Number]

ZERO, ONE = fmpq(0), fmpq(1)
PLAIN = 1 << 53  # numbers up to this are written in decimal, larger ones in hexadecimal


def exact(x: Exactly) -> fmpq:
    """The fraction that a number is; a float is a fraction, too."""
    if isinstance(x, fmpq):
        return x
    if isinstance(x, float):
        return fmpq(*x.as_integer_ratio())
    if isinstance(x, Fraction):
        return fmpq(x.numerator, x.denominator)
    if not isinstance(x, int):  # numpy's numbers would lose their fraction
        raise TypeError(f"{x!r} is not an exact number")
    return fmpq(x)


def bits(x: fmpq) -> int:
    """The bits of numerator and denominator; a denominator of 1 takes none."""
    return _length(x.p) + _length(x.q) - 1


def written(x: fmpq) -> str:
    """Numerator, and the denominator after a slash if it is not 1: `-3/4`, `0x20000000000001`.

    Long numbers are hexadecimal, since Python limits how long decimal ones may be.
    """
    return _whole(x.p) if x.q == 1 else f"{_whole(x.p)}/{_whole(x.q)}"


def parsed(text: str) -> fmpq:
    """The number that is `written`; a `ValueError` if there is none."""
    top, slash, bottom = text.partition("/")
    return fmpq(int(top, 0), int(bottom, 0)) if slash else fmpq(int(top, 0))


def ball(x: Number) -> arb:
    """A number as a ball, rounded to the working precision."""
    return x if isinstance(x, arb) else arb(x)


def middle(x: Number) -> tuple[fmpq, fmpq]:
    """Midpoint and radius of a number as fractions; infinite and unknown numbers have none."""
    if isinstance(x, fmpq):
        return x, ZERO
    if not x.is_finite():
        raise ValueError("not a finite number")
    return _dyadic(x.mid()), _dyadic(x.rad())


def power(exponent: int) -> fmpq:
    """2 to this power."""
    return fmpq(fmpz(1) << exponent) if exponent >= 0 else fmpq(1, fmpz(1) << -exponent)


def _dyadic(x: arb) -> fmpq:
    mantissa, exponent = x.man_exp()
    return fmpq(mantissa) * power(int(exponent))


def _length(x: fmpz) -> int:
    return int(x).bit_length()


def _whole(x: fmpz) -> str:
    number = int(x)
    return str(number) if abs(number) <= PLAIN else hex(number)
