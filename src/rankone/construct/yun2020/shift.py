"""The attention layers: every context gets an id of its own.

Words are points of the grid {0, delta, .., 1 - delta}^d. With M = delta^-d and u = (1, delta^-1,
.., delta^-(d-1)), column X_k has the id u.X_k; that of word number w < M is w delta. Two heads of
size 1 with opposite outputs make the layer of a grid value g, one head the global layer::

    xi(X; b)_k  =  u.X hardmax[(u.X)^T (u.X_k - b)]  =  max id if id_k > b,  min id if id_k < b

    layer g   X_1k += M (xi(X; g - delta/2)_k - xi(X; g + delta/2)_k),   g in increasing order
    global    X_1k += G xi(X; 0)_k

Layer g moves the column with id g only, if there is one, to g + M (max id - min id): a *hit*.
Without positions, g takes the M values w delta, and G = M^(n+1). With positions, E_k = (k, .., k),
k = 0 .. n-1, adds k S to the id of column k, S = 1 + delta^-1 + .. + delta^-(d-1); g takes the n M
values k S + w delta, and G = n M^(n+1) / delta.

**Ids are multiples of delta, and distinct** in a sentence of two or more columns, before and after
every layer. They are at first, as S >= M delta, and a hit lands (M-1) delta or more above all ids::

    g + M (max - min)  =  max + (M-1)(max - g) + M (g - min),   where max > g or min < g         (1)

So b is no id in the layers g. Nor is it in the global layer: each column has been hit, and its id
is positive. Hence hardmax never meets a tie. A single column stays where it is until
the global layer.

**Without positions, different contexts have different ids** in the end, also in sentences of
different lengths m <= n, if no sentence repeats a word. For m >= 2, let l_1 < .. < l_m be the ids
at first. A hit lands above all grid values, so column j is hit once, as the smallest, and goes to
L_j = l_j + M (L_(j-1) - l_j), where L_0 = l_m. As L_j <= M L_(j-1), all L_j are below M^(n+1) delta
= G delta. So the final id L_j + G L_m, divided by G delta, gives L_m as quotient and L_j as rest.
And L_m gives the sentence: the rest of L_j by M delta is l_j, then L_(j-1) = (L_j - l_j)/M + l_j,
down to L_0, which is the only one below M delta. (For m = 1, L_m = l_1 is below it at once.)

With positions, a hit can land on a grid value that is still to come, and the column is hit again.
There is no proof here that contexts have different ids then: whoever uses it must check.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from flint import fmpq

from rankone.deadline import tick
from rankone.nn.exact import ExactAttention, ExactBlock, Sparse
from rankone.nn.exact.evaluate import Sentence
from rankone.nn.exact.numbers import ZERO, Exactly
from rankone.nn.layers import Head

Kind = Literal["softmax", "hardmax"]


class Grid(NamedTuple):
    """1/delta and d."""

    inverse: int
    d: int

    @property
    def size(self) -> int:
        """M, the number of points."""
        size: int = self.inverse**self.d
        return size

    @property
    def step(self) -> int:
        """S / delta, from the ids of one place to those of the next."""
        return self.inverse * (self.size - 1) // (self.inverse - 1)

    @property
    def u(self) -> dict[int, Exactly]:
        """By coordinate."""
        return {i: self.inverse**i for i in range(self.d)}

    def point(self, word: int) -> dict[int, Exactly]:
        """The column of a word: the digits of its number, times delta."""
        digits = (word // self.inverse**i % self.inverse for i in range(self.d))
        return {i: fmpq(digit, self.inverse) for i, digit in enumerate(digits)}


def grid(vocabulary: int, placed: bool = False) -> Grid:
    """delta = 1/2, so that float64 holds all numbers, and softmax needs the smallest factor, which
    grows with delta^-2. delta = 1/|V| with d = 1 has the fewest layers, down to half as many.

    With positions, d is at least 2: for M = 2, contexts in sentences of different lengths can have
    the same id. For n = 3, those of b in `a b` and of the first b in `b b` are equal.
    """
    return Grid(2, max(2 if placed else 1, (vocabulary - 1).bit_length()))


@dataclass(frozen=True)
class Shift:
    """The layers for sentences of up to ``n`` words. ``places`` have ids of their own: n with
    positions, 1 without. Ids and grid values are in units of delta."""

    grid: Grid
    n: int
    places: int = 1

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return self.places * self.grid.size + 1

    @property
    def values(self) -> Iterator[int]:
        """The grid values g."""
        places = (k * self.grid.step for k in range(self.places))
        return (start + word for start in places for word in range(self.grid.size))

    @property
    def last(self) -> int:
        """G."""
        factor: int = self.grid.size ** (self.n + 1)
        return factor if self.places == 1 else self.n * factor * self.grid.inverse

    def ids(self, words: Sentence) -> list[int]:
        """The ids of a sentence after all layers, hit by hit."""
        apart = self.grid.step if self.places > 1 else 0
        ids, g = [word + k * apart for k, word in enumerate(words)], -1
        while ahead := [x for x in ids if x > g and self._is_value(x)]:
            tick()
            g = min(ahead)
            ids[ids.index(g)] += self.grid.size * (max(ids) - min(ids))
        largest = max(ids)
        return [x + self.last * largest for x in ids]

    def blocks(self, dim: int, one: int, kind: Kind, factor: int = 1) -> list[ExactBlock]:
        """The layers, with scores times `factor`; X begins at coordinate 0, and `one` is 1."""
        key = Sparse.of([self.grid.u], dim)
        up, down, last = (
            Sparse.of([{0: weight}, *({} for _ in range(dim - 1))], 1)
            for weight in (self.grid.size, -self.grid.size, self.last)
        )

        def head(b: fmpq, output: Sparse) -> Head[Sparse]:
            query = {**self.grid.u, one: -b}
            scaled = Sparse.of([{c: factor * x for c, x in query.items()}], dim)
            return Head(key, scaled, key, output)

        layers = []
        for g in self.values:
            tick()
            below, above = (fmpq(2 * g + side, 2 * self.grid.inverse) for side in (-1, 1))
            layers.append((head(below, up), head(above, down)))
        return [ExactBlock(ExactAttention(heads, kind)) for heads in (*layers, (head(ZERO, last),))]

    def _is_value(self, x: int) -> bool:
        place, word = divmod(x, self.grid.step)
        return place < self.places and word < self.grid.size
