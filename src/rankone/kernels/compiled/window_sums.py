"""Averages over windows with weights that fall geometrically: r^j for the token j places back.

Sums over 1, 2, 4, ... tokens are each made of two of the sums before. What comes out for a token
depends on the tokens of its window alone, to the last bit: not on where in a text they stand, nor
on what is in front of them.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled


@compiled()
def add_shifted(out: Floats, x: Floats, y: Floats, share: float, shift: int, offsets: Ints) -> None:
    """x_i + share * y_(i - shift), or x_i alone where token i - shift is of another sentence."""
    for j in range(len(offsets) - 1):
        first, last = offsets[j], offsets[j + 1]
        begin = min(first + shift, last)
        for i in range(first, begin):
            out[i] = x[i]
        for i in range(begin, last):
            out[i] = x[i] + share * y[i - shift]


@compiled()
def window_sums(values: Floats, decay: float, window: int, offsets: Ints, out: Floats) -> None:
    """sum_j e^(-decay j) u_(i - j) over the last `window` tokens of the sentence of token i, or as
    many as it has by then."""
    power, other = values.copy(), np.empty_like(values)
    spare = np.empty_like(values)
    size, length = 1, 0  # tokens in each sum of `power`, and in each of `out` so far
    while True:
        if window & size:
            if length == 0:
                out[:] = power
            else:
                add_shifted(spare, out, power, np.exp(-decay * length), length, offsets)
                out[:] = spare
            length += size
        if 2 * size > window:
            return
        add_shifted(other, power, power, np.exp(-decay * size), size, offsets)
        power, other = other, power
        size *= 2


@compiled()
def window_averages(values: Floats, decay: float, window: int, offsets: Ints, out: Floats) -> None:
    """The same divided by the sum of the weights, so softmax averages."""
    weights = np.empty(window)
    window_sums(np.ones(window), decay, window, np.array([0, window]), weights)
    window_sums(values, decay, window, offsets, out)
    for j in range(len(offsets) - 1):
        for i in range(offsets[j], offsets[j + 1]):
            out[i] /= weights[min(i - offsets[j], window - 1)]
