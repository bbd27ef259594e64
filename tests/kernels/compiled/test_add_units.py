"""What the units of a gated layer write: by pieces, the same as unit by unit."""

from __future__ import annotations

import numpy as np
import pytest

from rankone.kernels.compiled.add_units import MANY, Groups, Units, add_units, fold

U = np.array([-0.53125, 0.46875, -0.015625])  # a direction as groups have them


def group(rng, count, *, parallel=True):
    """Slopes, biases and what is written."""
    gain = rng.choice([-1.0, 1.0], count) * 2.0 ** rng.integers(0, 9, count)
    u = U if parallel else rng.integers(-9, 9, (count, 3)) / 64 + 0.01
    return gain[:, None] * u, gain * rng.uniform(-0.4, 0.4, count), rng.standard_normal((count, 4))


def written(groups, a, words, places, pairs, gates, fines=None):
    slopes, bias, o = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    first = np.append(0, np.cumsum([len(g[1]) for g in groups]))
    out = np.zeros((4, a.shape[1]))
    fines = np.zeros((2, a.shape[1])) if fines is None else fines
    starts = np.searchsorted(pairs, np.arange(gates + 1) * gates)
    units = units_of(slopes, bias, o)
    pieces, done = fold(first, units), np.zeros(len(pairs), bool)
    add_units(
        out, a, words, places, fines, Groups(pairs, starts, first, gates), units, pieces, done
    )
    return out, pieces.at >= 0


def units_of(slopes, bias, o):
    """Each writes a code of its own."""
    rows, ones = np.arange(len(bias)), np.ones(len(bias))
    return Units(slopes, bias, 64 * ones, ones, np.vstack([o, 0 * o[:1]]), rows, len(o) + 0 * rows)


@pytest.mark.parametrize("seed", range(5))
def test_by_pieces_and_unit_by_unit(seed):
    """Word 1 has a group for all positions and one for position 3; word 2 one of many directions;
    word 4 just a few units; word 5 nothing."""
    rng = np.random.default_rng(seed)
    groups = [
        group(rng, MANY),
        group(rng, 50),
        group(rng, 40, parallel=False),
        group(rng, MANY - 1),
    ]
    gates, keys = 8, np.array([8, 11, 19, 35])  # word * gates + position
    words = rng.choice([0, 1, 2, 4, 5], 300)
    places = rng.choice([0, 3, 6], 300)
    a = rng.uniform(-1, 1, (3, 300))
    found, folded = written(groups, a, words, places, keys, gates)
    assert folded.tolist() == [True, True, False, False]
    expected = np.zeros((4, 300))
    for t in range(300):
        for key, (slopes, bias, o) in zip(keys, groups, strict=True):
            if words[t] and key in (words[t] * gates, words[t] * gates + places[t]):
                expected[:, t] += np.maximum(slopes @ a[:, t] + bias, 0) @ o
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-10)
    assert np.abs(expected).max() > 10


def test_at_bends_and_beyond_them():
    rng = np.random.default_rng(0)
    slopes, bias, o = group(rng, 30)
    gain = slopes[:, 0] / U[0]
    s = np.concatenate([-bias / gain, [-9.0, 9.0]])
    a = np.outer(U / (U @ U), s)
    ones = np.ones(32, int)
    found, _ = written([(slopes, bias, o)], a, ones, 0 * ones, np.array([4]), 4)
    assert found == pytest.approx((np.maximum(slopes @ a + bias[:, None], 0).T @ o).T, rel=1e-11)


def test_gates_that_are_not_quite_0_are_seen():
    rng = np.random.default_rng(1)
    slopes, bias, o = group(rng, 30)
    a, ones = rng.uniform(-1, 1, (3, 20)), np.ones(20, int)
    fines = rng.uniform(-1e-3, 0, (2, 20))
    found, _ = written([(slopes, bias, o)], a, ones, 0 * ones, np.array([4]), 4, fines)
    z = slopes @ a + bias[:, None] + 64 * fines[0]
    assert found == pytest.approx((np.maximum(z, 0).T @ o).T, rel=1e-11)


def test_units_without_slope_are_not_folded():
    rng = np.random.default_rng(2)
    slopes, bias, o = group(rng, 30)
    slopes[7] = 0.0
    assert fold(np.array([0, 30]), units_of(slopes, bias, o)).at[0] < 0
    slopes[0] = 0.0
    assert fold(np.array([0, 30]), units_of(slopes, bias, o)).at[0] < 0
