"""Feed-forward stacks along a line, wide or one column at a time: all the same function."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx, fmpq
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import mp

import exact_truth
from exact_truth import Column, fraction, holds
from rankone.nn.exact import segments
from rankone.nn.exact.network import ExactFeedForward
from rankone.nn.exact.numbers import ONE, ZERO, Vector, exact
from rankone.nn.exact.pieces import Bent, Points
from rankone.nn.exact.segments import WIDE

F = Fraction
DIM = 4
WEIGHTS = [F(1), F(-1), F(2), F(-3, 2), F(1, 3)]
Layers = list[ExactFeedForward]
Live = Callable[[int], frozenset[int]]

seeds = st.integers(0, 1 << 20)
places = st.lists(st.fractions(-4, 4, max_denominator=6), min_size=1, max_size=9)


def stack(
    seed: int, depth: int = 5, hidden: int = 4, direction: bool = False, dim: int = DIM
) -> Layers:
    """Random layers; with a direction, all units of a layer read multiples of one number."""
    rng = random.Random(seed)

    def row() -> dict[int, Fraction]:
        return {c: rng.choice(WEIGHTS) for c in range(dim) if rng.random() < 0.5}

    found = []
    for _ in range(depth):
        along = row() or {0: F(1)}
        units = []
        for _ in range(hidden):
            share = rng.choice(WEIGHTS)
            reads = {c: share * x for c, x in along.items()} if direction else row()
            reads = {} if rng.random() < 0.1 else reads
            units.append((reads, rng.choice([F(0), *WEIGHTS]), row()))
        found.append(ExactFeedForward.of(units, dim, row()))
    return found


def liveness(layers: Sequence[ExactFeedForward], wanted: set[int]) -> Live:
    """What layer i or a later one reads, or is wanted in the end."""
    live = [frozenset(wanted)]
    for layer in reversed(layers):
        live.insert(
            0, live[0] | {c for row in exact_truth.dense(layer.weight1) for c in nonzero(row)}
        )
    return live.__getitem__


def nonzero(row: Sequence[Fraction]) -> list[int]:
    return [c for c, x in enumerate(row) if x]


def one_by_one(layers: Layers, h: Column) -> Column:
    with mp.workdps(50):
        for layer in layers:
            h = exact_truth.feed_forward(layer, h)
    return h


def agrees(layers: Layers, columns: list[Column], wanted: set[int]) -> None:
    """`segments.apply` gives the wanted coordinates of every column, and leaves its input alone."""
    given = [[exact(x) for x in z] for z in columns]
    found = segments.apply(layers, given, liveness(layers, wanted))
    assert given == [[exact(x) for x in z] for z in columns]
    for z, out in zip(columns, found, strict=True):
        true = one_by_one(layers, z)
        assert [fraction(out[c]) for c in sorted(wanted)] == [true[c] for c in sorted(wanted)]


everything = st.sets(st.integers(0, DIM - 1), max_size=DIM)


@given(seeds, places, everything, st.integers(0, DIM - 1))
def test_along_a_line(seed: int, places: list[F], wanted: set[int], varying: int) -> None:
    """Columns that differ in one coordinate, some of them alike, in any order."""
    rng = random.Random(seed)
    rest = [rng.choice(WEIGHTS) for _ in range(DIM)]
    columns = [[*rest[:varying], s, *rest[varying + 1 :]] for s in places]
    agrees(stack(seed), columns, wanted)


@given(seeds, everything, st.booleans())
def test_columns_that_differ_everywhere(seed: int, wanted: set[int], direction: bool) -> None:
    rng = random.Random(seed)
    columns: list[Column] = [[rng.choice(WEIGHTS) for _ in range(DIM)] for _ in range(6)]
    agrees(stack(seed, direction=direction), columns, wanted)


@given(seeds, everything)
def test_wide_layers(seed: int, wanted: set[int]) -> None:
    rng = random.Random(seed)
    columns: list[Column] = [[rng.choice(WEIGHTS) for _ in range(DIM)] for _ in range(7)]
    layers = stack(seed, depth=2, hidden=WIDE + 3, direction=True)
    agrees(layers, columns, wanted)


@given(seeds, places, everything)
def test_onto_a_line_on_the_way(seed: int, places: list[F], wanted: set[int]) -> None:
    """Coordinates 1 to 3 differ, but after the second layer only coordinate 0 is read."""
    rng = random.Random(seed)
    columns: list[Column] = [[s, *(rng.choice(WEIGHTS) for _ in range(3))] for s in places]
    gather = ExactFeedForward.of([({c: 1}, 5, {0: F(c, 7)}) for c in (1, 2, 3)], DIM)
    tail = stack(seed, depth=4, dim=1)
    wide = [
        ExactFeedForward.of(
            [
                ({0: x.weight1.rows[j][0][1]} if x.weight1.rows[j] else {}, x.bias1[j], {0: w})
                for j, w in units(x)
            ],
            DIM,
            {0: x.bias2[0]},
        )
        for x in tail
    ]
    agrees([*stack(seed, depth=1), gather, *wide], columns, wanted & {0})


def units(layer: ExactFeedForward) -> list[tuple[int, fmpq]]:
    """Units of a layer with one coordinate, with what they write."""
    written = dict(layer.weight2.rows[0])
    return [(j, written.get(j, ZERO)) for j in range(layer.hidden)]


@pytest.mark.parametrize("odd", [{0: 2, 1: 3}, {1: 1}, {0: 1, 2: 1}, {0: -1, 1: 1}], ids=str)
def test_units_that_look_along_another_line(odd: dict[int, int]) -> None:
    """All units read (0, 1), one of them does not: they cannot be summed along one number."""
    units: Any = [({0: j - 8, 1: j - 8}, 1, {2: j, 3: 1}) for j in range(WIDE)]
    units[WIDE // 2] = (odd, 1, {2: 5})
    columns: list[Column] = [[F(1), F(n), F(n * n), F(0)] for n in range(-2, 3)]
    columns += [[F(-2), *z[1:]] for z in columns]
    agrees([ExactFeedForward.of(units, DIM)], columns, {*range(DIM)})


@pytest.mark.parametrize("way", ["_along_line", "_wide", "_direct"])
def test_each_way_is_taken(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above compare three ways only if all three are taken."""
    taken = []
    for name in ("_along_line", "_wide", "_direct"):
        real = getattr(segments, name)
        monkeypatch.setattr(
            segments,
            name,
            lambda *given, name=name, real=real: (taken.append(name), real(*given))[1],
        )
    rng = random.Random(0)
    apart: list[Column] = [[rng.choice(WEIGHTS) for _ in range(DIM)] for _ in range(5)]
    if way == "_along_line":
        agrees(stack(1), [[F(s), F(1), F(1), F(1)] for s in range(5)], {0, 1, 2, 3})
    elif way == "_wide":
        agrees(stack(1, 3, WIDE, direction=True), apart, {0, 1, 2, 3})
    else:
        agrees(stack(1, 3, WIDE), apart, {0, 1, 2, 3})
        agrees(stack(1), apart[:1], {0, 1, 2, 3})
    assert {*taken} == {way}


