"""The residual stream between the layers: what each coordinate holds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class StreamLayout:
    """Coordinates of a token, in this order.

    ======== ======= ==========================================================
    token    d       the token, from 0 to 1
    cell     d       after F1: the number of its cell along each coordinate
    key      1       after F1: its key, an integer, where that is not the token's number
    one      1       after F1: 1, which the query is read from
    context  1       after attention: the average
    place    0 or 1  its position, if there are positional encodings
    output   m       after F2: f
    ======== ======= ==========================================================
    """

    d: int
    outputs: int
    positions: bool

    @property
    def key(self) -> int:
        return 2 * self.d

    @property
    def one(self) -> int:
        return self.key + 1

    @property
    def context(self) -> int:
        return self.key + 2

    @property
    def place(self) -> int:
        return self.key + 3

    @property
    def width(self) -> int:
        return self.key + 3 + self.positions + self.outputs

    def number(self, cells: int) -> dict[int, float]:
        """The number of a token: t_1 + t_2 D + ... + t_d D^(d-1)."""
        return {self.d + i: float(cells**i) for i in range(self.d)}

    def residual(self, i: int, cells: int) -> dict[int, float]:
        """How far a token is from the middle of its cell: z_i - (t_i + 1/2) / D."""
        return {i: 1.0, self.d + i: -1.0 / cells, self.one: -0.5 / cells}

    def vector(self, entries: dict[int, float]) -> Tensor:
        vector = torch.zeros(self.width, dtype=torch.float64)
        for coordinate, entry in entries.items():
            vector[coordinate] = entry
        return vector
