"""Which units of its group a token may make active."""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled


@compiled()
def screen(
    tokens: Ints,
    groups: Ints,
    first: Ints,
    order: Ints,
    a: Floats,
    slopes: Floats,
    bias: Floats,
    size: Floats,
    slip: Floats,
    share: float,
    least: float,
) -> tuple[Ints, Ints]:
    """Pairs of a token and a unit, for pairs of a token and a group, which has the units
    ``order[first[g]]`` to ``order[first[g + 1] - 1]``.

    Unit j sees slopes[j] . a + bias[j], give or take ``size[j]`` times ``slip`` of the token and a
    `share` of its bias. It is left out if that is certainly no more than -`least`.
    """
    found, units = np.empty(0, np.int64), np.empty(0, np.int64)
    count, heads = 0, len(a)
    for turn in range(2):  # counted first
        if turn == 1:
            found, units = np.empty(count, np.int64), np.empty(count, np.int64)
        count = 0
        for i in range(len(tokens)):
            t = tokens[i]
            for k in range(first[groups[i]], first[groups[i] + 1]):
                j = order[k]
                seen = bias[j] + share * abs(bias[j]) + size[j] * slip[t]
                for h in range(heads):
                    seen += slopes[j, h] * a[h, t]
                if not seen <= -least:  # also what is not a number
                    if turn == 1:
                        found[count], units[count] = t, j
                    count += 1
    return found, units
