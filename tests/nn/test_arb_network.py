"""The network in Arb against eq. 2 to 5 and 20 in mpmath, and against its own forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from flint import arb, ctx
from hypothesis import given
from mpmath import mp, mpf

import dense_truth
from certification import judge
from rankone.nn import Model
from rankone.nn.arb_network import in_balls

IDS = [0, 1, 0, 2, 5, 1, 0]  # with repeats: ties for hardmax, where there are no positions


@pytest.fixture(autouse=True)
def enough_digits() -> Iterator[None]:
    with judge.digits(), ctx.workdps(judge.DIGITS):
        yield


def assert_holds(ball: arb, number: mpf) -> None:
    """The ball is small, and the number lies in it up to the rounding of mpmath."""
    small = arb(10) ** (20 - judge.DIGITS) * (1 + abs(ball.mid()))
    assert ball.rad() < small
    assert abs(ball - arb(mp.nstr(number, judge.DIGITS))) < small


def check(model: Model, ids: list[int]) -> None:
    network = in_balls(model.network)
    context_ids, features = judge.Literal(model.network)(ids)
    for k in range(len(ids)):
        found = network.context_id(ids, k), network.features(ids, k)
        for balls, numbers in zip(found, (context_ids[k], features[k]), strict=True):
            for ball, number in zip(balls, numbers, strict=True):
                assert_holds(ball, number)


ATTENTION = [
    {"attention": "rank1"},
    {"attention": "softmax"},
    {"attention": "softmax", "heads": 3, "head_size": 2},
    {"attention": "hardmax", "head_size": 2},
    {"attention": "hardmax", "heads": 2},
]
SETTINGS = [
    {"positions": positions, "causal": causal, "feedforward": feedforward}
    for positions in (0, len(IDS))
    for causal in (False, True)
    for feedforward in ("dense", "rank1")
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("attention", ATTENTION, ids=str)
def test_equals_the_equations(attention: dict[str, Any], settings: dict[str, Any]) -> None:
    check(judge.random_model(1, **settings, **attention), IDS)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("attention", ATTENTION[:3], ids=str)
def test_equals_the_equations_with_two_blocks(
    attention: dict[str, Any], settings: dict[str, Any]
) -> None:
    check(judge.random_model(1, depth=2, **settings, **attention), IDS)


def test_equals_the_equations_with_two_blocks_of_hardmax() -> None:
    check(judge.random_model(1, depth=2, attention="hardmax", positions=len(IDS)), IDS)


@given(judge.shapes())
def test_is_close_to_the_forward_pass(shape: dict[str, Any]) -> None:
    ids, model = [0, 1, 2, 5, 4], judge.random_model(**shape)
    network = in_balls(model.network)
    found = [[float(x) for x in network.features(ids, k)] for k in range(len(ids))]
    run = model.network.features(torch.tensor([ids]))[0]
    dense_truth.assert_close(
        torch.tensor(found, dtype=torch.float64), run, model.network.table.dtype
    )


def test_hardmax_shares_equally_among_equal_scores() -> None:
    """Key 0 for all: the mean of all values; and for the word that stands twice, of the two."""
    model = judge.random_model(2, attention="hardmax", dim=2)
    with torch.no_grad():
        model.network.blocks[0].attention.key.zero_()
    check(model, [0, 1, 2])
    average = in_balls(model.network).context_averages([0, 1, 2], 0)[0][0]
    value = model.network.blocks[0].attention.value[0, 0]
    exact = [[mpf(x) for x in row] for row in model.network.table[:3].tolist()]
    mean = sum((judge.dot([mpf(v) for v in value.tolist()], row) for row in exact), mpf(0)) / 3
    assert_holds(average, mean)


def test_hardmax_is_unknown_where_scores_cannot_be_told_apart() -> None:
    """Words 1 and 1 + 2^-50: nothing may be said of them at 20 bits, all is known at 500."""
    model = judge.random_model(0, attention="hardmax", dim=1)
    with torch.no_grad():
        model.network.table[0], model.network.table[1] = 1.0, 1.0 + 2.0**-50
        for name, value in (("key", 1.0), ("query", 1.0), ("value", 1.0)):
            getattr(model.network.blocks[0].attention, name).fill_(value)
    with ctx.workprec(20):
        assert not in_balls(model.network).context_averages([0, 1], 0)[0][0].is_finite()
    check(model, [0, 1])


def test_a_layer_without_hidden_units() -> None:
    check(judge.random_model(3, hidden=0, feedforward="rank1"), IDS)


def test_a_dense_layer_without_hidden_units() -> None:
    check(judge.random_model(3, hidden=0, feedforward="dense"), IDS)


def test_scores_beyond_every_float() -> None:
    """Token 300 asks itself, -300 and 1: scores 90000, -90000 and 300."""
    model = judge.plain_model([[300.0], [-300.0], [1.0]], v1=[1.0], v2=[1.0], output=[1.0])
    with ctx.workdps(50_000):
        average = in_balls(model.network).context_averages([0, 1, 2], 0)[0][0]
        assert abs((300 - average) / (299 * arb(-89_700).exp()) - 1) < 1e-9


@pytest.mark.parametrize("bits", [30, 53, 200])
def test_balls_of_low_precision_hold_the_truth(bits: int) -> None:
    model = judge.random_model(5, attention="softmax", heads=2, depth=2, positions=9)
    _, features = judge.Literal(model.network)(IDS)
    with ctx.workprec(bits):
        found = [in_balls(model.network).features(IDS, k) for k in range(len(IDS))]
    for balls, numbers in zip(found, features, strict=True):
        for ball, number in zip(balls, numbers, strict=True):
            assert ball.contains(arb(mp.nstr(number, judge.DIGITS)))
