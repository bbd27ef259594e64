"""The hidden units of all groups of contexts: compiled, for there are many groups.

A group sees of a sentence only the averages a, and each of its units looks at one direction of
them. There are two ways to make units, `zigzags` and `corners`; the one that needs fewer units
wins, unless only the other one keeps rounding small.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled
from rankone.kernels.compiled.corners import corners, peaks
from rankone.kernels.compiled.unit_rows import AMPLITUDE, BIAS, DIRECTION, far_off, most_off
from rankone.kernels.compiled.zigzags import distinct, zigzags

MANY = 4096  # contexts: in larger groups only zigzags are tried
CORNERED = 4  # heads: with fewer, few contexts lie beyond all others, and zigzags will do
PAIRS = 1 << 22  # of units and contexts: above that, rounding is bounded from the two ends only


@compiled(error_model="numpy")
def fit_group(
    label_of: Ints,
    rows: Floats,
    k: int,
    a: Floats,
    labels: Ints,
    noise: Floats,
    usual: int,
    directions: Floats,
    wide: float,
    unit: float,
    budget: float,
    one_hot: bool,
    height: float,
) -> tuple[int, float]:
    """The units of a group from number k on. Returns the number after the last, and how far the
    function may be off, relative to its height; infinite if contexts coincide."""
    n, first, same = len(labels), k, True
    for i in range(1, n):
        same = same and labels[i] == labels[0]
    if same:
        if labels[0] != usual:
            label_of[k] = labels[0]
            rows[k, :] = 0.0
            rows[k, BIAS], rows[k, AMPLITUDE] = height, 1.0
            k += 1
        return k, 0.0
    off, quiet = np.inf, np.zeros(n)
    if one_hot:
        k, worst = zigzags(label_of, rows, k, a, labels, noise, usual, directions, wide, height)
        if worst > 0:
            off = 1.0 / worst + far_off(rows, first, k, a, unit) / height
            if off > budget and (k - first) * n <= PAIRS:
                off = 1.0 / worst + most_off(rows, first, k, a, quiet, unit) / height
        few = a.shape[1] < CORNERED or k - first == distinct(labels, usual)
        if off <= budget and (few or n > MANY):
            return k, off
    last, other = k, 0.0
    left = labels != usual
    if n <= MANY:
        last, left = corners(
            label_of,
            rows,
            k,
            a,
            labels,
            noise,
            usual,
            directions,
            2 * wide,
            height,
            one_hot,
        )
        other = most_off(rows, k, last, a, noise, unit) / height
    if left.any():
        middle = last
        last, worst = peaks(label_of, rows, last, a, labels, noise, left, directions, height)
        other += 1.0 / worst if worst > 0 else np.inf
        if worst > 0:
            other += most_off(rows, middle, last, a, quiet, unit) / height
    fewer = last - k < k - first or not one_hot
    good, better = off <= budget, other <= budget
    if (better and (fewer or not good)) or (not good and not better and other < off):
        for j in range(last - k):
            label_of[first + j], rows[first + j] = label_of[k + j], rows[k + j]
        return first + last - k, other
    return k, off


@compiled(error_model="numpy")
def fit_words(
    bounds: Ints,
    positions: Ints,
    labels: Ints,
    a: Floats,
    noise: Floats,
    usual: Ints,
    directions: Floats,
    few: int,
    wide: float,
    unit: float,
    budget: float,
    one_hot: bool,
    height: float,
) -> tuple[Ints, Floats, Ints, Floats]:
    """The units of every word, whose contexts are ``bounds[i]:bounds[i + 1]``, sorted by position.

    A word with at most `few` contexts may have one group for all positions, if that takes no more
    units than one for each. Returns labels and rows of units; and groups: (first unit, last, first
    context, last, with or without position) and how far off each is.
    """
    n = len(labels)
    label_of, rows = np.empty(9 * n + 8, np.int64), np.empty((9 * n + 8, DIRECTION + a.shape[1]))
    groups, off = np.empty((2 * n + 2, 5), np.int64), np.empty(2 * n + 2)
    k = g = len(bounds) * 0  # no literal: for those, all would be compiled twice
    for i in range(len(bounds) - 1):
        lo, hi = bounds[i], bounds[i + 1]
        start, begin, worst = k, g, 0.0
        p = lo
        while p < hi:
            q, needed = p, False
            while q < hi and positions[q] == positions[p]:
                needed = needed or labels[q] != usual[i]
                q += 1
            if needed:
                last, slip = fit_group(
                    label_of,
                    rows,
                    k,
                    a[p:q],
                    labels[p:q],
                    noise[p:q],
                    usual[i],
                    directions,
                    wide,
                    unit,
                    budget,
                    one_hot,
                    height,
                )
                groups[g, 0], groups[g, 1], groups[g, 2], groups[g, 3] = k, last, p, q
                groups[g, 4], off[g] = 1, slip
                worst = max(worst, slip)
                k, g = last, g + 1
            p = q
        if hi - lo <= few and positions[lo] != positions[hi - 1]:
            last, slip = fit_group(
                label_of,
                rows,
                k,
                a[lo:hi],
                labels[lo:hi],
                noise[lo:hi],
                usual[i],
                directions,
                wide,
                unit,
                budget,
                one_hot,
                height,
            )
            if (slip <= budget or slip < worst) and (last - k <= k - start or worst > budget):
                for j in range(last - k):
                    label_of[start + j], rows[start + j] = label_of[k + j], rows[k + j]
                k, g = start + last - k, begin + 1
                groups[begin, 0], groups[begin, 1] = start, k
                groups[begin, 2], groups[begin, 3], groups[begin, 4] = lo, hi, 0
                off[begin] = slip
    return label_of[:k].copy(), rows[:k].copy(), groups[:g].copy(), off[:g].copy()
