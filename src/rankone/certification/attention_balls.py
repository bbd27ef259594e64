"""Attention in float64 balls: softmax averages with a bound on their rounding errors."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import (
    EXP_ERROR,
    LOWEST,
    Balls,
    U,
    exp,
    gamma,
    linear,
    total,
    up,
)
from rankone.deadline import tick
from rankone.kernels.ragged import by_length
from rankone.nn.layers import AttentionLayer

SCORES_AT_ONCE = 1 << 20  # scores held in memory
SAFE_SPREAD = 60.0  # scores no further apart than this: no exponential comes near 0


def attend(attention: AttentionLayer, z: Balls, offsets: Ints, causal: bool) -> Balls:
    """What the layer adds to columns z, for sentences ``offsets[j]:offsets[j + 1]`` of them."""
    parts = []
    for head in (head.map(array) for head in attention.heads):
        key, query = linear(head.key, z), linear(head.query, z)
        value = key if head.shared else linear(head.value, z)
        averages = averages_of(key, query, value, offsets, causal, attention.kind)
        parts.append(linear(head.output, averages))
    added = parts[0]
    for part in parts[1:]:
        added = added + part
    return added


def averages_of(
    key: Balls, query: Balls, value: Balls, offsets: Ints, causal: bool, kind: str = "softmax"
) -> Balls:
    """The averages of the values of one head, in the cheapest way."""
    if kind != "softmax":
        return hardest(key, query, value, offsets, causal)
    if len(key.mid) == 1 and (query.mid == query.mid[0, 0]).all():
        y, rad = float(query.mid[0, 0]), float(query.rad.max())
        return by_segments(y, rad, key, value, offsets, causal)
    return by_blocks(key, query, value, offsets, causal)


def spread_by(tau: Floats) -> Floats:
    """How far an average of numbers of size 1 moves if its scores are off by at most tau.

    The logarithms of its weights are then off by at most tau + EXP_ERROR. If those change at rates
    e_l, the average of v changes at the rate Cov(v, e), which is no larger than the largest |v_l|
    times the largest |e_l|. Whatever the weights, and where tau is NaN, it moves by no more than 2.
    """
    return np.fmin(tau + EXP_ERROR, 2.0)


def by_segments(
    y: float, y_rad: float, key: Balls, value: Balls, offsets: Ints, causal: bool
) -> Balls:
    """sum_l e^(y x_l) v_l / sum_l e^(y x_l) where all tokens ask the same query y: linear time.

    With c the extreme key and b that of the values (their floats, exact numbers) of a sentence,
    dx_l = x_l - c, t_l = y dx_l and dv_l = v_l - b, the average is b + sum_l e^(t_l) dv_l /
    sum_l e^(t_l). In a sentence of n tokens let K and D be the largest |dx_l| and |dv_l|, R and S
    the largest radii of a key and a value. Then t_l is off by at most
    tau = |y| (R + u K) + y_rad (K + R) + u |y| K, which moves the average by `spread_by` (tau)
    times D; the dv_l themselves are off by S + u D, the sums by n u D and (n - 1) u D, the quotient
    by u D: in all gamma_(2n+1) D. Where scores lie far apart, a sum of weights may be so small that
    products underflow next to it; such sentences go `by_blocks`.
    """
    x, n = key.mid[0], np.diff(offsets)
    top, bottom = (f.reduceat(x, offsets[:-1]) for f in (np.maximum, np.minimum))
    far = ~(abs(y) * (top - bottom) <= SAFE_SPREAD)
    if far.any():
        out = Balls(np.empty_like(value.mid), np.empty_like(value.rad))
        for these in (far, ~far):
            there, own = np.repeat(these, n), np.append(0, np.cumsum(n[these]))
            k, v = key[:, there], value[:, there]
            if these is far:
                query = Balls(np.full_like(k.mid, y), np.full_like(k.mid, y_rad))
                out[:, there] = by_blocks(k, query, v, own, causal)
            elif len(own) > 1:
                out[:, there] = by_segments(y, y_rad, k, k if value is key else v, own, causal)
        return out
    most = np.maximum if y >= 0 else np.minimum
    c = np.repeat(top if y >= 0 else bottom, n)
    dx = x - c
    b = c if value is key else np.repeat(most.reduceat(value.mid[0], offsets[:-1]), n)
    dv = dx if value is key else value.mid[0] - b
    weight = exp(y * dx)
    K, D, R, S = (
        np.maximum.reduceat(column, offsets[:-1])
        for column in (np.abs(dx), np.abs(dv), key.rad[0], value.rad[0])
    )
    tau = up(abs(y) * (R + 2 * U * K) + y_rad * (K + R))
    rad = up((spread_by(tau) + gamma(2 * n + 1)) * D + S)
    if causal:
        mid, weighted = np.empty_like(x), weight * dv
        for length, starts in by_length(offsets, SCORES_AT_ONCE):
            at = starts[:, None] + np.arange(length)
            mid[at] = np.cumsum(weighted[at], axis=1) / np.cumsum(weight[at], axis=1)
    else:
        total = np.add.reduceat(weight, offsets[:-1])
        weight *= dv
        mid = np.repeat(np.add.reduceat(weight, offsets[:-1]) / total, n)
    return Balls(mid[None], np.repeat(rad, n)[None]).shifted(b)


def by_blocks(key: Balls, query: Balls, value: Balls, offsets: Ints, causal: bool) -> Balls:
    """sum_l e^(q_k . k_l) v_l / sum_l e^(q_k . k_l) by the table of all scores; keys have size s.

    A number per query may be taken off its scores, so keys are taken relative to the middle of the
    sentence, and scores to the largest one of the row (floats, so exact numbers). With K and R the
    largest size and radius of a key, query k's scores are off by at most
    tau = sum over s of |q| (R + gamma_s K) + rad_q (K + R), and by u |t|. Values are taken relative
    to the middle too, D is then their largest size; the rest is as in `by_segments`.
    Exponentials that were taken as 0 are below e^(tau - 700), so for tau < 2 all of them together
    move the average by less than n 10^-302 D, which `up` covers on top of gamma_(2n+1) D.
    Where a score overflows, tau is far above 2, or NaN, and `spread_by` says nothing (2).
    """
    out = Balls(np.empty_like(value.mid), np.empty_like(value.rad))
    for length, starts in by_length(offsets, SCORES_AT_ONCE):
        tick()
        at = starts[:, None] + np.arange(length)
        k, q, v = (z[:, at] for z in (key, query, value))
        keys = k.mid - middle(k.mid)
        K, R = np.abs(keys).max(-1), up(k.rad + U * np.abs(keys)).max(-1)  # (s, sentences)
        slip = np.abs(q.mid) * (R + gamma(len(K)) * K)[..., None] + q.rad * (K + R)[..., None]
        centre = middle(v.mid)
        dv = v.mid - centre
        D, Rv = np.abs(dv).max(-1, keepdims=True), v.rad.max(-1, keepdims=True)
        step = max(1, SCORES_AT_ONCE // (length * len(starts)))
        for i in range(0, length, step):  # one step unless a sentence has thousands of tokens
            tick()
            rows = slice(i, i + step)
            t = q.mid[..., rows].transpose(1, 2, 0) @ keys.transpose(1, 0, 2)
            lowest = t.min(-1)
            if causal:
                t[:, np.arange(length) > np.arange(length)[rows, None]] = -np.inf
            top = t.max(-1)
            with np.errstate(invalid="ignore"):
                t -= top[..., None]
                tau = up(total(slip[..., rows]) + U * np.minimum(top - lowest, -LOWEST))
            weight = exp(t)
            average = weight @ dv.transpose(1, 2, 0) / weight.sum(-1, keepdims=True)
            rad = up((spread_by(tau) + gamma(2 * length + 1)) * D + Rv)
            out[:, at[:, rows]] = Balls(average.transpose(2, 0, 1), rad).shifted(centre)
    return out


def middle(x: Floats) -> Floats:
    """Halfway between the extremes of each row, about."""
    return np.asarray((x.max(-1, keepdims=True) + x.min(-1, keepdims=True)) / 2)


def hardest(key: Balls, query: Balls, value: Balls, offsets: Ints, causal: bool) -> Balls:
    """The value at the largest score; an infinite radius if it is not certain which is largest.

    A score is off by its slip, as in `by_blocks`, so the largest must lead by more than twice that.
    """
    out = Balls(np.empty_like(value.mid), np.empty_like(value.rad))
    for length, starts in by_length(offsets, SCORES_AT_ONCE):
        tick()
        at = starts[:, None] + np.arange(length)
        k, q, v = (z[:, at] for z in (key, query, value))
        K, R = np.abs(k.mid).max(-1), k.rad.max(-1)
        slip = np.abs(q.mid) * (R + gamma(len(K)) * K)[..., None] + q.rad * (K + R)[..., None]
        step = max(1, SCORES_AT_ONCE // (length * len(starts)))
        for i in range(0, length, step):
            tick()
            rows = slice(i, i + step)
            t = q.mid[..., rows].transpose(1, 2, 0) @ k.mid.transpose(1, 0, 2)
            known = np.isfinite(t).all(-1)
            if causal:
                t[:, np.arange(length) > np.arange(length)[rows, None]] = -np.inf
            best = t.argmax(-1)
            top = t.max(-1)
            np.put_along_axis(t, best[..., None], -np.inf, -1)
            with np.errstate(invalid="ignore"):
                lead = np.nextafter(top - t.max(-1), -np.inf)
                sure = known & (lead > up(2 * total(slip[..., rows])))
            chosen = np.broadcast_to(best, (len(v.mid), *best.shape))
            rad = np.where(sure, np.take_along_axis(v.rad, chosen, -1), np.inf)
            out[:, at[:, rows]] = Balls(np.take_along_axis(v.mid, chosen, -1), rad)
    return out


def array(parameter: Tensor) -> Floats:
    """A weight as float64; no digit is lost."""
    return np.asarray(parameter.detach().double().numpy())
