"""`measure_gaps` against every pair of context ids in exact fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from rankone.arrays import Floats, Ints
from rankone.certification import context_gaps
from rankone.certification.ball_arithmetic import Balls, U, gamma
from rankone.certification.context_gaps import Gaps, measure_gaps
from rankone.certification.context_ids import ContextIds, lengths, outline

Points = list[list[Fraction]]


def context_ids(
    x: Floats, moved: Floats, place: Any, rad: float = 0.0, direction: Floats | None = None
) -> tuple[ContextIds, Points]:
    """q = x + moved where nothing is rounded, known up to `rad`; exact points at the far ends.

    x and moved are (d, contexts), and x is equal where `place` is.
    """
    rng = np.random.default_rng(0)
    direction = np.eye(len(x))[0] if direction is None else direction
    q, n = x + moved, x.shape[1]
    exact = [
        [Fraction(a) + int(side) * Fraction(rad) for a, side in zip(*column, strict=True)]
        for column in zip(q.T.tolist(), rng.choice([-1, 1], q.T.shape), strict=True)
    ]
    added = [
        [a - Fraction(b) for a, b in zip(*pair, strict=True)]
        for pair in zip(exact, x.T.tolist(), strict=True)
    ]
    projected = [dot(direction, point) for point in added]
    middle = np.array([float(a) for a in projected])
    off = max(abs(a - Fraction(m)) for a, m in zip(projected, middle.tolist(), strict=True))
    along = Balls(middle, np.full(n, float(off) * (1 + 4 * U)))
    tokens, radii = rng.permutation(5 * n)[:n], np.full(q.shape, rad)
    return gathered(tokens, place, direction, along, Balls(moved, radii), Balls(q, radii)), exact


def gathered(
    tokens: Ints, place: Any, direction: Floats, along: Balls, moved: Balls, q: Balls
) -> ContextIds:
    """One-dimensional ones are on a line, of course; all others count as anywhere."""
    return ContextIds(
        tokens,
        np.asarray(place),
        direction,
        along,
        *outline(q),
        locate=lambda at: (moved[:, at], q[:, at]),
        straight=len(direction) == 1,
    )


def dot(direction: Floats, point: list[Fraction]) -> Fraction:
    return sum(
        (Fraction(a) * b for a, b in zip(direction.tolist(), point, strict=True)), Fraction(0)
    )


def check(ids: ContextIds, exact: Points) -> Gaps:
    """No pair is closer than `lower`, but for those in a cluster."""
    gaps = measure_gaps(ids)
    clusters = [set(cluster) for cluster in (*gaps.same, *gaps.different)]
    square = fraction(gaps.lower) ** 2 if gaps.pair is not None else None
    for i, j in combinations(range(len(exact)), 2):
        pair = {int(ids.tokens[i]), int(ids.tokens[j])}
        if any(pair <= cluster for cluster in clusters):
            continue
        distance = sum((a - b) ** 2 for a, b in zip(exact[i], exact[j], strict=True))
        assert square is not None
        assert square <= distance
    if gaps.pair is not None:
        one, other = (ids.tokens.tolist().index(token) for token in gaps.pair)
        assert one != other
        assert gaps.lower > 0
    return gaps


def fraction(x: arb) -> Fraction:
    assert x.is_exact()
    mantissa, exponent = map(int, x.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


@st.composite
def clouds(draw: st.DrawFn) -> tuple[ContextIds, Points]:
    """Few places, offsets of units in the last place: equal points, near misses, wide gaps."""
    dim, n = draw(st.integers(1, 4)), draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    places = draw(st.integers(1, 5))
    place = rng.integers(0, places, n)
    step = draw(st.sampled_from([1.0, 2.0**-20, 2.0**-45]))
    spots = rng.integers(-3, 4, (dim, places)) * draw(st.sampled_from([1.0, step, 64 * step]))
    moved = rng.integers(-20, 21, (dim, n)) * step
    rad = draw(st.sampled_from([0.0, 2.0**-60, step / 64, step / 4, step]))
    direction = rng.integers(-4, 5, dim) + 0.5
    return context_ids(spots[:, place] * 1.0, moved, place, rad, direction)


@given(clouds())
def test_nothing_is_closer_than_the_bound(problem: tuple[ContextIds, Points]) -> None:
    check(*problem)


@pytest.mark.parametrize(("patience", "span"), [(0, 1 << 16), (16, 2), (16, 3)])
@given(problem=clouds())
def test_nor_if_points_are_many(
    problem: tuple[ContextIds, Points], patience: int, span: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context_gaps, "PATIENCE", patience)
        patch.setattr(context_gaps, "SPAN", span)
        check(*problem)


def test_a_bound_is_found_and_close() -> None:
    """Two hundred points in the plane, known exactly: the bound is that of the closest pair."""
    rng = np.random.default_rng(1)
    place = np.arange(200) % 20
    x = rng.integers(0, 1000, (2, 20))[:, place] * 1.0
    moved = rng.integers(0, 1 << 20, (1, 200)) * 2.0**-20 * np.array([[1.0], [0.0]])
    ids, exact = context_ids(x, moved, place)
    gaps = check(ids, exact)
    best = min(
        sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) for p, q in combinations(exact, 2)
    )
    assert not gaps.unsure
    assert fraction(gaps.lower) ** 2 >= best * (1 - Fraction(1, 10**12))
    i, j = (ids.tokens.tolist().index(token) for token in gaps.pair or ())
    assert sum((a - b) ** 2 for a, b in zip(exact[i], exact[j], strict=True)) == best


def test_one_context_has_no_neighbour() -> None:
    ids, exact = context_ids(np.ones((2, 1)), np.zeros((2, 1)), [0])
    gaps = check(ids, exact)
    assert (gaps.pair, gaps.unsure) == (None, set())
    assert gaps.lower == arb("inf")


def test_contexts_that_coincide_are_left_to_the_referee() -> None:
    """The same x with the same average, and different x that attention moves to one point."""
    x = np.array([[0.0, 0.0, 1.0, 4.0], [0.0, 0.0, 0.0, 4.0]])
    moved = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    ids, exact = context_ids(x, moved, [0, 0, 1, 2])
    gaps = check(ids, exact)
    a, b, c, d = ids.tokens.tolist()
    assert sorted(gaps.same[0]) == sorted([a, b])
    assert {frozenset(pair) for pair in gaps.different} >= {frozenset([a, c]), frozenset([b, c])}
    assert d not in gaps.unsure


def test_points_that_differ_in_the_last_bit() -> None:
    """x of size 1 apart by 2^-52, both exactly known: a gap, not a cluster."""
    x = np.array([[1.0, 1.0 + 2.0**-52, 3.0]])
    ids, exact = context_ids(x, np.zeros((1, 3)), [0, 1, 2])
    gaps = check(ids, exact)
    assert not gaps.unsure
    assert fraction(gaps.lower) > Fraction(2) ** -53
    unsure, exact = context_ids(x, np.zeros((1, 3)), [0, 1, 2], rad=2.0**-53)
    assert set(unsure.tokens[:2].tolist()) <= check(unsure, exact).unsure


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_thousands_of_points(scale: float) -> None:
    """Against sorting, on a line: the smallest gap of all."""
    rng = np.random.default_rng(3)
    n = 20_000
    x = rng.permutation(n * 10)[:n].astype(float)[None] * scale
    along = Balls(np.zeros(n), np.zeros(n))
    q = Balls(x, np.full((1, n), 1e-3))
    nothing = Balls(np.zeros((1, n)), np.zeros((1, n)))
    gaps = measure_gaps(gathered(np.arange(n), np.arange(n), np.ones(1), along, nothing, q))
    assert not gaps.unsure
    assert scale - 2.1e-3 < gaps.lower < scale - 1.9e-3


def test_thousands_of_copies() -> None:
    """Two thousand contexts of one token, and one token far away, all of them too close to call."""
    n = 2000
    place = np.r_[np.zeros(n - 1, dtype=np.int64), 1]
    q = np.zeros((2, n))
    q[:, -1] = 1e12
    along = Balls(np.zeros(n), np.full(n, 1e-16))
    radii = np.full((2, n), 1e-4)
    moved, around = Balls(np.zeros((2, n)), radii), Balls(q, radii)
    gaps = measure_gaps(gathered(np.arange(n), place, np.ones(2), along, moved, around))
    assert set(range(n - 1)) <= {token for cluster in gaps.same for token in cluster}
    assert gaps.different == []
    assert gaps.lower > 1.4e12


@pytest.mark.parametrize(
    ("apart", "rad"),
    [
        pytest.param(1.5945945945945947e-162, 0.0, id="squares underflow"),
        pytest.param(1e-161, 1e-163, id="radii vanish when squared"),
    ],
)
def test_tiny_context_ids(apart: float, rad: float) -> None:
    ids, _ = context_ids(np.array([[0.0, apart], [0.0, 0.0]]), np.zeros((2, 2)), [0, 1], rad)
    ends = [[Fraction(rad), Fraction(0)], [Fraction(apart) - Fraction(rad), Fraction(0)]]
    check(ids, ends)


@np.errstate(over="ignore")
def test_huge_context_ids() -> None:
    x = np.array([[1e160, -1e160], [0.0, 1.0]])
    check(*context_ids(x, np.zeros((2, 2)), [0, 1]))


def test_a_bound_of_the_same_token_against_distances_of_others() -> None:
    """The bound from tokens with one x, and another pair that is closer by less than rounding."""
    rng = np.random.default_rng(0)
    drawn = rng.uniform(1, 2, (3, 3000))
    norms = lengths(drawn).tolist()
    excess = [
        Fraction(norm) ** 2 / sum(Fraction(x) ** 2 for x in column)
        for norm, column in zip(norms, drawn.T.tolist(), strict=True)
    ]
    for i in sorted(range(3000), key=excess.__getitem__)[-20:]:  # computed much too large
        other, computed = drawn[:, i], norms[i]
        gap = float(np.nextafter(computed, 0))
        x = np.array([[0.0, 0.0, 50.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        x = np.c_[x, x[:, 2] + np.r_[0.0, other]]
        moved = np.zeros((4, 4))
        moved[0, 1] = np.nextafter(gap, 9)
        ids, exact = context_ids(x, moved, [0, 0, 1, 2])
        check(replace(ids, straight=True), exact)


# Radii that differ and are used up: every exact point lies at a corner of its box.

R = 2.0**-20
FAR = 1000.0


def cornered(
    x: Any,
    moved: Any,
    rad: Any,
    sides: Any,
    place: Any,
    *,
    direction: Any = None,
    along: Any = None,
    straight: bool = False,
) -> tuple[ContextIds, Points]:
    """Midpoints, radii and the corner that is exact, each (d, contexts).

    `along` are midpoints and radii of the projection, which are otherwise those of `moved`.
    """
    x, moved, rad, sides = (np.asarray(a, dtype=float) for a in (x, moved, rad, sides))
    direction = np.eye(len(x))[0] if direction is None else np.asarray(direction, dtype=float)
    if along is None:
        along = direction @ moved, np.abs(direction) @ rad
    q, n = Balls(x + moved, rad), x.shape[1]
    exact = [
        [Fraction(m) + Fraction(s) * Fraction(r) for m, r, s in zip(*column, strict=True)]
        for column in zip(q.mid.T.tolist(), rad.T.tolist(), sides.T.tolist(), strict=True)
    ]
    ids = ContextIds(
        np.arange(n)[::-1] * 3,
        np.asarray(place),
        direction,
        Balls(*map(np.array, along)),
        *outline(q),
        locate=lambda at: (Balls(moved, rad)[:, at], q[:, at]),
        straight=straight,
    )
    return ids, exact


def close(ids: ContextIds, exact: Points, share: float = 1e-9) -> Gaps:
    """The bound holds, and is attained by the closest pair, which is named."""
    gaps = check(ids, exact)
    assert gaps.pair is not None
    assert not gaps.unsure
    i, j = (ids.tokens.tolist().index(token) for token in gaps.pair)
    square = sum((a - b) ** 2 for a, b in zip(exact[i], exact[j], strict=True))
    assert fraction(gaps.lower) ** 2 >= square * (1 - Fraction(share))
    return gaps


@pytest.mark.parametrize("scale", [1.0, -2.0])
@pytest.mark.parametrize("turned", [False, True])
def test_neighbours_at_their_bound(turned: bool, scale: float) -> None:
    """Two neighbours of nine radii, pointing at each other, between others that are further off."""
    moved = np.array([[-1.0, 0.0, 9 * R, 1.0, 0.5, 12.0]])
    rad = np.array([[R / 8, R, R, R / 2, R, R]])
    sides, place = np.array([[1, 1, -1, -1, 1, 1]]), np.array([0, 0, 0, 0, 1, 2])
    turn = slice(None, None, -1 if turned else 1)
    parts = (a[..., turn] for a in (moved, rad, sides))
    x = 100.0 * place[None, turn]
    ids, exact = cornered(x, *parts, place[turn], direction=[scale], straight=True)
    gaps = close(ids, exact)
    assert fraction(gaps.lower) == pytest.approx(7 * R, rel=1e-9, abs=0)


@pytest.mark.parametrize(("radii", "joined"), [(7.99, True), (8.0, True), (8.01, False)])
def test_neighbours_of_eight_radii_are_measured_again(radii: float, joined: bool) -> None:
    moved = [[-1.0, 0.0, radii * R, 1.0, 1.0 + radii * R, 1 + 2 * radii * R]]
    rad = np.full((1, 6), R)
    x = np.zeros((1, 6))
    ids, exact = cornered(x, moved, rad, np.zeros((1, 6)), [0] * 6, straight=True)
    gaps = check(ids, exact)
    expected = [[0, 3, 6], [9, 12]] if joined else []
    assert gaps.same == expected
    assert gaps.different == []


def test_neighbours_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest gap lies across the border of two pieces, or in the last one; so do clusters."""
    monkeypatch.setattr(context_gaps, "SPAN", 3)
    for at in range(7):
        for joined in (False, True):
            moved = np.arange(8.0)[None].copy()
            moved[0, at + 1] = at + (R if joined else 0.5)
            rad = np.full((1, 8), R)
            ids, exact = cornered(0 * moved, moved, rad, 0 * moved, [0] * 8, straight=True)
            gaps = check(ids, exact)
            pair = [18 - 3 * at, 21 - 3 * at]
            assert gaps.same == ([pair] if joined else [])
            if not joined:
                assert list(gaps.pair or ()) == pair


