"""One-dimensional ReLU layers in balls against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite, nan, nextafter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankone.certification import exact_pieces
from rankone.certification.ball_arithmetic import Balls, U
from rankone.certification.exact_pieces import ExactPieces

# A computed ball is wider than it must be by this factor, see `ball_arithmetic.up`.
HONEST = 1 - Fraction(2) ** -40


class Units(NamedTuple):
    gain: list[float]
    bias: list[float]
    out_gain: list[float]

    def pieces(self) -> ExactPieces:
        return ExactPieces.from_units(*(np.array(x, dtype=float) for x in self))

    def __call__(self, s: Fraction) -> Fraction:
        """sum_j t_j relu(g_j s + b_j), exactly."""
        return sum(
            (
                Fraction(t) * max(Fraction(g) * s + Fraction(b), Fraction(0))
                for g, b, t in zip(*self, strict=True)
            ),
            Fraction(0),
        )

    def bends(self) -> list[Fraction]:
        return [-Fraction(b) / Fraction(g) for g, b in zip(self.gain, self.bias, strict=True) if g]


def known(found: Balls) -> bool:
    return isfinite(found.mid[0]) and isfinite(found.rad[0])


def check(units: Units, mid: float, rad: float, edge: Fraction = HONEST) -> Balls:
    """f of the ball holds f of its ends, its middle, and every bend inside it."""
    found = units.pieces()(Balls(np.array([mid]), np.array([rad])))
    if known(found):
        centre, reach = Fraction(mid), Fraction(rad) * edge
        inside = [theta for theta in units.bends() if abs(theta - centre) <= reach]
        for s in (centre, centre - reach, centre + reach, *inside):
            assert abs(units(s) - Fraction(float(found.mid[0]))) <= Fraction(float(found.rad[0]))
    return found


# Numbers that float64 and fractions agree on, and numbers of every size.
small = st.integers(-8, 8).map(float)
ordinary = st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-100)
extreme = st.sampled_from([0.0, 1e-160, -1e-160, 1e150, -1e150, 5e-324, 1.0, 1 / 3, -3.0, 1e308])
number = st.one_of(small, ordinary, extreme)


@st.composite
def layers(draw: st.DrawFn, values: st.SearchStrategy[float] = number) -> Units:
    """Up to eight units, with equal bends and gains of 0 among them."""
    units = draw(st.lists(st.tuples(values, values, values), max_size=8))
    if units and draw(st.booleans()):
        g, b, t = units[0]
        units += [(g, b, -t), (-g, -b, t)]  # two more bends at the same place
    gain, bias, out_gain = map(list, zip(*units, strict=True)) if units else ([], [], [])
    return Units(gain, bias, out_gain)


@st.composite
def places(draw: st.DrawFn, units: Units) -> float:
    """At a bend, a few floats beside one, or anywhere."""
    bends = [float(theta) for theta in units.bends() if abs(theta) < 1e308]
    s = draw(st.sampled_from(bends)) if bends and draw(st.booleans()) else draw(number)
    for _ in range(draw(st.integers(0, 3))):
        s = nextafter(s, draw(st.sampled_from([-inf, inf])))
    return s if isfinite(s) else 1.0


radii = st.one_of(
    st.sampled_from([2.0**-1000, 1e-300, 1e-16, 1e-9, 1.0, 1e5]), st.floats(1e-20, 1e3)
)


@given(st.data())
def test_holds_the_truth(data: st.DataObject) -> None:
    units = data.draw(layers())
    s = data.draw(places(units))
    rad = abs(s) * U if data.draw(st.booleans()) else 0.0
    check(units, s, max(rad, data.draw(radii)))


@given(st.data())
def test_where_everything_is_a_small_integer(data: st.DataObject) -> None:
    """Then nothing is rounded, all bends are floats if gains are powers of two, and f is known."""
    power = st.sampled_from([-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0])
    rows = data.draw(st.lists(st.tuples(power, small, small), max_size=6))
    units = Units(*map(list, zip(*rows, strict=True))) if rows else Units([], [], [])
    assert units.pieces().sharp
    s = float(data.draw(st.integers(-40, 40))) / 4
    found = check(units, s, 0.0, Fraction(1))
    assert found.mid[0] == units(Fraction(s))
    assert found.rad[0] <= 20 * U * (1 + sum(abs(g * s) + abs(b) for g, b, _ in rows) * 8)


def test_no_units() -> None:
    found = check(Units([], [], []), 3.0, 1.0)
    assert found.mid[0] == 0.0
    assert found.rad[0] < 1e-250


def test_gains_of_zero_add_a_constant() -> None:
    units = Units([0.0, 0.0, -0.0], [2.0, -2.0, 0.5], [3.0, 100.0, 4.0])
    found = check(units, 1e9, 1e9)
    assert found.mid[0] == 8
    assert found.rad[0] < 1e-14


def test_a_ball_over_few_bends_moves_with_the_steepest_piece() -> None:
    units = Units([1.0] * 3, [-1.0, -2.0, -3.0], [1.0, 8.0, -20.0])
    assert units.pieces().sharp
    for s, rad, steepest in ((0.0, 0.5, 0), (1.0, 0.5, 1), (2.0, 1e-9, 9), (2.5, 2.5, 11)):
        found = check(units, s, rad, Fraction(1))
        assert found.rad[0] == pytest.approx(steepest * rad, rel=1e-9, abs=2e-14)


def test_more_bends_than_one_ball_may_touch() -> None:
    bends = np.arange(1.0, 9.0)
    units = Units([1.0] * 8, (-bends).tolist(), [1.0] * 8)
    assert known(check(units, 2.4, 1.5))
    assert not known(check(units, 2.5, 1.6))


def test_bends_that_are_no_floats_are_not_told_apart() -> None:
    """1/3 twice, from different units, and a ball around it."""
    units = Units([3.0, 6.0, 0.3], [-1.0, -2.0, -0.1], [1e12, -1e12, 1e12])
    assert not units.pieces().sharp
    assert not known(check(units, 1 / 3, 1e-20))
    assert known(check(units, 0.3, 1e-3))
    assert known(check(units, 0.4, 1e-3))


def test_bends_beyond_all_floats() -> None:
    units = Units([1e-300, -1e-300, 1.0], [-1e300, -1e300, 0.0], [1.0, 1.0, 2.0])
    for s in (-1e308, -1.0, 0.0, 1.0, 1e308):
        check(units, s, 1e-300)
    assert check(units, 5.0, 1e-300).mid[0] == 10


@pytest.mark.parametrize(
    ("mid", "rad"), [(nan, 1.0), (1.0, nan), (inf, 1.0), (1.0, inf), (-inf, inf), (0.0, inf)]
)
def test_what_is_not_known_stays_unknown(mid: float, rad: float) -> None:
    for units in (Units([1.0, -1.0], [0.0, 1.0], [1.0, 2.0]), Units([1.0], [-5.0], [0.0])):
        assert not known(units.pieces()(Balls(np.array([mid]), np.array([rad]))))


def test_sums_that_floats_would_lose() -> None:
    """Two thousand ramps on a line of 10^7, slopes of 10^9: exact to a millionth of a label."""
    rng = np.random.default_rng(0)
    starts = np.sort(rng.uniform(-1e7, 1e7, 2_000))
    steps = rng.integers(1, 9, 2_000).astype(float)
    width = 2.0**-30
    gain = np.full(4_000, 2.0**30)
    bias = -np.concatenate([starts, starts + width]) * 2.0**30
    units = Units(gain.tolist(), bias.tolist(), np.concatenate([steps, -steps]).tolist())
    pieces = units.pieces()
    s = (starts[:-1] + starts[1:])[::200] / 2
    found = pieces(Balls(s, np.full_like(s, 2.0**-1000)))
    for i in range(len(s)):
        assert abs(units(Fraction(float(s[i]))) - Fraction(float(found.mid[i]))) <= Fraction(
            float(found.rad[i])
        )
        assert found.rad[i] < 1e-6


@example([1.0, 2.0**-1074, 1e308])
@example([0.0, -0.0])
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=9))
def test_floats_as_whole_numbers(values: list[float]) -> None:
    whole, unit = exact_pieces._integers(np.array(values, dtype=float))
    assert [Fraction(number, 1 << unit) for number in whole.tolist()] == list(map(Fraction, values))
    back = exact_pieces._floats(whole, unit)
    assert back.tolist() == values


@given(st.integers(-(1 << 200), 1 << 200), st.integers(0, 1300))
def test_whole_numbers_as_floats(number: int, unit: int) -> None:
    exact = Fraction(number, 1 << unit)
    found = Fraction(float(exact_pieces._floats(np.array([number], dtype=object), unit)[0]))
    limit = Fraction(101, 100) * Fraction(U) * abs(exact) + Fraction(2) ** -1075
    assert abs(found - exact) <= limit


@pytest.mark.parametrize(
    ("units", "mid", "rad"),
    [
        (Units([1.0], [-0.25], [1e30]), 1e-18, 0.25),
        (Units([1.0], [-1e10], [1e30]), 1 + 2.0**-21, 1e10 - 1),
        # 1/10 is a little less than the float 0.1, on either side
        (Units([10.0], [-1.0], [1e30]), 0.0, 0.1),
        (Units([-10.0], [-1.0], [1e30]), 0.0, 0.1),
    ],
)
def test_the_very_edge_of_a_ball(units: Units, mid: float, rad: float) -> None:
    check(units, mid, rad, Fraction(1))


@pytest.mark.parametrize("side", [1, -1])
def test_a_bend_on_the_edge_of_a_ball_is_touched(side: int) -> None:
    """Sharp bends at 1 and 2; a ball that ends there counts both pieces, a shorter one does not."""
    units = Units([float(side)] * 2, [-1.0, -2.0], [4.0, 16.0])
    for mid, rad, steepest in ((1.5, 0.5, 20), (1.5, 0.25, 4), (0.5, 0.5, 4), (0.5, 0.25, 0)):
        found = check(units, side * mid, rad, Fraction(1))
        assert found.rad[0] == pytest.approx(steepest * rad, rel=1e-9, abs=1e-13)


def derived(units: Units, mid: float, rad: float, at: int) -> Fraction:
    """The radius on the piece right of bend number `at` (-1: left of all), without any bends."""
    bends = sorted(units.bends())
    anchor = Fraction(float(bends[max(at, 0)]))
    step = Fraction(1, 2**40)
    inside = bends[at] + step if at >= 0 else bends[0] - step
    slope = (units(inside + step / 2) - units(inside)) / (step / 2)
    value, rise = units(inside) - slope * (inside - anchor), slope * (Fraction(mid) - anchor)
    rounding = Fraction(U) * (abs(value) + abs(value + rise) + 3 * abs(rise))
    return (
        rounding + Fraction(2) ** -1073 * abs(Fraction(mid) - anchor) + abs(slope) * Fraction(rad)
    )


@pytest.mark.parametrize("rad", [0.0, 3 * U, 1e-3])
def test_radii_are_as_derived(rad: float) -> None:
    """u for the value, u for the sum, 3 u for the rise; and the slope times the radius."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        bends = np.cumsum(rng.uniform(0.5, 1.0, 4)) - 1.5
        gain = rng.uniform(0.5, 2.0, 4) * rng.choice([-1, 1], 4)
        units = Units(gain.tolist(), (-gain * bends).tolist(), rng.standard_normal(4).tolist())
        for at in range(-1, 4):
            s = float(bends[at] + 0.2 if at >= 0 else bends[0] - 3.0)
            found = check(units, s, rad)
            exact = float(derived(units, s, rad, at)) + 2.0**-900
            assert found.rad[0] == pytest.approx(exact, rel=1e-9, abs=0)


