"""Keys, grid and contextual mapping against brute force and against Arb."""

import re
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import comb

import numpy as np
import pytest
import torch
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

import rankone.approximation.build as construction
import rankone.approximation.grid_mapping as mappings
from rankone import approximate
from rankone.approximation.build import build, choose_delta
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.grid_mapping import GridMapping, distinct_sums, measure_gap
from rankone.approximation.problem import large, needed
from rankone.approximation.readouts import bend, choose_eta
from rankone.approximation.target import Target
from rankone.errors import PrecisionError, SettingError, SizeError

ULP = 2.0**-52


def unit_grid(D, n, d=1, positions=False):
    return CellGrid(D, n, np.zeros(d), np.ones(d), positions)


def primes_from(size):
    return next(p for p in range(max(2, size), 2 * size + 9) if all(p % q for q in range(2, p)))


SETS = [(size, h) for h in range(5) for size in (1, 2, 3, 4, 6, 9)]


@pytest.mark.parametrize(("size", "h"), [*SETS, (40, 2), (14, 3), (10, 4), (3, 40), (5, 6)])
def test_no_two_sums_are_equal(size, h):
    keys = distinct_sums(size, h).tolist()
    assert len(keys) == size
    assert keys[0] == 0
    assert keys == sorted(set(keys))
    sums = [sum(chosen) for chosen in combinations_with_replacement(keys, h)]
    assert len(set(sums)) == len(sums) == comb(size + h - 1, h)


@pytest.mark.parametrize(("size", "h"), [(n, h) for n, h in SETS if n > 2 and h > 1])
def test_keys_are_the_narrower_of_two_sets(size, h):
    """Powers of h + 1, or p numbers below p^h."""
    assert distinct_sums(size, h).max() <= min((h + 1) ** (size - 2), primes_from(size) ** h)


GRIDS = [(4, 1, 1), (1, 3, 2), (5, 2, 1), (3, 3, 1), (2, 2, 2), (2, 4, 1), (2, 3, 2), (2, 2, 3)]
each_grid = pytest.mark.parametrize(("D", "n", "d"), GRIDS)


@each_grid
def test_sequences_are_all_multisets(D, n, d):
    grid = unit_grid(D, n, d)
    rows = [tuple(row) for row in grid.all_sequences().tolist()]
    assert rows == list(combinations_with_replacement(range(D**d), n))
    assert grid.sequences == len(rows)
    contexts = {
        (row[k], tuple(sorted(row[:k] + row[k + 1 :])))
        for row in product(range(D**d), repeat=n)
        for k in range(n)
    }
    assert grid.context_ids == len(contexts)
    owners = grid.owners(grid.all_sequences())
    owned = [(row[k], (*row[:k], *row[k + 1 :])) for row, k in owned_tokens(rows, owners)]
    assert len(owned) == len(set(owned))
    assert set(owned) == contexts


def owned_tokens(rows, owners):
    return [(rows[i], k) for i, k in np.argwhere(owners).tolist()]


@each_grid
def test_with_positions_every_order_counts(D, n, d):
    grid = unit_grid(D, n, d, positions=True)
    rows = grid.all_sequences()
    assert [tuple(row) for row in rows.tolist()] == list(product(range(D**d), repeat=n))
    assert grid.owners(rows).all()
    assert grid.sequences == len(rows)
    assert grid.context_ids == rows.size


