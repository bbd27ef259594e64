"""Averages over windows with weights that fall geometrically."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone.kernels.compiled.window_sums import window_averages, window_sums


def brute(values, decay, window, offsets, *, divided):
    out = np.empty(len(values))
    for a, b in pairwise(offsets):
        for i in range(a, b):
            first = max(a, i - window + 1)
            weights = np.exp(-decay * (i - np.arange(first, i + 1)))
            out[i] = weights @ values[first : i + 1] / (weights.sum() if divided else 1)
    return out


@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    window=st.integers(1, 25),
    decay=st.sampled_from([2.0, 1.0, 0.5, 0.0625]),
)
def test_sums_and_averages_are_those_of_the_formula(lengths, window, decay):
    offsets = np.cumsum([0, *lengths])
    values = np.random.default_rng(len(lengths)).standard_normal(offsets[-1])
    out = np.empty(len(values))
    window_sums(values, decay, window, offsets, out)
    assert out == pytest.approx(brute(values, decay, window, offsets, divided=False), abs=1e-13)
    window_averages(values, decay, window, offsets, out)
    assert out == pytest.approx(brute(values, decay, window, offsets, divided=True), abs=1e-13)


@pytest.mark.parametrize("window", [1, 2, 5, 8, 31])
def test_the_bits_depend_on_the_window_alone(window):
    """The same tokens after other ones, and behind another text, have the same averages."""
    rng = np.random.default_rng(window)
    tail = rng.standard_normal(window)
    found = []
    for before in (0, 1, 3, 17, 200):
        values = np.concatenate([rng.standard_normal(before), tail])
        offsets = np.array([0, len(values)])
        out = np.empty(len(values))
        window_averages(values, 0.25, window, offsets, out)
        found.append(out[-1])
    assert len(set(found)) == 1


def test_values_are_left_alone():
    values = np.arange(9.0)
    window_averages(values, 1.0, 4, np.array([0, 9]), np.empty(9))
    assert values.tolist() == list(range(9))
