"""What an exact network is made of: the layers of eq. 2, 3 and 5 with fractions as weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from flint import fmpq

from rankone.deadline import tick
from rankone.nn.exact.numbers import ZERO, Exactly, Number, Vector, bits, exact
from rankone.nn.layers import Head

Row = tuple[tuple[int, fmpq], ...]  # the entries that are not 0: column and number


@dataclass(frozen=True)
class Sparse:
    """A matrix by its rows, of which only entries other than 0 are kept."""

    rows: tuple[Row, ...]
    columns: int

    @classmethod
    def of(cls, rows: Iterable[Mapping[int, Exactly]], columns: int) -> Sparse:
        """From rows {column: number}."""
        found = []
        for row in rows:
            entries = ((column, exact(x)) for column, x in sorted(row.items()))
            found.append(tuple((column, x) for column, x in entries if x))
        return cls(tuple(found), columns)

    @classmethod
    def dense(cls, rows: Sequence[Sequence[Exactly]], columns: int) -> Sparse:
        """From rows written out."""
        return cls.of((dict(enumerate(row)) for row in rows), columns)

    @cached_property
    def reads(self) -> frozenset[int]:
        """The columns that are not all 0."""
        return frozenset(column for row in self.rows for column, _ in row)

    def times(self, z: Sequence[Number]) -> Vector:
        """The product with a vector."""
        return [dot(row, z) for row in self.rows]

    @property
    def numbers(self) -> Iterator[fmpq]:
        """The entries that are not 0."""
        return (x for row in self.rows for _, x in row)


def widened(matrix: Sparse, columns: int) -> Sparse:
    """The same with more columns, which are 0."""
    return Sparse(matrix.rows, columns)


def dot(row: Row, z: Sequence[Number]) -> Number:
    total: Number = ZERO
    for column, weight in row:
        total += weight * z[column]
    return total


@dataclass(frozen=True)
class ExactAttention:
    """Z + sum_i W^O_i (W^V_i Z) sigma[(W^K_i Z)^T (W^Q_i Z)]   (eq. 2; eq. 5 for hardmax)."""

    heads: tuple[Head[Sparse], ...]
    kind: Literal["softmax", "hardmax"] = "softmax"

    @cached_property
    def reads(self) -> frozenset[int]:
        parts = (part.reads for h in self.heads for part in (h.key, h.query, h.value))
        return frozenset().union(*parts)

    def widened(self, dim: int) -> ExactAttention:
        """The same for columns with more coordinates, which it neither reads nor writes."""
        heads = []
        for h in self.heads:
            more = ((),) * (dim - len(h.output.rows))
            output = Sparse((*h.output.rows, *more), h.output.columns)
            key, query, value = (widened(m, dim) for m in (h.key, h.query, h.value))
            heads.append(Head(key, query, value, output))
        return ExactAttention(tuple(heads), self.kind)

    @property
    def stored(self) -> int:
        """How many numbers the matrices have, zeros and all."""
        return sum(len(m.rows) * m.columns for m in self.matrices)

    @property
    def matrices(self) -> list[Sparse]:
        return [m for h in self.heads for m in (h.key, h.query, h.value, h.output)]

    @property
    def numbers(self) -> Iterator[fmpq]:
        return (x for m in self.matrices for x in m.numbers)


@dataclass(frozen=True)
class ExactFeedForward:
    """H + W2 relu(W1 H + b1) + b2   (eq. 3), or with tanh in place of relu."""

    weight1: Sparse  # (q x d)
    bias1: tuple[fmpq, ...]
    weight2: Sparse  # (d x q)
    bias2: tuple[fmpq, ...]
    activation: Literal["relu", "tanh"] = "relu"

    @classmethod
    def of(
        cls,
        units: Iterable[tuple[Mapping[int, Exactly], Exactly, Mapping[int, Exactly]]],
        dim: int,
        bias: Mapping[int, Exactly] | None = None,
        activation: Literal["relu", "tanh"] = "relu",
    ) -> ExactFeedForward:
        """From units, each with what it reads {coordinate: weight}, its bias, and what it writes
        {coordinate: weight}; `bias` is b2."""
        units = list(units)
        written: list[dict[int, Exactly]] = [{} for _ in range(dim)]
        for j, (_, _, writes) in enumerate(units):
            for coordinate, weight in writes.items():
                written[coordinate][j] = weight
        return cls(
            Sparse.of((reads for reads, _, _ in units), dim),
            tuple(exact(b) for _, b, _ in units),
            Sparse.of(written, len(units)),
            tuple(exact((bias or {}).get(c, 0)) for c in range(dim)),
            activation,
        )

    @property
    def reads(self) -> frozenset[int]:
        return self.weight1.reads

    @property
    def hidden(self) -> int:
        return len(self.bias1)

    @property
    def stored(self) -> int:
        dim = len(self.bias2)
        return 2 * self.hidden * dim + self.hidden + dim

    @property
    def numbers(self) -> Iterator[fmpq]:
        yield from self.weight1.numbers
        yield from self.weight2.numbers
        yield from (x for x in (*self.bias1, *self.bias2) if x)


Layer = ExactAttention | ExactFeedForward


@dataclass(frozen=True)
class ExactBlock:
    """Attention, then feed-forward, both with skips (eq. 4); either may be missing."""

    attention: ExactAttention | None = None
    feedforward: ExactFeedForward | None = None


@dataclass(frozen=True)
class ExactNetwork:
    """head(Block(... Block(X + E))): the rows of ``table`` are words, those of ``positions`` E.

    ``head`` (labels x d) and ``bias`` make the logits. ``dim`` is d.
    """

    table: Sparse  # (words x d)
    positions: Sparse | None  # (length x d)
    blocks: tuple[ExactBlock, ...]
    head: Sparse
    bias: tuple[fmpq, ...]
    causal: bool = False

    @property
    def dim(self) -> int:
        return self.table.columns

    @property
    def length(self) -> int:
        """Rows of the table of positions, 0 for none."""
        return 0 if self.positions is None else len(self.positions.rows)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Attention and feed-forward layers, one after the other."""
        both = (layer for block in self.blocks for layer in (block.attention, block.feedforward))
        return tuple(layer for layer in both if layer is not None)

    @cached_property
    def last_attention(self) -> int:
        """The number of the last layer that attends, -1 for none: it puts out the context ids."""
        found = [i for i, layer in enumerate(self.layers) if isinstance(layer, ExactAttention)]
        return found[-1] if found else -1

    @cached_property
    def last_read(self) -> dict[int, int]:
        """The last layer that reads a coordinate; the head counts as the last of all."""
        found = {}
        for i, layer in enumerate(self.layers):
            found.update(dict.fromkeys(layer.reads, i))
        return {**found, **dict.fromkeys(self.head.reads, len(self.layers))}

    @cached_property
    def count(self) -> Counts:
        """How large it is, apart from the tables: those are the input X + E."""
        attentions = [x for x in self.layers if isinstance(x, ExactAttention)]
        hidden = [x.hidden for x in self.layers if isinstance(x, ExactFeedForward)]
        head = [*self.head.numbers, *filter(None, self.bias)]
        numbers = list(head)
        for layer in self.layers:
            tick()
            numbers += layer.numbers
        labels = len(self.bias)
        return Counts(
            layers=len(self.blocks),
            attentions=len(attentions),
            heads=max((len(layer.heads) for layer in attentions), default=0),
            width=max([self.dim, *hidden]),
            parameters=sum(layer.stored for layer in self.layers) + labels * (self.dim + 1),
            nonzero=len(numbers),
            distinct=len(set(numbers)),
            bits=max(map(bits, numbers), default=0),
            bits_total=sum(map(bits, numbers)),
        )


@dataclass(frozen=True)
class Counts:
    """The size of a network without its tables.

    ``layers`` are blocks, of which ``attentions`` attend, with ``heads`` heads at most; ``width``
    is the largest of d and the numbers of hidden units. ``parameters`` counts what the matrices
    hold, ``nonzero`` what of it is not 0, ``distinct`` how many different numbers that are; they
    take ``bits`` at most, and ``bits_total`` together.
    """

    layers: int
    attentions: int
    heads: int
    width: int
    parameters: int
    nonzero: int
    distinct: int
    bits: int
    bits_total: int
