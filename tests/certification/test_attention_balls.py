"""Softmax and hardmax averages in float64 balls: the exact average, by Arb, lies in the ball."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from rankone.arrays import Floats, Ints
from rankone.certification import attention_balls
from rankone.certification.attention_balls import attend, by_blocks, by_segments, hardest
from rankone.certification.ball_arithmetic import Balls, U, exp
from rankone.nn import Rank1Attention, SelfAttention

PLACES = [Fraction(k, 2) for k in (-2, -1, 0, 1, 2)]  # from one end of a ball to the other
Matrix = list[list[arb]]  # (coordinates, tokens)


class Table(NamedTuple):
    """Balls, and numbers in them."""

    balls: Balls
    numbers: list[list[Fraction]]

    @property
    def exact(self) -> Matrix:
        return [[arb(fmpq(x.numerator, x.denominator)) for x in row] for row in self.numbers]


class Problem(NamedTuple):
    key: Table
    query: Table
    value: Table
    offsets: Ints
    causal: bool


def table(rng: np.random.Generator, mid: Floats, slack: float, same: bool = False) -> Table:
    """Radii of about `slack` times the numbers; where the exact number is in each, is drawn.

    Numbers at the far ends of their balls make the most of the error, so there are many.
    """
    rad = np.abs(mid) * slack * rng.random(mid.shape)
    places = rng.choice([0, 0, 4, 4, 1, 2, 3], mid.shape)
    if same:  # all of them off to the same side
        places = np.full(mid.shape, rng.choice([0, 4]))
    numbers = [
        [Fraction(m) + PLACES[place] * Fraction(r) for m, r, place in zip(*row, strict=True)]
        for row in zip(mid.tolist(), rad.tolist(), places.tolist(), strict=True)
    ]
    return Table(Balls(mid, rad), numbers)


BITS = 1000
SCALES = [1e-8, 1e-2, 1.0, 1.0, 1.0, 5.0, 30.0, 1e3, 1e6]
SLACKS = [0.0, 0.0, U, 1e-12, 1e-6, 1e-2]
seeds = st.integers(0, 10**9)


def draw_problem(seed: int, *, longest: int = 12, size: int | None = None) -> Problem:
    """Scores from 10^-16 to 10^12, keys and values with common offsets or one giant among them."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 1 + rng.choice([1, 3, longest]), rng.integers(1, 4))
    offsets = np.cumsum([0, *lengths])
    n, s = int(offsets[-1]), int(rng.integers(1, 4)) if size is None else size
    key, query, value = (
        rng.standard_normal((rows, n)) * rng.choice(SCALES) for rows in (s, s, size or 2)
    )
    for numbers in (key, value):
        numbers += rng.choice([0.0, 0.0, 1.0, 1e8, -1e8]) * np.abs(numbers).max()
        if rng.random() < 0.2:
            numbers[:, rng.integers(n)] *= 1e5
    if rng.random() < 0.2:
        key[:, :] = key[:, :1] * (1 + U * rng.integers(-3, 4, (s, n)))
    slack, same = rng.choice(SLACKS), bool(rng.integers(2))
    return Problem(
        table(rng, key, slack, same),
        table(rng, query, slack, same),
        table(rng, value, rng.choice(SLACKS), same),
        offsets,
        bool(rng.integers(2)),
    )


def average(query: list[arb], keys: list[list[arb]], values: list[list[arb]]) -> list[arb]:
    scores = [sum((q * k for q, k in zip(query, key, strict=True)), arb(0)) for key in keys]
    weights = [score.exp() for score in scores]
    columns = zip(*values, strict=True)
    return [
        sum((w * v for w, v in zip(weights, column, strict=True)), arb(0)) / sum(weights, arb(0))
        for column in columns
    ]


def largest(query: list[arb], keys: list[list[arb]], values: list[list[arb]]) -> list[arb]:
    scores = [sum((q * k for q, k in zip(query, key, strict=True)), arb(0)) for key in keys]
    best = [i for i, score in enumerate(scores) if not any(other > score for other in scores)]
    columns = zip(*values, strict=True)
    return [sum((column[i] for i in best), arb(0)) / len(best) for column in columns]


