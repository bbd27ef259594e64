"""Sums of what active units write, for bounds on their rounding."""

from __future__ import annotations

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled


@compiled()
def add_written(
    sums: Floats,
    token: Ints,
    unit: Ints,
    parts: Floats,
    codes: Floats,
    plus: Ints,
    minus: Ints,
) -> None:
    """Add to the column of each token, for pairs with a unit that writes w in coordinate k: w z to
    ``sums[0, k]``, |w| size to ``sums[1, k]`` and |w| slip + more to ``sums[2, k]``, where
    ``parts`` are the rows z, size, slip and more. Pairs are added up in their order."""
    for p in range(len(token)):
        t, a, b = token[p], plus[unit[p]], minus[unit[p]]
        for k in range(codes.shape[1]):
            w = codes[a, k] - codes[b, k]
            if w != 0.0:
                sums[0, k, t] += w * parts[0, p]
                sums[1, k, t] += abs(w) * parts[1, p]
                sums[2, k, t] += abs(w) * parts[2, p] + parts[3, p]
