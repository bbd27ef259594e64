"""Closest pairs: exact fractions over all pairs as the judge, then large cases with known answers.

The search has two ways and splits its tiles; each property is tested with constants that force
every one of them, on a few points.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankone.errors import RankOneError, SettingError, VectorError
from rankone.theory import pair_search
from rankone.theory.closest import ClosestPair, closest_pair
from rankone.theory.pair_search import PairSearch

WAYS: dict[str, dict[str, int]] = {
    "sweep": {"PATIENCE": 1 << 30},
    "tiles": {"PATIENCE": -1},
    "small tiles": {"PATIENCE": -1, "TILE": 4},
    "split tiles": {"PATIENCE": -1, "TILE": 8, "FEW": 2, "CHUNK": 8},
    "as it comes": {},
}


@contextmanager
def forced(way: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(pair_search, name, value)
        yield


def square(x: list[float], y: list[float]) -> Fraction:
    """The exact squared distance; every float64 is a whole multiple of 2^-1074."""
    rows = [[n * (2**1074 // d) for n, d in map(float.as_integer_ratio, z)] for z in (x, y)]
    return Fraction(sum((a - b) ** 2 for a, b in zip(*rows, strict=True)), 2**2148)


def admissible(groups: list[int], among: str) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i, j in combinations(range(len(groups)), 2)
        if among == "all" or (groups[i] == groups[j]) == (among == "same")
    ]


def check(
    found: ClosestPair | None, points: list[list[float]], pairs: list[tuple[int, int]], ties: bool
) -> None:
    """The promises of `closest_pair` in exact arithmetic; `ties` if pairs may count as such."""
    if not pairs:
        assert found is None
        return
    assert found is not None
    assert found.pair in pairs
    squares = {pair: square(points[pair[0]], points[pair[1]]) for pair in pairs}
    smallest, mine = min(squares.values()), squares[found.pair]
    lower, distance = Fraction(found.lower), Fraction(found.distance)
    assert lower**2 < smallest or lower == 0 == smallest
    top = max(abs(Fraction(x)) for row in points for x in row)
    if smallest < (top / 2**870) ** 2:  # underflow may count
        assert mine <= (top / 2**860) ** 2
        assert distance <= top / 2**860
        return
    # d + 8 are given away, d/2 + 2 may have gone into the distance, 5 into giving them away
    roundings = Fraction(3 * len(points[0]) + 30, 2**54)
    below = Fraction(1, 10**9) if ties else roundings
    tiny = Fraction(1, 2**1073)  # rounding of subnormal numbers
    assert mine <= smallest * (1 + 2 * below) ** 2
    assert (distance + tiny) ** 2 >= mine * (1 - roundings) ** 2
    assert max(distance - tiny, 0) ** 2 <= mine * (1 + roundings) ** 2
    assert (lower + 2 * tiny) ** 2 >= smallest * (1 - below) ** 2


class Problem(NamedTuple):
    points: list[list[float]]
    groups: list[int]


def problems(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Problem]:
    """Few points from a small stock of numbers, so that copies and near copies are common."""

    @st.composite
    def draw_one(draw: st.DrawFn) -> Problem:
        dim, count = draw(st.integers(1, 4)), draw(st.integers(1, 14))
        stock = draw(st.lists(numbers, min_size=1, max_size=8))
        row = st.lists(st.sampled_from(stock), min_size=dim, max_size=dim)
        points = draw(st.lists(row, min_size=count, max_size=count))
        groups = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
        return Problem(points, groups)

    return draw_one()


def near(offset: float, step: float) -> st.SearchStrategy[float]:
    return st.integers(-40, 40).map(lambda k: offset + k * step)


NUMBERS = st.one_of(
    near(0.0, 1.0),
    near(1e8, 2.0**-20),
    near(1.0, 2.0**-50),
    near(0.0, 5e-324),
    near(1e250, 1e240),
    st.floats(-4, 4),
    st.floats(-(2.0**900), 2.0**900),
    st.sampled_from([0.0, 1.0, -1.0, 2.0**-537, 2.0**-538, 2.0**900, 1e-300, 1e-150]),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("among", ["all", "same", "different"])
@given(problem=problems(NUMBERS))
@example(problem=Problem([[1.0], [1.0 + 2.0**-52], [3.0]], [0, 1, 0]))
@example(problem=Problem([[0.0, 1e270], [5e-324, 1e270], [0.0, 0.0]], [0, 1, 1]))
def test_against_all_pairs_in_fractions(way: str, among: Any, problem: Problem) -> None:
    with forced(way):
        found = closest_pair(np.array(problem.points), groups=problem.groups, among=among)
    check(found, problem.points, admissible(problem.groups, among), ties=way == "split tiles")


@pytest.mark.parametrize("way", WAYS)
def test_distances_that_agree_to_twelve_digits(way: str) -> None:
    """Two clusters far apart: the matrix product cannot tell which of the pairs is the closest."""
    rng = np.random.default_rng(0)
    pairs = admissible([0] * 17, "all")
    for _ in range(10):
        points = np.eye(17) + 1e-12 * rng.standard_normal((17, 17))
        points[:6, 0] += 250
        with forced(way):
            found = closest_pair(points)
        check(found, points.tolist(), pairs, ties=way == "split tiles")


def test_a_tile_whose_squares_underflow() -> None:
    """P and -P are 2^-532 apart, but most of their coordinates have squares that round to 0."""
    point = np.full(3000, 2.0**-538.5)
    point[0] = 2.0**-537
    far = np.zeros(3000)
    far[0] = np.copysign(2.0**479, pair_search.direction(3000)[0])
    with forced("tiles"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_search, "TILE", 2)
        found = closest_pair(np.stack([far, point, -point]))
    assert found is not None
    assert (found.pair, found.lower) == ((1, 2), 0.0)


class Planted(NamedTuple):
    points: np.ndarray[Any, np.dtype[np.float64]]
    pair: tuple[int, int]
    distance: float


def planted(
    count: int, dim: int, *, offset: float = 0.0, unit: float = 1.0, clusters: int = 1
) -> Planted:
    """Different whole points times `unit`, in clusters, and one point a 64th beside another."""
    rng = np.random.default_rng(dim)
    side = max(4, int(4 * count ** (1 / dim)))
    points = rng.integers(0, side, (2 * count, dim)).astype(float)
    points = rng.permutation(np.unique(points, axis=0))[: count - 1] * unit
    points += rng.integers(-8, 8, (clusters, dim))[np.arange(count - 1) % clusters]
    points = np.concatenate([points, points[:1]])
    points[-1, dim // 2] += unit / 64
    order = rng.permutation(count)
    first, second = sorted(np.argsort(order)[[0, -1]].tolist())
    return Planted(points[order] + offset, (first, second), unit / 64)


def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every step of the search from here on, by name."""
    steps: list[str] = []
    for name in ("consider", "tile"):
        step = getattr(PairSearch, name)

        def count(*args: Any, step: Any = step, name: str = name) -> None:
            steps.append(name)
            step(*args)

        monkeypatch.setattr(PairSearch, name, count)
    return steps