def errors(found: Balls, problem: Problem, way: Any = average) -> list[float]:
    """|exact - mid| / rad of every average that is known at all."""
    ratios = []
    with ctx.workprec(BITS):
        key, query, value = (
            list(zip(*t.exact, strict=True)) for t in (problem.key, problem.query, problem.value)
        )
        for a, b in pairwise(problem.offsets.tolist()):
            for k in range(a, b):
                end = k + 1 if problem.causal else b
                exact = way(query[k], key[a:end], value[a:end])
                for row, number in enumerate(exact):
                    mid, rad = float(found.mid[row, k]), float(found.rad[row, k])
                    if rad < inf:
                        off = abs(number - arb(mid))
                        assert off.rad() <= 1e-9 * rad
                        ratios.append(float((off / arb(rad)).upper()) if rad else 2.0 * (off != 0))
    return ratios


def segments(problem: Problem) -> tuple[Balls, Problem]:
    """The same with one query for all, the first, made small enough for `by_segments`; in every
    other problem the values are the keys."""
    rng = np.random.default_rng(0)
    x, y = problem.key.balls.mid, float(problem.query.balls.mid[0, 0])
    if abs(y) * np.ptp(x) > attention_balls.SAFE_SPREAD:
        y = float(np.sign(y) * attention_balls.SAFE_SPREAD / np.ptp(x) * 0.99)
    slack = float((problem.query.balls.rad / np.abs(problem.query.balls.mid)).max())
    query = table(rng, np.full_like(x, y), slack)
    one = problem._replace(query=query)
    if len(x[0]) % 2:
        one = one._replace(value=problem.key)
    balls = query.balls
    found = by_segments(
        y, float(balls.rad.max()), one.key.balls, one.value.balls, one.offsets, one.causal
    )
    return found, one


WAYS = {"segments": 1, "blocks": None, "hardest": None}


def solve(name: str, seed: int, **sizes: Any) -> list[float]:
    problem = draw_problem(seed, size=WAYS[name], **sizes)
    if name == "segments":
        return errors(*segments(problem))
    tables = (t.balls for t in (problem.key, problem.query, problem.value))
    if name == "blocks":
        return errors(by_blocks(*tables, problem.offsets, problem.causal), problem)
    return errors(hardest(*tables, problem.offsets, problem.causal), problem, largest)


@pytest.mark.parametrize("name", WAYS)
@given(seed=seeds)
def test_the_exact_average_lies_in_the_ball(name: str, seed: int) -> None:
    assert max(solve(name, seed), default=0.0) <= 1


@pytest.mark.parametrize("name", WAYS)
def test_long_sentences_beside_short_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_balls, "SCORES_AT_ONCE", 5000)  # so that tables are cut
    assert max(solve(name, 1, longest=150)) <= 1


@pytest.mark.parametrize("name", ["segments", "blocks"])
def test_averages_are_known_and_known_well(name: str) -> None:
    """Of scores about 1, 14 digits; otherwise a ball of everything would do."""
    rng = np.random.default_rng(0)
    tables = [table(rng, rng.standard_normal((1, 40)), 0.0) for _ in range(3)]
    problem = Problem(*tables, np.array([0, 9, 10, 40]), False)
    if name == "segments":
        found, _ = segments(problem)
    else:
        found = by_blocks(*(t.balls for t in tables), problem.offsets, False)
    assert found.rad.max() < 1e-13


def test_a_hardest_score_is_found_where_there_is_one() -> None:
    rng = np.random.default_rng(0)
    tables = [table(rng, rng.standard_normal((2, 40)), 0.0) for _ in range(3)]
    found = hardest(*(t.balls for t in tables), np.array([0, 9, 10, 40]), False)
    assert (found.rad == 0).all()