def test_no_bound_of_neighbours_from_other_places() -> None:
    """On the line, tokens of other x are as close as anything, and do not count."""
    place, x = np.array([0, 1, 0, 1]), 50.0 * np.array([[0, 1, 0, 1]])
    moved = np.array([[0.0, 0.01, 1.0, 1.5]])
    ids, exact = cornered(x, moved, 0 * moved, 0 * moved, place, straight=True)
    assert fraction(close(ids, exact).lower) == pytest.approx(1.0, rel=1e-9, abs=0)


def test_pairs_of_one_place_at_their_bound() -> None:
    """Midpoints (3, 4) 3 R apart, radii along (3, 4), used up; others nearby in `along`."""
    moved = np.array([[0.0, 9 * R, 4 * R, -8 * R], [0.0, 12 * R, FAR, -FAR]])
    rad = np.array([[0.6 * R, 0.6 * R, R / 8, 0.0], [0.8 * R, 0.8 * R, R / 16, R]])
    sides = np.array([[1, -1, 1, 1], [1, -1, 1, 1]])
    ids, exact = cornered(np.ones((2, 4)), moved, rad, sides, [4] * 4)
    assert fraction(close(ids, exact).lower) == pytest.approx(13 * R, rel=1e-6, abs=0)


@pytest.mark.parametrize("length", [1.0, 3.0, 0.25])
def test_what_is_known_of_along_bounds_the_search(length: float) -> None:
    """The closest pair is two ranks apart, and its projections look a whole radius more so, each.

    They are 10 apart; a pair of neighbours, 10.5 apart, is found first.
    """
    moved = np.array([[0.0, 5.0, 10.0, 90.0, 90.0], [0.0, 300.0, 0.0, 0.0, 10.5]])
    mids = length * np.array([-1.0, 5.0, 11.0, 90.0, 90.0])
    zeros = np.zeros((2, 5))
    ids, exact = cornered(
        zeros,
        moved,
        zeros,
        zeros,
        [0] * 5,
        direction=[length, 0.0],
        along=(mids, length * np.array([1.0, 0.0, 1.0, 0.0, 0.0])),
    )
    assert fraction(close(ids, exact).lower) == pytest.approx(10, rel=1e-9, abs=0)