@pytest.mark.parametrize("way", ["tiles", "as it comes"])
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("dim", [1, 2, 3, 5, 24, 200])
def test_a_planted_pair_is_found(
    way: str, offset: float, dim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = planted(6000, dim, offset=offset)
    steps = calls(monkeypatch)
    with forced(way):
        found = closest_pair(problem.points)
    assert found is not None
    assert (found.pair, found.distance) == (problem.pair, problem.distance)
    assert (1 - (3 * dim + 30) * 2.0**-54) * problem.distance <= found.lower < problem.distance
    assert len(steps) < 300


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dim", [2, 5])
def test_one_far_point_drowns_the_projections_of_the_others(way: str, dim: int) -> None:
    problem = planted(60, dim, unit=2.0**-40)
    with forced(way):
        found = closest_pair(np.append(problem.points, np.full((1, dim), 2.0**20), axis=0))
    assert found is not None
    assert (found.pair, found.distance) == (problem.pair, problem.distance)


@pytest.mark.parametrize("among", ["all", "same", "different"])
@pytest.mark.parametrize("dim", [2, 64])
def test_clusters_at_a_trillionth(among: Any, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = planted(4000, dim, unit=2.0**-40, clusters=5)
    first, second = problem.pair
    groups = np.arange(4000) % 3
    groups[second] = groups[first] + (among == "different")
    steps = calls(monkeypatch)
    found = closest_pair(problem.points, groups=groups, among=among)
    assert found is not None
    assert (found.pair, found.distance) == (problem.pair, problem.distance)
    assert len(steps) < 1500


def test_copies_of_one_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.full((10_000, 7), 0.1)
    points[1234] = 0.1, 0.1, 0.1, 3.1, 0.1, 0.1, 4.1
    steps = calls(monkeypatch)
    found = closest_pair(points)
    assert found is not None
    assert (found.distance, found.lower, found.ok) == (0.0, 0.0, False)
    assert 1234 not in found.pair
    apart = closest_pair(points, groups=np.arange(10_000) == 1234, among="different")
    assert apart is not None
    assert 1234 in apart.pair
    assert apart.distance == pytest.approx(5.0, rel=1e-15)
    assert len(steps) < 10


def test_a_line_across_the_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """All projections agree up to rounding, so sorting them says nothing."""
    rng = np.random.default_rng(3)
    v = pair_search.direction(16)
    line = rng.standard_normal(16)
    line -= line @ v / (v @ v) * v
    points = np.outer(rng.permutation(9000), line)
    points[17] = points[4711] + line / 512
    assert not PairSearch(points, np.zeros(9000), "all").sweep()
    steps = calls(monkeypatch)
    found = closest_pair(points)
    assert found is not None
    assert found.pair == (17, 4711)
    assert found.distance == pytest.approx(np.linalg.norm(line) / 512, rel=1e-9)
    assert len(steps) < 300


def test_ties_without_end_are_not_compared_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = calls(monkeypatch)
    found = closest_pair(np.eye(500))
    assert found is not None
    assert 2 * (1 - 1e-9) < Fraction(found.lower) ** 2 < 2
    assert found.distance == 2**0.5
    assert len(steps) < 30


def test_no_pair() -> None:
    points = np.random.default_rng(0).standard_normal((50, 3))
    assert closest_pair(points, groups=np.full(50, 7), among="different") is None
    assert closest_pair(points, groups=np.arange(50), among="same") is None
    assert closest_pair(points[:1]) is None
    assert closest_pair(points[:0]) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_rows_that_are_no_points_are_named(bad: float) -> None:
    points = np.zeros((4, 2))
    points[2, 1] = bad
    with pytest.raises(VectorError, match="row 3"):
        closest_pair(points)


def test_what_is_no_question() -> None:
    with pytest.raises(VectorError, match="shape"):
        closest_pair(np.zeros(3))
    with pytest.raises(VectorError, match="not a table of numbers"):
        closest_pair([[1.0], [2.0, 3.0]])
    with pytest.raises(SettingError, match="among = 'some' cannot be used"):
        closest_pair(np.zeros((3, 1)), among="some")  # type: ignore[arg-type]
    for groups in ([0, 1], None, [None, 1, 2], [0.0, np.nan, 1.0], [[0], [1], [2]]):
        with pytest.raises(RankOneError, match="for 3 rows") as caught:
            closest_pair(np.zeros((3, 1)), groups=groups, among="same")
        assert "one whole number or string for each row" in str(caught.value)
