"""Powers of two that move numbers away from the limits of float64."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LARGE = 2.0**900  # above this, sums, differences and cell widths may overflow
LIFT = 2.0**200
MOST = 800  # the largest exponent of a unit, and of what is scaled


class Rescaling(NamedTuple):
    """Queries are divided by `point`, keys multiplied by it, values divided by `value`."""

    point: Tensor  # (rows, 1)
    value: float

    @classmethod
    def of(cls, query: Tensor, key: Tensor, value: float) -> Rescaling:
        """Makes the largest query and the range of the keys equally far from 1."""
        extent = key.amax(-1, keepdim=True) / 4 - key.amin(-1, keepdim=True) / 4
        room = MOST - torch.frexp(key.abs().amax(-1, keepdim=True)).exponent
        size = torch.frexp(query.abs().amax(-1, keepdim=True)).exponent
        exponent = torch.minimum((size - torch.frexp(extent).exponent) // 2, room)
        # Where all keys are equal it does not matter what they are.
        exponent = exponent.where(extent > 0, MOST).clamp(-MOST, MOST)
        return cls(torch.exp2(exponent.to(key.dtype)), LIFT if value > LARGE else 1.0)

    def scaled(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # If queries and keys are both this large, one key has all the weight anyway.
        query = (query / self.point).clamp(-(2.0**MOST), 2.0**MOST)
        key = key * self.point
        return query, key.where(key.abs() < 2 * 2.0**MOST, 0.0), value / self.value

    def gradients(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """From gradients with respect to the scaled numbers to those for the original ones."""
        return query / self.point * self.value, key * self.point * self.value, value
