"""Equality of context ids: constructed coincidences, and near misses that no float would see."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from flint import ctx
from hypothesis import given
from hypothesis import strategies as st

from certification import judge
from rankone.certification.coincide import coincide
from rankone.nn import Model
from rankone.nn.arb_network import in_balls

# Words a to f are rows 0 to 5; coordinates are those that v1, v2 and the rest see.


def same(model: Model, one: tuple[str, int], other: tuple[str, int]) -> bool | None:
    places = [([judge.WORDS.index(c) for c in text], k) for text, k in (one, other)]
    return coincide(model.network, *places)


def plain(table: list[list[float]], **settings: Any) -> Model:
    given = {"v1": [1.0, 0.0, 0.0], "v2": [0.0, 1.0, 0.0], "output": [0.0, 0.0, 1.0]}
    return judge.plain_model(table, **{**given, **settings})


def test_two_words_with_one_vector() -> None:
    model = plain([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.5, 1.0, 0.0]])
    assert same(model, ("ac", 0), ("bc", 0))
    assert same(model, ("ac", 1), ("bc", 1))
    assert not same(model, ("ac", 0), ("bc", 1))


def test_a_key_of_nothing_sees_nothing() -> None:
    """v1 = 0: all averages are 0."""
    model = plain([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0]], v1=[0.0, 0.0, 0.0])
    assert same(model, ("ab", 0), ("abb", 0))
    assert not same(model, ("ab", 0), ("ab", 1))


def test_a_query_of_nothing_sees_the_mean() -> None:
    """v2 = 0: the mean of the keys, and 1 + 4 = 2 + 3."""
    table = [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0], [4.0, 0.0, 0.0]]
    model = plain(table, v2=[0.0, 0.0, 0.0])
    assert same(model, ("abcd", 0), ("ad", 0))
    assert not same(model, ("abcd", 0), ("ac", 0))
    asking = plain([[*row[:1], 1.0, 0.0] for row in table])
    assert not same(asking, ("abcd", 0), ("ad", 0))


def test_proportions_are_all_that_is_seen() -> None:
    model = judge.random_model(0)
    assert same(model, ("ab", 0), ("abab", 2))
    assert same(model, ("ab", 0), ("ba", 1))
    assert not same(model, ("ab", 0), ("abb", 0))
    placed = judge.random_model(0, positions=4)
    assert not same(placed, ("ab", 0), ("abab", 2))
    assert not same(placed, ("ab", 0), ("ba", 1))


def test_attention_that_moves_one_word_onto_another() -> None:
    """Key 0 everywhere but in c, and a mean of 1: x = 0 moved by 1 is x = 1 not moved at all."""
    model = plain([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [2.0, 0.0, 0.0]])
    assert same(model, ("ac", 0), ("b", 0))
    assert not same(model, ("acc", 0), ("b", 0))


def test_sums_that_meet_in_one_exponent() -> None:
    """Scores that differ as products but agree as numbers: 2 * 3 and 1 * 6, exactly."""
    table = [[3.0, 2.0, 0.0], [3.0, 1.0, 0.0], [6.0, 1.0, 0.0], [1.5, 2.0, 0.0]]
    model = plain(table, output=[0.0, 0.0, 0.0])
    assert same(model, ("ac", 0), ("ab", 0))
    assert not same(plain(table), ("bc", 0), ("bd", 0))


def test_causal_attention_sees_the_prefix() -> None:
    for causal in (False, True):
        model = plain([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [3.0, 1.0, 0.0]], causal=causal)
        assert same(model, ("ab", 0), ("ac", 0)) is causal
        assert not same(model, ("ab", 1), ("cb", 1))


@pytest.mark.parametrize("gap", [2.0**-52, 2.0**-400, 2.0**-1000])
def test_near_misses(gap: float) -> None:
    """Averages that differ by what no float can show beside 1."""
    model = plain([[0.0, 1.0, 1.0], [gap, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert same(model, ("ab", 0), ("ac", 0)) is False


def test_means_of_hardmax() -> None:
    """The largest scores share their weight: the mean of two values, or one value in its place."""
    model = judge.random_model(0, attention="hardmax", dim=2)
    with torch.no_grad():
        for row, vector in enumerate([[1.0, 1.0], [1.0, 3.0], [1.0, 2.0], [0.0, 9.0]]):
            model.network.table[row] = torch.tensor(vector)
        layer = model.network.blocks[0].attention
        layer.key[0], layer.query[0] = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
        layer.value[0] = torch.tensor([[0.0, 1.0]])
    assert same(model, ("cab", 0), ("c", 0))
    assert same(model, ("cabd", 0), ("c", 0))
    assert same(model, ("dcab", 1), ("c", 0))
    assert not same(model, ("ca", 0), ("c", 0))


def test_hardmax_that_moves_one_word_onto_another() -> None:
    """All tie and the mean is added: 1 + (1 + 7) / 2 = 3 + (1 + 3) / 2."""
    model = judge.random_model(0, attention="hardmax", dim=2)
    with torch.no_grad():
        for row, second in enumerate([1.0, 3.0, 7.0]):
            model.network.table[row] = torch.tensor([1.0, second])
        layer = model.network.blocks[0].attention
        layer.key[0], layer.query[0] = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
        layer.value[0], layer.output[0] = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0], [1.0]])
    assert same(model, ("ac", 0), ("ab", 1)) is True
    for one, other in (("ac", "ab"), ("ab", "ac")):
        assert same(model, (one, 0), (other, 0)) is False


def test_a_position_that_makes_up_for_the_word() -> None:
    """1 + 3 = 3 + 1, and attention adds nothing."""
    nothing = [0.0, 0.0, 0.0]
    model = plain([[1.0, 0.0, 0.0], [3.0, 0.0, 0.0]], output=nothing, positions=2)
    with torch.no_grad():
        model.network.positions[:, 0] = torch.tensor([1.0, 3.0])
    assert same(model, ("aa", 1), ("b", 0)) is True
    assert same(model, ("aa", 0), ("b", 0)) is False


def test_several_heads_agree_where_each_of_them_does() -> None:
    model = judge.random_model(0, attention="softmax", heads=2)
    with torch.no_grad():
        model.network.table[1] = model.network.table[0]
    assert same(model, ("ac", 0), ("bc", 0))
    assert not same(model, ("ac", 0), ("bd", 0))


def test_several_heads_that_see_the_same_in_different_words() -> None:
    """Nothing is seen at all: the words decide, which the averages do not say."""
    model = judge.random_model(0, attention="softmax", heads=2)
    with torch.no_grad():
        model.network.blocks[0].attention.value.zero_()
    assert same(model, ("ac", 0), ("bc", 0)) is None
    assert same(model, ("ac", 0), ("ab", 0)) is True


@given(
    judge.shapes(), st.text("abc", min_size=1, max_size=4), st.text("abc", min_size=1, max_size=4)
)
def test_agrees_with_the_balls(shape: dict[str, Any], one: str, other: str) -> None:
    """Random weights: equal if and only if the same things are seen, and Arb does not object."""
    model = judge.random_model(**shape)
    see = judge.look(model.network.shape)
    equal = see(list(one), 0) == see(list(other), 0)
    found = same(model, (one, 0), (other, 0))
    assert found is equal or (found is None and not equal and shape["heads"] > 1)
    with ctx.workprec(300):
        network = in_balls(model.network)
        ids = [network.context_id([judge.WORDS.index(c) for c in text], 0) for text in (one, other)]
        apart = [(a - b).contains(0) for a, b in zip(*ids, strict=True)]
    assert all(apart) is equal