@given(D=st.integers(1, 9), d=st.integers(1, 3), low=st.floats(-9, 9), size=st.floats(0.1, 9))
def test_centres_are_in_the_middle(D, d, low, size):
    grid = CellGrid(D, 1, np.full(d, low), np.full(d, low + size))
    ends = Fraction(low), Fraction(low + size)
    assert grid.tokens == D**d
    for number, centre in enumerate(grid.centres(np.arange(D**d))):
        digits = [number // D**i % D for i in range(d)]
        assert grid.coordinates(np.array(number)).tolist() == digits
        for t, x in zip(digits, centre, strict=True):
            middle = ends[0] + (ends[1] - ends[0]) * Fraction(2 * t + 1, 2 * D)
            assert abs(Fraction(float(x)) - middle) <= 4 * ULP * max(map(abs, ends))


@pytest.mark.parametrize(
    ("n", "d", "positions", "readout"),
    [(2, 1, False, "constant"), (3, 1, False, "linear"), (2, 2, True, "linear")],
)
def test_a_grid_that_does_not_fit_is_refused_with_the_largest_that_does(n, d, positions, readout):
    settings = {"n": n, "d": d, "samples": 256, "positions": positions}
    settings |= {"readout": readout, "memory": 1e-3}
    with pytest.raises(SizeError) as refused:
        approximate("mean-centring", grid=100, **settings)
    count = unit_grid(100, n, d, positions).context_ids
    assert f"{count:,} context ids" in str(refused.value)
    best = int(re.search(r"largest grid that fits is ([\d,]+)", str(refused.value))[1])
    assert approximate("mean-centring", grid=best, **settings).grid.cells == best
    with pytest.raises(SizeError, match=f"largest grid that fits is {best}\\b"):
        approximate("mean-centring", grid=best + 1, **settings)


def test_nothing_fits():
    with pytest.raises(SizeError, match="smaller n or d"):
        approximate("mean-centring", grid=3, n=2, samples=256, memory=1e-8)


def test_a_giant_is_refused_at_once():
    with pytest.raises(SizeError) as refused:
        approximate("mean-centring", grid=10**4, n=10, samples=256)
    power = int(re.search(r"10\^(\d+) context ids", str(refused.value))[1])
    assert 10**power <= unit_grid(10**4, 10).context_ids < 10 ** (power + 1)


def own_sum(x):
    """An equivariant function of one output that is different in all cells."""
    return x.sum(-1, keepdims=True) + 0.1 * x.sum((-2, -1), keepdims=True) ** 2


def made(D, n, d, positions=False, readout="constant"):
    grid = unit_grid(D, n, d, positions)
    return grid, build(Target(own_sum, "f", 1), grid, readout, None, lambda _stage, _share: None)


def exact(x):
    return arb(fmpq(*float(x).as_integer_ratio()))


def dot(a, b):
    return sum((exact(x) * exact(y) for x, y in zip(a, b, strict=True) if x and y), arb(0))


def ids_in_arb(grid, built):
    """s = a . (h + W^O boltz) per token and sequence, from the weights as the numbers they are."""
    network = built.network
    v1, v2, out = (p.detach().numpy() for p in network.attention.parameters())
    a = built.f2.direction[0].detach().numpy()
    found = defaultdict(dict)
    sequences = grid.all_sequences()
    with torch.no_grad():
        hidden = network.f1(network.embed(torch.from_numpy(grid.centres(sequences)))).numpy()
    weights = {}
    for row, h in zip(sequences.tolist(), hidden, strict=True):
        (y,) = {float(x) for x in h @ v2}  # one query for all
        parts = []
        for token in h:
            key = token.tobytes()
            if key not in weights:
                x = dot(v1, token)
                weights[key] = x, (x * exact(y)).exp(), dot(a, token)
            parts.append(weights[key])
        total = sum((e for _, e, _ in parts), arb(0))
        c = sum((x * e for x, e, _ in parts), arb(0)) / total
        for k, (token, (_, _, own)) in enumerate(zip(row, parts, strict=True)):
            number = token + grid.tokens * k if grid.positions else token
            context = tuple(row) if grid.positions else (token, tuple(sorted(row)))
            found[number][context] = own + c * dot(a, out)
    return found


CASES = [
    *[(D, 2, 1, False) for D in (2, 8, 30)],
    *[(D, 2, d, False) for D, d in ((3, 2), (5, 2), (2, 3))],
    *[(D, n, 1, False) for D, n in ((3, 3), (10, 3), (5, 4), (4, 5), (3, 7), (2, 12))],
    *[(D, n, d, False) for D, n, d in ((2, 3, 2), (3, 3, 2), (2, 5, 2), (2, 3, 3))],
    *[(D, n, d, True) for D, n, d in ((6, 2, 1), (3, 2, 2), (8, 3, 1), (2, 3, 2), (2, 5, 1))],
    *[(4, 1, 1, False), (3, 1, 2, False), (4, 1, 1, True), (1, 3, 2, False), (1, 2, 1, True)],
]


@pytest.mark.parametrize(("D", "n", "d", "positions"), CASES)
def test_context_ids_are_apart_in_arb(D, n, d, positions):
    """By the gap that is told, at 50 digits; tokens lie in unit cells of their own."""
    grid, built = made(D, n, d, positions)
    with ctx.workprec(170):
        found = ids_in_arb(grid, built)
        gaps = []
        for number, ids in found.items():
            s = sorted(ids.values(), key=lambda s: float(s - number))
            assert all(abs(x - number - 0.25) <= 0.25 + 1e-12 for x in s)
            gaps += [float((y - x).lower()) for x, y in pairwise(s)]
    assert sum(map(len, found.values())) == grid.context_ids
    rounding = 4 * ULP * max(1, len(found))
    if gaps:
        assert min(gaps) == pytest.approx(built.mapping.gap, rel=1e-9, abs=rounding)
        assert min(gaps) > 2 * rounding
    elif len(found) > 1:
        assert built.mapping.gap >= 0.5
    else:
        assert built.mapping.gap == np.inf


@pytest.mark.parametrize(
    ("D", "n", "d", "outputs", "linear", "numbers"),
    [
        # 100 ids of 10, 55 sequences of 2 tokens and 5 each, 200 units of width 6, 9 times
        (10, 2, 1, 1, False, 100 * 10 + 55 * 2 * 5 + 9 * 6 * 200),
        # the ids with planes: 2 and 2 per output and coordinate, and one, more; twice the units
        (10, 2, 1, 1, True, 100 * (10 + 2 + 4) + 55 * 2 * 5 + 9 * 6 * 400),
        (2, 1, 2, 3, True, 4 * (18 + 2 + 18) + 4 * 9 + 9 * 10 * 24),
        # never more than 2^21 units at once
        (1500, 2, 1, 1, False, 1500**2 * 10 + 1500 * 1501 * 5 + 9 * 6 * (1 << 21)),
    ],
)
def test_how_much_memory_is_needed(D, n, d, outputs, linear, numbers):
    assert needed(unit_grid(D, n, d), outputs, linear=linear) == 8 * numbers


def test_planes_move_an_id_by_a_quarter_of_the_gap_and_bend_it_by_a_twelfth():
    """The first where the gap is small; where it is not, scores move so little that attention is
    nearly linear: by 1/64, or less where they are large."""
    grid = unit_grid(5, 3, 2)
    residual = 0.5 * 2 / 5
    g = np.array([[0.5, -0.25, 0.25], [0.25, 0.25, 0.25]])
    for query, place, gap, eta in (
        (0.5, 0.0, 1e-6, 2 * 1e-6 / 4 / 1.0 / residual),
        (0.5, 4.0, 1e-6, 2 * 9 * 1e-6 / 4 / 1.0 / residual),
        (0.5, 0.0, 1.0, 1 / 64 / 0.5 / residual),
        (40.0, 0.0, 1.0, 0.5 / (2 + 40 + 2 / 64) / 40 / residual),
        (10.0, 4.0, 1.0, 0.5 / (2 + 90 + 2 / 64) / 10 / residual),
    ):
        mapping = GridMapping(None, 4, query, place, gap)
        assert choose_eta(grid, mapping, g) == pytest.approx(eta, rel=1e-14, abs=0)
        most = eta * residual * (1 + 1e-9)  # Delta; half of the largest second derivative is
        half = query * most**2 + 0.5 * query**2 * (mapping.range(3) + 2 * most) * most**2
        assert bend(grid, mapping, eta) == pytest.approx(half / eta, rel=1e-12, abs=0)
        bent = 0.5 / mapping.range(3) * eta * bend(grid, mapping, eta)
        assert bent <= gap / 12
    assert choose_eta(grid, GridMapping(None, 4, 0.5), g) == 0.0  # one id alone


def test_giant_numbers_are_powers_of_ten():
    """From 2^50 on, rounded down."""
    assert large(2**50 - 1) == "1,125,899,906,842,623"
    assert large(2**50) == "10^15"
    assert large(10**400) == "10^400"


def test_ids_too_close_for_float64_are_refused():
    """At the measured gap, before anything is built."""
    for gap, message in ((0.0, "0.0e\\+00 apart"), (2.0**-50, "apart, too little for float64")):
        with pytest.raises(PrecisionError, match=message):
            choose_delta(unit_grid(4, 3), GridMapping(None, 3, 0.5, gap=gap), "constant", None)


@pytest.mark.parametrize(
    ("D", "d", "gap", "readout", "steepest"),
    [
        (4, 3, 2.0**-8, "constant", 53 - 4 - 8 - 2 * 2),  # of 53 bits: reserve, gap, D^(d - 1)
        (4, 3, 2.0**-8, "linear", 53 - 6 - 8 - 2 * 2),
        (4, 1, 2.0**-8, "constant", 53 - 4 - 8),
        (4, 1, 2.0**-5, "constant", 44),  # never steeper
        (4, 1, 2.0**-4, "constant", 44),
        (1, 3, np.inf, "linear", 44),  # one cell: no ramp
    ],
)
def test_ramps_are_as_narrow_as_float64_can_carry(D, d, gap, readout, steepest):
    given = unit_grid(D, 3, d), GridMapping(None, 3, 0.5, gap=gap), readout
    assert choose_delta(*given, None) == 2.0**-steepest
    for delta in (2.0**-steepest, 0.5 / D):
        assert choose_delta(*given, delta) == delta
    for delta in (0.999 * 2.0**-steepest, 0.501 / D):
        with pytest.raises(SettingError) as refused:
            choose_delta(*given, delta)
        assert refused.value.what == f"delta = {delta:g} cannot be used with grid {D}"
        ends = f"{2.0**-steepest:.1e} to {0.5 / D:.1e}"
        assert refused.value.remedy == f"give {ends}, or leave it out"
    assert choose_delta(*given, 0.3 / D) == 0.25 / D  # a power of two


@pytest.mark.parametrize(
    ("D", "n", "d", "positions"),
    [(1, 2, 1, False), (5, 2, 1, False), (4, 3, 1, False), (3, 3, 2, False), (4, 3, 1, True)],
)
def test_keys_go_from_0_to_the_range(D, n, d, positions):
    grid = unit_grid(D, n, d, positions)
    for mapping in mappings.candidates(grid):
        x = mappings.keys_of(grid, mapping, grid.all_sequences())
        assert x.min() == 0.0
        assert x.max() == (mapping.range(n) if D > 1 else 0.0)


@pytest.mark.parametrize("lie", [False, True])
def test_no_network_from_a_mapping_that_does_not_tell_contexts_apart(monkeypatch, lie):
    """With a query of 0 attention gives the mean, the same for {0, 2} and {1, 1} beside a 0.

    The measured gap is 0; and if that were told wrongly, the readout still notices.
    """
    grid, mean = unit_grid(3, 3), GridMapping(None, 2, 0.0)
    assert measure_gap(grid, mean, grid.all_sequences()) == 0
    if lie:
        told = replace(mean, gap=0.01)
        monkeypatch.setattr(construction, "choose_mapping", lambda _grid, _sequences: told)
    else:
        monkeypatch.setattr(mappings, "candidates", lambda _grid: iter([mean]))
    with pytest.raises(PrecisionError, match="same id in float64" if lie else "too little"):
        approximate("spread", grid=3, n=3, samples=256)
