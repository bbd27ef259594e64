"""What the units of a gated layer write, token by token."""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled


@compiled()
def add_units(
    out: Floats,
    a: Floats,
    words: Ints,
    places: Ints,
    fines: Floats,
    pairs: Ints,
    first: Ints,
    gates: int,
    slopes: Floats,
    bias: Floats,
    penalty: Floats,
    o: Floats,
) -> None:
    """Add to each column of `out` what the units of its token write. `fines` are those of its own
    gates: that of its word, and both together."""
    for t in range(len(words)):
        if words[t] == 0:
            continue
        for turn in range(2):
            if turn == 1 and places[t] == 0:
                break
            key = words[t] * gates + (places[t] if turn else 0)
            g = np.searchsorted(pairs, key)
            if g == len(pairs) or pairs[g] != key:
                continue
            for j in range(first[g], first[g + 1]):
                z = bias[j] + penalty[j] * fines[turn, t]
                for h in range(len(a)):
                    z += slopes[j, h] * a[h, t]
                if z > 0.0:
                    for m in range(len(out)):
                        out[m, t] += z * o[j, m]