@pytest.mark.parametrize("causal", [False, True])
def test_hardest_scores_a_row_at_a_time(monkeypatch: pytest.MonkeyPatch, causal: bool) -> None:
    """A long sentence has no room for the table of all its scores."""
    rng = np.random.default_rng(0)
    balls = [table(rng, rng.standard_normal((2, 28)), U).balls for _ in range(3)]
    whole = hardest(*balls, np.array([0, 4, 28]), causal)
    sizes = []
    monkeypatch.setattr(attention_balls, "SCORES_AT_ONCE", 30)
    monkeypatch.setattr(attention_balls.np, "put_along_axis", _counting(sizes))
    found = hardest(*balls, np.array([0, 4, 28]), causal)
    assert (found.mid == whole.mid).all()
    assert (found.rad == whole.rad).all()
    assert (max(sizes), sum(sizes)) == (24, 4 * 4 + 24 * 24)


def _counting(sizes: list[int]) -> Callable[..., None]:
    real = np.put_along_axis
    return lambda t, *rest: (sizes.append(t.size), real(t, *rest))[1]


def test_hardest_does_not_decide_ties() -> None:
    """Equal keys, keys that differ by less than is known of them, queries of 0."""
    zeros = np.zeros((1, 2))
    key, value = np.array([[1.0, 1.0]]), Balls(np.array([[5.0, 7.0]]), zeros)
    for keys, queries in (
        (Balls(key, zeros), Balls(key, zeros)),
        (Balls(np.array([[1.0, 1.0 + 1e-9]]), zeros + 1e-9), Balls(key, zeros)),
        (Balls(np.array([[1.0, 2.0]]), zeros), Balls(zeros, zeros)),
        (Balls(np.array([[1.0, 2.0]]), zeros), Balls(zeros + 1e-9, zeros + 1e-9)),
    ):
        assert np.isinf(hardest(keys, queries, value, np.array([0, 2]), False).rad).all()


@pytest.mark.parametrize("bad", [inf, -inf, nan])
@pytest.mark.parametrize("part", ["key", "query", "value", "key radius", "query radius"])
@pytest.mark.parametrize("way", [by_blocks, hardest])
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
def test_what_is_not_known_stays_unknown(way: Any, part: str, bad: float) -> None:
    """Nothing finite may be said of a sentence with a token of which nothing is known.

    But a softmax average of known values is no further from the middle than the values are.
    """
    rng = np.random.default_rng(0)
    tables = {name: Balls(rng.standard_normal((2, 5)), np.zeros((2, 5))) for name in NAMES}
    name, radius = part.split()[0], part.endswith("radius")
    target = tables[name].rad if radius else tables[name].mid
    target[1, 2] = abs(bad) if radius else bad
    if not radius:
        tables[name].rad[1, 2] = inf
    found = way(*(tables[name] for name in NAMES), np.array([0, 3, 5]), False)
    known = np.isfinite(found.rad) & np.isfinite(found.mid)
    assert known[:, 3:].all()
    who = slice(2, 3) if name == "query" else slice(0, 3)
    if part == "value":
        assert way is hardest or not known[1, :3].any()
    elif way is hardest:
        assert not known[:, who].any()
    else:
        spread = np.ptp(tables["value"].mid[:, :3], axis=1)[:, None]
        assert (~known[:, who] | (found.rad[:, who] >= spread / 2)).all()


NAMES = ("key", "query", "value")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("way", [by_blocks, hardest])
def test_scores_that_overflow_are_not_decided(way: Any, causal: bool) -> None:
    """Scores 1e310 - 1e310 = 0 and 1e295: a fused sum takes the first for infinite.

    The second token sees both and its average is 2, the value of the larger score.
    """
    zeros = np.zeros((2, 2))
    key = Balls(np.array([[1e155, 1e140], [1e155, 0.0]]), zeros)
    query = Balls(np.array([[1e155, 1e155], [-1e155, -1e155]]), zeros)
    value = Balls(np.array([[1.0, 2.0]]), zeros[:1])
    with np.errstate(over="ignore", invalid="ignore"):
        found = way(key, query, value, np.array([0, 2]), causal)
    mid, rad = float(found.mid[0, 1]), float(found.rad[0, 1])
    assert not rad < inf or abs(mid - 2) <= rad


