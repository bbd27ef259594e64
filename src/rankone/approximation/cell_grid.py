"""The grid of eq. 53: D cells per coordinate, and the sequences of cells up to permutation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints


@dataclass(frozen=True)
class CellGrid:
    """[low, high]^(n x d) cut into D cells per coordinate.

    A token in cell (t_1, ..., t_d), each from 0 to D - 1, has the number
    t_1 + t_2 D + ... + t_d D^(d-1), one of V = D^d. Without ``positions`` sequences that are
    permutations of each other count once: a context id is a token and a multiset of n - 1 others,

        V C(V + n - 2, n - 1),  about D^(dn) / (n - 1)!;   with positions  n D^(dn).
    """

    cells: int
    n: int
    low: Floats
    high: Floats
    positions: bool = False

    @property
    def d(self) -> int:
        return len(self.low)

    @property
    def span(self) -> Floats:
        return self.high - self.low

    @property
    def tokens(self) -> int:
        return int(self.cells**self.d)

    @property
    def sequences(self) -> int:
        """Number of sequences at which f is evaluated."""
        v, n = self.tokens, self.n
        return v**n if self.positions else comb(v + n - 1, n)

    @property
    def context_ids(self) -> int:
        v, n = self.tokens, self.n
        return n * v**n if self.positions else v * comb(v + n - 2, n - 1)

    @property
    def at_once(self) -> int:
        """The number of sequences in one batch."""
        return max(16, (1 << 15) // self.n)

    def batches(self, sequences: int) -> Iterator[slice]:
        """Cut a number of sequences into batches."""
        return (slice(i, i + self.at_once) for i in range(0, sequences, self.at_once))

    def volume_root(self, p: float) -> float:
        """(volume of the domain)^(1/p), without computing the volume, which may overflow."""
        return float(np.exp(np.log(self.span).sum() * self.n / p))

    def all_sequences(self) -> Ints:
        """Token numbers (sequences, n), sorted within each row unless there are positions.

        >>> CellGrid(2, 2, np.zeros(1), np.ones(1)).all_sequences().tolist()
        [[0, 0], [0, 1], [1, 1]]
        """
        v = self.tokens
        rows = np.arange(v, dtype=np.int64)[:, None]
        for _ in range(self.n - 1):
            least = np.zeros(len(rows), np.int64) if self.positions else rows[:, -1]
            room = v - least
            above = np.repeat(np.arange(len(rows)), room)
            first = np.repeat(np.cumsum(room) - room, room)
            token = least[above] + np.arange(len(above)) - first
            rows = np.column_stack([rows[above], token])
        return rows

    def owners(self, sequences: Ints) -> NDArray[np.bool_]:
        """Which tokens have a context id of their own: the first of equal tokens."""
        first = np.ones(sequences.shape, bool)
        if not self.positions:
            first[:, 1:] = sequences[:, 1:] != sequences[:, :-1]
        return first

    def coordinates(self, tokens: Ints) -> Ints:
        """Cell numbers t_1, ..., t_d of tokens, on a new last axis."""
        return np.asarray(tokens[..., None] // self.cells ** np.arange(self.d) % self.cells)

    def centres(self, tokens: Ints) -> Floats:
        """Centres of the tokens' cells, in the domain."""
        return self.points((self.coordinates(tokens) + 0.5) / self.cells)

    def points(self, z: Floats) -> Floats:
        """From the unit cube to the domain, clipped to it against rounding."""
        return np.asarray(np.clip(self.low + self.span * z, self.low, self.high), np.float64)