def test_tanh_after_a_line_is_still_right() -> None:
    """No line leads through tanh, but one may begin after it."""
    tanh = ExactFeedForward.of([({0: 1}, 0, {0: 1})], DIM, activation="tanh")
    layers = [*stack(2, depth=1), tanh, *stack(3, depth=2)]
    columns: list[Column] = [[F(s, 3), F(1), F(1), F(1)] for s in range(-3, 4)]
    with ctx.workprec(100):
        found = segments.apply(layers, as_numbers(columns), liveness(layers, {0, 1, 2, 3}))
    assert any(x.is_finite() for out in found for x in out if isinstance(x, arb))
    for z, out in zip(columns, found, strict=True):
        assert all(map(holds, out, one_by_one(layers, z)))


def as_numbers(columns: Sequence[Column]) -> list[Vector]:
    return [[exact(x) for x in z] for z in columns]


# Numbers that are known up to a radius.

radii = st.sampled_from([F(0), F(1, 1 << 40), F(1, 100), F(1, 2)])


@given(seeds, places, radii, everything, st.integers(0, 4))
def test_balls_along_a_line(
    seed: int, places: list[F], radius: F, wanted: set[int], inside: int
) -> None:
    """Wherever in its ball a number lies, the result is in the ball, or unknown."""
    layers = stack(seed)
    columns: list[Vector] = [[around(s, radius), ONE, ZERO, ONE] for s in places]
    found = segments.apply(layers, columns, liveness(layers, wanted))
    at = F(inside, 2) - 1  # -1 to 1
    for s, out in zip(places, found, strict=True):
        true = one_by_one(layers, [s + at * radius, F(1), F(0), F(1)])
        assert all(holds(out[c], true[c]) for c in wanted), (s, out, true)


