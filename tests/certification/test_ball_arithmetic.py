"""Float64 balls against exact fractions, and the exponential against Arb."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, log, nan, nextafter
from typing import NamedTuple

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st

from rankone.arrays import Floats
from rankone.certification import ball_arithmetic
from rankone.certification.ball_arithmetic import (
    EXP_ERROR,
    LOWEST,
    SLACK,
    Balls,
    U,
    exp,
    gamma,
    linear,
    total,
    up,
)

LN2 = log(2)


def relative_error(t: Floats) -> float:
    """The largest |exp(t) / e^t - 1|, in units of u, rounded up."""
    with ctx.workprec(200):
        worst = max(
            abs(arb(y) / arb(x).exp() - 1) for x, y in zip(t.tolist(), exp(t).tolist(), strict=True)
        )
        return float((worst / arb(U)).upper()) * (1 + 1e-9)


def multiples(step: float) -> Floats:
    """0, -step, -2 step, ... down to -700, and the three floats on either side of each."""
    points = -step * np.arange(int(-LOWEST / step) + 1)
    found = [points]
    for direction in (-inf, inf):
        near = points
        for _ in range(3):
            near = np.nextafter(near, direction)
            found.append(near)
    every = np.concatenate(found)
    return every[(every <= 0) & (every >= LOWEST)]


EXPONENTS = {
    "anywhere": np.random.default_rng(0).uniform(LOWEST, 0.0, 4000),
    "of any size": -np.exp(np.random.default_rng(1).uniform(-700, 6.55, 4000)),
    "where the reduction turns": multiples(LN2 / 2),
    "at the ends": np.array([LOWEST, nextafter(LOWEST, 0), -5e-324, -(2.0**-1022), -0.0, 0.0]),
}


@pytest.mark.parametrize("where", EXPONENTS)
def test_exp_keeps_its_promise(where: str) -> None:
    """Below 3 u, as the derivation says; twice what is seen, and less than with one term fewer."""
    assert relative_error(EXPONENTS[where]) < 3
    assert EXP_ERROR == 4 * U


def test_exp_of_what_is_too_small() -> None:
    below = np.array([nextafter(LOWEST, -inf), -701.0, -745.2, -1e6, -1e308, -inf])
    assert (exp(below) == 0).all()
    assert exp(np.array([LOWEST]))[0] > 2.0**-1022


def test_the_three_parts_of_ln_2() -> None:
    high, low = ball_arithmetic.LN2_HIGH, ball_arithmetic.LN2_LOW
    with ctx.workprec(200):
        assert abs(arb(2).log() - arb(high) - arb(low)) < arb(2) ** -86
    for k in range(1012):
        assert Fraction(k * high) == k * Fraction(high)


def test_coefficients_have_few_roundings() -> None:
    factorial = Fraction(1)
    for i, coefficient in enumerate(ball_arithmetic.COEFFICIENTS):
        factorial *= max(i, 1)
        assert abs(Fraction(coefficient) * factorial - 1) <= Fraction(11, 10) * i * Fraction(U)


def test_exp_of_what_is_not_known_is_not_known() -> None:
    assert np.isnan(exp(np.array([nan, -1.0]))).tolist() == [True, False]


@example(1 << 22)
@example(1)
@given(st.integers(0, 1 << 22))
def test_gamma_is_rounded_up_but_a_little(n: int) -> None:
    exact = n * Fraction(U) / (1 - n * Fraction(U))
    assert exact <= Fraction(gamma(n)) <= exact * (1 + Fraction(2) ** -39)


# Balls. A problem is balls together with numbers in them, which a formula then must keep inside.

SIZES = [0.0, 1.0, 1.0, 1e8, 1e-8, 1e150, 1e-160, 1e300, 2.0**-1074]
PLACES = [Fraction(k, 2) for k in (-2, -1, 0, 1, 2)]  # from one end of a ball to the other


class Problem(NamedTuple):
    balls: Balls
    numbers: list[list[Fraction]]  # one in each ball


def draw_problem(rng: np.random.Generator, shape: tuple[int, int]) -> Problem:
    mid = rng.standard_normal(shape) * rng.choice(SIZES, shape)
    kind = rng.integers(4)
    if kind == 1:  # all of one size
        mid = rng.standard_normal(shape) * rng.choice(SIZES)
    if kind == 2 and shape[0] > 1:  # cancellation
        mid[1::2] = -mid[: shape[0] - 1 : 2] * (1 + U * rng.integers(-4, 5))
    with np.errstate(under="ignore"):
        rad = np.abs(mid) * rng.choice([0.0, U, 1e-10, 1.0], shape)
    rad[rng.random(shape) < 0.1] = rng.choice([0.0, 1e-300, 1e-20, 1.0])
    places = rng.choice(len(PLACES), shape)
    numbers = [
        [
            Fraction(m) + PLACES[place] * Fraction(r)
            for m, r, place in zip(*(x[i].tolist() for x in (mid, rad, places)), strict=True)
        ]
        for i in range(shape[0])
    ]
    return Problem(Balls(mid, rad), numbers)


def assert_inside(balls: Balls, numbers: list[list[Fraction]]) -> int:
    """Every number is in its ball; returns how many balls hold everything."""
    unknown = 0
    for row, (mid, rad) in enumerate(zip(balls.mid.tolist(), balls.rad.tolist(), strict=True)):
        for number, m, r in zip(numbers[row], mid, rad, strict=True):
            if r == inf or r != r:
                unknown += 1
            else:
                assert abs(number - Fraction(m)) <= Fraction(r)
    return unknown


seeds = st.integers(0, 10**9)


def dot(weights: list[float], numbers: list[list[Fraction]], column: int) -> Fraction:
    pairs = zip(weights, numbers, strict=True)
    return sum((Fraction(w) * row[column] for w, row in pairs), Fraction(0))


@given(seeds, st.one_of(st.integers(1, 8), st.integers(1, 200)), st.integers(1, 3))
@np.errstate(over="ignore", invalid="ignore")
def test_linear(seed: int, dim: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    balls, numbers = draw_problem(rng, (dim, 3))
    weight = rng.standard_normal((rows, dim)) * rng.choice(SIZES, (rows, dim))
    if rng.integers(2):
        weight = rng.choice([-1.0, 0.0, 1.0, 0.1], (rows, dim))
    expected = [[dot(row, numbers, k) for k in range(3)] for row in weight.tolist()]
    assert_inside(linear(weight, balls), expected)
    single = linear(weight[0], balls)
    assert_inside(Balls(single.mid[None], single.rad[None]), expected[:1])


def test_linear_is_about_as_sharp_as_rounding_allows() -> None:
    rng = np.random.default_rng(0)
    weight, mid = rng.standard_normal((5, 40)), rng.standard_normal((40, 6))
    exact = linear(weight, Balls(mid, np.zeros_like(mid)))
    sizes = np.abs(weight) @ np.abs(mid)
    assert (exact.rad <= 42 * U * sizes * (1 + 1e-9)).all()
    wide = linear(weight, Balls(mid, np.full_like(mid, 1e-3)))
    assert (wide.rad <= (np.abs(weight).sum(1)[:, None] * 1e-3 + exact.rad) * (1 + 1e-9)).all()


Operation = Callable[[Problem, Problem], tuple[Balls, Callable[[Fraction, Fraction], Fraction]]]
OPERATIONS: dict[str, Operation] = {
    "sum": lambda a, b: (a.balls + b.balls, lambda x, y: x + y),
    "shift": lambda a, b: (a.balls.shifted(b.balls.mid), lambda x, y: x + y),
    "rounded": lambda a, b: (Balls.rounded(a.balls.mid + b.balls.mid), lambda x, y: x + y),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(seed=seeds)
@np.errstate(over="ignore", invalid="ignore", under="ignore")
def test_operations(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problems = [draw_problem(rng, (3, 5)) for _ in range(2)]
    if name != "sum":  # the second number is exact, in "rounded" both are
        problems[1] = exactly(problems[1])
    if name == "rounded":
        problems[0] = exactly(problems[0])
    found, formula = OPERATIONS[name](*problems)
    a, b = (problem.numbers for problem in problems)
    rows = zip(a, b, strict=True)
    assert_inside(found, [[formula(x, y) for x, y in zip(*row, strict=True)] for row in rows])


def exactly(problem: Problem) -> Problem:
    mid = problem.balls.mid
    return Problem(
        Balls(mid, np.zeros_like(mid)), [[Fraction(x) for x in row] for row in mid.tolist()]
    )


@given(seed=seeds)
@np.errstate(over="ignore", invalid="ignore", under="ignore")
def test_lower_and_upper_ends(seed: int) -> None:
    balls, numbers = draw_problem(np.random.default_rng(seed), (3, 5))
    for row in range(3):
        ends = zip(balls.lower()[row].tolist(), balls.upper()[row].tolist(), strict=True)
        for number, (low, high) in zip(numbers[row], ends, strict=True):
            assert low == -inf or Fraction(low) < number
            assert high == inf or number < Fraction(high)


def test_what_overflows_is_not_known() -> None:
    big = Balls(np.array([[1e308], [1e308]]), np.zeros((2, 1)))
    with np.errstate(over="ignore", invalid="ignore"):
        found = [linear(np.array([w]), big) for w in ([4.0, -4.0], [1e10, 1.0], [-1e300, 1e300])]
        found += [big + big, big.shifted(1e308)]
    for balls in found:
        assert not np.isfinite(balls.rad).any()


def test_what_is_not_known_stays_unknown() -> None:
    for rad in (inf, nan):
        one = Balls(np.array([[1.0], [2.0]]), np.array([[rad], [0.0]]))
        with np.errstate(invalid="ignore"):
            for weight in ([1.0, 1.0], [0.0, 1.0], [1e-300, 0.0]):
                assert not np.isfinite(linear(np.array([weight]), one).rad).any()
            assert not np.isfinite((one + one).rad[0]).any()
            assert not np.isfinite(one.shifted(3.0).rad[0]).any()


def test_up_covers_a_thousand_roundings() -> None:
    """Adding up a thousand numbers in the worst order loses less than `up` gives."""
    terms = np.full(1024, U * (1 - 2.0**-20))
    terms[0] = 1.0
    lost = np.cumsum(terms)[-1:]
    assert lost[0] == 1.0
    assert Fraction(float(up(lost)[0])) >= sum(map(Fraction, terms.tolist()))


def test_up_adds_what_may_have_underflowed() -> None:
    assert up(np.array([0.0, 1.0])).tolist() == [2.0**-900, SLACK]
    assert SLACK == 1 + 2.0**-40


def test_a_total_is_not_too_small() -> None:
    """Twenty thousand radii, each lost beside the first: more than `up` makes up for."""
    terms = np.full((20_000, 2), U * (1 - 2.0**-20))
    terms[0] = 1.0
    exact = sum(map(Fraction, terms[:, 0].tolist()))
    assert Fraction(float(up(terms.sum(0))[0])) < exact  # otherwise these prove nothing
    assert exact <= Fraction(float(total(terms)[0])) <= exact + 2 * 20_000 * Fraction(U)
    assert total(np.array([[1.0, 2.0], [4.0, 8.0]])).tolist() == pytest.approx([5, 10], rel=1e-15)


# Where bounds are attained: the error that rounding makes is the largest there is.

A, B = 1 + 2.0**-26, 1 + 2.0**-27  # the product is half a unit above a float, that is u
NEXT = U * (1 - 2.0**-20)  # what is just lost when 1 is added to it
RADII = [(0.0, 0.0), (2.0**-30, 0.0), (0.0, 2.0**-30), (3 * U, 0.0), (0.0, 3 * U), (U, 2 * U)]


def used(found: Balls, exact: Fraction) -> float:
    """How much of its radius a ball with one entry needs to hold the number."""
    return float(abs(exact - Fraction(found.mid.item())) / Fraction(found.rad.item()))


def ball(mid: float, rad: float = 0.0) -> Balls:
    return Balls(np.array([mid]), np.array([rad]))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("one", "other"), RADII)
def test_sums_at_their_bound(one: float, other: float, sign: int) -> None:
    """1 + u is 1 but for its rounding, and both numbers lie at the far end of their balls."""
    a, b = ball(sign, one), ball(sign * NEXT, other)
    exact = sign * sum(map(Fraction, (1.0, one, NEXT, other)))
    assert 1 - 2e-6 < used(a + b, exact) <= 1
    assert 1 - 2e-6 < used(b + a, exact) <= 1
    if not other:
        assert 1 - 2e-6 < used(a.shifted(sign * NEXT), exact) <= 1
        assert 1 - 2e-6 < used(a.shifted(b.mid), exact) <= 1
    if not one and not other:
        assert 1 - 2e-6 < used(Balls.rounded(a.mid + b.mid), exact) <= 1


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("rad", [0.0, U, 2.0**-30])
def test_products_at_their_bound(rad: float, sign: int) -> None:
    """One factor is exact, the other lies at the end of its ball that the rounding lies on."""
    z, w = Balls(np.array([[sign * A]]), np.array([[rad]])), np.array([[B]])
    exact = Fraction(B) * sign * (Fraction(A) + Fraction(rad))
    assert 1 - 1e-7 < used(linear(w, z), exact) <= 1
    assert 1 - 1e-7 < used(linear(w[0], z), exact) <= 1


@pytest.mark.parametrize("terms", [1, 2, 3, 1 << 20])
def test_the_radius_of_a_dot_product(terms: int) -> None:
    """|w| rad + gamma_d |w| |mid|, made larger by gamma_d, for both are sums of d terms."""
    weight, ones = np.full((1, terms), -2.0), np.ones((terms, 1))
    g = Fraction(terms) * Fraction(U) / (1 - terms * Fraction(U))
    for rad in (0.0, float(g)):
        found = linear(weight, Balls(-ones, ones * rad))
        exact = 2 * terms * (Fraction(rad) + g) * (1 + g)
        assert found.mid.item() == 2 * terms
        assert found.rad.item() == pytest.approx(float(exact), rel=4 * 2.0**-40, abs=0)
        assert Fraction(found.rad.item()) >= exact


def test_ends_are_close_to_the_ball() -> None:
    """The next float but one at most, where 1 - u/2 and 1 + u lie between two floats."""
    edge = ball(1.0, U / 2)
    assert 1 - 3 * U <= edge.lower().item() < 1 - U / 2
    assert 1 + U / 2 < edge.upper().item() <= 1 + 4 * U


def test_parts_of_arrays_of_balls() -> None:
    balls = Balls(np.arange(3.0), np.arange(3.0) / 8)
    balls[1:] = balls[:2]
    assert (balls.mid.tolist(), balls.rad.tolist()) == ([0.0, 0.0, 1.0], [0.0, 0.0, 0.125])
