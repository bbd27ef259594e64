"""The deep readout of Vardi, Yehudai and Shamir: bits of weights, read one after the other."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import exact_truth
from exact_truth import fraction
from rankone.construct.vardi2022 import SCRATCH, Sizes, deep_readout, gate
from rankone.nn.exact import ExactFeedForward, segments
from rankone.nn.exact.numbers import ZERO, exact

F = Fraction
Points = list[tuple[int, int]]
DIM = 3 + SCRATCH  # x, y, one that is not touched, and scratch
SCRATCHES = range(3, DIM)


def layers_of(points: Points, size: int | None = None) -> list[ExactFeedForward]:
    """With groups of this size; few points are best cut into groups of one."""
    with pytest.MonkeyPatch.context() as patch:
        if size is not None:
            best = Sizes.of(len(points), max(p for p, _ in points), max(c for _, c in points))
            cut = Sizes(size, -(-len(points) // size), best.rho, best.c)
            patch.setattr(Sizes, "of", lambda *_: cut)
        return deep_readout(points, 0, 1, SCRATCHES, DIM)


def read(layers: list[ExactFeedForward], x: Fraction | int) -> list[Fraction]:
    """All coordinates after the layers, one by one as eq. 3 says; y begins with 5."""
    h: list[Any] = [F(x), F(5), F(9), *[F(0)] * SCRATCH]
    for layer in layers:
        h = exact_truth.feed_forward(layer, h)
    return h


def label(layers: list[ExactFeedForward], x: Fraction | int) -> Fraction:
    """What is added to y; everything else must be as it was."""
    found = read(layers, x)
    assert found == [x, found[1], 9, *[0] * SCRATCH]
    return found[1] - 5


@st.composite
def points(draw: st.DrawFn, most: int = 8) -> Points:
    """From close together to far apart, with few labels or many."""
    count, far = draw(st.integers(1, most)), draw(st.sampled_from([2, 3, 50, 10**6]))
    labels = st.integers(1, draw(st.sampled_from([1, 2, 3, 4, 7, 8, 1000])))
    place, found = draw(st.integers(2, 2 + far)), []
    for _ in range(count):
        found.append((place, draw(labels)))
        place += draw(st.integers(2, far))
    return draw(st.permutations(found))


errors = st.fractions(F(-1, 4), F(5, 4), max_denominator=64)


sizes = st.sampled_from([None, 1, 2, 3, 5])


@given(points(), sizes, st.data())
@example([(2, 1)], None, None)  # 2 bits of the point and 1 of the label
@example([(2, 3)], None, None)
@example([(2, 3), (4, 2), (6, 1), (9, 3)], 2, None)
@example([(3, 255), (5, 1)], 2, None)  # labels longer than points
def test_every_point_gets_its_label(points: Points, size: int | None, data: Any) -> None:
    """Anywhere from p - 1/4 to p + 1 + 1/4."""
    layers = layers_of(points, size)
    for p, wanted in points:
        error = data.draw(errors) if data else F(0)
        assert label(layers, p + error) == wanted
    for p, wanted in points[:2]:
        assert [label(layers, p + e) for e in (F(-1, 4), 1, F(5, 4))] == [wanted] * 3


@given(points(), sizes, st.data())
def test_what_is_not_memorised_gets_nothing(points: Points, size: int | None, data: Any) -> None:
    layers = layers_of(points, size)
    largest = max(p for p, _ in points)
    for _ in range(4):
        x = data.draw(st.fractions(0, largest + 9, max_denominator=4))
        if all(x <= p - 2 or x >= p + 3 for p, _ in points):
            assert label(layers, x) == 0
    assert label(layers, 0) == 0
    assert label(layers, largest + 3) == 0
    assert label(layers, 10 * largest) == 0


def test_a_gap_inside_a_group_gets_nothing() -> None:
    """Groups of several points: the long number is chosen, but no point in it fits."""
    points = [(10 * i + 2, 1 + i % 3) for i in range(10)]
    layers = layers_of(points, size=4)
    assert [label(layers, p + x) for p, _ in points for x in (0, 5)] == [
        part for _, c in points for part in (c, 0)
    ]


@given(points(), sizes)
def test_width_and_layers(points: Points, size: int | None) -> None:
    cut = Sizes.of(len(points), max(p for p, _ in points), max(c for _, c in points))
    assert len(layers_of(points)) == cut.layers
    assert max(layer.hidden for layer in layers_of(points, size)) <= 12
    assert cut.size * cut.groups >= len(points) > cut.size * (cut.groups - 1)
    assert 1 << cut.rho > max(p for p, _ in points)
    assert 1 << cut.c > max(c for _, c in points)


def test_three_gates_to_a_layer() -> None:
    points = [(2 * p, 1) for p in range(1, 8)]
    layers = layers_of(points, size=1)
    assert [layer.hidden for layer in layers[:4]] == [12, 12, 4, 2]


@given(st.integers(1, 5000), st.integers(2, 1 << 40), st.integers(1, 1000))
def test_the_cut_has_the_fewest_layers(count: int, largest: int, labels: int) -> None:
    cut = Sizes.of(count, largest, labels)
    others = [
        Sizes(k, -(-count // k), cut.rho, cut.c).layers for k in range(1, min(count, 100) + 1)
    ]
    assert cut.layers <= min(others) + 1  # neighbours of the square root are tried, not all


def test_layers_grow_as_the_square_root() -> None:
    """Four times the points, all of 20 bits: about twice the layers, far fewer than points."""
    depths = [Sizes.of(n, (1 << 20) - 1, 7).layers for n in (1000, 4000, 16000, 64000)]
    assert all(1.8 < b / a < 2.1 for a, b in pairwise(depths))
    assert depths[-1] < 2 * isqrt(64000 * 20) + 40


def test_many_points() -> None:
    """300 points at once along a line, as the checker runs them."""
    rng = random.Random(0)
    places = [2 + 3 * i + rng.randint(0, 1) for i in range(300)]
    points = [(p, rng.randint(1, 9)) for p in places]
    layers = layers_of(points)
    columns = [[exact(F(p) + F(1, 3)), *[ZERO] * (DIM - 1)] for p in places]
    found = segments.apply(layers, columns, lambda _: frozenset(range(DIM)))
    assert [fraction(z[1]) for z in found] == [c for _, c in points]
    assert not any(x for z in found for x in z[2:])
    assert Sizes.of(300, max(places), 9).size > 1
    assert len(layers) < 2 * isqrt(300 * 10) + 20


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([(1, 1)], "at least 2"),
        ([(0, 1), (5, 1)], "at least 2"),
        ([(4, 1), (5, 2)], "2 apart"),
        ([(4, 1), (4, 1)], "2 apart"),
        ([(2, 0)], "labels must be at least 1"),
        ([(2, 3), (4, -1)], "labels must be at least 1"),
    ],
)
def test_refused_input(points: Points, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layers_of(points)


# The formulas of the docstring, by themselves.


@given(st.integers(-3, 9), st.integers(0, 6), st.fractions(-9, 19, max_denominator=16))
def test_the_gate(a: int, more: int, x: Fraction) -> None:
    b = a + more
    units = gate({0: 1}, a, b, {1: 3})
    found = exact_truth.feed_forward(ExactFeedForward.of(units, 2), [x, F(0)])[1] / 3
    assert 0 <= found <= 1
    if a - F(1, 4) <= x <= b + F(1, 4):
        assert found == 1
    if x <= a - F(1, 2) or x >= b + F(1, 2):
        assert found == 0


def psi(z: Fraction) -> Fraction:
    return 2 * z - max(4 * z - 2, F(0))


@given(st.integers(1, 40), st.data())
def test_bits_come_from_the_triangle(length: int, data: Any) -> None:
    u = data.draw(st.integers(0, (1 << length) - 1))
    one = F(u, 1 << length) + F(1, 1 << (length + 1))
    two = F(u, 1 << length) + F(1, 1 << (length + 2))
    bits = []
    for t in range(1, length + 1):
        one, two = psi(one), psi(two)
        assert 0 <= one <= 1
        bits.append(max(F(1, 2) + (1 << (length + 1 - t)) * (two - one), F(0)))
    assert "".join(map(str, bits)) == f"{u:0{length}b}"