def test_weights_that_underflow() -> None:
    """Keys 6e-61 below the largest one, a query of 1e63: weight times key is below all normal."""
    x = np.array([[0.0, -6e-61, -5.9e-61, -5.95e-61]])
    rng = np.random.default_rng(0)
    key, query = table(rng, x, 0.0), table(rng, np.full_like(x, 1e63), 0.0)
    problem = Problem(key, query, key, np.array([0, 1, 4]), False)
    found = by_segments(1e63, 0.0, key.balls, key.balls, problem.offsets, False)
    assert max(errors(found, problem)) <= 1


# Layers


@given(seeds, st.booleans())
def test_rank1_layers(seed: int, constant: bool) -> None:
    """Eq. 20 without the skip; where all queries are one, by the way for that."""
    rng = np.random.default_rng(seed)
    v1, v2, output = rng.standard_normal((3, 3))
    if constant:
        v2[1:] = 0.0
    layer = Rank1Attention.assemble(*map(torch.from_numpy, (v1, v2, output)))
    check_layer(rng, layer, [(v1[None], v2[None], v1[None], output[:, None])], constant)


@given(seeds, st.integers(1, 3), st.integers(1, 3), st.sampled_from(["softmax", "hardmax"]))
def test_general_layers(seed: int, heads: int, size: int, kind: Any) -> None:
    """Eq. 2 and 5 without the skip."""
    rng = np.random.default_rng(seed)
    layer = SelfAttention(3, heads=heads, head_size=size, kind=kind, dtype=torch.float64)
    for p in layer.parameters():
        p.data = torch.from_numpy(rng.standard_normal(tuple(p.shape)))
    names = ("key", "query", "value", "output")
    weights = [getattr(layer, name).detach().numpy() for name in names]
    check_layer(rng, layer, list(zip(*weights, strict=True)), False)


def check_layer(
    rng: np.random.Generator,
    layer: Rank1Attention | SelfAttention,
    heads: list[tuple[Floats, Floats, Floats, Floats]],
    constant: bool,
) -> None:
    offsets, causal = np.array([0, 1, 4, 9]), bool(rng.integers(2))
    mid = rng.standard_normal((3, 9)) * rng.choice([0.1, 1.0, 10.0])
    if constant:
        mid[0] = 1.25
    z = table(rng, mid, rng.choice([0.0, 1e-12]))
    found = attend(layer, z.balls, offsets, causal)
    way = largest if isinstance(layer, SelfAttention) and layer.kind == "hardmax" else average
    with ctx.workprec(BITS):
        total = [[arb(0)] * 9 for _ in range(3)]
        for WK, WQ, WV, WO in heads:
            key, query, value = (product(weight, z.exact) for weight in (WK, WQ, WV))
            rows: list[list[arb]] = []
            for a, b in pairwise(offsets.tolist()):
                for k in range(a, b):
                    end = k + 1 if causal else b
                    seen = slice(a, end)
                    columns = [list(zip(*m, strict=True)) for m in (query, key, value)]
                    rows.append(way(columns[0][k], columns[1][seen], columns[2][seen]))
            added = product(WO, [list(row) for row in zip(*rows, strict=True)])
            both = zip(total, added, strict=True)
            total = [[a + b for a, b in zip(*pair, strict=True)] for pair in both]
        for i in range(3):
            for k in range(9):
                if found.rad[i, k] < inf:
                    assert abs(total[i][k] - arb(float(found.mid[i, k]))) <= float(found.rad[i, k])


def product(weight: Floats, columns: Matrix) -> Matrix:
    return [
        [
            sum((arb(w) * row[k] for w, row in zip(line, columns, strict=True)), arb(0))
            for k in range(len(columns[0]))
        ]
        for line in weight.tolist()
    ]