def test_a_value_at_its_bound() -> None:
    """f = 1 + 2^-53 (1 - 2^-20) where it is flat: the value is rounded to 1, and that is all."""
    flat = Units([0.0, 0.0], [1.0, 1.0], [1.0, U * (1 - 2.0**-20)])
    found = check(flat, 3.0, 0.0, Fraction(1))
    exact = flat(Fraction(3))
    used = abs(exact - Fraction(found.mid.item())) / Fraction(found.rad.item())
    assert 0.49 < used <= 0.5  # the other half is for the sum, which adds nothing here


def test_slopes_that_vanish_count_with_the_radius() -> None:
    """The slope 2^-1075 is 0 as a float: off by 2^-1075 times what lies between s and the bend."""
    tiny = 2.0**-538
    units = Units([tiny], [0.0], [tiny / 2])
    found = check(units, 1.5e308, 0.0, Fraction(1))
    assert found.mid[0] in (0.0, units(Fraction(1.5e308)))
    assert found.rad[0] == pytest.approx(2.0**-1073 * 1.5e308, rel=1e-9, abs=0)
    wide = check(units, 2.0**-1000, 1.5e308, Fraction(1))
    assert wide.rad[0] >= 2.0**-1075 * 1.5e308


def test_whole_numbers_beyond_all_floats() -> None:
    huge = np.array([10**400, -(10**400), 3 << 2000], dtype=object)
    assert exact_pieces._floats(huge, 0).tolist() == [inf, -inf, inf]
    assert exact_pieces._floats(huge, 1999).tolist() == [
        10**400 / 2**1999,
        -(10**400) / 2**1999,
        6.0,
    ]


def test_values_of_huge_whole_numbers() -> None:
    """f = 1 + 2^-53 + 2^-65 + s; the unit with a tiny bias makes whole numbers of 1100 digits."""
    units = Units(
        [0.0, 0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0, -5e-324], [1, 2**-53, 2**-65, 1, 1]
    )
    check(units, 2.0**-53, 0.0)


def test_slopes_that_underflow() -> None:
    check(Units([1e-165], [0.0], [1e-165]), 1e300, 2.0**-1000)


def test_a_slope_that_underflows_counts_by_the_distance_from_the_bend() -> None:
    """f(s) = 2^-1080 (s + A) right of -A; its slope is 0 in float64, f(A) = 2^-1079 A is not."""
    far = 2.0**990
    gain, bias, out = (np.array([x]) for x in (2.0**-540, 2.0**-540 * far, 2.0**-540))
    found = ExactPieces.from_units(gain, bias, out)(Balls(np.array([far]), np.zeros(1)))
    exact = Fraction(2) ** -1079 * Fraction(far)
    assert abs(Fraction(float(found.mid[0])) - exact) <= Fraction(float(found.rad[0]))
    assert found.rad[0] < 2.0**-70
