"""The cell of a point, and its place there."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone.kernels import chebyshev
from rankone.kernels.compiled import placement

EPS = 2.0**-53


@given(
    st.lists(st.floats(0, 1e200), min_size=1, max_size=20),
    st.floats(1e-100, 1e100),
)
def test_a_point_lies_in_its_cell_where_its_place_says(points, opposite):
    """The edges of a cell and the place in it give the point back, to rounding of the sum with the
    origin."""
    largest = max(points)
    seen = np.ones((2, 2046), np.bool_)
    origin = chebyshev.origin(largest, opposite)
    every = placement.blocks(origin, np.array([largest, -1.0]), seen)
    for point in points:
        cell, t = placement.locate(point, np.uint64(0), every)
        assert abs(t) <= 1.0 + 1e-12  # the sum with the origin may round over an edge
        octave, inside = divmod(int(cell), chebyshev.CELLS_PER_OCTAVE)
        top = math.ldexp(origin, octave)
        middle = (top - origin) + (inside + 0.5) * top / chebyshev.CELLS_PER_OCTAVE
        assert middle + 0.5 * t * top / chebyshev.CELLS_PER_OCTAVE == pytest.approx(
            point, rel=4 * EPS, abs=EPS * origin
        )


FAR = 2.0**200
ORIGIN = 16.0  # of keys that are FAR apart, for queries up to 1; that of the queries is 16 / FAR
NEAR = [0.0, 1e-60, 1.0, 20.0, 1e30, 4e30, 1e59]


def octave(point):
    return math.frexp(point + ORIGIN)[1] - math.frexp(ORIGIN)[1]


def blocks_of(grid):
    return list(zip(grid.halves.tolist(), grid.octaves.tolist(), strict=True))


@pytest.mark.parametrize("masked", [False, True])
def test_there_are_blocks_where_there_are_points_and_nowhere_else(masked):
    """Else time and memory would grow with the logarithm of the largest score."""
    key = np.array([1e10, *NEAR, FAR, FAR - 2e50, 1e50, 1e55])
    query = np.array([1e10, *NEAR, -1e20, -3.0, FAR, 1e55]) / FAR
    there = np.ones(len(key) if masked else 0, np.bool_)
    there[-2:-1] = False  # 1e50
    ranges = (1, len(key) - 1), (1, len(query) - 1)
    extremes = (1, len(NEAR) + 1), (len(NEAR) + 1, len(NEAR) + 3)
    grids = placement.frame(query, key, key, there, *ranges, *extremes)
    near = {octave(point) for point in (*NEAR, *([] if masked else [1e50]))}
    assert blocks_of(grids.key) == [
        *((0, each) for each in sorted({octave(0.0), octave(2e50)})),
        *((1, each) for each in sorted(near)),
    ]
    assert blocks_of(grids.query) == [
        *((0, each) for each in sorted({octave(point) for point in (*NEAR, FAR)})),
        *((1, each) for each in sorted({octave(3.0), octave(1e20)})),
    ]


ALL_ONES = np.array([(1 << 63) - 1, (1 << 64) - 1], np.uint64).view(np.float64)  # both are NaN


@pytest.mark.parametrize("x", [*ALL_ONES, np.inf, -np.inf, 0.0])
def test_the_extremes_of_equal_numbers_are_the_first_that_is_there(x):
    points = np.full(5, x)
    there = np.array([True, False, True, True, True])
    assert placement.extremes(points, there[:0], 1, 4) == (1, 1)
    assert placement.extremes(points, there, 1, 4) == (2, 2)
    assert placement.extremes(points, there, 1, 2) == (-1, -1)
