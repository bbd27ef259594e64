"""Plateaus: what the units of a group write for a distribution is 1 to the last bits."""

from __future__ import annotations

import numpy as np
import pytest

from rankone.construct.gated.levels import fit_levelled, level
from rankone.construct.gated.units import Contexts, Fitting, Units, directions_for, fit_units

LINE = np.array([-0.2, 0.1, 0.29, 0.3, 0.31, 0.5, 0.7])  # averages of one head
LABELS = np.array([8, 0, 0, 5, 0, 2, 7])  # from 5 on, distributions
GAP = 0.01


def fitting(dtype):
    return Fitting(dtype, directions_for(1), 1.0, one_hot=False, placed=False)


def contexts(line=LINE, labels=LABELS):
    nothing = np.zeros(len(line), np.int64)
    return Contexts(nothing, nothing, labels, line[:, None], np.ones_like(nothing))


def written(units, s, dtype, label):
    """What the units of a label add where the average is s, as the type computes it."""
    total = np.zeros(len(s), dtype)
    for slopes, bias, amplitude, own in zip(
        units.slopes, units.bias, units.amplitude, units.label, strict=True
    ):
        if own == label:
            seen = dtype(slopes[0]) * s.astype(dtype) + dtype(bias)
            total += dtype(amplitude) * np.maximum(seen, dtype(0))
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_peaks_and_single_units(dtype):
    """A peak at 0.3 among others, and single units at both ends, all for distributions; the peak at
    0.5 is for a label, and stays as it is."""
    name, unit = np.dtype(dtype).name, np.finfo(dtype).eps
    usual = np.zeros(1, np.int64)
    _, units = fit_levelled(contexts(), usual, fitting(name), 5)
    before = fit_units(contexts(), usual, fitting(name))[1]
    assert np.bincount(before.label).tolist() == [0, 0, 3, 0, 0, 3, 0, 1, 1]
    assert np.bincount(units.label).tolist() == [0, 0, 3, 0, 0, 4, 0, 2, 2]
    assert (units.bias[units.label >= 5] == units.bias[units.label >= 5].astype(dtype)).all()
    noise = np.linspace(-GAP / 3, GAP / 3, 101)
    for label in (5, 7, 8):
        at = LINE[label == LABELS][0]
        others = LINE[label != LABELS]
        assert np.abs(written(units, at + noise, dtype, label) - 1).max() <= 4 * unit
        assert np.abs(written(units, others, dtype, label)).max() <= 200 * unit
        off = np.abs(written(before, at + noise, dtype, label) - 1).max()
        assert off > 0.3 if label == 5 else off > 0.01
    assert (written(units, LINE, dtype, 2) == written(before, LINE, dtype, 2)).all()


def test_a_peak_with_nobody_behind_it_needs_three():
    """A unit that is active at no context is not made."""
    line, labels = np.array([0.2, 0.3, 0.4]), np.array([0, 5, 0])
    usual, how = np.zeros(1, np.int64), fitting("float64")
    before = fit_units(contexts(line, labels), usual, how)[1]
    after = fit_levelled(contexts(line, labels), usual, how, 5)[1]
    assert (len(before.label), len(after.label)) == (2, 3)
    assert written(after, line, np.float64, 5) == pytest.approx([0, 1, 0], abs=1e-14)


def test_neighbours_with_one_distribution():
    """Two peaks of the same label stay apart."""
    line, labels = np.array([0.1, 0.2, 0.3, 0.45, 0.6]), np.array([0, 5, 0, 5, 0])
    after = fit_levelled(contexts(line, labels), np.zeros(1, np.int64), fitting("float32"), 5)[1]
    assert written(after, line, np.float32, 5) == pytest.approx([0, 1, 0, 1, 0], abs=1e-5)


def test_units_without_slope_stay():
    whole = np.zeros(1, np.int64)
    given = Units(whole, whole - 1, whole, whole + 9, np.zeros((1, 3)), *np.full((2, 1), 0.5))
    found = level(given, np.array([True]), fitting("float32"))
    assert found.bias.tolist() == [0.5]
    assert found.amplitude.tolist() == [0.5]
