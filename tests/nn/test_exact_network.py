"""Exact networks: sparse matrices, what layers read, and how large a network is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

import exact_truth
from exact_truth import dense, fraction, vector
from rankone.nn.exact.network import (
    ExactAttention,
    ExactBlock,
    ExactFeedForward,
    ExactNetwork,
    Sparse,
    dot,
)
from rankone.nn.exact.numbers import exact
from rankone.nn.layers import Head

F = Fraction
small = st.sampled_from([F(0), F(0), F(1), F(-2, 3), F(5)])


@given(st.lists(st.lists(small, min_size=3, max_size=3), max_size=4), st.tuples(*[small] * 3))
def test_a_sparse_matrix_is_its_dense_one(rows: list[list[Fraction]], z: tuple[F, ...]) -> None:
    matrix = Sparse.dense(rows, 3)
    assert dense(matrix) == rows
    assert all(x for row in matrix.rows for _, x in row)
    assert matrix == Sparse.of([dict(reversed([*enumerate(row)])) for row in rows], 3)
    assert matrix.reads == {c for row in rows for c, x in enumerate(row) if x}
    assert sorted(map(fraction, matrix.numbers)) == sorted(x for row in rows for x in row if x)
    product = [fraction(x) for x in matrix.times([exact(x) for x in z])]
    assert product == [sum((a * b for a, b in zip(row, z, strict=True)), F(0)) for row in rows]


def test_a_product_with_balls_skips_what_is_not_read() -> None:
    row = Sparse.of([{1: 2}], 3).rows[0]
    assert dot(row, [arb("nan"), exact(3), arb("nan")]) == 6


def test_units_as_matrices() -> None:
    units = [({0: 1, 2: F(1, 2)}, -3, {1: 4}), ({}, 7, {0: 1, 1: -1}), ({1: 0}, 0, {})]
    layer = ExactFeedForward.of(units, 3, {2: 0.25}, "tanh")
    assert dense(layer.weight1) == [[1, 0, F(1, 2)], [0, 0, 0], [0, 0, 0]]
    assert vector(layer.bias1) == [-3, 7, 0]
    assert dense(layer.weight2) == [[0, 1, 0], [4, -1, 0], [0, 0, 0]]
    assert vector(layer.bias2) == [0, 0, F(1, 4)]
    assert (layer.hidden, layer.reads, layer.activation) == (3, {0, 2}, "tanh")
    assert layer.stored == 9 + 3 + 9 + 3
    assert sorted(map(fraction, layer.numbers)) == [-3, -1, F(1, 4), F(1, 2), 1, 1, 4, 7]
    assert ExactFeedForward.of([], 2).bias2 == (0, 0)
    assert ExactFeedForward.of([], 2).activation == "relu"


def head(reads: tuple[int, int, int], dim: int, size: int = 1) -> Head[Sparse]:
    """Reads one coordinate each, writes coordinate 0."""
    key, query, value = (Sparse.of([{c: 1}] + [{}] * (size - 1), dim) for c in reads)
    return Head(key, query, value, Sparse.of([{0: 3}] + [{}] * (dim - 1), size))


def example(causal: bool = False) -> ExactNetwork:
    """Layers 0, 1 and 3 attend; coordinate 5 is never read."""
    dim = 6
    return ExactNetwork(
        Sparse.of([{0: F(1, 7)}, {5: 1 << 80}], dim),
        Sparse.of([{1: 1}], dim),
        (
            ExactBlock(ExactAttention((head((0, 1, 2), dim),), "hardmax")),
            ExactBlock(),
            ExactBlock(
                ExactAttention((head((1, 1, 1), dim), head((0, 0, 0), dim, size=2))),
                ExactFeedForward.of([({3: F(-5, 4)}, 0, {5: 1})] * 7, dim),
            ),
            ExactBlock(ExactAttention((head((3, 3, 3), dim),))),
            ExactBlock(None, ExactFeedForward.of([({0: 1}, 0, {4: 1})], dim, {1: 9})),
        ),
        Sparse.of([{4: 1}, {1: 0}], dim),
        (exact(0), exact(F(1, 1024))),
        causal,
    )


def test_layers_and_what_they_read() -> None:
    network = example()
    kinds = [type(layer).__name__.removeprefix("Exact") for layer in network.layers]
    attention, feedforward = "Attention", "FeedForward"
    assert kinds == [attention, attention, feedforward, attention, feedforward]
    assert [layer.reads for layer in network.layers] == [{0, 1, 2}, {0, 1}, {3}, {3}, {0}]
    assert network.last_read == {0: 4, 1: 1, 2: 0, 3: 3, 4: 5}
    assert network.last_attention == 3
    assert (network.dim, network.length) == (6, 1)


@given(exact_truth.shapes())
def test_the_last_attention_and_what_is_read_after_it(shape: dict[str, Any]) -> None:
    network = exact_truth.random_network(**shape)
    assert network.last_attention == exact_truth.last_attention(network)
    after = [c for c, i in network.last_read.items() if i > network.last_attention]
    assert sorted(after) == exact_truth.read_later(network)
    assert network.layers == tuple(exact_truth.flat(network))


def test_the_size_of_a_network() -> None:
    count = example().count
    assert (count.layers, count.attentions, count.heads) == (5, 3, 2)
    assert count.width == 7  # units of the third block: more than the 6 coordinates
    one = 4 * 6  # a head of size 1
    assert count.parameters == one + (one + 2 * one) + (84 + 7 + 6) + one + (12 + 1 + 6) + 2 * 7
    # heads have 4 numbers each; 14 of the third block's units; 3 of the last layer; 2 of the head
    assert count.nonzero == 4 * 4 + 14 + 3 + 2
    assert count.distinct == len({1, 3, F(-5, 4), 9, F(1, 1024)})
    assert count.bits == 1 + 10  # 1/1024
    ones = 3 * 4 + 7 + 2 + 1
    assert count.bits_total == ones + 4 * 2 + 7 * (3 + 2) + 4 + 11
    assert example().count == example(causal=True).count


def test_a_network_without_layers() -> None:
    empty = ExactNetwork(Sparse.of([{}], 2), None, (), Sparse.of([{}], 2), (exact(0),))
    assert (empty.layers, empty.last_attention, empty.last_read, empty.length) == ((), -1, {}, 0)
    count = empty.count
    assert (count.layers, count.heads, count.width, count.parameters) == (0, 0, 2, 3)
    assert (count.nonzero, count.distinct, count.bits, count.bits_total) == (0, 0, 0, 0)


@pytest.mark.parametrize("kind", ["softmax", "hardmax"])
def test_wider_attention_is_the_same_on_its_coordinates(kind: str) -> None:
    layer = ExactAttention((head((0, 1, 2), 3), head((2, 0, 1), 3, size=2)), kind)
    wide = layer.widened(5)
    assert wide.kind == kind
    columns = [[F(1), F(2), F(-1)], [F(0), F(1, 2), F(3)]]
    narrow = exact_truth.attention(layer, columns, causal=False)
    found = exact_truth.attention(wide, [[*z, F(7), F(8)] for z in columns], causal=False)
    assert found == [[*z, 7, 8] for z in narrow]