def test_pairs_of_different_places_at_their_bound() -> None:
    """Radii along (3, 4) once more, now of whole context ids; what attention adds is alike."""
    x = np.array([[0.0, 9 * R, 4 * R, -8 * R], [0.0, 12 * R, FAR, -FAR]])
    rad = np.array([[0.6 * R, 0.6 * R, R / 8, 0.0], [0.8 * R, 0.8 * R, R / 16, R]])
    sides = np.array([[1, -1, 1, 1], [1, -1, 1, 1]])
    ids, exact = cornered(x, np.ones((2, 4)), rad, sides, [0, 1, 2, 3])
    assert fraction(close(ids, exact).lower) == pytest.approx(13 * R, rel=1e-6, abs=0)


@pytest.mark.parametrize("extra", [0.5, 1.0, 1.5, 1.9])
def test_others_that_are_closer_by_their_radii(extra: float) -> None:
    """Tokens of one x are 1 apart, exactly; two others 1 + 1.5 R, but for a radius each."""
    moved = np.array([[0.0, 1.0, 0.0, 0.0]])
    x = np.array([[0.0, 0.0, 50.0, 51 + extra * R]])
    rad, sides = np.array([[0.0, 0.0, R, R]]), np.array([[0, 0, 1, -1]])
    along = np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(4)
    ids, exact = cornered(x, moved, rad, sides, [0, 0, 1, 2], along=along, straight=True)
    gaps = close(ids, exact)
    assert fraction(gaps.lower) == pytest.approx(float(1 + (extra - 2) * R), rel=1e-12)
    assert set(gaps.pair or ()) == {3, 0}


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize(("radii", "near"), [(7.99, True), (8.0, True), (8.01, False)])
def test_pairs_of_eight_radii_are_measured_again(radii: float, near: bool, same: bool) -> None:
    """And what is left out is not offered: the bound is that of the next pair."""
    spots = np.array([[0.0, radii * R, 3.0, 3.25], [0.0, 0.0, 0.0, 0.0]])
    rad = np.array([[R, R, R / 4, R / 4], [0.0] * 4])
    place = [0] * 4 if same else [0, 1, 2, 3]
    x, moved = (0 * spots, spots) if same else (spots, 0 * spots)
    ids, exact = cornered(x, moved, rad, 0 * spots, place)
    gaps = check(ids, exact)
    clusters = gaps.same if same else gaps.different
    assert [sorted(c) for c in clusters] == ([[6, 9]] if near else [])
    assert set(gaps.pair or ()) == ({0, 3} if near else {6, 9})


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize(("radii", "near"), [(7.99, True), (8.01, False)])
def test_many_points_at_their_bound(
    monkeypatch: pytest.MonkeyPatch, same: bool, radii: float, near: bool
) -> None:
    """By `closest_pair`: midpoints along (3, 4), radii too, used up by the closest two."""
    monkeypatch.setattr(context_gaps, "PATIENCE", 0)
    spots = np.array([[0.0, 0.6 * radii * R, 3.0, FAR], [0.0, 0.8 * radii * R, 4.0, FAR]])
    rad = np.array([[0.6 * R, 0.6 * R, 0.0, R / 2], [0.8 * R, 0.8 * R, R / 4, 0.0]])
    sides = np.array([[1, -1, 1, 1], [1, -1, 1, 1]])
    if same:
        x, moved, place = np.ones((2, 4)), spots, [3] * 4
    else:
        x, moved, place = spots - 7, np.full((2, 4), 7.0), [0, 1, 2, 3]
        x[:, :2] = spots[:, :2]
        moved[:, :2] = 0.0
    ids, exact = cornered(x, moved, rad, sides, place)
    if near:
        gaps = check(ids, exact)
        clusters = gaps.same if same else gaps.different
        assert [sorted(c) for c in clusters] == [[0, 3, 6, 9]]
        assert gaps.pair is None
    else:
        assert fraction(close(ids, exact, 1e-6).lower) == pytest.approx(6.01 * R, rel=1e-6, abs=0)


