"""Karp and Rabin's rolling hash (1987) modulo the prime 2^61 - 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.kernels.compiled.compiler import compiled, inlined

Hashes = NDArray[np.uint64]

PRIME = (1 << 61) - 1
P, LOW, EIGHTH = np.uint64(PRIME), np.uint64((1 << 32) - 1), np.uint64((1 << 29) - 1)
S3, S29, S32, S61 = (np.uint64(shift) for shift in (3, 29, 32, 61))


@inlined
def reduced(x: np.uint64) -> np.uint64:
    """x mod 2^61 - 1, for x < 2^63 or so."""
    x = (x & P) + (x >> S61)
    return x - P if x >= P else x


@inlined
def product(a: np.uint64, b: np.uint64) -> np.uint64:
    """a b mod 2^61 - 1, of halves: 2^64 is 8, and 2^61 is 1."""
    low, high = (a & LOW) * (b & LOW), (a >> S32) * (b >> S32)
    middle = (a & LOW) * (b >> S32) + (a >> S32) * (b & LOW)
    total = (high << S3) + (middle >> S29) + ((middle & EIGHTH) << S32)
    return reduced(total + (low & P) + (low >> S61))


@compiled()
def rolling_hashes(tokens: Ints, offsets: Ints, base: int, window: int, out: Hashes) -> None:
    """sum_i (t_i + 1) b^(n - 1 - i) over the n tokens of a text up to each one, or the last
    `window` of them (0: all)."""
    b, power = np.uint64(base), np.uint64(1)
    for _ in range(window):
        power = product(power, b)
    for j in range(len(offsets) - 1):
        found = np.uint64(0)
        for i in range(offsets[j], offsets[j + 1]):
            found = reduced(product(found, b) + np.uint64(tokens[i] + 1))
            if window > 0 and i - offsets[j] >= window:
                gone = product(np.uint64(tokens[i - window] + 1), power)
                found = reduced(found + (P - gone))
            out[i] = found
