"""What is kept of context ids: norms, projections, and better known ones in place of others."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from flint import arb

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import Balls, U, gamma
from rankone.certification.context_ids import ContextIds, lengths, outline, sideways, spare


def square(column: list[float]) -> Fraction:
    return sum((Fraction(x) ** 2 for x in column), Fraction(0))


@pytest.mark.parametrize("scale", [1.0, 1e-310, 1e-300, 1e-160, 1e160, 1e300, 5e307])
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_norms(dim: int, scale: float) -> None:
    """Off by d/2 + 1 roundings, of any size that floats have."""
    rng = np.random.default_rng(dim)
    columns = rng.uniform(-1, 1, (dim, 40)) * scale
    limit = (Fraction(dim, 2) + 1) * Fraction(U) * (1 + Fraction(2) ** -20)
    rounding = Fraction(2) ** -1074  # where the norm is no normal number
    for column, found in zip(columns.T.tolist(), lengths(columns).tolist(), strict=True):
        low, high = Fraction(found) * (1 - limit) - rounding, Fraction(found) * (1 + limit)
        assert max(low, Fraction(0)) ** 2 <= square(column) <= (high + rounding) ** 2


def test_norms_of_nothing_and_of_what_is_not_finite() -> None:
    assert lengths(np.zeros((3, 0))).tolist() == []
    assert lengths(np.zeros((3, 2))).tolist() == [0.0, 0.0]
    columns = np.array([[3.0, inf, nan, 5e-200, -inf], [4.0, 0.0, 1.0, 0.0, inf]])
    found = lengths(columns).tolist()
    assert found[0] == 5.0
    assert found[3] in (0.0, 5e-200)
    assert np.isnan(found).tolist() == [False, True, True, False, True]


def test_sideways_does_not_stretch() -> None:
    assert sideways(1).tolist() == [1.0]
    for dim in range(2, 40):
        found = sideways(dim)
        assert (found > 0).all()
        assert abs(found.sum() - 1) < 1e-15
        assert square(found.tolist()) < Fraction(81, 100)
        assert found.max() <= 2 * found.min() * (1 + 1e-15)
        assert len(set(found.tolist())) == dim


def test_outlines_are_just_large_enough() -> None:
    """3, 4, 5 in a plane: norms are exact, and grow by six roundings; a size by twice as many."""
    mid, rad = np.array([[3.0, -6.0], [4.0, 8.0]]), np.array([[0.0, 0.3], [0.0, 0.4]])
    shade, reach, size = outline(Balls(mid, rad))
    assert shade.tolist() == (sideways(2) @ mid).tolist()
    assert spare(2) == gamma(6)
    assert reach[1] / 0.5 - 1 == pytest.approx(6 * U, abs=2 * U)
    assert reach[0] == pytest.approx(0.5 * 2.0**-400, rel=1e-9, abs=0)  # nothing beside 1/2
    assert size[0] / 5 - 1 == pytest.approx(12 * U, abs=2.1 * U)
    assert size[1] / 10.5 - 1 == pytest.approx(12 * U, abs=2.1 * U)
    assert Fraction(float(reach[1])) ** 2 >= square([0.3, 0.4])


def test_small_radii_beside_large_ones() -> None:
    """Their squares vanish; what they are off by is not lost."""
    rad = np.array([[1.0, 2.0**-600, 0.0], [0.0, 0.0, 0.0]])
    _, reach, size = outline(Balls(np.zeros((2, 3)), rad))
    assert (reach >= rad[0]).all()
    assert (size >= rad[0]).all()
    assert (reach[1:] <= 2.0**-399).all()
    with np.errstate(invalid="ignore"):
        _, reach, _ = outline(Balls(np.zeros((1, 3)), np.array([[nan, 0.5, inf]])))
    assert reach[1] == pytest.approx(0.5)
    assert not np.isfinite(reach[[0, 2]]).any()


def test_better_known_context_ids_take_the_place_of_others() -> None:
    rng = np.random.default_rng(0)
    n, at = 6, np.array([1, 4])
    moved, q = (Balls(rng.random((2, n)), np.full((2, n), 0.1)) for _ in range(2))
    along = Balls(rng.random(n), np.full(n, 0.1))

    def locate(wanted: Ints) -> tuple[Balls, Balls]:
        return moved[:, wanted], q[:, wanted]

    direction: Floats = np.array([3.0, 4.0])
    place = np.arange(n)
    old = ContextIds(place, place, direction, along, *outline(q), locate, straight=False)
    new_moved, new_q = (Balls(rng.random((2, 2)), np.full((2, 2), 0.01)) for _ in range(2))
    new_along = Balls(np.array([7.0, 8.0]), np.array([0.01, 0.02]))
    new = old.replaced(at, new_along, new_moved, new_q)

    assert new.along.mid[at].tolist() == [7.0, 8.0]
    assert new.along.rad[at].tolist() == [0.01, 0.02]
    for found, before, better in zip(
        (new.shade, new.reach, new.size), outline(q), outline(new_q), strict=True
    ):
        assert found[at].tolist() == better.tolist()
        rest = np.delete(np.arange(n), at)
        assert found[rest].tolist() == before[rest].tolist()
    wanted = np.array([5, 4, 0, 1, 4])
    for found, before, better in zip(
        new.locate(wanted), (moved, q), (new_moved, new_q), strict=True
    ):
        columns = [before.mid[:, 5], better.mid[:, 1], before.mid[:, 0], *better.mid.T]
        assert found.mid.T.tolist() == [column.tolist() for column in columns]
        assert found.rad[0].tolist() == [0.1, 0.01, 0.1, 0.01, 0.01]
    assert old.along.mid[1] == along.mid[1] != 7.0
    assert old.shade.tolist() == outline(q)[0].tolist()
    assert old.length.overlaps(arb(5))


def test_what_is_kept_is_replaced_too() -> None:
    """Of three coordinates two are written; shade and reach are computed when they are needed."""
    rng = np.random.default_rng(0)
    n, at, rows = 6, np.array([1, 4]), np.array([0, 2])
    moved, x = Balls(rng.random((3, n)), np.full((3, n), 0.1)), rng.random((3, n))
    moved.mid[1], moved.rad[1] = 0.0, 0.0
    q = Balls(x + moved.mid, moved.rad)
    asked: list[Ints] = []

    def locate(wanted: Ints) -> tuple[Balls, Balls]:
        asked.append(wanted)
        return moved[:, wanted], q[:, wanted]

    along, direction = Balls(rng.random(n), np.full(n, 0.1)), np.array([1.0, 0.0, 1.0])
    place, size = np.arange(n), outline(q)[2]
    old = ContextIds(
        place, place, direction, along, None, None, size, locate, False, rows, moved[rows], 1.0
    )
    new_moved, new_q = (Balls(rng.random((3, 2)), np.full((3, 2), 0.01)) for _ in range(2))
    new = old.replaced(at, along[at], new_moved, new_q)
    wanted = np.array([4, 0, 1])
    assert new.moved(wanted).mid[:, 1].tolist() == moved.mid[rows, 0].tolist()
    assert new.moved(wanted).mid[:, [2, 0]].tolist() == new_moved.mid[rows].tolist()
    assert new.moved(wanted).rad[:, [2, 0]].tolist() == new_moved.rad[rows].tolist()
    assert old.moved(wanted).mid.tolist() == moved.mid[rows][:, wanted].tolist()
    assert not asked
    assert new.size[at].tolist() == outline(new_q)[2].tolist()
    assert new.apart == 1.0

    def outlines(ids: ContextIds, points: Balls) -> None:
        for found, expected in zip(ids.outlined(), outline(points), strict=False):
            assert found == pytest.approx(expected)

    outlines(old, q)
    better = Balls(q.mid.copy(), q.rad.copy())
    better[:, at] = new_q
    outlines(new, better)