def test_one_query_for_all_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The radius of its query is the largest that any token has; a token alone needs none."""
    layer = Rank1Attention.assemble(*map(torch.tensor, ([1.0, 0.0], [0.0, 1.0], [1.0, 0.0])))
    mid = np.array([[-1.0, 1.0, 0.0, 0.0, 1.0], [0.5] * 5])
    z = Balls(mid, np.array([[0.0] * 5, [0.0, 1e-3, 0.0, 0.0, 0.0]]))
    monkeypatch.setattr(attention_balls, "by_blocks", None)
    found = attend(layer.double(), z, np.array([0, 2, 3, 5]), False)
    assert found.rad[0] == pytest.approx([4e-3, 4e-3, 0.0, 1e-3, 1e-3], rel=1e-9, abs=1e-200)


def test_one_token_that_sees_itself() -> None:
    layer = Rank1Attention.assemble(*map(torch.tensor, ([1.0, 0.0], [0.0, 1.0], [2.0, 0.0])))
    z = Balls(np.array([[3.0], [0.5]]), np.zeros((2, 1)))
    found = attend(layer.double(), z, np.array([0, 1]), False)
    assert found.mid.tolist() == [[6.0], [0.0]]


@pytest.mark.parametrize(("spread", "linear"), [(60.0, True), (-60.0, True), (60.5, False)])
def test_scores_up_to_sixty_apart_take_linear_time(
    monkeypatch: pytest.MonkeyPatch, spread: float, linear: bool
) -> None:
    key, called = Balls(np.array([[-0.5, 0.5]]), np.zeros((1, 2))), []
    monkeypatch.setattr(attention_balls, "by_blocks", lambda *_: called.append(1) or key)
    by_segments(spread, 0.0, key, key, np.array([0, 2]), False)
    assert bool(called) is not linear


@pytest.mark.parametrize("causal", [False, True])
def test_a_sentence_alone_and_among_others(causal: bool) -> None:
    """To the last bit, wherever its scores lie, and whatever those of the others do."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 1, 4, 9, 14])
    scale = np.repeat([1.0, 90.0, 1e-3, 1.0], np.diff(offsets))
    key, value = (Balls(rng.normal(size=(1, 14)) * scale, np.full((1, 14), U)) for _ in range(2))
    whole = by_segments(1.5, U, key, value, offsets, causal)
    for a, b in pairwise(offsets.tolist()):
        alone = by_segments(1.5, U, key[:, a:b], value[:, a:b], np.array([0, b - a]), causal)
        assert np.array_equal(whole.mid[:, a:b], alone.mid)
        assert np.array_equal(whole.rad[:, a:b], alone.rad)


@pytest.mark.parametrize(("cells", "tables"), [(1 << 20, 2), (64, 5), (10, 22)])
def test_tables_of_scores(monkeypatch: pytest.MonkeyPatch, cells: int, tables: int) -> None:
    """Sentences of one length at once, as far as there is room; of long ones a row at a time."""
    calls = []
    monkeypatch.setattr(attention_balls, "SCORES_AT_ONCE", cells)
    monkeypatch.setattr(attention_balls, "exp", lambda t: calls.append(t.size) or exp(t))
    rng = np.random.default_rng(0)
    offsets = np.array([0, 4, 8, 12, 28])
    tables_ = [table(rng, rng.standard_normal((2, 28)), U) for _ in range(3)]
    problem = Problem(*tables_, offsets, True)
    found = by_blocks(*(t.balls for t in tables_), offsets, True)
    assert max(errors(found, problem)) <= 1
    assert len(calls) == tables
    assert sum(calls) == 3 * 16 + 256


# Where bounds are attained: one source of error at a time, which uses its term up.

EDGE = 2.0**-20  # a radius, or how far apart scores are