@given(seeds, radii, everything, st.integers(0, 4))
def test_balls_through_wide_layers(seed: int, radius: F, wanted: set[int], inside: int) -> None:
    rng = random.Random(seed)
    layers = stack(seed, depth=2, hidden=WIDE, direction=True)
    places = [[rng.choice(WEIGHTS) for _ in range(DIM)] for _ in range(6)]
    columns: list[Vector] = [[around(x, radius) for x in z] for z in places]
    found = segments.apply(layers, columns, liveness(layers, wanted))
    at = F(inside, 2) - 1
    for z, out in zip(places, found, strict=True):
        true = one_by_one(layers, [x + at * radius for x in z])
        assert all(holds(out[c], true[c]) for c in wanted), (z, out, true)


@given(seeds, radii, st.integers(0, 4))
def test_balls_one_column_at_a_time(seed: int, radius: F, inside: int) -> None:
    rng = random.Random(seed)
    layers = stack(seed)
    places = [[rng.choice(WEIGHTS) for _ in range(DIM)] for _ in range(3)]
    columns: list[Vector] = [[around(x, radius) for x in z] for z in places]
    found = segments.apply(layers, columns, liveness(layers, {*range(DIM)}))
    at = F(inside, 2) - 1
    for z, out in zip(places, found, strict=True):
        assert all(map(holds, out, one_by_one(layers, [x + at * radius for x in z])))


def around(x: Fraction, radius: Fraction) -> arb:
    return arb(exact(x), arb(exact(radius)))


def bend(at: Fraction | int, slope: Fraction | int = 1) -> ExactFeedForward:
    """y += relu(slope (s - at))."""
    return ExactFeedForward.of([({0: slope}, -slope * F(at), {1: 1})], 2)


MIDDLES = [F(n, 8) for n in (-9, -3, -2, -1, 0, 1, 2, 3, 9)]


@pytest.mark.parametrize("slope", [F(1), F(-1), F(3), F(-1, 3)])
def test_points_in_doubt_have_larger_balls_and_no_others(slope: Fraction) -> None:
    """The bend is at 0: a unit in doubt adds from 0 to what it could add at most."""
    radius = F(7, 32)
    columns: list[Vector] = [[around(s, radius), ONE] for s in MIDDLES]
    found = segments.apply([bend(0, slope)], columns, lambda _: frozenset({0, 1}))
    for s, out in zip(MIDDLES, found, strict=True):
        for at in (s - radius, s, s + radius):
            assert holds(out[0], at)
            assert holds(out[1], 1 + max(slope * at, F(0)))
        steps = 1 if abs(s) > radius else 2
        assert arb(out[1]).rad() <= float(abs(slope) * radius) * steps * 1.0001


def test_what_reads_a_number_in_doubt_is_unknown() -> None:
    """Not the numbers that nothing in doubt was added to, nor other points."""
    read = ExactFeedForward.of([({1: 1}, -100, {0: 1})], 2)
    columns: list[Vector] = [[around(s, F(7, 32)), ONE] for s in MIDDLES]
    found = segments.apply([bend(0), read], columns, lambda _: frozenset({0, 1}))
    known = [all(arb(x).is_finite() for x in out) for out in found]
    assert known == [abs(s) > F(7, 32) for s in MIDDLES]


@pytest.mark.parametrize("slope", [F(1), F(-1)])
def test_exact_points_at_a_bend_are_certain(slope: Fraction) -> None:
    columns: list[Vector] = [[exact(s), ZERO] for s in (-1, 0, 0, 2)]
    found = segments.apply([bend(0, slope)], columns, lambda _: frozenset({0, 1}))
    assert [fraction(out[1]) for out in found] == [max(slope * s, F(0)) for s in (-1, 0, 0, 2)]


def test_an_unknown_number_makes_nothing_certain() -> None:
    columns: list[Vector] = [[arb("nan"), ZERO], [arb(1), ZERO]]
    found = segments.apply([bend(0)], columns, lambda _: frozenset({0, 1}))
    assert not any(arb(x).is_finite() for x in found[0])


