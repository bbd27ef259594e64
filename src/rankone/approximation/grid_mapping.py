"""A contextual mapping on the grid: keys and a query that make all context ids differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, product
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy import array, int64
from numpy.typing import NDArray

from rankone.approximation.cell_grid import CellGrid
from rankone.arrays import Floats, Ints


@dataclass(frozen=True)
class GridMapping:
    """Keys x_l = key(t) / widest + place l, t the number of token l, and one query y for all make

        c = sum_l x_l e^(y x_l) / sum_l e^(y x_l),   s = V k + t + 1/2 c / range

    (V k only with positions): the context id of token k on the line that the readout looks along.
    A token moves it by 1, its context by less than 1/2; so different tokens are apart, as in
    eq. 28, and ``gap``, the smallest distance of two ids, is that of contexts of one token, if it
    has several. ``keys`` are the integers key(t), from 0 up to ``widest``, or None for t itself;
    ``query`` is y.
    """

    keys: Ints | None
    widest: int
    query: float
    place: float = 0.0
    gap: float = math.inf

    def range(self, n: int) -> float:
        """The largest key."""
        return 1.0 + self.place * (n - 1)


def choose_mapping(grid: CellGrid, sequences: Ints) -> GridMapping:
    """The candidate with the largest gap between context ids, measured over the whole grid."""
    measured = (replace(m, gap=measure_gap(grid, m, sequences)) for m in candidates(grid))
    return max(measured, key=lambda mapping: mapping.gap)


def candidates(grid: CellGrid) -> Iterator[GridMapping]:
    """Three ways to tell contexts apart by one number.

    *Sums* (d = 1 or n = 2). F1 may send a cell to any key, so take keys with distinct sums: a query
    y near 0 makes c the mean plus at most y / 4, for its derivative is a variance, and
    y = 1 / (n widest) leaves three quarters of the smallest gap, 1 / (n widest). For n = 2 there is
    one other token, c grows with its key for all y <= 1, and the keys are the cells' numbers.

    *Powers* (d > 1). F1 acts on coordinates one by one, and sums of such keys cannot tell
    {(0, 0), (1, 1)} from {(0, 1), (1, 0)}. The softmax can: c = mean + y variance + O(y^2), the
    power sums of the numbers of the tokens, one below the other. The best y is of the order
    of 1 / (n V); too small a y brings the second too close together, too large a y mixes the two.

    *Digits* (positions, n > 2). With e^(y place) = B, a multiple of V, token l has a weight of
    about B^l: c is a number written in base B whose digits are the tokens.
    """
    d, D, n, V = grid.d, grid.cells, grid.n, grid.tokens
    last = max(1, V - 1)
    if n <= 2:
        yield GridMapping(None, last, 0.5)
    elif grid.positions:
        for place in (4.0, 8.0):
            for base in (2.0, 4.0, 8.0):
                yield GridMapping(None, last, math.log(base * V) / place, place)
    elif d == 1:
        keys = distinct_sums(D, n - 1)
        widest = max(1, int(keys.max()))
        yield GridMapping(keys, widest, 1 / (n * widest))
    else:
        for power in range(4, 15):
            yield GridMapping(None, last, 2 ** (power / 4) / (n * V))


def measure_gap(grid: CellGrid, mapping: GridMapping, sequences: Ints) -> float:
    """The smallest distance of two context ids on the line; infinite if there is only one."""
    x = keys_of(grid, mapping, sequences)
    c = (weights(mapping, x) * x).sum(1)
    own = sequences + grid.tokens * np.arange(grid.n) if grid.positions else sequences
    s = (own + 0.5 * c[:, None] / mapping.range(grid.n))[grid.owners(sequences)]
    s.sort()
    return float(np.diff(s).min(initial=math.inf))


def keys_of(grid: CellGrid, mapping: GridMapping, sequences: Ints) -> Floats:
    """x_l of every token of the sequences."""
    key = sequences if mapping.keys is None else mapping.keys[sequences]
    return np.asarray(key / mapping.widest + mapping.place * np.arange(grid.n))


def weights(mapping: GridMapping, x: Floats) -> Floats:
    """The softmax of y x_l over a sequence."""
    exponentials = np.exp(mapping.query * (x - x.max(1, keepdims=True)))
    return np.asarray(exponentials / exponentials.sum(1, keepdims=True))


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
