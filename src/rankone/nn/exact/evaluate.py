"""An exact network over sentences: fractions as long as only relu and hardmax occur, then balls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby

from flint import arb, fmpq

from rankone.deadline import tick
from rankone.nn.exact import segments
from rankone.nn.exact.network import ExactAttention, ExactFeedForward, ExactNetwork
from rankone.nn.exact.numbers import ONE, ZERO, Number, Vector, ball

Sentence = tuple[int, ...]  # rows of the table
KEPT = 1 << 20  # weights of pairs of columns, for each head: more would take gigabytes


@dataclass(frozen=True)
class Evaluation:
    """What a network makes of sentences: token k of sentence j has column ``where[j][k]``.

    ``ids`` are context ids: what the last attention layer puts out, in the coordinates ``seen``
    that are read later. ``logits`` are those of the head. Tokens with one column have the same
    context for this network. Numbers are fractions, or balls of the working precision.
    """

    where: list[list[int]]
    seen: tuple[int, ...]
    ids: list[Vector]
    logits: list[Vector]


def evaluate(
    network: ExactNetwork,
    sentences: Sequence[Sentence],
    progress: Callable[[float], None] = lambda _: None,
) -> Evaluation:
    """Run the network over sentences, layer by layer, all columns that differ at once."""
    layers, last_read = network.layers, network.last_read
    columns, where = _embedded(network, sentences)
    ids: list[Vector] = columns
    origin = where
    seen = tuple(sorted(last_read))
    done = 0
    for attends, group in groupby(layers, key=lambda layer: isinstance(layer, ExactAttention)):
        some = list(group)
        if attends:
            for layer in some:
                assert isinstance(layer, ExactAttention)
                progress(done / len(layers))
                columns, where = _attended(layer, columns, where, network.causal)
                if done == network.last_attention:
                    seen = tuple(sorted(c for c, i in last_read.items() if i > done))
                    ids, origin = [[z[c] for c in seen] for z in columns], where
                done += 1
            continue
        first = done

        def live(i: int, first: int = first) -> frozenset[int]:
            progress((first + i) / len(layers))
            return frozenset(c for c, last in last_read.items() if last >= first + i)

        feedforwards = [layer for layer in some if isinstance(layer, ExactFeedForward)]
        columns = segments.apply(feedforwards, columns, live)
        done += len(some)
    if network.last_attention < 0:
        ids = [[z[c] for c in seen] for z in ids]
    logits = [_logits(network, z) for z in columns]
    return Evaluation(origin, seen, ids, logits)


def _logits(network: ExactNetwork, z: Vector) -> Vector:
    return [y + b for y, b in zip(network.head.times(z), network.bias, strict=True)]


def _embedded(
    network: ExactNetwork, sentences: Sequence[Sentence]
) -> tuple[list[Vector], list[list[int]]]:
    """X + E: a column for every word, at every position if there are any."""
    placed = network.positions is not None
    names: dict[tuple[int, int], int] = {}
    where = [
        [names.setdefault((word, k if placed else 0), len(names)) for k, word in enumerate(ids)]
        for ids in sentences
    ]
    columns = []
    for word, k in names:
        z: Vector = [ZERO] * network.dim
        for c, x in network.table.rows[word]:
            z[c] = x
        if network.positions is not None:
            for c, x in network.positions.rows[k]:
                z[c] += x
        columns.append(z)
    return columns, where


def _attended(
    layer: ExactAttention, columns: list[Vector], where: list[list[int]], causal: bool
) -> tuple[list[Vector], list[list[int]]]:
    """The columns after attention. Tokens with one column that see the same columns, in whatever
    order, have one column again."""
    heads = [_Head(layer, h, columns) for h in range(len(layer.heads))]
    names: dict[tuple[int, tuple[int, ...]], int] = {}
    found: list[Vector] = []
    moved: list[list[int]] = []
    for places in where:
        tick()
        own, everything = [], tuple(sorted(places))
        for k, column in enumerate(places):
            visible = tuple(sorted(places[: k + 1])) if causal else everything
            name = column, visible
            if name not in names:
                names[name] = len(found)
                found.append(_moved(heads, columns[column], column, visible))
            own.append(names[name])
        moved.append(own)
    return found, moved


def _moved(heads: Sequence[_Head], z: Vector, column: int, visible: tuple[int, ...]) -> Vector:
    out = list(z)
    for head in heads:
        average = head.average(column, visible)
        for c, row in enumerate(head.output.rows):
            for i, weight in row:
                out[c] += weight * average[i]
    return out


class _Head:
    """One head: keys, queries and values of all columns, and every average it has made."""

    def __init__(self, layer: ExactAttention, number: int, columns: list[Vector]) -> None:
        head = layer.heads[number]
        self.hard, self.output = layer.kind == "hardmax", head.output
        self.keys = [head.key.times(z) for z in columns]
        self.queries = [head.query.times(z) for z in columns]
        self.values = [head.value.times(z) for z in columns]
        self.asks, self.names = _named(self.queries), _named(self.keys)
        self.averages: dict[tuple[int, tuple[int, ...]], Vector] = {}
        self.weights: dict[tuple[int, int], tuple[Number, Number]] = {}

    def average(self, column: int, visible: tuple[int, ...]) -> Vector:
        name = self.asks[column], visible
        if name not in self.averages:
            self.averages[name] = self._average(column, visible)
        return self.averages[name]

    def _average(self, column: int, visible: tuple[int, ...]) -> Vector:
        tick()
        pairs = [self._pair(column, other) for other in visible]
        weights = _weights([score for score, _ in pairs], [w for _, w in pairs], self.hard)
        total = sum(weights, ZERO)
        used = [(w, self.values[v]) for w, v in zip(weights, visible, strict=True) if w is not ZERO]
        size = len(self.values[column])
        return [sum((w * value[i] for w, value in used), ZERO) / total for i in range(size)]

    def _pair(self, column: int, other: int) -> tuple[Number, Number]:
        """The score of a query and a key, and its exponential."""
        name = self.asks[column], self.names[other]
        found = self.weights.get(name)
        if found is None:
            pairs = zip(self.queries[column], self.keys[other], strict=True)
            score: Number = sum((q * k for q, k in pairs), ZERO)
            plain = self.hard or (isinstance(score, fmpq) and not score)
            found = score, ONE if plain else ball(score).exp()
            if len(self.weights) < KEPT:
                self.weights[name] = found
        return found


def _weights(scores: list[Number], powers: list[Number], hard: bool) -> list[Number]:
    """Softmax up to a factor, or hardmax; equal scores need no exponential."""
    first = scores[0]
    if not any(isinstance(score, arb) for score in scores):
        if all(score == first for score in scores):
            return [ONE] * len(scores)
        if hard:
            best = max(scores)
            return [ONE if score == best else ZERO for score in scores]
    elif hard:
        return _hardest(scores)
    return powers


def _hardest(scores: list[Number]) -> list[Number]:
    """Hardmax of balls: unknown where it is not decided which score is the largest."""
    best = scores[0]
    for score in scores[1:]:
        if score > best:
            best = score
    top = [score is best or score == best for score in scores]  # surely equal
    if not all(first or score < best for score, first in zip(scores, top, strict=True)):
        return [arb("nan")] * len(scores)
    return [ONE if first else ZERO for first in top]


def _named(vectors: list[Vector]) -> list[int]:
    """Equal numbers for vectors that are surely equal."""
    names: dict[Hashable, int] = {}
    found = []
    for i, vector in enumerate(vectors):
        balls = any(isinstance(x, arb) for x in vector)
        found.append(names.setdefault(i if balls else tuple(vector), len(names)))
    return found
