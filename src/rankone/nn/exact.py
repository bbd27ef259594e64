"""The network in Arb balls: weights are exact numbers, precision is whatever `ctx.prec` says."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from flint import arb
from torch import Tensor, nn

from rankone.deadline import tick
from rankone.nn.attention import Rank1Attention, SelfAttention
from rankone.nn.classifier import TokenClassifier
from rankone.nn.exact_layers import Attention, FeedForward, Head, Matrix, Vector
from rankone.nn.feedforward import Rank1FeedForward


@dataclass(frozen=True)
class ExactNetwork:
    """Tables, blocks and causality of a `TokenClassifier`; its head is left to the caller.

    Made anew for another precision: what was computed is kept.
    """

    table: Sequence[Vector]
    positions: Sequence[Vector] | None
    blocks: Sequence[tuple[Attention, FeedForward]]
    causal: bool
    last: dict[tuple[int, ...], list[Vector]] = field(default_factory=dict)  # sentence -> features

    def context_averages(self, ids: Sequence[int], k: int) -> list[Vector]:
        """What the first attention layer averages for token k of a sentence, head by head."""
        names = self._introduce(ids)
        return self.blocks[0][0].averages(names[k], self._visible(names, k))

    def context_id(self, ids: Sequence[int], k: int) -> Vector:
        """F^(SA)(X + E)_k of the first attention layer (Definition 2)."""
        attention = self.blocks[0][0]
        moved = attention.output(self.context_averages(ids, k))
        return [x + y for x, y in zip(self.embed(ids[k], k), moved, strict=True)]

    def features(self, ids: Sequence[int], k: int) -> Vector:
        """What the last block puts out for token k."""
        if len(self.blocks) == 1:
            return self.blocks[0][1](self.context_id(ids, k))
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
            z = [
                feedforward([a + b for a, b in zip(x, y, strict=True)])
                for x, y in zip(z, moved, strict=True)
            ]
        return z

    def embed(self, token: int, place: int) -> Vector:
        """X + E."""
        if self.positions is None:
            return self.table[token]
        return [x + e for x, e in zip(self.table[token], self.positions[place], strict=True)]

    def _introduce(self, ids: Sequence[int]) -> list[Hashable]:
        names: list[Hashable] = []
        for place, token in enumerate(ids):
            name = token if self.positions is None else (token, place)
            if name not in self.blocks[0][0].seen:
                self.blocks[0][0].see(name, self.embed(token, place))
            names.append(name)
        return names

    def _visible(self, names: Sequence[Hashable], k: int) -> Sequence[Hashable]:
        return names[: k + 1] if self.causal else names


def exact_network(network: TokenClassifier) -> ExactNetwork:
    """Weights as the numbers they are: every float is a ball of radius 0."""
    blocks = [(_attention(b.attention), _feedforward(b.feedforward)) for b in network.blocks]
    positions = None if network.positions is None else Rows(network.positions)
    return ExactNetwork(Rows(network.table), positions, blocks, network.shape.causal)


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


def _attention(layer: nn.Module | Tensor) -> Attention:
    if isinstance(layer, Rank1Attention):
        v1, v2 = [vector(layer.v1)], [vector(layer.v2)]
        return Attention([Head(v1, v2, v1, [[w] for w in vector(layer.output)])], "softmax")
    assert isinstance(layer, SelfAttention)
    parts = zip(layer.key, layer.query, layer.value, layer.output, strict=True)
    return Attention([Head(*map(matrix, part)) for part in parts], layer.kind)


def _feedforward(layer: nn.Module | Tensor) -> FeedForward:
    if isinstance(layer, Rank1FeedForward):
        return FeedForward(
            rows=[vector(layer.direction)],
            bias=vector(layer.bias1),
            out=[vector(layer.out_direction)],
            bias2=vector(layer.bias2),
            gains=vector(layer.gain),
            out_gains=vector(layer.out_gain),
        )
    names = "weight1", "bias1", "weight2", "bias2"
    weight1, bias1, weight2, bias2 = (getattr(layer, name) for name in names)
    return FeedForward(matrix(weight1), vector(bias1), matrix(weight2.mT), vector(bias2))


def vector(values: Tensor) -> Vector:
    return [arb(x) for x in values.detach().double().tolist()]


def matrix(values: Tensor) -> Matrix:
    rows = []
    for row in values:
        tick()
        rows.append(vector(row))
    return rows
