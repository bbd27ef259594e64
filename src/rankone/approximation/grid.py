"""The grid of eq. 53: D cells per coordinate, and the sequences of cells up to permutation."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankone.errors import SizeError

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

    @property
    def volume(self) -> float:
        return float(np.prod(self.span) ** self.n)

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
        return np.asarray(
            self.low + self.span * ((self.coordinates(tokens) + 0.5) / self.cells), np.float64
        )

    def bytes(self, outputs: int, *, linear: bool = False) -> int:
        """What building takes, roughly: sequences and values, then ids, sorted, as weights."""
        per_id = 6 + 4 * outputs + (2 + 2 * outputs * (1 + self.d) if linear else 0)
        return 8 * (self.context_ids * per_id + self.sequences * self.n * (3 + 2 * outputs))


def check_size(grid: Grid, outputs: int, *, linear: bool, memory: float | None) -> None:
    """Refuse what does not fit, before anything is built."""
    limit = usual_memory() if memory is None else memory
    if grid.bytes(outputs, linear=linear) <= limit:
        return

    def fits(cells: int) -> bool:
        return replace(grid, cells=cells).bytes(outputs, linear=linear) <= limit

    best, beyond = 0, grid.cells
    while beyond - best > 1:
        middle = (best + beyond) // 2
        best, beyond = (middle, beyond) if fits(middle) else (best, middle)
    need = grid.bytes(outputs, linear=linear) / 1e9
    remedy = f"the largest grid that fits is {best}" if best else "take a smaller n or d"
    raise SizeError(
        f"grid {grid.cells} with n = {grid.n} and d = {grid.d} has {grid.context_ids:,} context "
        f"ids; they would take about {need:,.1f} GB, and {limit / 1e9:,.1f} GB may be used",
        remedy=remedy,
    )


def usual_memory() -> float:
    """Half of what this machine, or the container, has."""
    try:
        total = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        total = 8e9
    with contextlib.suppress(OSError, ValueError):
        total = min(total, float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total / 2
