"""Exact networks to float64 and back: the same function, or a refusal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

import exact_truth
import networks
from certification import judge
from exact_truth import Column, Real, random_network
from rankone.errors import PrecisionError
from rankone.nn import TokenClassifier
from rankone.nn.exact import ExactBlock, ExactFeedForward, ExactNetwork, Sparse
from rankone.nn.exact.floats import from_float, to_float64
from rankone.nn.exact.numbers import exact, power

F = Fraction
DYADIC = [F(1), F(-1), F(3, 2), F(-5, 4), F(1, 1 << 60)]
Shape = dict[str, Any]


def same(found: Column, true: Column) -> bool:
    """Fractions exactly, decimals up to the last digits."""
    return all(close(x, y) for x, y in zip(found, true, strict=True))


def close(x: Real, y: Real) -> bool:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x == y
    with mp.workdps(120):
        a, b = exact_truth.real(x), exact_truth.real(y)
        return bool(abs(a - b) <= mpf(10) ** -90 * (1 + abs(a)))


def literal(network: TokenClassifier, ids: list[int]) -> list[Column]:
    """Logits of the float network as the judge of certificates computes them."""
    with judge.digits():
        found = judge.Literal(network)
        return [found.logits(z) for z in found(ids)[1]]


one_kind = st.sampled_from([("softmax",), ("hardmax",)])


@given(st.data(), exact_truth.sentences())
def test_the_float64_network_has_the_same_numbers(
    data: st.DataObject, sentences: list[tuple[int, ...]]
) -> None:
    """Read back, it is the same function; judged on its own, too."""
    kinds = data.draw(one_kind)
    shape = data.draw(exact_truth.shapes(kinds=kinds, activations=("relu",), choices=DYADIC))
    network = random_network(**shape)
    model = to_float64(network)
    back = from_float(model)
    assert all(p.dtype == torch.float64 for p in model.parameters())
    assert back.causal == network.causal
    assert back.table.rows == (*network.table.rows, ())  # unknown words are 0
    for sentence in sentences:
        true = exact_truth.logits(network, sentence, dps=100)
        assert all(map(same, exact_truth.logits(back, sentence, dps=100), true))
        assert all(map(same, literal(model, list(sentence)), true))


@given(networks.shapes, networks.seeds, st.sampled_from([torch.float32, torch.float64]))
def test_weights_are_taken_as_the_numbers_they_are(
    shape: Any, seed: int, dtype: torch.dtype
) -> None:
    model = networks.model(shape, seed, dtype).network
    found, ids = from_float(model), [0, 3, 8, 3]
    assert found.length == shape.positions
    assert all(map(same, exact_truth.logits(found, ids, dps=100), literal(model, ids)))


def test_layers_that_add_nothing_are_left_out() -> None:
    """Blocks stay, so that their numbers do."""
    model = networks.model(networks.architecture("softmax", "dense", depth=3), 0).network
    with torch.no_grad():
        for i, name in ((0, "output"), (1, "value")):
            getattr(model.blocks[i].attention, name).zero_()
        model.blocks[1].feedforward.weight2.zero_()
        model.blocks[2].feedforward.weight2.zero_()
        model.blocks[2].feedforward.bias2.zero_()
    kept = [(b.attention is not None, b.feedforward is not None) for b in from_float(model).blocks]
    assert kept == [(False, True), (False, True), (True, False)]


def tiny(**changes: Any) -> ExactNetwork:
    network = ExactNetwork(
        Sparse.of([{0: 1}], 2), None, (), Sparse.of([{0: 1}, {1: 1}], 2), (exact(0), exact(1))
    )
    return replace(network, **changes)


def test_a_network_without_layers_has_an_empty_block() -> None:
    model = to_float64(tiny())
    assert (model.shape.depth, model.shape.hidden, model.shape.heads) == (1, 0, 1)
    assert exact_truth.logits(from_float(model), [0, 1]) == [[1, 1], [0, 1]]


HOLDS = [power(1023), power(-1074), exact(2**53 - 1), exact(F(3, 1 << 1074)), exact(1.1)]


@pytest.mark.parametrize("number", HOLDS, ids=str)
def test_what_float64_holds(number: Any) -> None:
    model = to_float64(tiny(bias=(number, -number)))
    assert from_float(model).bias == (number, -number)


LOSES = {
    "a third": F(1, 3),
    "too long": 2**53 + 1,
    "too large": 2**1024,
    "far too large": 10**5000,
    "negative and too large": -(10**5000),
    "too small": F(1, 2**1075),
    "far too small": F(1, 10**5000),
    "between two": F(2**53 + 1, 2**1074),
}


@pytest.mark.parametrize("number", LOSES.values(), ids=LOSES)
@pytest.mark.parametrize("place", ["table", "positions", "head", "bias", "layer"])
def test_what_float64_would_round_is_refused(number: Any, place: str) -> None:
    odd = Sparse.of([{1: number}], 2)
    layer = ExactFeedForward.of([({0: 1}, 0, {1: number})], 2)
    network = {
        "table": tiny(table=odd),
        "positions": tiny(positions=odd),
        "head": tiny(head=Sparse.of([{1: number}, {}], 2)),
        "bias": tiny(bias=(exact(0), exact(number))),
        "layer": tiny(blocks=(ExactBlock(None, layer),)),
    }[place]
    with pytest.raises(PrecisionError, match="float64 cannot hold it"):
        to_float64(network)


def test_mixtures_have_no_float64_model() -> None:
    kinds = random_network(5, kinds=("softmax", "hardmax"), blocks=6, missing=0.0, choices=DYADIC)
    assert {block.attention.kind for block in kinds.blocks if block.attention} == {
        "softmax",
        "hardmax",
    }
    tanh = tiny(blocks=(ExactBlock(None, ExactFeedForward.of([], 2, activation="tanh")),))
    for network in (kinds, tanh):
        with pytest.raises(PrecisionError, match="relu with one kind of attention"):
            to_float64(network)
