"""Zigzags: the contexts of a group sorted along one direction, and a unit per change of label.

For every label that is not the usual one there is a piecewise linear function that is at least the
wanted height where the label is wanted and at most 0 where it is not. How far it overshoots does
not matter, so it needs just one unit per change.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled
from rankone.kernels.compiled.unit_rows import add_unit, along

SORTED = 1 << 13  # numbers that are sorted for a group, all directions together,
LEAST = 8  # but so many directions are tried in any case: in large groups all are about as good


@compiled(error_model="numpy")
def changes(labels: Ints, order: Ints, s: Floats, noise: Floats, usual: int) -> tuple[int, float]:
    """How many units the zigzags along s need, and the smallest gap next to its noise."""
    units, worst = 0, np.inf
    for i in range(1, len(order)):
        left, right = order[i - 1], order[i]
        x, y = labels[left], labels[right]
        if x != y:
            units += (x != usual) + (y != usual)
            gap = s[right] - s[left]
            worst = min(worst, gap / (noise[left] + noise[right]))
    return units, worst


@compiled(error_model="numpy")
def distinct(labels: Ints, usual: int) -> int:
    """How many labels there are besides the usual one."""
    seen = np.zeros(labels.max() + 1, np.bool_)
    for label in labels:
        seen[label] = True
    return int(seen.sum()) - int(usual < len(seen) and seen[usual])


@compiled(error_model="numpy")
def zigzag(
    label_of: Ints,
    rows: Floats,
    k: int,
    u: Floats,
    s: Floats,
    order: Ints,
    labels: Ints,
    label: int,
    height: float,
) -> int:
    """The units for one label, unfolded to both sides from a run where it is not wanted."""
    n = len(order)
    at = np.empty(n, np.int64)  # a change lies between order[at - 1] and order[at]
    count = 0
    for i in range(1, n):
        if (labels[order[i]] == label) != (labels[order[i - 1]] == label):
            at[count] = i
            count += 1
    origin = count // 2
    if (labels[order[0]] == label) == (origin % 2 == 0):  # this run is one where it is wanted
        origin += 1 if origin < count else -1
    for side in (1.0, -1.0):
        slope, cut = 0.0, 0.0  # of the line so far: 0 in the origin
        rising = True
        c = origin if side > 0 else origin - 1
        while 0 <= c < count:
            left, right = s[order[at[c] - 1]], s[order[at[c]]]
            near, far = (left, right) if side > 0 else (-right, -left)
            steep = height / (far - near)
            if rising:
                next_slope, next_cut = steep, -steep * near
            else:
                next_slope, next_cut = -steep, steep * far
            bend = next_slope - slope
            x = near if slope == 0.0 else (cut - next_cut) / bend
            k = add_unit(label_of, rows, k, u, bend, side * x, side, label)
            slope, cut, rising = next_slope, next_cut, not rising
            c += 1 if side > 0 else -1
    return k


@compiled(error_model="numpy")
def zigzags(
    label_of: Ints,
    rows: Floats,
    k: int,
    a: Floats,
    labels: Ints,
    noise: Floats,
    usual: int,
    directions: Floats,
    wide: float,
    height: float,
) -> tuple[int, float]:
    """Along the direction that needs fewest units, of those whose gaps are `wide` times their
    noise; if there is none, along the one with the widest. Returns that width too."""
    best_units, best_worst, best = 1 << 60, -1.0, 0
    least = distinct(labels, usual)
    for d in range(max(LEAST, min(len(directions), SORTED // len(a)))):
        if d == len(directions):
            break
        s = along(a, directions[d])
        units, worst = changes(labels, np.argsort(s), s, noise, usual)
        good, so_far = worst >= wide, best_worst >= wide
        if good and so_far:
            better = units < best_units or (units == best_units and worst > best_worst)
        else:
            better = worst > best_worst
        if better:
            best_units, best_worst, best = units, worst, d
        if best_units == least and best_worst >= 4 * wide:
            break
    s = along(a, directions[best])
    order = np.argsort(s)
    if best_worst > 0:
        done = np.zeros(labels.max() + 1, np.bool_)
        for i in range(len(labels)):
            label = labels[i]
            if label != usual and not done[label]:
                done[label] = True
                u = directions[best]
                k = zigzag(label_of, rows, k, u, s, order, labels, label, height)
    return k, best_worst
