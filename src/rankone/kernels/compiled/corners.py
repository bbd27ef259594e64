"""Corners: contexts that lie beyond all others in some direction need one unit each, or share one.

A unit that is 0 at all contexts with another label, and at least the wanted height at those beyond
them, is active nowhere else. So sums have few terms, which keeps their rounding small. A context
in the middle of others gets a peak of three units instead.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.kernels.compiled.compiler import compiled
from rankone.kernels.compiled.unit_rows import add_unit, along

SAME = 1 + 2.0**-40  # distances that differ by less are one distance, rounded
GRID = 1024.0  # coordinates of a context's own direction are multiples of 1 / GRID


@compiled(error_model="numpy")
def border(s: Floats, noise: Floats, rival: Bools) -> tuple[float, float]:
    """The largest s of all rivals, and its noise."""
    top, own = -np.inf, 0.0
    for i in range(len(s)):
        if rival[i] and s[i] > top:
            top, own = s[i], noise[i]
    return top, own


@compiled(error_model="numpy")
def beyond(
    s: Floats, noise: Floats, open_: Bools, top: float, own: float, wide: float
) -> tuple[int, float]:
    """How many open contexts lie beyond the rivals, and how far the nearest of them."""
    count, gap = 0, np.inf
    for i in range(len(s)):
        if open_[i] and s[i] - top >= wide * (noise[i] + own):
            count += 1
            gap = min(gap, s[i] - top)
    return count, gap


@compiled(error_model="numpy")
def close_beyond(
    s: Floats, noise: Floats, open_: Bools, top: float, own: float, wide: float
) -> None:
    """These contexts have what they need."""
    for i in range(len(s)):
        if open_[i] and s[i] - top >= wide * (noise[i] + own):
            open_[i] = False


@compiled(error_model="numpy")
def outward(a: Floats, i: int, centre: Floats, spread: Floats) -> Floats:
    """The direction from the centre to a context, in units of the spread; sizes add up to 1."""
    u = np.zeros(a.shape[1])
    total = 0.0
    for h in range(a.shape[1]):
        if spread[h] > 0.0:
            u[h] = (a[i, h] - centre[h]) / spread[h]
            total += abs(u[h])
    if total > 0.0:
        for h in range(len(u)):
            u[h] = np.rint(u[h] / total * GRID) / GRID
    return u


@compiled(error_model="numpy")
def corners(
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
    shared: bool,
) -> tuple[int, Bools]:
    """Units for contexts beyond all others. Returns also which contexts still want their label.

    First the fixed directions, that which serves most contexts first; then for each that is left
    its own direction. With `shared`, contexts with one label do not stand in each other's way.
    """
    n, heads = a.shape
    left = labels != usual
    centre, spread = np.zeros(heads), np.zeros(heads)
    for h in range(heads):
        centre[h] = a[:, h].mean()
        spread[h] = ((a[:, h] - centre[h]) ** 2).mean()
    s = np.empty((len(directions), n))
    for d in range(len(directions)):
        s[d] = along(a, directions[d])
    done = np.zeros(labels.max() + 1, np.bool_)
    for first in range(n):
        label = labels[first]
        if not shared or label == usual or done[label]:
            continue
        done[label] = True
        rival = labels != label
        open_ = labels == label
        tops = np.empty((2, len(directions), 2))
        for d in range(len(directions)):
            tops[0, d] = border(s[d], noise, rival)
            tops[1, d] = border(-s[d], noise, rival)
        while True:
            best, best_gap, best_d, best_side = 0, 0.0, 0, 1.0
            for d in range(len(directions)):
                for turn in range(2):
                    side = 1.0 if turn == 0 else -1.0
                    top, own = tops[turn, d]
                    count, gap = beyond(side * s[d], noise, open_, top, own, wide)
                    if count > best or (count == best and count > 0 and gap > best_gap):
                        best, best_gap, best_d, best_side = count, gap, d, side
            if best == 0:
                break
            turn = 0 if best_side > 0 else 1
            top, own = tops[turn, best_d]
            at = best_side * top
            k = add_unit(
                label_of, rows, k, directions[best_d], height / best_gap, at, best_side, label
            )
            close_beyond(best_side * s[best_d], noise, open_, top, own, wide)
        for i in range(n):
            if labels[i] == label:
                left[i] = open_[i]
    for i in range(n):
        if left[i]:
            k = own_corner(
                label_of, rows, k, a, i, labels, noise, left, centre, spread, wide, height, shared
            )
    return k, left


@compiled(error_model="numpy")
def own_corner(
    label_of: Ints,
    rows: Floats,
    k: int,
    a: Floats,
    i: int,
    labels: Ints,
    noise: Floats,
    left: Bools,
    centre: Floats,
    spread: Floats,
    wide: float,
    height: float,
    shared: bool,
) -> int:
    """A unit along the direction in which context i lies outward, if it is beyond all rivals."""
    u = outward(a, i, centre, spread)
    s = along(a, u)
    rival = labels != labels[i]
    if not shared:
        rival[:] = True
        rival[i] = False
    top, own = border(s, noise, rival)
    if top > -np.inf and s[i] - top >= wide * (noise[i] + own):
        open_ = left & ~rival
        _, gap = beyond(s, noise, open_, top, own, wide)
        k = add_unit(label_of, rows, k, u, height / gap, top, 1.0, labels[i])
        close_beyond(s, noise, open_, top, own, wide)
        for j in range(len(left)):
            if not rival[j]:
                left[j] = open_[j]
    return k


@compiled(error_model="numpy")
def peaks(
    label_of: Ints,
    rows: Floats,
    k: int,
    a: Floats,
    labels: Ints,
    noise: Floats,
    left: Bools,
    directions: Floats,
    height: float,
) -> tuple[int, float]:
    """Up to three units for every context that is left, in the direction in which it is farthest
    from all others, next to their noise. Returns the smallest such width too."""
    n, heads = a.shape
    best = np.zeros(n, np.int64)
    width, gap = np.full(n, -1.0), np.zeros(n)
    for d in range(len(directions)):
        s = along(a, directions[d])
        order = np.argsort(s)
        for i in range(n):
            one = order[i]
            if not left[one]:
                continue
            clear, ratio = np.inf, np.inf
            for j in (i - 1, i + 1):
                if 0 <= j < n:
                    step = abs(s[one] - s[order[j]])
                    clear = min(clear, step)
                    ratio = min(ratio, step / (noise[one] + noise[order[j]]))
            if ratio > width[one]:
                best[one], width[one], gap[one] = d, ratio, clear
    worst = np.inf
    for i in range(n):
        if not left[i]:
            continue
        worst = min(worst, width[i])
        if width[i] <= 0:
            return k, width[i]
        u, label, steep = directions[best[i]], labels[i], height / gap[i]
        at, middle = 0.0, 0.0
        for h in range(heads):
            at += u[h] * a[i, h]
            middle += u[h] * a[:, h].mean()
        side = 1.0 if at >= middle else -1.0  # the shorter way is active
        k = add_unit(label_of, rows, k, u, steep, at - side * gap[i], side, label)
        most = 0.0  # how far others lie behind it: no unit is made that is active at none of them
        for value in along(a, u):
            most = max(most, side * (value - at))
        if most > 0:
            k = add_unit(label_of, rows, k, u, -2 * steep, at, side, label)
        if most > SAME * gap[i]:
            k = add_unit(label_of, rows, k, u, steep, at + side * gap[i], side, label)
    return k, worst
