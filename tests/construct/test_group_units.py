"""The units of one group: what they write at its contexts, and what rounding may do to that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankone.construct.gated.units import directions_for
from rankone.kernels.compiled.corners import corners, peaks
from rankone.kernels.compiled.group_units import fit_group
from rankone.kernels.compiled.unit_rows import (
    AMPLITUDE,
    BIAS,
    DIRECTION,
    GAIN,
    far_off,
    most_off,
)
from rankone.kernels.compiled.zigzags import zigzags

F = np.float32
U32 = 2.0**-24


def drawn(seed: int, n: int, heads: int, labels: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, (n, heads)).astype(F).astype(float)
    return a, np.where(rng.random(n) < 0.7, 0, rng.integers(0, labels, n))


def room(n: int, heads: int) -> tuple[Any, Any]:
    return np.zeros(9 * n + 8, np.int64), np.zeros((9 * n + 8, DIRECTION + heads))


def outputs(labels_of: Any, rows: Any, a: Any, labels: int) -> Any:
    """What units write for every label at every context, in float64."""
    z = rows[:, GAIN, None] * (rows[:, DIRECTION:] @ a.T) + rows[:, BIAS, None]
    out = np.zeros((labels, len(a)))
    np.add.at(out, labels_of, rows[:, AMPLITUDE, None] * np.maximum(z, 0))
    return out


def fitted(
    a: Any, labels: Any, *, one_hot: bool = True, noise: float = 1e-15, unit: float = 2.0**-53
) -> tuple[Any, Any, float]:
    n, heads = a.shape
    labels_of, rows = room(n, heads)
    budget, height = 0.1, 2.0 if one_hot else 1.0
    given = (directions_for(heads), 10.0, unit, budget, one_hot, height)
    k, off = fit_group(labels_of, rows, 0, a, labels, np.full(n, noise), 0, *given)
    return labels_of[:k], rows[:k], off


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [2, 5, 40, 300])
@pytest.mark.parametrize("seed", range(3))
def test_every_context_gets_its_label(n: int, heads: int, seed: int) -> None:
    """At least the height where a label is wanted, and at most 0 where it is not."""
    a, labels = drawn(seed, n, heads)
    labels_of, rows, off = fitted(a, labels)
    assert off < 0.1
    out = outputs(labels_of, rows, a, 3)
    for label in (1, 2):
        wanted = labels == label
        assert (out[label, wanted] >= 2.0 * (1 - 1e-6)).all()
        assert (out[label, ~wanted] <= 2e-6).all()
    assert not out[0].any()
    exceptions = int((labels != 0).sum())
    assert len(rows) <= 2 * exceptions
    same = fitted(a, np.ones(n, int))
    assert (len(same[1]), same[2]) == (1, 0.0)
    assert outputs(same[0], same[1], a, 2)[1] == pytest.approx(2.0)
    assert len(fitted(a, np.zeros(n, int))[1]) == 0


@pytest.mark.parametrize("heads", [1, 2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_digits_come_out_exactly(heads: int, seed: int) -> None:
    """Just the height at an exception, and 0 at all other contexts: digits are not overshot."""
    a, labels = drawn(seed, 60, heads, labels=9)
    labels_of, rows, off = fitted(a, labels, one_hot=False)
    assert off < 0.1
    out = outputs(labels_of, rows, a, 9)
    wanted = np.zeros_like(out)
    wanted[labels, np.arange(60)] = labels != 0
    assert out == pytest.approx(wanted, abs=1e-6)


def test_corners_need_one_unit_and_share_it() -> None:
    """On a circle every context is a corner; neighbours with one label share a unit."""
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    a = np.stack([np.cos(angle), np.sin(angle)], 1)
    labels = np.zeros(40, np.int64)
    labels[[3, 4, 5]], labels[20] = 1, 2
    labels_of, rows = room(40, 2)
    given = (np.full(40, 1e-9), 0, directions_for(2), 20.0, 2.0)
    k, left = corners(labels_of, rows, 0, a, labels, *given, True)
    assert not left.any()
    assert sorted(labels_of[:k].tolist()) == [1, 2]
    k, left = corners(labels_of, rows, 0, a, labels, *given, False)
    assert not left.any()
    assert k == 4


def test_a_context_in_the_middle_is_no_corner() -> None:
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.uniform(-1, 1, (300, 2)), [[0.001, 0.002]]])
    labels = np.zeros(301, np.int64)
    labels[-1] = 1
    labels_of, rows = room(301, 2)
    given = (np.full(301, 1e-12), 0, directions_for(2), 20.0, 2.0)
    k, left = corners(labels_of, rows, 0, a, labels, *given, True)
    assert (k, left.sum(), left[-1]) == (0, 1, True)
    noise = np.full(301, 1e-12)
    k, width = peaks(labels_of, rows, 0, a, labels, noise, left, directions_for(2), 2.0)
    assert k == 3
    out = outputs(labels_of[:k], rows[:k], a, 2)[1]
    assert out[-1] == pytest.approx(2.0)
    assert np.abs(out[:-1]).max() < 1e-9
    s = np.sort(np.abs(a @ rows[0, DIRECTION:] - a[-1] @ rows[0, DIRECTION:]))
    assert width == pytest.approx(s[1] / 2e-12)


def test_corners_keep_away_from_what_is_too_close() -> None:
    """A gap of less than so many times its noise is none."""
    a = np.array([[0.0], [0.5], [0.501]])
    labels = np.array([0, 0, 1])
    for noise, found in ((1e-5, 1), (1e-4, 0)):
        labels_of, rows = room(3, 1)
        k, left = corners(
            labels_of, rows, 0, a, labels, np.full(3, noise), 0, np.eye(1), 20.0, 2.0, True
        )
        assert (k, bool(left[2])) == (found, not found)


def test_a_peak_next_to_the_last_context_is_not_levelled() -> None:
    a, labels = np.array([[-1.0], [0.0], [0.1]]), np.array([0, 1, 0])
    labels_of, rows = room(3, 1)
    k, _ = peaks(labels_of, rows, 0, a, labels, np.full(3, 1e-9), labels > 0, np.eye(1), 2.0)
    assert k == 2
    assert outputs(labels_of[:k], rows[:k], a, 2)[1] == pytest.approx([0, 2, 0], abs=1e-12)


@pytest.mark.parametrize(
    ("others", "units"),
    [([-2.0, -0.1, 0.1 + 0.2], 2), ([-2.0, -0.1, 0.3, 0.5], 3), ([-2.0, -0.1], 1)],
)
def test_no_unit_of_a_peak_is_idle(others: list[float], units: int) -> None:
    """Each is active at some context. (Of two equal distances one may be rounded up.)"""
    a, n = np.array([0.1, *others])[:, None], 1 + len(others)
    labels = np.array([1] + [0] * (n - 1))
    labels_of, rows = room(n, 1)
    k, _ = peaks(labels_of, rows, 0, a, labels, np.full(n, 1e-9), labels > 0, np.eye(1), 2.0)
    assert k == units
    active = rows[:k, GAIN, None] * (rows[:k, DIRECTION:] @ a.T) + rows[:k, BIAS, None]
    assert active.max(1).min() > 0.5
    assert outputs(labels_of[:k], rows[:k], a, 2)[1] == pytest.approx(2 * labels, abs=1e-12)


def run32(rng: Any, rows: Any, a: Any, noise: Any) -> Any:
    """The sum of all units in float32: averages off by their noise, products and sums in a random
    order, amplitudes in turn."""
    n, heads = a.shape
    off = (a + rng.uniform(-1, 1, a.shape) * noise[:, None]).astype(F)
    slopes, bias = (rows[:, GAIN, None] * rows[:, DIRECTION:]).astype(F), rows[:, BIAS].astype(F)
    terms = [slopes[:, h, None] * off[None, :, h] for h in range(heads)] + [
        np.repeat(bias[:, None], n, 1)
    ]
    z = np.zeros((len(rows), n), F)
    for i in rng.permutation(len(terms)):
        z = z + terms[i]
    added = rows[:, AMPLITUDE].astype(F)[:, None] * np.maximum(z, F(0))
    out = np.zeros(n, F)
    for j in rng.permutation(len(rows)):
        out = out + added[j]
    return out.astype(float)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("way", ["zigzags", "corners"])
def test_rounding_stays_within_its_bound(heads: int, way: str) -> None:
    """And comes as near to it as random rounding can: not a tenth, but not a thousandth either."""
    worst = 0.0
    for seed in range(6):
        a, labels = drawn(seed, 40, heads, labels=2)
        labels_of, rows = room(40, heads)
        noise = np.full(40, 4 * U32)
        directions = directions_for(heads)
        if way == "zigzags":
            k, _ = zigzags(labels_of, rows, 0, a, labels, noise, 0, directions, 10.0, 2.0)
        else:
            k, _ = corners(labels_of, rows, 0, a, labels, noise, 0, directions, 20.0, 2.0, True)
        if not k:
            continue
        rows = rows[:k]
        bound = most_off(rows, 0, k, a, noise, U32)
        exact = outputs(np.zeros(k, int), rows, a, 1)[0]
        rng = np.random.default_rng(seed)
        for _ in range(20):
            away = np.abs(run32(rng, rows, a, noise) - exact).max()
            assert away <= bound
            worst = max(worst, away / bound)
        quiet = most_off(rows, 0, k, a, np.zeros(40), U32)
        assert quiet < bound
        if way == "zigzags":
            assert quiet * (1 - 1e-5) <= far_off(rows, 0, k, a, U32) <= 50 * quiet
    assert worst > 0.02


def test_bounds_have_all_their_terms() -> None:
    """One unit, two heads: gain 4, direction (1/2, 1/4), bias 3, amplitude 1/2, at a = (1, -2)."""
    rows = np.array([[4.0, 3.0, 0.5, 0.5, 0.25]])
    a, u = np.array([[1.0, -2.0]]), 1e-6
    z, noise = 4 * (0.5 - 0.5) + 3, 1e-3
    slip = 4 * 0.75 * noise + u * 3 * (4 * (0.5 + 0.5) + 3)
    expected = 0.5 * slip + u * 1 * 0.5 * (z + slip)
    assert most_off(rows, 0, 1, a, np.array([noise]), u) == pytest.approx(expected, rel=1e-12)
    far = u * (3 * 0.5 * (4 * 1.0 + 3) + 1 * 0.5 * 3)
    assert far_off(rows, 0, 1, a, u) == pytest.approx(far, rel=1e-12)
    assert far_off(rows, 0, 0, a, u) == 0.0
    two = np.concatenate([rows, rows])
    twice = 2 * 0.5 * slip + u * 2 * 2 * 0.5 * (z + slip)
    assert most_off(two, 0, 2, a, np.array([noise]), u) == pytest.approx(twice, rel=1e-12)
    silent = rows.copy()
    silent[0, BIAS] = -3.0
    assert most_off(silent, 0, 1, a, np.array([noise]), u) == 0.0