def two(
    keys: tuple[float, float],
    query: float,
    *,
    key_off: tuple[float, float] = (0.0, 0.0),
    query_off: float = 0.0,
    value_off: float = 0.0,
) -> Problem:
    """A sentence of two tokens with values -1 and 1; the exact numbers are off by a whole radius.

    The second token's key and value are off upwards, the first one's key downwards.
    """
    rows = {
        "key": (keys, key_off),
        "query": ((query, query), (query_off, query_off)),
        "value": ((-1.0, 1.0), (value_off, value_off)),
    }
    tables = []
    for mid, off in rows.values():
        balls = Balls(np.array([mid]), np.abs(np.array([off])))
        numbers = [[Fraction(m) + Fraction(r) for m, r in zip(mid, off, strict=True)]]
        tables.append(Table(balls, numbers))
    return Problem(*tables, np.array([0, 2]), False)


# What moves the average of -1 and 1 at equal weights, and how much of the radius it then uses.
ATTAINED = {
    "a query radius and no key radius": two((-1.0, 1.0), 0.0, query_off=EDGE),
    "a query radius, downwards": two((-1.0, 1.0), 0.0, query_off=-EDGE),
    "key radii and no query radius": two((0.0, 0.0), 1.0, key_off=(-EDGE, EDGE)),
    "key radii, downwards": two((0.0, 0.0), 1.0, key_off=(EDGE, -EDGE)),
    "both": two((-EDGE, EDGE), EDGE, key_off=(-EDGE, EDGE), query_off=EDGE),
    "a value radius": two((0.0, 0.0), 0.0, value_off=EDGE),
    "radii of thousands": two((-1.0, 1.0), 0.0, query_off=5e3),
}


@pytest.mark.parametrize("name", ATTAINED)
def test_blocks_at_their_bound(name: str) -> None:
    problem = ATTAINED[name]
    tables = (t.balls for t in (problem.key, problem.query, problem.value))
    found = by_blocks(*tables, problem.offsets, False)
    used = max(errors(found, problem))
    assert (0.499 if "thousands" in name else 0.999) < used <= 1


@pytest.mark.parametrize("name", ATTAINED)
def test_segments_near_their_bound(name: str) -> None:
    """Numbers are relative to the extreme key there: a quarter of the radius, or a half, is used.

    Where the value is the key, its radius counts twice over.
    """
    problem = ATTAINED[name]._replace(value=ATTAINED[name].key)
    y, y_rad = problem.query.balls.mid[0, 0], problem.query.balls.rad[0, 0]
    found = by_segments(
        float(y), float(y_rad), problem.key.balls, problem.key.balls, problem.offsets, False
    )
    assert max(errors(found, problem)) <= 1
    if name == "a query radius and no key radius":
        assert max(errors(found, problem)) == pytest.approx(0.25, rel=1e-5)


def test_the_rounding_of_scores_moves_averages() -> None:
    """Scores of 600 and -600 whose sums are rounded: with nothing for that, balls are too small."""
    rng = np.random.default_rng(0)
    used = []
    for _ in range(300):
        key = rng.uniform(-1, 1, (2, 2)) * 1e4
        query = np.repeat(rng.uniform(0.5, 1, (2, 1)) * 1e4, 2, axis=1)
        query[1] = -query[0] * (key[0, 0] - key[0, 1]) / (key[1, 0] - key[1, 1])  # a near tie
        value = np.array([[-1.0, 1.0]])
        tables = [table(rng, mid, 0.0) for mid in (key, query, value)]
        problem = Problem(*tables, np.array([0, 2]), False)
        found = by_blocks(*(t.balls for t in tables), problem.offsets, False)
        used += errors(found, problem)
    assert 0.1 < max(used) <= 1


# All terms of a radius at once: with radii of some units in the last place, each of them matters.


def derived_spread(tau: Fraction) -> Fraction:
    return min(tau + 4 * Fraction(U), Fraction(2))


def derived_gamma(n: int) -> Fraction:
    return n * Fraction(U) / (1 - n * Fraction(U))


