"""Attention within each of many short sentences, score by score, and its gradients."""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import SUMS, compiled, inlined
from rankone.kernels.compiled.exponential import exponential


@inlined
def wider(low: float, high: float, x: float) -> tuple[float, float]:
    """The range extended to x; once it is NaN, it stays NaN."""
    if x < low or x != x:
        low = x
    if x > high or x != x:
        high = x
    return low, high


@compiled(fastmath=SUMS, error_model="numpy")
def attend(
    query: Floats, key: Floats, value: Floats, offsets: Ints, causal: bool, out: Floats, p: Floats
) -> None:
    """out_k = sum_l p_kl u_l, and the weights p one query after the other, for the gradients.

    Exponents are relative to the key with the largest weight, so none is positive and one of them
    is 0. A NaN key makes the whole sentence NaN, without an error, and so does an infinite key for
    a query of 0.
    """
    at = 0
    for j in range(len(offsets) - 1):
        first, last = offsets[j], offsets[j + 1]
        low, high = key[first], key[first]
        if not causal:
            for i in range(first, last):
                low, high = wider(low, high, key[i])
        for k in range(first, last):
            if causal:
                low, high = wider(low, high, key[k])
            n = k + 1 - first if causal else last - first
            y = np.float64(query[k])
            end = np.float64(low if y < 0.0 else high)
            if y == 0.0 and low == -np.inf:  # 0 times infinity (a key +inf would be the end)
                y = np.float64(np.nan)
            x, u, row = key[first : first + n], value[first : first + n], p[at : at + n]
            above, below = 0.0, 0.0
            for i in range(n):
                weight = exponential(y * (x[i] - end))
                above += weight * u[i]
                below += weight
                row[i] = weight
            for i in range(n):
                row[i] /= below
            out[k] = above / below
            at += n


@compiled(fastmath=SUMS)
def turn(
    grad: Floats,
    query: Floats,
    key: Floats,
    value: Floats,
    offsets: Ints,
    causal: bool,
    out: Floats,
    p: Floats,
    grad_query: Floats,
    grad_key: Floats,
    grad_value: Floats,
) -> None:
    """d u_l = sum_k g_k p_kl,  d x_l = sum_k g_k y_k p_kl (u_l - c_k),
    d y_k = g_k sum_l p_kl (u_l - c_k) x_l, with c = out; the last two arrays must be 0 before."""
    at = 0
    for j in range(len(offsets) - 1):
        first, last = offsets[j], offsets[j + 1]
        for k in range(first, last):
            n = k + 1 - first if causal else last - first
            x, u, row = key[first : first + n], value[first : first + n], p[at : at + n]
            grad_x, grad_u = grad_key[first : first + n], grad_value[first : first + n]
            g, y, mean, slope = grad[k], query[k], out[k], grad[k] * 0
            for i in range(n):
                weight = g * row[i]
                part = weight * (u[i] - mean)
                grad_u[i] += weight
                grad_x[i] += y * part
                slope += (x[i] - x[0]) * part  # parts add up to 0: no digit is lost far from 0
            grad_query[k] = slope
            at += n