def test_many_points_of_several_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one place are compared, and left to the referee place by place."""
    monkeypatch.setattr(context_gaps, "PATIENCE", 0)
    spots = np.array([[0.0, 0.25, 1.0, 3.0, 1.5, 7.0], [0.0] * 6])
    place = [0, 1, 0, 1, 2, 3]
    x = np.array([[0.0, 50.0, 0.0, 50.0, 90.0, 95.0], [0.0] * 6])
    ids, exact = cornered(x, spots, 0 * spots, 0 * spots, place)
    assert fraction(close(ids, exact).lower) == pytest.approx(1.0, rel=1e-9, abs=0)
    wide = np.full((2, 6), 0.25)
    ids, exact = cornered(x, spots, wide, 0 * spots, place)
    assert [sorted(c) for c in check(ids, exact).same] == [[6, 12], [9, 15]]


def test_shades_that_rounding_moves_apart() -> None:
    """Points of a few units in the last place, far from 0: the order of shades is that of noise."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        dim = int(rng.integers(2, 6))
        spots = rng.uniform(1, 1.9, (dim, 1)) + 2 * U * rng.integers(0, 3, (dim, 5))
        spots[:, 0] = -9 * U  # one that is small
        if len({tuple(column) for column in spots.T.tolist()}) == 5:
            check(*cornered(spots, 0 * spots, 0 * spots, 0 * spots, np.arange(5)))