def derived_blocks(problem: Problem, k: int, a: int, b: int, mid: list[float]) -> list[Fraction]:
    """The radius of the average of token k in the sentence a:b, as the docstring derives it."""
    u = Fraction(U)
    key, query, value = (t.balls for t in (problem.key, problem.query, problem.value))
    tau, scores = Fraction(0), [Fraction(0)] * (b - a)
    for row in range(len(key.mid)):
        numbers = [Fraction(x) for x in key.mid[row, a:b].tolist()]
        middle = Fraction(float((key.mid[row, a:b].max() + key.mid[row, a:b].min()) / 2))
        sizes = [abs(x - middle) for x in numbers]
        K = max(sizes)
        R = max(
            Fraction(r) + u * size
            for r, size in zip(key.rad[row, a:b].tolist(), sizes, strict=True)
        )
        q, q_rad = (Fraction(float(x[row, k])) for x in (query.mid, query.rad))
        tau += abs(q) * (R + derived_gamma(len(key.mid)) * K) + q_rad * (K + R)
        for i, x in enumerate(numbers):
            scores[i] += q * (x - middle)
    seen = scores[: k - a + 1] if problem.causal else scores
    tau += u * min(max(seen) - min(scores), Fraction(700))
    radii = []
    for row, found in enumerate(mid):
        inside = value.mid[row, a:b]
        centre = float((inside.max() + inside.min()) / 2)
        D = max(abs(Fraction(x) - Fraction(centre)) for x in inside.tolist())
        Rv = Fraction(float(value.rad[row, a:b].max()))
        spread = derived_spread(tau) + derived_gamma(2 * (b - a) + 1)
        radii.append(spread * D + Rv + u * abs(Fraction(found)))
    return radii


def derived_segments(problem: Problem, _: int, a: int, b: int, mid: list[float]) -> list[Fraction]:
    u, x, v = Fraction(U), problem.key.balls.mid[0], problem.value.balls.mid[0]
    query = problem.query.balls
    y, y_rad = Fraction(float(query.mid[0, 0])), Fraction(float(query.rad[0, 0]))
    c, d = (Fraction(float(w[a:b].max() if y >= 0 else w[a:b].min())) for w in (x, v))
    K, D = (max(abs(Fraction(z) - e) for z in w[a:b].tolist()) for w, e in ((x, c), (v, d)))
    R, S = (Fraction(float(t.balls.rad[0, a:b].max())) for t in (problem.key, problem.value))
    tau = abs(y) * (R + u * K) + y_rad * (K + R) + u * abs(y) * K
    spread = derived_spread(tau) + derived_gamma(2 * (b - a) + 1)
    return [spread * D + S + u * abs(Fraction(mid[0]))]


