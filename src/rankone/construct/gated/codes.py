"""Codes of words and positions: coordinates of which every row has the same number of ones.

Of 2k coordinates a code has k ones. Two different codes of the same size never contain each other
(Sperner), so a gate that fines every coordinate outside its code is exactly 0 for the code itself,
and at least one fine below 0 for every other. No number is rounded in that, in any order.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints

SMALLEST = 2
LARGEST = 60  # the number of codes must fit into 63 bits


def coordinates_for(count: int) -> int:
    """The smallest even number of coordinates that has so many codes."""
    size = SMALLEST
    while comb(size, size // 2) < count:
        size += 2
    return size


def codes(numbers: Ints, size: int) -> NDArray[np.uint8]:
    """The code of each number below ``comb(size, size // 2)``, as a row of zeros and ones.

    Number r stands for the r-th subset of k of the coordinates, in the order of the combinatorial
    number system: coordinate i, from the last one down, is a one if r is no smaller than the number
    of ways to choose what is left of the ones among the i coordinates below it.

    >>> codes(np.arange(3), 4)
    array([[1, 1, 0, 0],
           [1, 0, 1, 0],
           [0, 1, 1, 0]], dtype=uint8)
    """
    rest, ones = numbers.astype(np.int64), np.full(len(numbers), size // 2)
    out = np.empty((size, len(numbers)), np.uint8)
    ways = np.array([[comb(i, k) for k in range(size // 2 + 1)] for i in range(size)])
    for i in range(size - 1, -1, -1):
        below = ways[i][ones]
        one = rest >= below
        rest -= np.where(one, below, 0)
        ones -= one
        out[i] = one
    return np.ascontiguousarray(out.T)
