"""Steps of heads and large groups: the numbers of a whole text at once, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from rankone.kernels.compiled import recite, running_averages
from rankone.kernels.compiled.averages import average
from rankone.kernels.compiled.rolling_hash import rolling_hashes
from rankone.kernels.compiled.window_sums import window_averages, window_sums

HEADS, ROWS, LENGTH = 3, 7, 60
DECAYS = (1.0, 0.375, 0.01)


def tables(rng: np.random.Generator, positions: int = 1) -> running_averages.Tables:
    def draw(rows: int) -> np.ndarray:
        return rng.uniform(-1, 1, (rows, HEADS)).astype(np.float32)

    none, ints, empty = np.empty(0), np.empty(0, np.int64), np.empty((0, 0), np.float32)
    given = draw(ROWS), draw(ROWS), empty, empty, draw(positions), draw(positions), empty
    return running_averages.Tables(*given, ints, ints, none, none, ints, np.empty(0, np.float32))


def state(levels: int) -> running_averages.State:
    rows = 2 * (2**levels - 1)
    ring = np.full((rows, HEADS), np.nan)  # nothing may be read that has not been written
    return running_averages.State(
        np.zeros(1, np.int64), ring, np.zeros(HEADS), np.zeros(HEADS), np.empty(HEADS, np.float32)
    )


@pytest.mark.parametrize("window", [1, 2, 3, 5, 8, 13, 64])
def test_windows(window: int) -> None:
    rng = np.random.default_rng(window)
    given, tokens = tables(rng), rng.integers(0, ROWS, LENGTH)
    levels = window.bit_length()
    doubled, joined = np.empty((HEADS, levels)), np.empty((HEADS, levels))
    weights, offsets = np.empty((window, HEADS)), np.array([0, LENGTH])
    wanted = np.empty((LENGTH, HEADS))
    for h, decay in enumerate(DECAYS):
        running_averages.fading(decay, window, doubled[h], joined[h])
        sums = np.empty(window)
        window_sums(np.ones(window), decay, window, np.array([0, window]), sums)
        weights[:, h] = sums
        values, out = given.value[tokens, h].astype(np.float64), np.empty(LENGTH)
        window_averages(values, decay, window, offsets, out)
        wanted[:, h] = out
    heads = running_averages.Heads(np.zeros(HEADS), window, doubled, joined, weights)
    past, out, room = state(levels), np.empty(HEADS), np.empty(HEADS)
    for i, token in enumerate(tokens.tolist()):
        running_averages.average_window(given, heads, past, token, room, out)
        past.seen[0] += 1
        assert np.array_equal(out, wanted[i]), i


def test_prefixes() -> None:
    rng = np.random.default_rng(1)
    given, tokens = tables(rng, LENGTH), rng.integers(0, ROWS, LENGTH)
    places, query = np.arange(LENGTH), np.array([2.0, -3.0, 0.5])
    wanted = np.empty((HEADS, LENGTH))
    for h in range(HEADS):
        key = (given.key[tokens, h] + given.key_at[places, h]).astype(np.float64)
        value = (given.value[tokens, h] + given.value_at[places, h]).astype(np.float64)
        average(query[h], key, value, np.array([0, LENGTH]), True, wanted[h])
    empty = np.empty((HEADS, 0))
    heads = running_averages.Heads(query, 0, empty, empty, empty.T)
    past, out = state(0), np.empty(HEADS)
    for i, token in enumerate(tokens.tolist()):
        running_averages.average_prefix(given, heads, past, token, i, out)
        assert np.array_equal(out, wanted[:, i]), i


@pytest.mark.parametrize("heads", [8, 24])
def test_lanes_that_are_beyond(heads: int) -> None:
    rng = np.random.default_rng(heads)
    slopes = rng.normal(size=(5, heads, recite.LANES)).astype(np.float32)
    a = rng.normal(size=heads).astype(np.float32)
    products = np.einsum("bhk,h->bk", slopes.astype(float), a)
    least = products + np.where(rng.random(products.shape) < 0.2, -1e-3, 1e-3)
    least[3] = np.inf  # a block without any
    wanted = np.flatnonzero((products >= least)[1:4])
    found, room = np.empty(5 * recite.LANES, np.int64), np.empty(recite.LANES, np.float32)
    count = recite.blocks_beyond(slopes, least.astype(np.float32), a, 1, 4, room, found)
    assert 0 < count < 3 * recite.LANES
    assert found[:count].tolist() == wanted.tolist()


@pytest.mark.parametrize("window", [0, 1, 3, 50])
def test_hashes(window: int) -> None:
    rng = np.random.default_rng(window)
    offsets, base = np.array([0, 1, 40, LENGTH]), (1 << 61) - 5
    tokens = rng.integers(0, 1 << 31, LENGTH)
    out = np.empty(LENGTH, np.uint64)
    rolling_hashes(tokens, offsets, base, window, out)
    for i, found in enumerate(out.tolist()):
        begin = int(offsets[np.searchsorted(offsets, i, side="right") - 1])
        first = begin if window == 0 else max(begin, i + 1 - window)
        hashed = 0
        for token in tokens[first : i + 1].tolist():
            hashed = (hashed * base + token + 1) % ((1 << 61) - 1)
        assert found == hashed, i
