"""Lemma 2 (Park et al.): a unit vector that keeps N points in R^d apart, eq. 72."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from rankone.arrays import Floats
from rankone.construct.theorem2.projection import draw_directions, find_projection, measure


@st.composite
def clouds(draw: st.DrawFn) -> Floats:
    """Gaussian, on a grid, nearly on a line, or in two heaps far apart."""
    size, dim = draw(st.integers(2, 8)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["gauss", "grid", "line", "heaps"]))
    points = rng.standard_normal((size, dim))
    if kind == "grid":
        cells = rng.choice(3**dim, size=min(size, 3**dim), replace=False)
        points = np.stack(np.unravel_index(cells, (3,) * dim), axis=1) + 0.0
    elif kind == "line":
        points[:, 1:] *= 1e-7
    elif kind == "heaps":
        points[::2] += 1e6
    return points


def holds(points: Floats, v: Floats) -> bool:
    """Eq. 72 squared, for all pairs: 8 |x-x'|^2 / (pi d N^4) <= (v^T (x-x'))^2 <= |x-x'|^2."""
    size, dim = points.shape
    for x, y in combinations(points.tolist(), 2):
        difference = [Fraction(a) - Fraction(b) for a, b in zip(x, y, strict=True)]
        square = sum(a * a for a in difference)
        along = sum(a * Fraction(b) for a, b in zip(difference, v, strict=True)) ** 2
        share = along / square * dim * size**4
        if not (arb(fmpq(share.numerator, share.denominator)) * arb.pi() >= 8 and along <= square):
            return False
    return True


@given(clouds(), st.integers(0, 9))
def test_a_vector_is_found_and_the_lemma_holds_exactly(points: Floats, seed: int) -> None:
    found = find_projection(points, seed=seed, method="sample")
    assert found.ok
    assert holds(points, found.v)


@given(clouds(), st.integers(0, 99))
def test_ok_means_that_the_lemma_holds(points: Floats, seed: int) -> None:
    (v,) = draw_directions(points.shape[1], 1, seed)
    found = measure(points, v, draws=1, method="given")
    assert found.ok == holds(points, found.v)


@pytest.mark.parametrize(("size", "dim"), [(3, 2), (5, 8), (12, 3), (30, 16)])
def test_a_draw_succeeds_with_probability_above_one_in_n(size: int, dim: int) -> None:
    """The proof's union bound; draws do fail, so there is something to verify."""
    points = np.random.default_rng(size).standard_normal((size, dim))
    draws = draw_directions(dim, 300, seed=0)
    successes = sum(measure(points, v, draws=1, method="given").ok for v in draws)
    spread = math.sqrt(300 * (1 / size) * (1 - 1 / size))
    assert successes > 300 / size + 3 * spread  # no accident, if the probability were 1 / N
    assert size == 3 or successes < 300


planar = st.lists(
    st.tuples(*[st.integers(-9, 9).map(float)] * 2), min_size=2, max_size=9, unique=True
).map(np.array)


@given(planar)
def test_in_the_plane_the_ratio_is_at_least_a_sine(points: Floats) -> None:
    """sin(pi / (N (N - 1))): the largest of at most N (N - 1) / 2 angles, halved."""
    size = len(points)
    found = find_projection(points, method="plane")
    assert found.ratio >= math.sin(math.pi / (size * (size - 1))) * (1 - 1e-12)
    assert found.ok
    assert holds(points, found.v)


@given(planar, st.integers(0, 99))
def test_in_the_plane_no_other_vector_has_a_larger_ratio(points: Floats, seed: int) -> None:
    best = find_projection(points, method="plane").ratio
    for v in draw_directions(2, 20, seed):
        assert measure(points, v, draws=1, method="given").ratio <= best * (1 + 1e-12)


def test_the_sine_is_reached_by_a_triangle() -> None:
    """Its three normals cut the half circle into equal angles of pi / 3."""
    corners = np.exp(2j * np.pi * np.arange(3) / 3)
    found = find_projection(np.stack([corners.real, corners.imag], axis=1), method="plane")
    assert found.ratio == pytest.approx(math.sin(math.pi / 6), rel=1e-13)