def test_an_unknown_number_in_a_wide_layer() -> None:
    units = [({0: 1, 1: 2}, -k, {2: 1}) for k in range(WIDE)]
    columns: list[Vector] = [[arb("nan"), ONE, ZERO], [ONE, ZERO, ZERO]]
    live = {0: frozenset({0, 1, 2}), 1: frozenset({2})}
    found = segments.apply([ExactFeedForward.of(units, 3)], columns, live.__getitem__)
    assert not any(arb(out[2]).is_finite() for out in found)


def test_a_number_that_bends_back_is_as_sharp_as_it_was() -> None:
    """Along a line, s + relu(s) - 2 relu(s) + ... does not add up radii, as balls would."""
    back = ExactFeedForward.of([({0: 1}, 0, {0: -1}), ({0: 1}, 0, {0: 1})], 2)
    columns: list[Vector] = [[around(F(s), F(1, 8)), ZERO] for s in (1, 2)]
    found = segments.apply([back] * 50, columns, lambda _: frozenset({0}))
    assert all(out[0].rad() < 0.1251 for out in found)


# Pieces themselves.


@given(
    st.lists(st.fractions(-3, 3, max_denominator=4), min_size=1, max_size=8).map(sorted),
    st.sampled_from([F(0), F(1, 3), F(2)]),
    st.tuples(st.fractions(-3, 3, max_denominator=3), st.fractions(-3, 3, max_denominator=3)),
    st.data(),
)
@example([F(0)], F(0), (F(0), F(1)), None)
@example([F(0)], F(0), (F(0), F(-1)), None)
def test_where_a_line_is_positive(s: list[F], radius: F, line: tuple[F, F], data: Any) -> None:
    """Against every point on its own; at 0, active and inactive are the same."""
    i = data.draw(st.integers(0, len(s) - 1)) if data else 0
    j = data.draw(st.integers(i + 1, len(s))) if data else len(s)
    points = Points([exact(x) for x in s], exact(radius))
    (begin, end), doubt = points.active((exact(line[0]), exact(line[1])), (i, j))
    assert i <= begin <= end <= j
    assert {*range(*doubt)} <= {*range(i, j)}
    for k in range(i, j):
        ends = [line[0] + line[1] * (s[k] + r) for r in (-radius, radius)]
        assert (k in range(*doubt)) == (min(ends) < 0 < max(ends))
        if k not in range(*doubt):
            assert all((x if begin <= k < end else 0) == max(x, 0) for x in ends)


def test_pieces_are_as_few_as_there_are_bends() -> None:
    """A tent over 1000 points has three pieces that are not flat, and a flat one on each side."""
    points = Points([exact(F(n, 100)) for n in range(1000)])
    bent = Bent(points, {0: (ZERO, ONE), 1: (ZERO, ZERO)})
    tent = [({0: 1}, -2, {1: 1}), ({0: 1}, -3, {1: -2}), ({0: 1}, -4, {1: 1})]
    bent.apply(ExactFeedForward.of(tent, 2), {0, 1})
    starts, lines = bent.lines(1)
    assert starts == [0, 201, 301, 401]
    assert lines == [(0, 0), (-2, 1), (4, -1), (0, 0)]
    assert fraction(bent.values(1)[250]) == F(1, 2)
    assert len(bent.lines(0)[0]) == 1


def test_what_is_not_wanted_is_not_computed() -> None:
    points = Points([exact(n) for n in range(4)])
    bent = Bent(points, {0: (ZERO, ONE)})
    bent.apply(ExactFeedForward.of([({0: 1}, 0, {1: 1, 2: 1})], 3, {1: 5, 2: 5}), {0, 2})
    assert bent.values(2) == [5, 6, 7, 8]
    assert bent.values(1) == [0, 0, 0, 0]


def test_a_deep_stack_of_many_columns_is_quick() -> None:
    """2,000 columns through 500 layers, of which only a few bend: pieces are pushed, not points."""
    step = ExactFeedForward.of([({0: 1}, 0, {0: F(1, 1000)})], 2)
    columns: list[Vector] = [[exact(n - 1000), ZERO] for n in range(2000)]
    ticks = []
    layers = [step] * 500
    found = segments.apply(layers, columns, lambda i: (ticks.append(i), frozenset({0}))[1])
    factor = F(1001, 1000) ** 500
    assert fraction(found[0][0]) == -1000
    assert fraction(found[-1][0]) == 999 * factor
