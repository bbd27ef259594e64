"""The grid of eq. 53: D cells per coordinate, and the sequences of cells up to permutation."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
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
        """How many sequences f is asked for."""
        v, n = self.tokens, self.n
        return v**n if self.positions else comb(v + n - 1, n)

    @property
    def context_ids(self) -> int:
        v, n = self.tokens, self.n
        return n * v**n if self.positions else v * comb(v + n - 2, n - 1)

    def volume_root(self, p: float) -> float:
        """The volume of the domain to the power of 1/p, which is a float where it may not be."""
        return float(np.exp(np.log(self.span).sum() * self.n / p))

    def all_sequences(self) -> Ints:
        """Numbers of the tokens, (sequences, n); in order within a row unless there are positions.

        >>> Grid(2, 2, np.zeros(1), np.ones(1)).all_sequences().tolist()
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
        """Which tokens bring a context id of their own: the first of equal ones."""
        first = np.ones(sequences.shape, bool)
        if not self.positions:
            first[:, 1:] = sequences[:, 1:] != sequences[:, :-1]
        return first

    def coordinates(self, tokens: Ints) -> Ints:
        """Cell numbers t_1, ..., t_d of tokens, on a new last axis."""
        return np.asarray(tokens[..., None] // self.cells ** np.arange(self.d) % self.cells)

    def centres(self, tokens: Ints) -> Floats:
        """The middles of their cells, in the domain."""
        return self.points((self.coordinates(tokens) + 0.5) / self.cells)

    def points(self, z: Floats) -> Floats:
        """From the unit cube to the domain, of which rounding must not lead out."""
        return np.asarray(np.clip(self.low + self.span * z, self.low, self.high), np.float64)
