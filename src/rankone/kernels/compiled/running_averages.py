"""Averages of attention, one token after the other: a step costs the same however long the text is.

The state is what the heads need of the past. With a window those are the sums over 1, 2, 4, ...
tokens of `window_sums`, each as far back as it is used again; otherwise two running sums a head.
The numbers are those of a whole text at once: with a window to the last bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled
from rankone.kernels.compiled.exponential import exponential

Numbers = NDArray[Any]  # float32 or float64: those of the network


class Tables(NamedTuple):
    """What a token brings along: rows for words, and for positions (one of zeros, if there are
    none). ``key`` and ``value`` have a column per head, ``reads`` what units look at, ``writes``
    what they add to, before anything is added. Head h adds ``scale[h]`` times its average to
    coordinate ``to[h]`` of ``reads``. ``gates`` are those that words and positions open."""

    key: Numbers
    value: Numbers
    reads: Numbers
    writes: Numbers
    key_at: Numbers
    value_at: Numbers
    reads_at: Numbers
    gates: Ints
    gates_at: Ints
    fines: Floats
    fines_at: Floats
    to: Ints
    scale: Numbers


class Heads(NamedTuple):
    """Of documents, window 0: the number that all tokens ask each head with. With a window: by how
    much the past has faded where two sums meet (``doubled``, ``joined``: a column per size), and
    the sum of the weights of 1, 2, ... tokens (a row each)."""

    query: Floats
    window: int
    doubled: Floats
    joined: Floats
    weights: Floats


class State(NamedTuple):
    """What is kept of the past: the tokens so far (a single number), sums, and the features of the
    last token."""

    seen: Ints
    ring: Floats
    above: Floats
    below: Floats
    features: Numbers


@compiled()
def fading(decay: float, window: int, doubled: Floats, joined: Floats) -> None:
    """The factors of `window_sums`, for sums over 1, 2, 4, ... tokens."""
    for level in range(len(doubled)):
        size = 1 << level
        doubled[level] = np.exp(-decay * size)
        joined[level] = np.exp(-decay * (window & (size - 1)))


@compiled()
def average_window(
    tables: Tables, heads: Heads, state: State, token: int, sums: Floats, out: Floats
) -> None:
    """What `window_averages` gives for this token. Level l of the ring has the sums over 2^l tokens
    that end at the last 2^(l + 1) ones."""
    i, window, base, length = state.seen[0], heads.window, 0, 0
    for h in range(len(out)):
        sums[h] = tables.value[token, h]
    for level in range(heads.doubled.shape[1]):
        size = 1 << level
        last = 2 * size - 1
        here = base + (i & last)
        for h in range(len(out)):
            state.ring[here, h] = sums[h]
        if window & size:
            there = base + ((i - length) & last)
            if length == 0:
                out[:] = sums
            elif i >= length:
                for h in range(len(out)):
                    out[h] = out[h] + heads.joined[h, level] * state.ring[there, h]
            length += size
        if i >= size:
            there = base + ((i - size) & last)
            for h in range(len(out)):
                sums[h] = sums[h] + heads.doubled[h, level] * state.ring[there, h]
        base += 2 * size
    for h in range(len(out)):
        out[h] /= heads.weights[min(i, window - 1), h]


@compiled()
def average_prefix(
    tables: Tables, heads: Heads, state: State, token: int, at: int, out: Floats
) -> None:
    """What `averages.average` gives for this token."""
    for h in range(len(out)):
        key = np.float64(tables.key[token, h] + tables.key_at[at, h])
        value = np.float64(tables.value[token, h] + tables.value_at[at, h])
        weight = exponential(heads.query[h] * key)
        state.above[h] += weight * value
        state.below[h] += weight
        out[h] = state.above[h] / state.below[h]
