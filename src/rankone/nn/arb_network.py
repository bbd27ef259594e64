"""The network in Arb balls: weights are exact numbers, precision is whatever `ctx.prec` says."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from flint import arb
from torch import Tensor

from rankone.deadline import tick
from rankone.nn.classifier import TokenClassifier
from rankone.nn.feedforward import Rank1FeedForward
from rankone.nn.gated import GatedFeedForward
from rankone.nn.gatekeeper import Gatekeeper
from rankone.nn.layers import FeedForwardLayer, Head

Vector = list[arb]
Matrix = list[Vector]


class Attention:
    """Eq. 2 or 5 over named tokens: what belongs to a token, or to a pair, is computed once.

    ``averages(k, visible)`` is what token k sees in the tokens `visible`, head by head: the softmax
    average of their values (hardmax: the mean over the largest scores).
    """

    def __init__(self, heads: Sequence[Head[Matrix]], kind: Literal["softmax", "hardmax"]) -> None:
        self.heads, self.kind = heads, kind
        self.seen: dict[Hashable, list[tuple[Vector, Vector, Vector]]] = {}
        self.weights: dict[tuple[Hashable, Hashable], Vector] = {}

    def see(self, name: Hashable, z: Vector) -> None:
        """Introduce a token."""
        if name not in self.seen:
            self.seen[name] = [
                (product(h.key, z), product(h.query, z), product(h.value, z)) for h in self.heads
            ]

    def averages(self, k: Hashable, visible: Sequence[Hashable]) -> list[Vector]:
        return [self._average(h, k, visible) for h in range(len(self.heads))]

    def output(self, averages: Iterable[Vector]) -> Vector:
        """sum_i W^O_i averages_i, which is added to the token."""
        parts = [product(h.output, a) for h, a in zip(self.heads, averages, strict=True)]
        return [sum(column, arb(0)) for column in zip(*parts, strict=True)]

    def _average(self, head: int, k: Hashable, visible: Sequence[Hashable]) -> Vector:
        values = [self.seen[name][head][2] for name in visible]
        rows = [self._pair(k, name)[head] for name in visible]
        weights = rows if self.kind == "softmax" else _largest(rows)
        total = sum(weights, arb(0))
        return [dot(weights, column) / total for column in zip(*values, strict=True)]

    def _pair(self, k: Hashable, name: Hashable) -> Vector:
        """e^score (hardmax: the score itself) of token k and a key, for every head.

        Not relative to a largest score: the exponents of balls do not overflow.
        """
        found = self.weights.get((k, name))
        if found is None:
            pairs = zip(self.seen[k], self.seen[name], strict=True)
            found = [dot(q[1], key[0]) for q, key in pairs]
            if self.kind == "softmax":
                found = [score.exp() for score in found]
            self.weights[k, name] = found
        return found


@dataclass(frozen=True)
class FeedForward:
    """H + sum_j out_j relu(gain_j row_j . H + bias_j) + bias2   (eq. 3).

    ``rows`` holds a row per unit, or one that all share, scaled by ``gains``; ``out`` a vector per
    unit, or one that all share, scaled by ``out_gains``.
    """

    rows: Matrix
    bias: Vector
    out: Matrix
    bias2: Vector
    gains: Vector | None = None
    out_gains: Vector | None = None

    def __call__(self, h: Vector) -> Vector:
        seen = product(self.rows, h)
        if self.gains is not None:
            seen = [gain * seen[0] for gain in self.gains]
        zero = arb(0)
        active = [arb.max(s + b, zero) for s, b in zip(seen, self.bias, strict=True)]
        if self.out_gains is not None:
            added = dot(active, self.out_gains)
            written = [added * w for w in self.out[0]]
        else:
            columns = zip(*self.out, strict=True) if self.out else [()] * len(h)
            written = [dot(active, column) for column in columns]
        return [x + y + z for x, y, z in zip(h, written, self.bias2, strict=True)]


class Gated:
    """`GatedFeedForward`, unit by unit; of some units only, if it is known that others are 0."""

    def __init__(self, layer: GatedFeedForward) -> None:
        self.gates, self.slopes, self.codes = map(Rows, (layer.gates, layer.slopes, layer.codes))
        self.penalty, self.bias, self.amplitude = (
            layer.penalty.detach().double().tolist(),
            layer.bias1.detach().double().tolist(),
            layer.amplitude.detach().double().tolist(),
        )
        self.word, self.position, self.plus, self.minus, self.reads, self.writes = (
            getattr(layer, name).tolist() for name in layer.WHOLE
        )

    def __call__(self, h: Vector, units: Iterable[int] | None = None) -> Vector:
        fines: dict[int, arb] = {}
        out, a = list(h), [h[i] for i in self.reads]
        for j in range(len(self.word)) if units is None else units:
            for gate in (self.word[j], self.position[j]):
                if gate not in fines:
                    fines[gate] = dot(self.gates[gate], h)
            fine = fines[self.word[j]] + fines[self.position[j]]
            seen = self.penalty[j] * fine + dot(self.slopes[j], a) + self.bias[j]
            active = arb.max(seen, arb(0)) * self.amplitude[j]
            codes = zip(self.codes[self.plus[j]], self.codes[self.minus[j]], strict=True)
            for i, (plus, minus) in zip(self.writes, codes, strict=True):
                out[i] += active * (plus - minus)
        return out


@dataclass(frozen=True)
class ArbNetwork:
    """Tables, blocks and causality of a `TokenClassifier`; its head is left to the caller.

    Make a new one for another precision: results are kept. ``keeper`` names the units of a gated
    layer that a token can reach. Of a network with a window, `ids` are the tokens that it holds.
    Its positions are E_k = k ``step``, which only keys read: the coordinates of the step are left
    out of what else is said of a token.
    """

    table: Sequence[Vector]
    positions: Sequence[Vector] | None
    blocks: Sequence[tuple[Attention, FeedForward | Gated]]
    causal: bool
    keeper: Gatekeeper | None = None
    step: Vector | None = None
    last: dict[tuple[int, ...], list[Vector]] = field(default_factory=dict)  # sentence -> features

    def context_averages(self, ids: Sequence[int], k: int) -> list[Vector]:
        """What the first attention layer averages for token k of a sentence, head by head."""
        names = self._introduce(ids)
        return self.blocks[0][0].averages(names[k], self._visible(names, k))

    def context_id(self, ids: Sequence[int], k: int) -> Vector:
        """F^(SA)(X + E)_k of the first attention layer (Definition 2)."""
        attention = self.blocks[0][0]
        moved = attention.output(self.context_averages(ids, k))
        return added(self.embed(ids[k], k), moved)

    def features(self, ids: Sequence[int], k: int) -> Vector:
        """What the last block puts out for token k."""
        if len(self.blocks) == 1:
            layer, h = self.blocks[0][1], self.context_id(ids, k)
            if self.keeper is None or not isinstance(layer, Gated):
                return layer(h)
            _, own = self.keeper.reached(np.array([ids[k]]), np.array([k]), len(layer.gates))
            return layer(h, own.tolist())
        if tuple(ids) not in self.last:
            self.last.clear()
            self.last[tuple(ids)] = self._all_features(ids)
        return self.last[tuple(ids)][k]

    def _all_features(self, ids: Sequence[int]) -> list[Vector]:
        z = [self.embed(token, place) for place, token in enumerate(ids)]
        for attention, feedforward in self.blocks:
            fresh = Attention(attention.heads, attention.kind)
            for name, vector in enumerate(z):
                fresh.see(name, vector)
            names = range(len(z))
            moved = (fresh.output(fresh.averages(i, self._visible(names, i))) for i in names)
            z = [feedforward(added(x, y)) for x, y in zip(z, moved, strict=True)]
        return z

    def embed(self, token: int, place: int) -> Vector:
        """X + E."""
        if self.step is not None:
            pairs = zip(self.table[token], self.step, strict=True)
            return [x if e.is_zero() else arb(0) for x, e in pairs]
        if self.positions is None:
            return self.table[token]
        return added(self.table[token], self.positions[place])

    def _introduce(self, ids: Sequence[int]) -> list[Hashable]:
        names: list[Hashable] = []
        for place, token in enumerate(ids):
            name = token if self.positions is None and self.step is None else (token, place)
            if name not in self.blocks[0][0].seen:
                x = self.embed(token, place)
                if self.step is not None:
                    x = added(self.table[token], [place * e for e in self.step])
                self.blocks[0][0].see(name, x)
            names.append(name)
        return names

    def _visible(self, names: Sequence[Hashable], k: int) -> Sequence[Hashable]:
        return names[: k + 1] if self.causal else names


def in_balls(network: TokenClassifier) -> ArbNetwork:
    """Weights as the numbers they are: every float is a ball of radius 0."""
    blocks = []
    for block in network.blocks:
        heads = [head.map(matrix) for head in block.attention.heads]
        attention = Attention(heads, block.attention.kind)
        blocks.append((attention, _feedforward(block.feedforward)))
    positions = None if network.positions is None else Rows(network.positions)
    keeper = Gatekeeper.of(network, inexact=True)
    step = None if network.step is None else vector(network.step)
    return ArbNetwork(Rows(network.table), positions, blocks, network.shape.causal, keeper, step)


class Rows(Sequence[Vector]):
    """The rows of a table, each turned into balls when it is first asked for."""

    def __init__(self, table: Tensor) -> None:
        self.table = table.detach().double()
        self.found: dict[int, Vector] = {}

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, i: int) -> Vector:  # type: ignore[override]
        if i not in self.found:
            self.found[i] = vector(self.table[i])
        return self.found[i]


def _feedforward(layer: FeedForwardLayer) -> FeedForward | Gated:
    if isinstance(layer, GatedFeedForward):
        return Gated(layer)
    if isinstance(layer, Rank1FeedForward):  # far fewer numbers than written out
        return FeedForward(
            rows=[vector(layer.direction)],
            bias=vector(layer.bias1),
            out=[vector(layer.out_direction)],
            bias2=vector(layer.bias2),
            gains=vector(layer.gain),
            out_gains=vector(layer.out_gain),
        )
    full = layer.expand()
    out = matrix(full.weight2.mT)
    return FeedForward(matrix(full.weight1), vector(full.bias1), out, vector(full.bias2))


def vector(values: Tensor) -> Vector:
    return [arb(x) for x in values.detach().double().tolist()]


def matrix(values: Tensor) -> Matrix:
    rows = []
    for row in values:
        tick()
        rows.append(vector(row))
    return rows


def dot(a: Iterable[arb], b: Iterable[arb]) -> arb:
    tick()
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def added(a: Vector, b: Vector) -> Vector:
    return [x + y for x, y in zip(a, b, strict=True)]


def norm(a: Vector) -> arb:
    return dot(a, a).sqrt()


def product(rows: Matrix, z: Vector) -> Vector:
    """A matrix, given by its rows, times a vector."""
    return [dot(row, z) for row in rows]


def _largest(scores: Vector) -> Vector:
    """Hardmax: 1 at the largest scores, 0 elsewhere; everything unknown if that is not decided.

    Scores of float64 numbers are exact once the precision holds all their digits, and then two
    equal ones are known to be equal.
    """
    best = scores[0]
    for score in scores[1:]:
        if score > best:  # only where it certainly is
            best = score
    marks = []
    for score in scores:
        behind = best - score
        if score is best or behind.is_zero():
            marks.append(arb(1))
        else:
            marks.append(arb(0) if behind > 0 else arb("nan"))
    return marks
