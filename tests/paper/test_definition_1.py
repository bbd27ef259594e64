"""Definition 1: the strict inequalities hold in exact arithmetic, for the vectors as they are."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankone.errors import VectorError
from rankone.theory.separation import separation

Rows = list[tuple[float, ...]]


def square(row: tuple[float, ...], other: tuple[float, ...] | None = None) -> Fraction:
    """The exact squared norm, or squared distance."""
    other = other or (0.0,) * len(row)
    return sum(
        ((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(row, other, strict=True)), Fraction(0)
    )


def tables(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Rows]:
    return st.integers(1, 5).flatmap(
        lambda dim: st.lists(st.tuples(*[numbers] * dim), min_size=1, max_size=10, unique=True)
    )


ordinary = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-10, 10).filter(lambda x: x == 0 or abs(x) > 1e-100),
    st.integers(-9, 9).map(lambda k: 1 + k * 2.0**-52),
    st.integers(-9, 9).map(lambda k: 1e8 + k * 2.0**-26),
)


@given(tables(st.one_of(ordinary, st.floats(-(2.0**900), 2.0**900))))
@example([(5e-324,)])
@example([(5e-324, 5e-324), (1e-323, 0.0)])
@example([(1.5e-323, 2e-323), (2e-323, 1.5e-323)])
def test_the_three_inequalities_are_strict_and_exact(rows: Rows) -> None:
    found = separation(np.array(rows))
    assert (found.vectors, found.dim) == (len(rows), len(rows[0]))
    squares = [square(row) for row in rows]
    assert Fraction(found.r_max) ** 2 > max(squares)
    assert Fraction(found.r_min) ** 2 < min(squares) or found.r_min == 0 == min(squares)
    for one, other in combinations(rows, 2):
        assert square(one, other) > Fraction(found.epsilon) ** 2
    assert found.ok == (found.r_min > 0 and found.epsilon > 0) == (not found.broken)


@given(tables(ordinary))
def test_no_more_is_given_away_than_rounding_takes(rows: Rows) -> None:
    found = separation(np.array(rows))
    squares = [square(row) for row in rows]
    # d + 8 roundings are given away, d/2 + 2 may have gone before, 5 into giving them away
    slack = Fraction(3 * len(rows[0]) + 30, 2**54)
    assert Fraction(found.r_max) ** 2 <= max(squares) * (1 + slack) ** 2 or not max(squares)
    assert Fraction(found.r_min) ** 2 >= min(squares) * (1 - slack) ** 2
    assert squares[found.shortest] <= min(squares) * (1 + slack) ** 2
    assert squares[found.longest] >= max(squares) * (1 - slack) ** 2
    assert found.smallest == pytest.approx(float(min(squares)) ** 0.5, rel=1e-14, abs=0)
    assert found.largest == pytest.approx(float(max(squares)) ** 0.5, rel=1e-14, abs=0)
    if len(rows) > 1:
        assert found.closest is not None
        nearest = min(square(one, other) for one, other in combinations(rows, 2))
        assert square(*(rows[i] for i in found.closest)) <= nearest * (1 + slack) ** 2
        assert Fraction(found.epsilon) ** 2 >= nearest * (1 - slack) ** 2
        assert found.distance == pytest.approx(float(nearest) ** 0.5, rel=1e-14, abs=0)


@pytest.mark.parametrize("dim", [64, 1000, 4096])
@pytest.mark.parametrize("share", [0.4, 0.6])
def test_roundings_that_all_go_one_way(share: float, dim: int) -> None:
    """Each small square is `share` of the last place of 1: adding it rounds down, or up."""
    row = (1.0, *[(share * 2.0**-52) ** 0.5] * (dim - 1))
    exact, found = square(row), separation([row, tuple(-x for x in row)])
    assert Fraction(found.r_min) ** 2 < exact < Fraction(found.r_max) ** 2
    assert Fraction(found.epsilon) ** 2 < 4 * exact


def test_a_triangle() -> None:
    found = separation([[3.0, 4.0], [0.0, 12.0], [6.0, 8.0]])
    assert found.ok
    assert (found.smallest, found.largest, found.distance) == (5.0, 12.0, 5.0)
    assert (found.shortest, found.longest, found.closest) == (0, 1, (0, 2))
    assert found.r_min < 5.0 < 12.0 < found.r_max
    assert found.epsilon < 5.0
    assert json.loads(json.dumps(found.to_json()))["epsilon"] == found.epsilon


def test_one_vector_has_no_pair() -> None:
    found = separation([[3.0, 4.0]])
    assert found.ok
    assert (found.distance, found.closest) == (None, None)
    assert found.epsilon == 2 * found.r_max > 10


def test_a_zero_vector_breaks_theorem_2() -> None:
    found = separation([[1.0, 0.0], [0.0, 0.0]])
    assert not found.ok
    assert (found.r_min, found.shortest) == (0.0, 1)
    assert found.broken == ("row 2 has norm 0, and Theorem 2 needs r_min > 0",)
    alone = separation([[0.0]])
    assert not alone.ok
    assert alone.r_max > 0


def test_vectors_that_float64_cannot_tell_apart_are_not_called_separated() -> None:
    found = separation([[1e270, 0.0], [1e270, 1e-20]])
    assert not found.ok
    assert found.epsilon == 0
    assert "rows 1 and 2" in found.broken[0]


def test_equal_rows_are_refused_by_number() -> None:
    vectors = np.random.default_rng(0).standard_normal((40, 6))
    vectors[31] = vectors[7]
    with pytest.raises(VectorError, match=r"rows 8 and 32: the same vector twice"):
        separation(vectors)
    with pytest.raises(VectorError, match="rows 1 and 2"):
        separation([[0.0], [-0.0]])


def test_what_is_no_table_of_vectors_is_refused() -> None:
    with pytest.raises(VectorError, match="row 2"):
        separation([[1.0], [np.nan]])
    with pytest.raises(VectorError, match="no vectors"):
        separation(np.zeros((0, 3)))
    with pytest.raises(VectorError, match="shape"):
        separation([1.0, 2.0])
