"""Powers of two that bring numbers near the limits of float64 to where there is room."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LARGE = 2.0**900  # from here on sums, differences and cell widths may leave the range
LIFT = 2.0**200
MOST = 800  # the largest exponent of a unit, and of what is scaled


class Rescaling(NamedTuple):
    """Queries are divided by `point`, keys multiplied by it, values divided by `value`."""

    point: Tensor  # (rows, 1)
    value: float

    @classmethod
    def of(cls, query: Tensor, key: Tensor, value: float) -> Rescaling:
        """The largest query and the range of the keys, each as far from 1 as the other."""
        extent = key.amax(-1, keepdim=True) / 4 - key.amin(-1, keepdim=True) / 4
        room = MOST - torch.frexp(key.abs().amax(-1, keepdim=True)).exponent
        size = torch.frexp(query.abs().amax(-1, keepdim=True)).exponent
        exponent = torch.minimum((size - torch.frexp(extent).exponent) // 2, room)
        # Where all keys are equal it does not matter what they are.
        exponent = exponent.where(extent > 0, MOST).clamp(-MOST, MOST)
        return cls(torch.exp2(exponent.to(key.dtype)), LIFT if value > LARGE else 1.0)

    def scaled(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # Queries and keys that are both so large leave all the weight to one key anyway.
        query = (query / self.point).clamp(-(2.0**MOST), 2.0**MOST)
        key = key * self.point
        return query, key.where(key.abs() < 2 * 2.0**MOST, 0.0), value / self.value

    def gradients(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """By the numbers as they were, for gradients by the scaled ones of results divided too."""
        return query / self.point * self.value, key * self.point * self.value, value
