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
