"""Softmax averages under one query that all tokens share, as constructions need them: the bits of a
sentence depend on nothing but its own keys and values."""

from __future__ import annotations

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled
from rankone.kernels.compiled.exponential import exponential


@compiled()
def average(
    query: float, keys: Floats, values: Floats, offsets: Ints, causal: bool, out: Floats
) -> None:
    """sum_l e^(y x_l) u_l / sum_l e^(y x_l) over the sentence of each token, or its prefix.

    One number after the other, in strict order: vector code would add the same numbers in another
    order where a sentence begins elsewhere in memory. Scores must be small: nothing is subtracted.
    """
    for j in range(len(offsets) - 1):
        first, last = offsets[j], offsets[j + 1]
        above, below = 0.0, 0.0
        for i in range(first, last):
            weight = exponential(query * keys[i])
            above += weight * values[i]
            below += weight
            if causal:
                out[i] = above / below
        if not causal:
            for i in range(first, last):
                out[i] = above / below
