"""The hidden units of one group of contexts: compiled, for there are many groups.

A group sees of a sentence only the averages a, and of those one direction at a time, s = u . a. A
unit is (direction, gain, bias, label, amplitude): it adds amplitude * relu(gain * s + bias) to what
speaks for its label. Gains are powers of two, and directions have few digits, so that products
with them are exact.

Two ways. *Lines*: contexts are sorted along one direction, and for every label that is not the
usual one there is a zigzag that is at least `HEIGHT` where the label is wanted and at most 0 where
it is not; it needs one unit per change, since how far it overshoots does not matter. *Peaks*:
every exception gets a direction of its own, in which it lies far from all others: one unit if
nothing lies beyond it, else three. Peaks take more units and have wider gaps.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled, inlined

DIRECTION, LABEL = 0, 1  # columns of whole numbers of a unit
GAIN, BIAS, AMPLITUDE = 0, 1, 2  # columns of other numbers


@inlined
def power(x: float) -> float:
    """The smallest power of two that is not smaller."""
    return float(2.0 ** np.ceil(np.log2(x)))


@compiled()
def along(a: Floats, u: Floats) -> Floats:
    s = np.zeros(len(a))
    for h in range(a.shape[1]):
        if u[h] != 0.0:
            s += u[h] * a[:, h]
    return s


@compiled()
def add_unit(
    whole: Ints, other: Floats, k: int, d: int, bend: float, at: float, side: float, label: int
) -> int:
    """A unit that bends the function by `bend` at the place `at`, active to the right (`side` 1) or
    to the left (-1) of it."""
    gain = power(abs(bend))
    whole[k, DIRECTION], whole[k, LABEL] = d, label
    other[k, GAIN], other[k, BIAS] = side * gain, -side * gain * at
    other[k, AMPLITUDE] = bend / gain
    return k + 1


@compiled()
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


@compiled()
def distinct(labels: Ints, usual: int) -> int:
    """How many labels there are besides the usual one."""
    seen = np.zeros(labels.max() + 1, np.bool_)
    for label in labels:
        seen[label] = True
    return int(seen.sum()) - int(usual < len(seen) and seen[usual])


@compiled()
def zigzag(
    whole: Ints,
    other: Floats,
    k: int,
    d: int,
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
            k = add_unit(whole, other, k, d, bend, side * x, side, label)
            slope, cut, rising = next_slope, next_cut, not rising
            c += 1 if side > 0 else -1
    return k


@compiled()
def lines(
    whole: Ints,
    other: Floats,
    k: int,
    a: Floats,
    labels: Ints,
    noise: Floats,
    usual: int,
    directions: Floats,
    wide: float,
    height: float,
) -> tuple[int, float]:
    """Zigzags along the direction that needs fewest units, of those whose gaps are `wide` times
    their noise; if there is none, along the one with the widest. Returns that width too."""
    best_units, best_worst, best = 1 << 60, -1.0, 0
    least = distinct(labels, usual)
    for d in range(len(directions)):
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
                k = zigzag(whole, other, k, best, s, order, labels, label, height)
    return k, best_worst


@compiled()
def peaks(
    whole: Ints,
    other: Floats,
    k: int,
    a: Floats,
    labels: Ints,
    noise: Floats,
    usual: int,
    directions: Floats,
    wide: float,
    height: float,
    shared: bool,
) -> tuple[int, float]:
    """A peak for every context whose label is not the usual one. With `shared`, peaks for one label
    may overlap; without, a peak must vanish at all other contexts."""
    n, centre = len(labels), np.zeros(a.shape[1])
    for h in range(a.shape[1]):
        centre[h] = a[:, h].mean()
    best = np.zeros(n, np.int64)
    width = np.full(n, -1.0)  # the gap next to its noise
    gap = np.zeros(n)
    ends = np.zeros(n, np.int64)  # 1: nothing right of it, -1: nothing left of it, 0: neither
    for d in range(len(directions)):
        s = along(a, directions[d])
        order = np.argsort(s)
        for i in range(n):
            one = order[i]
            if labels[one] == usual:
                continue
            clear, ratio, open_left, open_right = np.inf, np.inf, True, True
            j = i - 1
            while j >= 0 and shared and labels[order[j]] == labels[one]:
                j -= 1
            if j >= 0:
                open_left, step = False, s[one] - s[order[j]]
                clear = min(clear, step)
                ratio = min(ratio, step / (noise[one] + noise[order[j]]))
            j = i + 1
            while j < n and shared and labels[order[j]] == labels[one]:
                j += 1
            if j < n:
                open_right, step = False, s[order[j]] - s[one]
                clear = min(clear, step)
                ratio = min(ratio, step / (noise[one] + noise[order[j]]))
            end = 1 if open_right else (-1 if open_left else 0)
            single, had = end != 0 and ratio >= wide, ends[one] != 0 and width[one] >= wide
            if (single and not had) or (single == had and ratio > width[one]):
                best[one], width[one], gap[one], ends[one] = d, ratio, clear, end
    worst = np.inf
    for i in range(n):
        if labels[i] == usual:
            continue
        worst = min(worst, width[i])
        if width[i] <= 0:
            return k, width[i]
        d, label, steep = best[i], labels[i], height / gap[i]
        at = 0.0
        for h in range(a.shape[1]):
            at += directions[d, h] * a[i, h]
        if ends[i] != 0:
            side = float(ends[i])
            k = add_unit(whole, other, k, d, steep, at - side * gap[i], side, label)
            continue
        middle = 0.0
        for h in range(a.shape[1]):
            middle += directions[d, h] * centre[h]
        side = 1.0 if at >= middle else -1.0  # the shorter way is active
        k = add_unit(whole, other, k, d, steep, at - side * gap[i], side, label)
        k = add_unit(whole, other, k, d, -2 * steep, at, side, label)
        k = add_unit(whole, other, k, d, steep, at + side * gap[i], side, label)
    return k, worst


@compiled()
def rounding(
    whole: Ints, other: Floats, first: int, last: int, a: Floats, directions: Floats, unit: float
) -> float:
    """How far rounding may put off what these units add at any context, in any order of sums.

    A unit rounds products of the size of gain * s and a bias, once for each of them; the sum of all
    that are active rounds as often as it has terms. That is most beyond the last bend.
    """
    n, heads = a.shape
    size = np.zeros(len(directions))  # of the products, in each direction
    low, high = np.zeros(len(directions)), np.zeros(len(directions))
    seen = np.zeros(len(directions), np.bool_)
    most = 0.0
    for side in (1.0, -1.0):
        products, sums, count = 0.0, 0.0, 0
        for k in range(first, last):
            gain, d = other[k, GAIN], whole[k, DIRECTION]
            if gain * side <= 0:
                continue
            if not seen[d]:
                seen[d] = True
                low[d], high[d] = np.inf, -np.inf
                for i in range(n):
                    s, t = 0.0, 0.0
                    for h in range(heads):
                        s += directions[d, h] * a[i, h]
                        t += abs(directions[d, h] * a[i, h])
                    size[d], low[d] = max(size[d], t), min(low[d], s)
                    high[d] = max(high[d], s)
            end = high[d] if side > 0 else low[d]
            weight, bias = abs(other[k, AMPLITUDE]), other[k, BIAS]
            products += weight * (abs(gain) * size[d] + abs(bias))
            sums += weight * max(gain * end + bias, 0.0)
            count += 1
        most = max(most, unit * ((heads + 1) * products + count * sums))
    return most


@compiled()
def fit_group(
    whole: Ints,
    other: Floats,
    k: int,
    a: Floats,
    labels: Ints,
    noise: Floats,
    usual: int,
    directions: Floats,
    wide: float,
    unit: float,
    budget: float,
    zigzags: bool,
    height: float,
) -> tuple[int, float]:
    """The units of a group from number k on. Returns the number after the last, and how far the
    function may be off, relative to its height; infinite if contexts coincide."""
    first, same = k, True
    for i in range(1, len(labels)):
        same = same and labels[i] == labels[0]
    if same:
        if labels[0] != usual:
            whole[k, DIRECTION], whole[k, LABEL] = 0, labels[0]
            other[k, GAIN], other[k, BIAS], other[k, AMPLITUDE] = 0.0, height, 1.0
            k += 1
        return k, 0.0
    off = np.inf
    if zigzags:
        k, worst = lines(whole, other, k, a, labels, noise, usual, directions, wide, height)
        off = (
            1.0 / worst + rounding(whole, other, first, k, a, directions, unit)
            if worst > 0
            else np.inf
        )
        if off <= budget:
            return k, off
    last, worst = peaks(whole, other, k, a, labels, noise, usual, directions, wide, height, zigzags)
    peak_off = (
        1.0 / worst + rounding(whole, other, k, last, a, directions, unit) if worst > 0 else np.inf
    )
    if peak_off < off:
        for j in range(last - k):
            whole[first + j], other[first + j] = whole[k + j], other[k + j]
        return first + last - k, peak_off
    return k, off


@compiled()
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
    zigzags: bool,
    height: float,
) -> tuple[Ints, Floats, Ints, Floats]:
    """The units of every word, whose contexts are ``bounds[i]:bounds[i + 1]``, sorted by position.

    A word with at most `few` contexts may have one group for all positions, if that takes no more
    units than one for each. Returns units and groups: (first unit, last, first context, last, with
    or without position) and how far off each is.
    """
    n = len(labels)
    whole, other = np.empty((6 * n + 8, 2), np.int64), np.empty((6 * n + 8, 3))
    groups, off = np.empty((2 * n + 2, 5), np.int64), np.empty(2 * n + 2)
    k, g = 0, 0
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
                    whole,
                    other,
                    k,
                    a[p:q],
                    labels[p:q],
                    noise[p:q],
                    usual[i],
                    directions,
                    wide,
                    unit,
                    budget,
                    zigzags,
                    height,
                )
                groups[g, 0], groups[g, 1], groups[g, 2], groups[g, 3] = k, last, p, q
                groups[g, 4], off[g] = 1, slip
                worst = max(worst, slip)
                k, g = last, g + 1
            p = q
        if hi - lo <= few and positions[lo] != positions[hi - 1]:
            last, slip = fit_group(
                whole,
                other,
                k,
                a[lo:hi],
                labels[lo:hi],
                noise[lo:hi],
                usual[i],
                directions,
                wide,
                unit,
                budget,
                zigzags,
                height,
            )
            if (slip <= budget or slip < worst) and (last - k <= k - start or worst > budget):
                for j in range(last - k):
                    whole[start + j], other[start + j] = whole[k + j], other[k + j]
                k, g = start + last - k, begin + 1
                groups[begin, 0], groups[begin, 1] = start, k
                groups[begin, 2], groups[begin, 3], groups[begin, 4] = lo, hi, 0
                off[begin] = slip
    return whole[:k].copy(), other[:k].copy(), groups[:g].copy(), off[:g].copy()
