"""Unit vectors for Lemma 2: every figure against all pairs in exact arithmetic."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone.arrays import Floats
from rankone.construct.theorem2.projection import (
    Method,
    Projection,
    _least_ratio,
    draw_directions,
    find_projection,
    measure,
)
from rankone.construct.theorem2.rational import below, exact_dot, unit
from rankone.errors import RankOneError, VectorError

entries = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-10, 10),
    st.integers(-9, 9).map(lambda k: 1 + k * 2.0**-52),
    st.integers(-9, 9).map(lambda k: 1e8 + k * 2.0**-26),
    st.sampled_from([1e-250, -3e-250, 1e-320, 1e90]),
)


@st.composite
def clouds(draw: st.DrawFn, least: int = 2) -> Floats:
    dim = draw(st.integers(1, 4))
    rows = st.lists(st.tuples(*[entries] * dim), min_size=least, max_size=9, unique=True)
    points = np.array(draw(rows.filter(lambda found: np.abs(found).max() > 1e-90)))
    return points + 0.0


def dot(a: Floats, b: Floats) -> Fraction:
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))


def exact(points: Floats, v: Floats) -> tuple[Fraction, Fraction]:
    """The least squared ratio and the least gap, over all pairs."""
    projected = [dot(x, v) for x in points]
    squares, gaps = [], []
    for i, j in combinations(range(len(points)), 2):
        size = sum(
            (Fraction(a) - Fraction(b)) ** 2 for a, b in zip(points[i], points[j], strict=True)
        )
        gaps.append(abs(projected[i] - projected[j]))
        squares.append(gaps[-1] ** 2 / size)
    return min(squares), min(gaps)


def check(points: Floats, found: Projection) -> None:
    square, gap = exact(points, found.v)
    assert (1 - Fraction(2) ** -50) ** 2 <= dot(found.v, found.v) <= 1
    assert Fraction(found.ratio) ** 2 <= square
    if gap > 1e-280:
        assert Fraction(found.ratio * (1 + 1e-14)) ** 2 >= square
    assert found.gap <= gap < math.nextafter(found.gap, math.inf)
    assert found.lemma_ratio == pytest.approx(
        math.sqrt(8 / (math.pi * points.shape[1])) / len(points) ** 2, rel=1e-15
    )


@given(clouds(), st.integers(0, 5), st.sampled_from(["best", "auto"]))
def test_figures_are_proved_and_sharp(points: Floats, seed: int, method: Method) -> None:
    check(points, find_projection(points, draws=5, seed=seed, method=method))


@given(clouds(), st.integers(0, 100))
def test_any_vector_is_measured_right(points: Floats, seed: int) -> None:
    v = np.random.default_rng(seed).integers(-2, 3, points.shape[1]) + 0.0
    v[0] = v[0] or 1.0  # ties are common: such a v tells few points apart
    check(points, measure(points, v, draws=1, method="given"))


@pytest.mark.parametrize("far", [1.0, 1e4])
def test_best_is_the_best_of_the_draws(far: float) -> None:
    """Also where one point lies far away, so that few pairs can be passed over at sight."""
    points = np.random.default_rng(2).standard_normal((20, 3))
    points[7] *= far
    found = find_projection(points, draws=30, seed=3, method="best")
    each = [exact(points, v)[0] for v in draw_directions(3, 30, 3)]
    assert Fraction(found.ratio) ** 2 == pytest.approx(max(each), rel=1e-12)
    check(points, found)


def test_sample_stops_at_the_first_draw_that_succeeds() -> None:
    points = np.random.default_rng(0).standard_normal((30, 5))
    draws = [measure(points, v, draws=1, method="given") for v in draw_directions(5, 9, 3)]
    first = [one.ok for one in draws].index(True)
    found = find_projection(points, seed=3, method="sample")
    assert found.draws == first + 1 > 1
    assert found.v.tolist() == draws[first].v.tolist()


def test_same_seed_same_vector() -> None:
    points = np.random.default_rng(0).standard_normal((9, 3))
    first, again, other = (find_projection(points, draws=50, seed=s) for s in (4, 4, 5))
    assert first.v.tobytes() == again.v.tobytes() != other.v.tobytes()
    usual, zero = find_projection(points, draws=50), find_projection(points, draws=50, seed=0)
    assert usual.v.tobytes() == zero.v.tobytes()


def test_a_ratio_that_only_equals_the_lemmas_proves_nothing() -> None:
    """The latter is rounded, perhaps down."""
    found = find_projection(np.eye(3))
    assert not replace(found, ratio=found.lemma_ratio).ok
    assert replace(found, ratio=found.lemma_ratio * (1 + 1e-15)).ok


def test_what_is_hardly_apart_on_v_counts_as_together() -> None:
    """Products below 1e-290 round in absolute terms, so that quotients would say nothing."""
    apart = np.array([[1.0, 0.0], [3e-280, 4e-280]])
    for projected, ratio in ((1.01e-290, 1.01e-290 / 5e-280), (0.99e-290, 0.0)):
        found = _least_ratio(apart, np.array([1.0, projected]))
        assert found == pytest.approx(ratio, rel=1e-14, abs=0)


def test_ways_that_leave_no_choice() -> None:
    line = find_projection([[1.0], [2.5], [-4.0]])
    assert (line.v.tolist(), line.ratio, line.gap, line.draws) == ([1.0], pytest.approx(1), 1.5, 0)
    alone = find_projection([[0.0, 0.0, 0.0]])
    assert alone.ok
    assert alone.ratio == alone.gap == math.inf
    assert json.loads(json.dumps(alone.to_json()))["gap"] is None
    plane, best = find_projection(np.eye(2)), find_projection(np.eye(3), draws=7)
    assert (plane.method, plane.draws) == ("plane", 0)
    assert (best.method, best.draws) == ("best", 7)


def test_thousands_of_points() -> None:
    """Neighbours on v are enough: nothing looks at all 4.5 million pairs."""
    points = np.random.default_rng(1).standard_normal((3000, 16))
    found = find_projection(points, draws=20)
    s = np.sort(points @ found.v)
    assert found.ok
    assert found.gap == pytest.approx(np.diff(s).min(), rel=1e-6)


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], {}, "two points are the same"),
        ([[0.0, 1.0], [-0.0, 1.0]], {}, "two points are the same"),
        ([[1.0, math.nan]], {}, "not finite"),
        ([1.0, 2.0], {}, "shape"),
        (np.zeros((0, 2)), {}, "no points"),
        ([[1e-200], [2e-200]], {}, "as large as 2e-200"),
        ([[1e200], [2e-200]], {}, "as large as 1e\\+200"),
        (np.eye(3), {"method": "plane"}, "2 dimensions, not 3"),
    ],
)
def test_points_that_are_refused(points: Floats, options: dict[str, Method], message: str) -> None:
    with pytest.raises(VectorError, match=message):
        find_projection(points, **options)


def test_settings_that_are_refused() -> None:
    with pytest.raises(RankOneError, match="no method 'worst'"):
        find_projection(np.eye(3), method="worst")  # type: ignore[arg-type]
    with pytest.raises(RankOneError, match="at least one draw"):
        find_projection(np.eye(3), draws=0)
    crowd = np.random.default_rng(0).standard_normal((30, 5))
    with pytest.raises(VectorError, match="none of 1 unit vectors"):
        find_projection(crowd, seed=3, method="sample", draws=1)


@given(st.lists(entries, min_size=1, max_size=300).map(np.array).filter(np.any))
def test_unit_vectors_are_never_too_long(v: Floats) -> None:
    found = unit(v if np.abs(v).max() > 1e-90 else v / np.abs(v).max())
    assert (1 - Fraction(2) ** -50) ** 2 <= dot(found, found) <= 1


@given(clouds(least=1))
def test_products_are_exact(points: Floats) -> None:
    assert exact_dot(points, points[0]) == [dot(x, points[0]) for x in points]


@given(st.fractions())
def test_below_is_the_next_float_below(number: Fraction) -> None:
    assert below(number) <= number < math.nextafter(below(number), math.inf)