@pytest.mark.parametrize("share", [1 - 1e-9, 1 + 2.0**-42, 1 + 1e-9])
@pytest.mark.parametrize("same", [True, False])
def test_no_more_is_compared_than_may_be_closer(same: bool, share: float) -> None:
    """The first two are 2 apart, so are the last two; the first and the third may be closer.

    That depends on the projections: along is known up to 1/8 and has a direction of length 3, a
    shade is off by 2 u times the largest size, here a million. A little more counts too, for the
    rounding of all this.
    """
    spots = np.array([[0.0, 0.0, 2.0], [0.0, 2.0, 2.0], [2.0**20] * 3])
    slip = 2 * 3 * U * 2.0**20
    calls = []
    if same:
        mids = np.array([0.0, 1.0, (2.0 * 3 + 0.25) * share])
        ids, _ = cornered(
            0 * spots,
            spots,
            0 * spots,
            0 * spots,
            [0] * 3,
            direction=[3.0, 0.0, 0.0],
            along=(mids, np.array([0.0, 0.125, 0.125])),
        )
    else:
        ids, _ = cornered(spots, 0 * spots, 0 * spots, 0 * spots, [0, 1, 2])
        reach = 2.0 + slip
        shade = np.array([0.0, 1.0, reach + (share - 1) * 0.1])
        ids = replace(ids, shade=shade, size=np.array([1.0, 2.0**20, 2.0]))
    found = ids.locate

    def locate(at: Ints) -> tuple[Balls, Balls]:
        calls.append(at.tolist())
        return found(at)

    gaps = measure_gaps(replace(ids, locate=locate))
    assert float(gaps.lower) == pytest.approx(2, rel=1e-12, abs=0)
    expected = [[0, 1, 1, 2]] + [[0, 2]] * (share < 1 + 2.0**-41)
    assert calls[:2] == expected if same else calls == expected