@pytest.mark.parametrize("scale", [1.0, -1.0, 1e3, -1e3, 1e-4, -1e-4])
@pytest.mark.parametrize("slack", [4 * U, 1e-5, 0.5])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["segments", "segments of values", "blocks"])
def test_radii_are_as_derived(name: str, causal: bool, slack: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    offsets = np.array([0, 1, 3, 7, 11])
    size = 3 if name == "blocks" else 1
    key, query, value = (rng.standard_normal((rows, 11)) for rows in (size, size, size))
    if name != "blocks":
        query[:] = np.clip(scale, -20.0, 20.0)
    else:
        query *= scale
    value = value + 1e3 * (name == "blocks")
    problem = Problem(*(table(rng, x, slack) for x in (key, query, value)), offsets, causal)
    if name != "blocks":
        if name == "segments":
            problem = problem._replace(value=problem.key)
        problem.query.balls.rad[:] = problem.query.balls.rad.max()
        y, y_rad = problem.query.balls.mid[0, 0], problem.query.balls.rad[0, 0]
        found = by_segments(
            float(y), float(y_rad), problem.key.balls, problem.value.balls, offsets, causal
        )
        derived = derived_segments
    else:
        tables = (t.balls for t in (problem.key, problem.query, problem.value))
        found, derived = by_blocks(*tables, offsets, causal), derived_blocks
    for a, b in pairwise(offsets.tolist()):
        for k in range(a, b):
            exact = derived(problem, k, a, b, found.mid[:, k].tolist())
            assert found.rad[:, k] == pytest.approx(list(map(float, exact)), rel=1e-9, abs=0)


# Hardmax at near ties: twice the slip is needed, and twice is enough.

HARD = {  # keys, query, what is off: the exact score of the second token is the larger one
    "key radii": ([[1.0 + EDGE, 1.0]], [[1.0]], [[0.51 * EDGE] * 2], [[0.0]]),
    "a query radius": ([[-1.0, 1.0]], [[-EDGE]], [[0.0] * 2], [[1.01 * EDGE]]),
    "in one of two coordinates": (
        [[1.0, 1.0], [1.0 + EDGE, 1.0]],
        [[1.0], [1.0]],
        [[0.0] * 2, [0.51 * EDGE] * 2],
        [[0.0], [0.0]],
    ),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("swapped", [False, True])
def test_hardmax_between_one_slip_and_two(name: str, swapped: bool) -> None:
    """The midpoints' winner leads by less than two slips and is not the winner at the corners."""
    key, query, key_rad, query_rad = (np.array(x) for x in HARD[name])
    turn = slice(None, None, -1 if swapped else 1)
    keys = Balls(key[:, turn].copy(), key_rad[:, turn].copy())
    queries = Balls(np.repeat(query, 2, axis=1), np.repeat(query_rad, 2, axis=1))
    value = Balls(np.array([[5.0, 7.0]]), np.array([[1e-3, 2e-3]]))
    found = hardest(keys, queries, value, np.array([0, 2]), False)
    assert np.isinf(found.rad).all()
    low, high = Fraction(0), Fraction(0)  # scores of the winner and the other one at the corners
    winner = int((query.T @ keys.mid)[0].argmax())
    for row in range(len(key)):
        q = Fraction(query[row, 0]) + Fraction(query_rad[row, 0])
        x, r = keys.mid[row], keys.rad[row]
        low += q * (Fraction(x[winner]) - Fraction(r[winner]))
        high += q * (Fraction(x[1 - winner]) + Fraction(r[1 - winner]))
    assert low < high
    less = Balls(keys.mid, keys.rad * 0.9), Balls(queries.mid, queries.rad * 0.9)
    found = hardest(*less, value, np.array([0, 2]), False)
    assert found.mid.tolist() == [[value.mid[0, winner]] * 2]
    assert found.rad.tolist() == [[value.rad[0, winner]] * 2]


@pytest.mark.parametrize(("units", "sure"), [(2, False), (4, False), (6, True), (8, True)])
def test_hardmax_of_rounded_scores(units: int, sure: bool) -> None:
    """Scores 1 and 1 + lead are sums of two products: each may be off by 2 u."""
    key = np.array([[1.0, 1.0, 0.0], [0.0, units * U, 0.0]])
    zeros, value = np.zeros((2, 3)), np.array([[5.0, 7.0, 9.0]])
    found = hardest(
        Balls(key, zeros),
        Balls(zeros + 1.0, zeros),
        Balls(value, zeros[:1]),
        np.array([0, 3]),
        False,
    )
    assert np.isfinite(found.rad).tolist() == [[sure] * 3]


def test_hardmax_of_a_sum_that_is_rounded_down() -> None:
    """Sixty numbers that get lost one by one, beside one that is in between."""
    key = np.full((65, 2), 0.4 * U)
    key[0], key[1:, 1] = (1.0, 1.0 + 22 * U), 0.0
    exact = [sum(map(Fraction, column)) for column in key.T.tolist()]
    zeros = np.zeros((65, 2))
    found = hardest(
        Balls(key, zeros),
        Balls(zeros + 1.0, zeros),
        Balls(key[:1], zeros[:1]),
        np.array([0, 2]),
        False,
    )
    assert exact[0] > exact[1]
    assert (np.isinf(found.rad) | (found.mid == 1.0)).all()
