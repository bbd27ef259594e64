"""Rows of hidden units while they are made: labels, and gain, bias, amplitude and direction.

A unit adds amplitude * relu(gain * s + bias) to what speaks for its label, where s = u . a and u is
its direction. Gains are powers of two, so gain * u is exact.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled, inlined

GAIN, BIAS, AMPLITUDE, DIRECTION = 0, 1, 2, 3  # columns; the direction fills those behind


@inlined
def power(x: float) -> float:
    """The smallest power of two that is not smaller."""
    return float(2.0 ** np.ceil(np.log2(x)))


@compiled(error_model="numpy")
def along(a: Floats, u: Floats) -> Floats:
    """u . a for every row of a."""
    s = np.zeros(len(a))
    for h in range(a.shape[1]):
        if u[h] != 0.0:
            s += u[h] * a[:, h]
    return s


@compiled(error_model="numpy")
def add_unit(
    label_of: Ints,
    rows: Floats,
    k: int,
    u: Floats,
    bend: float,
    at: float,
    side: float,
    label: int,
) -> int:
    """A unit that bends the function by `bend` at the place `at` along u, active to the right
    (`side` 1) or to the left (-1) of it."""
    gain = power(abs(bend))
    label_of[k] = label
    rows[k, GAIN], rows[k, BIAS] = side * gain, -side * gain * at
    rows[k, AMPLITUDE] = bend / gain
    rows[k, DIRECTION:] = u
    return k + 1


@compiled(error_model="numpy")
def most_off(rows: Floats, first: int, last: int, a: Floats, noise: Floats, unit: float) -> float:
    """How far rounding may put off what these units add at any context, in any order of sums.

    A unit rounds products of the size of gain * s and a bias, once for each of them and for their
    sum, and sees averages with noise; the sum of all that are active rounds as often as it has
    terms.
    """
    n, heads = a.shape
    most = 0.0
    for i in range(n):
        off, sums, count = 0.0, 0.0, 0
        for k in range(first, last):
            s, t, reach = 0.0, 0.0, 0.0
            for h in range(heads):
                u = rows[k, DIRECTION + h]
                s += u * a[i, h]
                t += abs(u * a[i, h])
                reach += abs(u)
            gain, bias = abs(rows[k, GAIN]), rows[k, BIAS]
            z = rows[k, GAIN] * s + bias
            slip = gain * reach * noise[i] + unit * (heads + 1) * (gain * t + abs(bias))
            if z + slip > 0.0:
                weight = abs(rows[k, AMPLITUDE])
                off += weight * slip
                sums += weight * (max(z, 0.0) + slip)
                count += 1
        most = max(most, off + unit * count * sums)
    return most


@compiled(error_model="numpy")
def far_off(rows: Floats, first: int, last: int, a: Floats, unit: float) -> float:
    """The same without noise for units along one direction, looking only at the two ends, where
    most of them are active: a coarser bound, in time that does not grow with units times contexts.
    """
    n, heads = a.shape
    if last <= first:
        return 0.0
    u = rows[first, DIRECTION:]
    low, high, size = np.inf, -np.inf, 0.0
    for i in range(n):
        s, t = 0.0, 0.0
        for h in range(heads):
            s += u[h] * a[i, h]
            t += abs(u[h] * a[i, h])
        low, high, size = min(low, s), max(high, s), max(size, t)
    most = 0.0
    for side in (1.0, -1.0):
        products, sums, count = 0.0, 0.0, 0
        end = high if side > 0 else low
        for k in range(first, last):
            gain, bias = rows[k, GAIN], rows[k, BIAS]
            if gain * side <= 0:
                continue
            weight = abs(rows[k, AMPLITUDE])
            products += weight * (abs(gain) * size + abs(bias))
            sums += weight * max(gain * end + bias, 0.0)
            count += 1
        most = max(most, unit * ((heads + 1) * products + count * sums))
    return most