@pytest.mark.parametrize("share", [1 - 1e-9, 1 + 1e-9])
def test_others_are_compared_if_they_may_be_closer(share: float) -> None:
    """Tokens of one x are 1 apart, all are known up to R: others up to 1 + 2 R apart count."""
    reach = (1 + 2 * R) * share
    moved = np.array([[0.0, 1 + 2 * R, 0.0, 0.0]])
    x = np.array([[0.0, 0.0, 50.0, 50.0 + 7]])
    ids, _ = cornered(x, moved, np.full((1, 4), R), 0 * x, [0, 0, 1, 2], straight=True)
    ids = replace(ids, shade=np.array([0.0, 10.0, 50.0, 50.0 + reach]))
    calls, found = [], ids.locate

    def locate(at: Ints) -> tuple[Balls, Balls]:
        calls.append(at.tolist())
        return found(at)

    gaps = measure_gaps(replace(ids, locate=locate))
    assert float(gaps.lower) == pytest.approx(1, rel=1e-12, abs=0)
    assert calls == [[2, 3]] * (share < 1)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_distance_is_off_by_its_roundings(dim: int) -> None:
    """Points 1 apart and known exactly: the bound is 1 but for d + 4 roundings."""
    x = np.zeros((dim, 2))
    x[-1, 1] = 1.0
    gaps = check(*cornered(x, 0 * x, 0 * x, 0 * x, [0, 1]))
    assert fraction(gaps.lower) == 1 - Fraction(gamma(dim + 4))


