"""Eq. 2, 3 and 5 of an exact network written out: dense matrices, one sentence at a time.

Numbers are fractions as long as that is possible, and become decimals of `dps` digits with the
first softmax of scores that differ, or the first tanh.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
from flint import arb, fmpq
from hypothesis import strategies as st
from mpmath import mp, mpf

from rankone.nn.exact.network import (
    ExactAttention,
    ExactBlock,
    ExactFeedForward,
    ExactNetwork,
    Sparse,
)
from rankone.nn.exact.numbers import exact
from rankone.nn.layers import Head

Real = Fraction | mpf
Column = list[Real]
Matrix = list[list[Fraction]]


def logits(network: ExactNetwork, sentence: Sequence[int], dps: int = 50) -> list[Column]:
    """Of every token of a sentence (rows of the table)."""
    with mp.workdps(dps):
        Z = states(network, sentence, dps)[-1]
        weight, bias = dense(network.head), vector(network.bias)
        return [[plus(dot(row, z), b) for row, b in zip(weight, bias, strict=True)] for z in Z]


def labels(network: ExactNetwork, sentence: Sequence[int], dps: int = 50) -> list[int]:
    """The first of the largest logits of every token."""
    found = logits(network, sentence, dps)
    return [max(range(len(row)), key=lambda c: real(row[c])) for row in found]


def context_ids(network: ExactNetwork, sentence: Sequence[int], dps: int = 50) -> list[Column]:
    """What the last attention layer puts out in the coordinates `read_later`, for every token."""
    seen = read_later(network)
    Z = states(network, sentence, dps)[last_attention(network) + 1]
    return [[z[c] for c in seen] for z in Z]


def read_later(network: ExactNetwork) -> list[int]:
    """Coordinates that the head or a layer after the last attention reads."""
    later = flat(network)[last_attention(network) + 1 :]
    matrices = [layer.weight1 for layer in later if isinstance(layer, ExactFeedForward)]
    rows = [row for matrix in (*matrices, network.head) for row in dense(matrix)]
    return [c for c in range(network.dim) if any(row[c] for row in rows)]


def states(network: ExactNetwork, sentence: Sequence[int], dps: int = 50) -> list[list[Column]]:
    """X + E, and the columns after each layer: attention and feed-forward count one each."""
    with mp.workdps(dps):
        table = dense(network.table)
        Z: list[Column] = [list(table[word]) for word in sentence]
        if network.positions is not None:
            E = dense(network.positions)
            Z = [[plus(x, e) for x, e in zip(z, E[k], strict=True)] for k, z in enumerate(Z)]
        found = [Z]
        for layer in flat(network):
            if isinstance(layer, ExactAttention):
                Z = attention(layer, Z, network.causal)
            else:
                Z = [feed_forward(layer, z) for z in Z]
            found.append(Z)
        return found


def attention(layer: ExactAttention, Z: Sequence[Column], causal: bool) -> list[Column]:
    """Z + sum_i W^O_i (W^V_i Z) sigma[(W^K_i Z)^T (W^Q_i Z)]."""
    sigma = hardmax if layer.kind == "hardmax" else softmax
    out = []
    for k, z in enumerate(Z):
        seen = Z[: k + 1] if causal else Z
        total = list(z)
        for head in layer.heads:
            W_K, W_Q, W_V, W_O = map(dense, (head.key, head.query, head.value, head.output))
            query = [dot(row, z) for row in W_Q]
            weights = sigma([dot([dot(row, x) for row in W_K], query) for x in seen])
            average = [dot(weights, [dot(row, x) for x in seen]) for row in W_V]
            total = [plus(x, dot(row, average)) for x, row in zip(total, W_O, strict=True)]
        out.append(total)
    return out


def feed_forward(layer: ExactFeedForward, h: Sequence[Real]) -> Column:
    """H + W2 sigma(W1 H + b1) + b2, of one column."""
    sigma = tanh if layer.activation == "tanh" else relu
    W1, b1, b2 = dense(layer.weight1), vector(layer.bias1), vector(layer.bias2)
    hidden = [sigma(plus(dot(row, h), b)) for row, b in zip(W1, b1, strict=True)]
    added = [plus(dot(row, hidden), b) for row, b in zip(dense(layer.weight2), b2, strict=True)]
    return [plus(x, y) for x, y in zip(h, added, strict=True)]


def softmax(scores: Sequence[Real]) -> Column:
    if all(isinstance(score, Fraction) and score == scores[0] for score in scores):
        return [Fraction(1, len(scores))] * len(scores)
    largest = max(map(real, scores))
    powers = [mpmath.exp(real(score) - largest) for score in scores]
    return [x / sum(powers) for x in powers]


def hardmax(scores: Sequence[Real]) -> Column:
    largest = max(scores, key=real)
    return [Fraction(score == largest, scores.count(largest)) for score in scores]


def relu(x: Real) -> Real:
    return x if x > 0 else Fraction(0)


def tanh(x: Real) -> Real:
    return mpmath.tanh(real(x)) if x else Fraction(0)


def flat(network: ExactNetwork) -> list[ExactAttention | ExactFeedForward]:
    """The layers that are there, one after the other."""
    both = [layer for block in network.blocks for layer in (block.attention, block.feedforward)]
    return [layer for layer in both if layer is not None]


def last_attention(network: ExactNetwork) -> int:
    kinds = [isinstance(layer, ExactAttention) for layer in flat(network)]
    return max((i for i, attends in enumerate(kinds) if attends), default=-1)


# Numbers.


def fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def vector(numbers: Iterable[fmpq]) -> list[Fraction]:
    return [fraction(x) for x in numbers]


def dense(matrix: Sparse) -> Matrix:
    found = [[Fraction(0)] * matrix.columns for _ in matrix.rows]
    for full, row in zip(found, matrix.rows, strict=True):
        for column, x in row:
            full[column] = fraction(x)
    return found


def real(x: Real) -> mpf:
    return mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else x


def plus(x: Real, y: Real) -> Real:
    exact = isinstance(x, Fraction) and isinstance(y, Fraction)
    return x + y if exact else real(x) + real(y)


def times(x: Real, y: Real) -> Real:
    if not x or not y:
        return Fraction(0)
    exact = isinstance(x, Fraction) and isinstance(y, Fraction)
    return x * y if exact else real(x) * real(y)


def dot(xs: Iterable[Real], ys: Iterable[Real]) -> Real:
    total: Real = Fraction(0)
    for x, y in zip(xs, ys, strict=True):
        total = plus(total, times(x, y))
    return total


def holds(found: fmpq | arb, true: Real, dps: int = 50) -> bool:
    """Whether `found` is the true number, or a ball that it lies in. Decimals are a little off
    themselves; a ball that is not finite says nothing, and so is not wrong."""
    if isinstance(found, fmpq) and isinstance(true, Fraction):
        return fraction(found) == true
    if isinstance(found, arb) and not found.is_finite():
        return True
    with mp.workdps(dps):
        slack = mpf(10) ** (5 - dps) * (1 + abs(real(true)))
        if isinstance(found, fmpq):
            return bool(abs(real(fraction(found)) - real(true)) <= slack)
        middle, radius = (decimal(part) for part in (found.mid(), found.rad()))
        return bool(abs(middle - real(true)) <= radius + slack)


def decimal(x: arb) -> mpf:
    """A ball of radius 0."""
    mantissa, exponent = x.man_exp()
    return mpmath.ldexp(mpf(int(mantissa)), int(exponent))


# Networks to try.

WORDS, LENGTH = 4, 4
NUMBERS = [Fraction(n, d) for n, d in ((1, 1), (-1, 1), (2, 1), (-3, 2), (1, 3), (-2, 5))]


def random_network(
    seed: int,
    dim: int = 3,
    blocks: int = 2,
    kinds: Sequence[str] = ("softmax", "hardmax"),
    activations: Sequence[str] = ("relu",),
    hidden: Sequence[int] = (0, 1, 4),
    labels: int = 3,
    density: float = 0.5,
    uniform: float = 0.0,
    missing: float = 0.2,
    positions: bool = False,
    causal: bool = False,
    choices: Sequence[Fraction] = NUMBERS,
) -> ExactNetwork:
    """Few different numbers, so that ties are common. A layer is `missing`, and a head attends to
    all tokens alike (`uniform`), with the given probabilities."""
    rng = random.Random(seed)

    def matrix(rows: int, columns: int, empty: bool = False) -> Sparse:
        chance = 0.0 if empty else density
        numbers = ({c: rng.choice(choices) for c in range(columns)} for _ in range(rows))
        kept = ({c: x for c, x in row.items() if rng.random() < chance} for row in numbers)
        return Sparse.of(kept, columns)

    def numbers(count: int) -> tuple[fmpq, ...]:
        return tuple(exact(rng.choice([Fraction(0), *choices])) for _ in range(count))

    def head() -> Head[Sparse]:
        size, width = rng.choice([0, 1, 2]), rng.choice([1, 2])
        key = matrix(size, dim, empty=rng.random() < uniform)
        return Head(key, matrix(size, dim), matrix(width, dim), matrix(dim, width))

    def block() -> ExactBlock:
        attends, feeds = rng.random() >= missing, rng.random() >= missing
        heads = tuple(head() for _ in range(rng.choice([1, 2])))
        q = rng.choice(hidden)
        return ExactBlock(
            ExactAttention(heads, rng.choice(kinds)) if attends else None,
            ExactFeedForward(
                matrix(q, dim), numbers(q), matrix(dim, q), numbers(dim), rng.choice(activations)
            )
            if feeds
            else None,
        )

    return ExactNetwork(
        matrix(WORDS, dim),
        matrix(LENGTH, dim) if positions else None,
        tuple(block() for _ in range(blocks)),
        matrix(labels, dim),
        numbers(labels),
        causal,
    )


@st.composite
def shapes(draw: st.DrawFn, **given: Any) -> dict[str, Any]:
    """What `random_network` takes, of every kind but for what is given. Networks are built
    outside of strategies: what checks types there draws random numbers of its own."""
    settings = {
        "seed": draw(st.integers(0, 1 << 20)),
        "dim": draw(st.integers(1, 4)),
        "blocks": draw(st.integers(0, 3)),
        "kinds": draw(st.sampled_from([("softmax",), ("hardmax",), ("softmax", "hardmax")])),
        "activations": draw(st.sampled_from([("relu",), ("relu",), ("tanh", "relu")])),
        "uniform": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "positions": draw(st.booleans()),
        "causal": draw(st.booleans()),
    }
    return {**settings, **given}


def sentences(most: int = 3) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Rows of the table."""
    words = st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=LENGTH).map(tuple)
    return st.lists(words, min_size=1, max_size=most)
