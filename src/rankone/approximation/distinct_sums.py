"""Keys for sums: sets of integers in which no two sums of h elements are equal."""

from __future__ import annotations

from itertools import count, product
from math import isqrt
from typing import NamedTuple

from numpy import array, int64
from numpy.typing import NDArray


def distinct_sums(size: int, h: int) -> NDArray[int64]:
    """`size` integers from 0 up, in order, all of whose sums of `h` (repeats allowed) differ.

    The narrower of two: 0 and the powers of h + 1 (sums are numbers written in that base), or the
    set of Bose and Chowla (1962), p numbers below p^h for a prime p. It has about p^h / h! sums, so
    it is as narrow as can be up to a factor of about h h!.

    >>> distinct_sums(4, 2).tolist()
    [0, 1, 3, 9]
    >>> len({a + b for a in distinct_sums(7, 2) for b in distinct_sums(7, 2)})
    28
    """
    if h <= 1 or size <= 2:
        return array(range(size), int64)
    powers = [0, *((h + 1) ** t for t in range(size - 1))]
    prime = next(p for p in count(size) if all(p % q for q in range(2, p)))
    if powers[-1] < prime**h:
        return array(powers, int64)
    numbers = sorted(_bose_chowla(prime, h))
    # Any `size` of them do: take those that lie closest together.
    first = min(range(prime - size + 1), key=lambda i: numbers[i + size - 1] - numbers[i])
    return array(numbers[first : first + size], int64) - numbers[first]


def _bose_chowla(p: int, h: int) -> list[int]:
    """The logarithms of x + c, c = 0..p-1, to the base x, in the field of p^h elements.

    Two equal sums would make two products of h such factors equal: their difference has a degree
    below h and x for a root, which an element of degree h is not. An element of the field is a
    polynomial in x of degree below h, its coefficients from the lowest on. The modulus says what
    x^h is; it has to make every element but 0 a power of x.
    """
    order = p**h - 1
    cofactors = [order // r for r in _prime_factors(order)]
    one = (1, *[0] * (h - 1))
    for *rest, constant in product(range(p), repeat=h):
        field = _Field(p, (constant, *rest))
        if field.power(order) == one and all(field.power(c) != one for c in cofactors):
            break
    # Baby steps, giant steps: x^0, x^1, ... in a table, then x + c by x^-steps until it is there.
    steps = min(order, isqrt(order * p) + 1)
    table, element = {}, one
    for power in range(steps):
        table[element] = power
        element = field.times_x(element)
    giant = field.power((order - steps) % order)
    found = []
    for c in range(p):
        element, power = (c, 1, *[0] * (h - 2)), 0
        while element not in table:
            element, power = field.times(element, giant), power + steps
        found.append(power + table[element])
    return found


class _Field(NamedTuple):
    """Polynomials over the integers mod p, where x^h = modulus_0 + modulus_1 x + ..."""

    p: int
    modulus: tuple[int, ...]

    def times_x(self, a: tuple[int, ...]) -> tuple[int, ...]:
        p, top, shifted = self.p, a[-1], (0, *a[:-1])
        return tuple((b + top * c) % p for b, c in zip(shifted, self.modulus, strict=True))

    def times(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        result = tuple(0 for _ in a)
        for factor in reversed(b):
            shifted = self.times_x(result)
            result = tuple((s + factor * c) % self.p for s, c in zip(shifted, a, strict=True))
        return result

    def power(self, exponent: int) -> tuple[int, ...]:
        """x to the power."""
        result = (1, *[0] * (len(self.modulus) - 1))
        for bit in format(exponent, "b"):
            result = self.times(result, result)
            if bit == "1":
                result = self.times_x(result)
        return result


def _prime_factors(number: int) -> list[int]:
    factors, q = [], 2
    while q * q <= number:
        if number % q == 0:
            factors.append(q)
            while number % q == 0:
                number //= q
        q += 1
    return factors + [number] * (number > 1)