def test_the_search_ends_where_nothing_is_within_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, within = [], context_gaps.Sweep._within

    def counted(self: context_gaps.Sweep, lag: int, *rest: Any) -> Ints:
        calls.append(lag)
        return within(self, lag, *rest)

    monkeypatch.setattr(context_gaps.Sweep, "_within", counted)
    x = 10.0 * np.arange(9)[None] ** 2
    ids, exact = cornered(x, 0 * x, 0 * x, 0 * x, np.arange(9))
    close(ids, exact)
    assert calls == [1, 1, 2]  # once for tokens of one x, of which there are none


def test_the_closest_of_different_places_beyond_some_of_the_same() -> None:
    """By shade the places are 0, 1, 0, 1: two ranks apart all are of one place, three are not."""
    spots = np.array([[0.0, 9.0, -9.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    ids, exact = cornered(spots, 0 * spots, 0 * spots, 0 * spots, [0, 1, 0, 1], direction=[0, 1])
    ids = replace(ids, shade=np.array([0.0, 0.1, 0.2, 0.3]), along=Balls(spots[0], 0 * spots[0]))
    gaps = check(ids, exact)
    assert set(gaps.pair or ()) == {9, 0}
    assert float(gaps.lower) == pytest.approx(1, rel=1e-12, abs=0)


def patience(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever `closest_pair` is asked."""
    calls: list[int] = []
    found = context_gaps.closest_pair

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return found(*args, **options)

    monkeypatch.setattr(context_gaps, "closest_pair", counted)
    return calls


def circle(n: int) -> Floats:
    """None is closer to another than its neighbours, and the first coordinate is 0."""
    angle = np.arange(n) * 2 * np.pi / n
    return np.array([0 * angle, np.cos(angle) * 9, np.sin(angle) * 9])


@pytest.mark.parametrize("n", [33, 34])
def test_patience_ends(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """Sixteen pairs per context are compared one by one, 528 of 33 contexts, but not 561 of 34."""
    calls, spots = patience(monkeypatch), circle(n)
    ids, exact = cornered(0 * spots, spots, 0 * spots, 0 * spots, [0] * n)
    close(ids, exact)
    assert len(calls) == n - 33


@pytest.mark.parametrize("twins", [16, 17])
def test_patience_with_different_places(monkeypatch: pytest.MonkeyPatch, twins: int) -> None:
    """Of 561 pairs those of one place do not count: 545 are one too many for 34 contexts."""
    calls, spots = patience(monkeypatch), circle(34)
    place = np.arange(34)
    place[17 : 17 + twins] = place[:twins]  # opposite each other
    ids, exact = cornered(spots, 0 * spots, 0 * spots, 0 * spots, place)
    along = np.zeros(34)
    along[17:] = 18 * 3.0**0.5  # for all we know
    ids = replace(ids, shade=np.zeros(34), along=Balls(along, along / 2))
    gaps = check(ids, exact)
    assert len(calls) == 17 - twins
    assert float(gaps.lower) == pytest.approx(18 * np.sin(np.pi / 34), rel=1e-9, abs=0)


@given(st.integers(0, 10**9), st.integers(1, 6), st.integers(0, 8))
def test_norms_and_projections(seed: int, dim: int, n: int) -> None:
    """Sizes of every kind side by side: bounds from above, and projections that do not stretch."""
    rng = np.random.default_rng(seed)
    mid = rng.standard_normal((dim, n)) * 10.0 ** rng.integers(-30, 30, n)
    rad = np.abs(mid) * 10.0 ** rng.integers(-17, 1)
    shade, reach, size = outline(Balls(mid, rad))
    norms = [[sum(Fraction(x) ** 2 for x in row) for row in rows.T.tolist()] for rows in (mid, rad)]
    for k in range(n):
        assert norms[1][k] <= Fraction(float(reach[k])) ** 2
        farthest = [
            abs(Fraction(m)) + Fraction(r) for m, r in zip(mid[:, k], rad[:, k], strict=True)
        ]
        assert sum(x * x for x in farthest) <= Fraction(float(size[k])) ** 2
    for i, j in combinations(range(n), 2):
        apart = sum(
            (Fraction(a) - Fraction(b)) ** 2 for a, b in zip(mid[:, i], mid[:, j], strict=True)
        )
        slack = 8 * (dim + 4) * Fraction(U) * Fraction(float(max(size)))
        assert max(abs(Fraction(shade[i]) - Fraction(shade[j])) - slack, Fraction(0)) ** 2 <= apart


@pytest.mark.parametrize("along", [[1.0, 1.7e308, 2.0, 3.0], [-1e308, 1e308, 0.0, 1.0]])
def test_places_stay_together(along: list[float]) -> None:
    order = context_gaps.by_place(np.array([2, 2, 1, 0]), np.array(along))
    assert order.tolist()[:2] == [3, 2]
    assert set(order.tolist()[2:]) == {0, 1}


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.floats(-1e9, 1e9).map(lambda x: x + 0.0)),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 56),
)
def test_order_by_place_and_along(rows: list[tuple[int, float]], shift: int) -> None:
    place, along = (np.array(column) for column in zip(*rows, strict=True))
    order = context_gaps.by_place(place << shift, along)
    assert [rows[i] for i in order] == sorted(rows)


def test_order_of_what_is_almost_equal() -> None:
    """Thousands of neighbours that one float apart from each other share a step of the range."""
    rng = np.random.default_rng(0)
    along = np.concatenate([1 + 2 * U * rng.permutation(3000), [-1e6, 1e6, 0.0]])
    place = rng.integers(0, 3, len(along))
    order = context_gaps.by_place(place, along)
    assert order.tolist() == np.lexsort((along, place)).tolist()
    assert (place[context_gaps.by_place(place, 0 * along)] == np.sort(place)).all()


@pytest.fixture(autouse=True)
def many_bits() -> Any:
    with ctx.workprec(200):
        yield


@pytest.mark.parametrize(("apart", "swept"), [(0.0, True), (0.99, True), (1.01, False)])
def test_places_that_are_told_apart_are_not_compared(apart: float, swept: bool) -> None:
    """Two contexts of one place are 1 apart. The rest is left out if it is further away."""
    x = np.array([[0.0, 0.0, 30.0, 60.0], [0.0, 0.0, 0.0, 0.0]])
    moved = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    ids, exact = context_ids(x, moved, [0, 0, 1, 2])
    ids = replace(ids, apart=apart)
    sweeps: list[bool] = []
    real = context_gaps.different_places
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            context_gaps, "different_places", lambda *given: (sweeps.append(True), real(*given))
        )
        gaps = close(ids, exact)
    assert bool(sweeps) == swept
    assert float(gaps.lower) == pytest.approx(1, rel=1e-6)


def test_places_are_compared_where_no_two_contexts_share_one() -> None:
    x = np.array([[0.0, 5.0, 30.0]])
    ids, exact = context_ids(x, np.zeros((1, 3)), [0, 1, 2])
    gaps = close(replace(ids, apart=1.0), exact)
    assert float(gaps.lower) == pytest.approx(5)
