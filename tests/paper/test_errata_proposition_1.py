"""Slips in the proof of Proposition 1 (eq. 51 to 71), in exact fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

F = Fraction
Column = tuple[Fraction, ...]  # a token; a matrix Z is a tuple of columns
DELTA = F(1, 1000)

inside = st.fractions(0, 1, max_denominator=60)
granularities = st.integers(1, 8)


def relu(x: Fraction) -> Fraction:
    return max(x, F(0))


def step(z: Fraction, delta: Fraction = DELTA) -> Fraction:
    """relu(z/delta) - relu(z/delta - 1): eq. 56 without its 1/D; a ramp on [0, delta)."""
    return relu(z / delta) - relu(z / delta - 1)


def quant(z: Fraction, D: int) -> Fraction:
    """What eq. 58 is to approximate: [0, 1] goes to {1/D, ..., 1}, all else to 0."""
    return min(F(z * D // 1 + 1, D), F(1)) if 0 <= z <= 1 else F(0)


def stairs(z: Fraction, D: int, first: int = 0, delta: Fraction = DELTA) -> Fraction:
    """D steps of height 1/D at first/D, (first + 1)/D, ...: the left side of eq. 57, first = 0."""
    return sum((step(z - F(t, D), delta) for t in range(first, first + D)), F(0)) / D


def quantiser(z: Fraction, D: int, first: int = 0) -> Fraction:
    """Eq. 58: the stairs less the last step function. The paper prints first = 1."""
    return stairs(z, D, first) - step(z - 1)


def on_a_ramp(z: Fraction, D: int, delta: Fraction = DELTA) -> bool:
    return any(F(t, D) <= z < F(t, D) + delta for t in range(D + 1))


@given(z=st.fractions(-3, 3, max_denominator=99), D=granularities)
def test_eq_57_is_right_off_the_ramps(z: Fraction, D: int) -> None:
    """Eq. 56 and 57: stairs whose ramps lie inside the cells, on [t/D, t/D + delta)."""
    assume(not on_a_ramp(z, D))
    assert stairs(z, D) == (quant(z, D) if z <= 1 else 1)


@given(k=st.integers(4, 60))
def test_eq_51_makes_f_jump(k: int) -> None:
    """Eq. 51 puts f = 0 outside the cube; eq. 55 then calls f continuous.

    The constant 1 on [0, 1], cut, jumps at 1. A network that is right at 1 is off by nearly 1 just
    beside it, as here; off by 1/2 at least on one side, whichever it is. (In d_p that is harmless.)
    Repair: stay on the compact cube. There the same network is off by nothing but a ramp.
    """
    beside = 1 + F(1, 10**k)
    assert quantiser(F(1), 1) == 1
    assert abs(quantiser(beside, 1) - 0) >= F(9, 10)
    assert quantiser(2 - beside, 1) == 1


@given(z=st.fractions(2, 10**6), D=granularities)
def test_eq_1_needs_a_domain(z: Fraction, D: int) -> None:
    """Eq. 1 integrates over no stated domain; over all of R^(d x n) the distance is infinite.

    The stairs of eq. 57 stay at 1 for ever, f of eq. 51 is 0 there: |f - g| = 1 wherever z >= 2.
    Repair: integrate over the compact domain of f, the cube.
    """
    assert stairs(z, D) - 0 == 1


def closed(z: Column, corner: Column, D: int) -> bool:
    return all(c - F(1, D) <= x <= c for x, c in zip(z, corner, strict=True))


def half_open(z: Column, corner: Column, D: int) -> bool:
    """Closed below, open above; the last cell keeps its upper face. So rounds eq. 57."""
    return all(c - F(1, D) <= x and (x < c or x == c == 1) for x, c in zip(z, corner, strict=True))


def cells(D: int, d: int) -> list[Column]:
    """Every token of the grid of eq. 53."""
    return list(product([F(t, D) for t in range(1, D + 1)], repeat=d))


def test_eq_54_counts_faces_more_than_once() -> None:
    """Eq. 54 sums over closed cells L + [-1/D, 0], which share faces.

    For f = 1 and D = 2 the "approximation" is 2 at z = 1/2, and 4 at (1/2, 1/2).
    """
    assert sum(closed((F(1, 2),), corner, 2) for corner in cells(2, 1)) == 2
    assert sum(closed((F(1, 2), F(1, 2)), corner, 2) for corner in cells(2, 2)) == 4


@given(z=st.tuples(inside, inside), D=granularities)
def test_eq_54_repaired_has_one_cell_per_point(z: Column, D: int) -> None:
    """Repair of eq. 54: L + [-1/D, 0), closed above at 1; then its corner L is quant(Z)."""
    (corner,) = [c for c in cells(D, 2) if half_open(z, c, D)]
    assert corner == tuple(quant(x, D) for x in z)


@pytest.mark.parametrize(("z", "printed"), [(F(1, 10), F(0)), (F(9, 10), F(3, 4))])
def test_eq_58_starts_one_step_late(z: Fraction, printed: Fraction) -> None:
    """Eq. 58 sums over t = 1..D: everything on [0, 1) comes out 1/D too low.

    With D = 4, z = 0.1 goes to 0 and z = 0.9 to 0.75; eq. 57 says 0.25 and 1.
    """
    assert quantiser(z, 4, first=1) == printed == quant(z, 4) - F(1, 4)


@given(z=st.fractions(-3, 3, max_denominator=99), D=granularities)
def test_eq_58_repaired_quantises(z: Fraction, D: int) -> None:
    """Repair of eq. 58: t = 0..D-1. (As printed, t = 1..D, it is wrong at every z in [0, 1).)"""
    assume(not on_a_ramp(z, D))
    assert quantiser(z, D) == quant(z, D)
    assert quantiser(z, D, first=1) == quant(z, D) - (F(1, D) if 0 <= z < 1 else 0)


def penalty(z: Fraction) -> Fraction:
    """Eq. 59 with the signs it needs: -1 outside [0, 1], 0 inside."""
    return -step(z - 1) - step(-z)


def test_eq_59_has_signs_wrong() -> None:
    """Eq. 59: its first, second and last sign make a reward above 1 and no bound below 0.

    As printed it is +1 at z = 1.5 and -999 at z = -0.5 with delta = 1/1000; both should be -1.
    """

    def printed(z: Fraction) -> Fraction:
        right, left = (z - 1) / DELTA, -z / DELTA
        return relu(right) - relu(right - 1) - relu(left) - relu(left - 1)

    assert printed(F(3, 2)) == 1
    assert printed(F(-1, 2)) == -999
    assert penalty(F(3, 2)) == penalty(F(-1, 2)) == -1


@given(z=st.fractions(-3, 4, max_denominator=99))
def test_eq_59_repaired(z: Fraction) -> None:
    """Repair of eq. 59: those three signs turned round. The ramps lie outside [0, 1]."""
    assume(not -DELTA < z < 0)
    assume(not 1 < z < 1 + DELTA)
    assert penalty(z) == (0 if 0 <= z <= 1 else -1)


def first_layer(z: Sequence[Column], D: int) -> tuple[Column, ...]:
    """Eq. 60 as printed: the penalty is summed over all tokens k of the sequence."""
    total = sum(penalty(x) for column in z for x in column)
    return tuple(tuple(quant(x, D) + total for x in column) for column in z)


def first_layer_tokenwise(z: Sequence[Column], D: int) -> tuple[Column, ...]:
    """The most a feed-forward layer can do: eq. 60 summed over the coordinates t of one token."""
    return tuple(first_layer([column], D)[0] for column in z)


HALF_OUTSIDE = ((F(9, 10), F(9, 10)), (F(9, 10), F(3, 2)))  # token 2 leaves the cube, token 1 not


def test_eq_60_is_not_tokenwise() -> None:
    """Eq. 60 adds a sum over all tokens k, but a feed-forward layer (eq. 3) sees one token.

    Token (0.9, 0.9) must go to (0, 0) beside (0.9, 1.5) and to (1, 1) beside (0.9, 0.9): no
    function of one column does both. Summed over t only, token 1 stays a token of the grid.
    Repair: the compact cube, where no penalty is needed.
    """
    assert first_layer(HALF_OUTSIDE, 4) == ((0, 0), (0, -1))
    assert first_layer([HALF_OUTSIDE[0]] * 2, 4) == ((1, 1), (1, 1))
    assert first_layer_tokenwise(HALF_OUTSIDE, 4) == ((1, 1), (0, -1))


@pytest.mark.parametrize(("d", "n"), [(1, 1), (1, 3), (2, 2), (3, 1)])
def test_eq_61_is_right(d: int, n: int) -> None:
    """Eq. 61: a column of eq. 60 is at most dn sqrt(d) long, and is so with all entries outside."""
    points = product([F(-1), F(0), F(1, 3), F(1), F(2)], repeat=d * n)
    matrices = (tuple(p[k * d : (k + 1) * d] for k in range(n)) for p in points)
    squares = [sum(x * x for x in first_layer(z, 3)[0]) for z in matrices]
    assert max(squares) == (d * n) ** 2 * d


def squared(x: Column) -> Fraction:
    return sum((a * a for a in x), F(0))


def separation_squared(tokens: Sequence[Column]) -> tuple[Fraction, Fraction, Fraction]:
    """The squares of the smallest norm, the largest norm and the smallest distance."""
    norms = [squared(x) for x in tokens]
    apart = [
        squared(tuple(a - b for a, b in zip(x, y, strict=True)))
        for x in tokens
        for y in tokens
        if x != y
    ]
    return min(norms), max(norms), min(apart)


@pytest.mark.parametrize("D", [2, 3, 5])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_grid_is_not_separated_as_printed(d: int, D: int) -> None:
    """Before eq. 63 the grid is called (1/D, sqrt d, 1/D)-separated; Definition 1 is strict.

    The longest token (1, ..., 1) has norm exactly sqrt d, neighbours are exactly 1/D apart, and for
    d = 1 the shortest token is exactly 1/D long. Repair: (1/(2D), 2 sqrt d, 1/(2D)), say.
    """
    shortest, longest, apart = separation_squared(cells(D, d))
    step_squared = F(1, D * D)
    assert not longest < d
    assert not apart > step_squared
    assert (shortest > step_squared) == (d > 1)
    assert shortest > step_squared / 4
    assert longest < 4 * d
    assert apart > step_squared / 4


def attended(z: Sequence[Fraction], weight: Fraction, scores: Sequence[int]) -> list[Fraction]:
    """Z + w (average of Z), d = 1, v = 1; scores in units of log 2, so that all is rational."""
    shares = [F(2) ** score for score in scores]
    average = sum((x * p for x, p in zip(z, shares, strict=True)), F(0)) / sum(shares)
    return [x + weight * average for x in z]


columns = st.lists(st.fractions(-3, 3, max_denominator=20), min_size=1, max_size=4)


@given(z=columns, D=granularities, data=st.data())
def test_eq_63_is_right_but_not_strict(z: list[Fraction], D: int, data: st.DataObject) -> None:
    """Eq. 63: attention moves a token by LESS than |Z|_max / (4 sqrt d D); Z = 0 moves by 0 < 0.

    With "at most" it holds for all Z, whatever the scores: an average is no longer than its longest
    term. With the strict constants of the test above the factor becomes 1/(16 sqrt d D).
    """
    scores = data.draw(st.lists(st.integers(-9, 9), min_size=len(z), max_size=len(z)))
    weight = F(1, 4 * D)  # eps / (4 r_max) with d = 1, eps = 1/D, r_max = 1
    moved = [abs(y - x) for x, y in zip(z, attended(z, weight, scores), strict=True)]
    assert max(moved) <= weight * max(map(abs, z))
    zero = attended([F(0)] * len(z), weight, scores)
    assert not max(map(abs, zero)) < weight * 0


@pytest.mark.parametrize("D", [1, 2, 10, 10**6])
@pytest.mark.parametrize(("d", "n"), [(1, 2), (2, 1), (2, 2), (1, 4)])
def test_eq_65_does_not_follow_from_eq_64(d: int, n: int, D: int) -> None:
    """Eq. 65 takes 1/(4D) from the dn/(4D) of eq. 64 "if we take large enough D".

    Outside the cube eq. 60 has entries equal to 0, which eq. 64 lets grow to dn/(4D): above 1/(4D),
    and no D helps, for both shrink alike. Eq. 63 does give it, with "at most": a column of length l
    moves by l / (4 sqrt d D), and entry + l / (4 sqrt d D) <= 1/(4D) in every case.
    """
    points = product([F(-1), F(1, 3), F(1), F(2)], repeat=d * n)
    outside = [p for p in points if any(not 0 <= x <= 1 for x in p)]
    layers = [first_layer([p[k * d : (k + 1) * d] for k in range(n)], D) for p in outside]
    assert max(x for z in layers for column in z for x in column) + F(d * n, 4 * D) > F(1, 4 * D)
    for z in layers:
        longest = max(squared(column) for column in z)
        room = min(1 - 4 * D * x for column in z for x in column)  # sqrt d room >= l, squared
        assert room > 0
        assert d * room**2 >= longest


@given(D=granularities)
def test_eq_65_fails_for_a_tokenwise_first_layer(D: int) -> None:
    """Eq. 65 fails once eq. 60 is cut back to what a feed-forward layer can do.

    Token 1 of `HALF_OUTSIDE` keeps the entry 1. A column of the whole is at most sqrt d long, so it
    moves by 1/(4D) at most and stays at 1 - 1/(4D), above 1/(4D) for all D.
    """
    out = first_layer_tokenwise(HALF_OUTSIDE, D)
    assert max(squared(column) for column in out) <= 2
    assert not out[0][0] - F(1, 4 * D) < F(1, 4 * D)


@given(z=st.lists(inside, min_size=1, max_size=4), D=granularities, data=st.data())
def test_eq_66_holds_off_the_ramps_only(z: list[Fraction], D: int, data: st.DataObject) -> None:
    """Eq. 66: on the cube all entries are above 3/(4D); on the ramp [0, delta) they are not.

    At Z = 0, a point of the cube, the layer of ReLUs gives 0 and attention leaves it there. Off the
    ramps an entry is at least 1/D and moves by at most 1/(4D). (Shown for d = 1.)
    """
    scores = data.draw(st.lists(st.integers(-9, 9), min_size=len(z), max_size=len(z)))
    weight = F(data.draw(st.sampled_from([-1, 1])), 4 * D)
    on_ramp = attended([quantiser(F(0), D)] * len(z), weight, scores)
    assert not min(on_ramp) > F(3, 4 * D)
    assume(not any(on_a_ramp(x, D) for x in z))
    assert min(attended([quantiser(x, D) for x in z], weight, scores)) >= F(3, 4 * D)


def tent(x: Fraction, middle: int = -2) -> Fraction:
    """relu(x - 1) + middle relu(x) + relu(x + 1); eq. 67 to 68 print middle = -1."""
    return relu(x - 1) + middle * relu(x) + relu(x + 1)


def test_eq_67_is_not_a_bump() -> None:
    """Eq. 67 prints the coefficient -1: past its centre the "bump" grows for ever, 10 at 10.

    Repair: -2. The tent is 1 at 0, and 0 from distance 1 on.
    """
    assert tent(F(0), middle=-1) == tent(F(0)) == 1
    assert tent(F(10), middle=-1) == 10
    assert tent(F(10)) == tent(F(1)) == tent(F(-1)) == 0


@given(x=st.fractions(-50, 50))
def test_a_tent_is_local(x: Fraction) -> None:
    assert tent(x) == max(1 - abs(x), 0)


def bump(z: Sequence[Column], corner: Sequence[Column], R: int) -> Fraction:
    """Eq. 67 to 68 over f(L), coefficient repaired: the MEAN over coordinates t and tokens k."""
    tents = [
        tent(R * (x - c))
        for column, other in zip(z, corner, strict=True)
        for x, c in zip(column, other, strict=True)
    ]
    return sum(tents, F(0)) / len(tents)


def test_eq_67_averages_where_it_should_multiply() -> None:
    """Eq. 67 to 68 take the mean of one tent per coordinate, which does not single out a cell.

    d = 2, n = 1, D = 2 and f = 1, -1/2, 1/4, 4/5 on the four cells: the sum of the bumps is 7/8,
    2/5, 23/20, 27/40 there, since a cell that agrees in one coordinate out of two counts half.
    """
    grid = cells(2, 2)
    f = dict(zip(grid, [F(1), F(-1, 2), F(1, 4), F(4, 5)], strict=True))
    summed = [sum(f[c] * bump([z], [c], R=100) for c in grid) for z in grid]
    assert summed == [F(7, 8), F(2, 5), F(23, 20), F(27, 40)]
    assert all(value != f[z] for value, z in zip(summed, grid, strict=True))


def test_eq_67_is_not_tokenwise_and_not_centred_at_context_ids() -> None:
    """Eq. 67 to 68 sum over the tokens k, and are centred at L where layer 2 sees F^SA(L).

    The value for token 1 depends on token 2, which a feed-forward layer cannot see. And a context
    id is only near L: for the large R the proof asks for, the bump at L is 0 there.
    """
    corner = [(F(1, 2),), (F(1),)]
    assert bump(corner, corner, R=100) == 1
    assert bump([(F(1, 2),), (F(1, 2),)], corner, R=100) == F(1, 2)
    context_id = attended([F(1, 2), F(1)], F(1, 8), [0, 1])
    assert max(abs(x - c[0]) for x, c in zip(context_id, corner, strict=True)) <= F(1, 8)
    assert bump([(x,) for x in context_id], corner, R=100) == 0


ids_and_values = st.dictionaries(
    st.fractions(-2, 2, max_denominator=50), st.fractions(-1, 1), min_size=2, max_size=8
)


@given(wanted=ids_and_values, s=st.fractions(-3, 3))
def test_eq_67_repaired_memorises_and_is_bounded(
    wanted: dict[Fraction, Fraction], s: Fraction
) -> None:
    """Repair: tents on a line, F2(h) = sum_c f_c tent(R (a.h - s_c)), one per context id s_c = a.h.

    With R = 1/gap it is f_c at every context id and between the least and the largest of the f_c
    and 0 everywhere. So the bound printed before eq. 69, 0 <= F2 <= 1, must read -1 <= F2 <= 1: at
    an id with f_c < 0 it is negative.
    """
    places = sorted(wanted)
    R = 1 / min(b - a for a, b in pairwise(places))

    def second_layer(at: Fraction) -> Fraction:
        return sum((value * tent(R * (at - c)) for c, value in wanted.items()), F(0))

    assert all(second_layer(c) == value for c, value in wanted.items())
    assert min(0, *wanted.values()) <= second_layer(s) <= max(0, *wanted.values())


@pytest.mark.parametrize(("D", "fine"), [(1, 10), (2, 5), (3, 4)])
def test_eq_69_holds_on_a_compact_domain(D: int, fine: int) -> None:
    """Eq. 69: the ramps take up at most dnD delta of the cube, so a small delta makes them vanish.

    Counted for dn = 2 in little squares of side delta = 1/(D fine). In [0, M]^2 they take up
    2 D delta M - (D delta)^2, and more than any bound in all of the plane. (The last ramp, at 1, is
    outside the cube.)
    """
    delta = F(1, D * fine)

    def measure(M: int) -> Fraction:
        middles = [(k + F(1, 2)) * delta for k in range(M * D * fine)]
        hit = [any(on_a_ramp(x, D, delta) for x in z if x < 1) for z in product(middles, repeat=2)]
        return sum(hit) * delta**2

    ramps = D * delta
    assert measure(1) <= 2 * ramps
    assert [measure(M) for M in (1, 2, 3)] == [2 * ramps * M - ramps**2 for M in (1, 2, 3)]


@pytest.mark.parametrize(("d", "n", "D"), [(1, 2, 5), (2, 2, 3), (1, 3, 6), (2, 3, 3)])
def test_eq_70_takes_cells_too_large(d: int, n: int, D: int) -> None:
    """Eq. 70 gives a cell the volume D^(-d); a cell of [0, 1]^(d x n) has D^(-dn).

    With d = 2, n = 3, D = 3: 225 of 729 cells have a repeated token. By the printed volume they
    fill 25 units of a cube of volume 1. Right: 225/729 = 0.31, at most C(n, 2) D^(-d) in general.
    """
    tokens = cells(D, d)
    repeated = sum(len(set(z)) < n for z in product(tokens, repeat=n))
    assert repeated <= comb(n, 2) * D ** (d * n - d)
    assert F(repeated, D ** (d * n)) <= comb(n, 2) * F(1, D**d)
    assert repeated * F(1, D**d) >= 1  # "negligible", of a cube of volume 1
    if (d, n, D) == (2, 3, 3):
        assert (repeated, repeated * F(1, D**d)) == (225, 25)


@given(k=st.integers(1, 60), D=granularities)
def test_eq_71_is_about_the_layer_without_a_bar(k: int, D: int) -> None:
    """Eq. 71 ends with the quantiser that jumps (barred); a Transformer is continuous.

    quant jumps by 1/D at 0 however near the two points; the layer of ReLUs has slope 1/(delta D).
    Repair: no bar, which is what eq. 55, 69 and 70 add up to.
    """
    near = F(1, 10**k)
    assert quant(F(0), D) - quant(-near, D) == F(1, D)
    assert quantiser(near, D) - quantiser(-near, D) == min(near / DELTA, F(1)) / D


Function = Callable[[np.ndarray], np.ndarray]


def mixed(z: np.ndarray) -> np.ndarray:
    """f(Z)_k = sin(3 z_k) z_l on [0, 1]^(1 x 2): permutation equivariant, slopes up to 3 and 1."""
    return np.sin(3 * z) * z[..., ::-1]


def repaired_transformer(f: Function, D: int, delta: float) -> Function:
    """F2 o F^SA o F1 for d = 1, n = 2, every part a network of the paper, in float64.

    F1 is eq. 58 with t = 0..D-1. Attention is eq. 20 with v1 = v2 = 1: with scores below 1 in
    size, x + (y - x) / (1 + e^(x (x - y))) increases in y, so all context ids of x differ; the
    output weight 1/(8 D) keeps different tokens apart. F2 is one tent per context id.
    """

    def first(z: np.ndarray) -> np.ndarray:
        ramps = np.clip((z[..., None] - np.arange(D) / D) / delta, 0, 1).sum(-1) / D
        return ramps - np.clip((z - 1) / delta, 0, 1)

    def attention(z: np.ndarray) -> np.ndarray:
        weights = np.exp(z[..., :, None] * z[..., None, :])
        return z + (weights @ z[..., None])[..., 0] / weights.sum(-1) / (8 * D)

    steps = np.arange(1, D + 1) / D
    grid = np.stack(np.meshgrid(steps, steps, indexing="ij"), -1).reshape(-1, 2)
    grid = grid[grid[:, 0] != grid[:, 1]]
    ids = attention(grid)[:, 0]  # (y, x) has the ids of (x, y), swapped
    order = np.argsort(ids)
    ids, values = ids[order], f(grid)[order, 0]
    R = 1 / np.diff(ids).min()

    def second(s: np.ndarray) -> np.ndarray:
        # Only the two neighbours of s can have s within 1/R.
        right = np.clip(np.searchsorted(ids, s), 1, len(ids) - 1)
        near = np.stack([right - 1, right], -1)
        return (values[near] * np.clip(1 - R * abs(s[..., None] - ids[near]), 0, None)).sum(-1)

    return lambda z: second(attention(first(z)))


@pytest.mark.parametrize("D", [4, 8, 16, 32])
def test_the_repaired_pipeline_approximates(D: int) -> None:
    """Eq. 51 to 71 repaired: d_2(f, g) is below what the three parts of the proof add up to.

    Steps: entries of f move by at most 4/D within a cell. Ramps and cells with a repeated token:
    |f - g| <= 2 per entry, on a set of measure at most 2 D delta + 1/D. So d_2^2 is at most
    2 (4/D)^2 + 8 (2 D delta + 1/D), which falls to 0 like 1/D.
    """
    delta = 1e-6 / D
    g = repaired_transformer(mixed, D, delta)
    z = np.random.default_rng(D).uniform(size=(40_000, 2))
    regular = (z % (1 / D) > delta).all(-1) & (z[:, 0] * D // 1 != z[:, 1] * D // 1)
    np.testing.assert_allclose(g(z)[regular], mixed(np.ceil(z * D) / D)[regular], atol=1e-6)
    assert np.mean((g(z) - mixed(z)) ** 2 * 2) < 2 * (4 / D) ** 2 + 8 * (2 * D * delta + 1 / D)
