"""Points of many rows in the cells of a grid; each octave that has points is a block.

`chebyshev` says how points are put into cells. Blocks are numbered through all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from rankone.kernels.chebyshev import BITS, CELLS_PER_OCTAVE

POINTS = 1 << 18  # put into cells, or read from them, together

Points = Callable[[slice], tuple[Tensor, Tensor]]  # the points and halves of some columns


def power_of_two(x: Tensor) -> Tensor:
    """2^floor(log2 x) for x > 0, and 0 for x that is 0 or not a normal number."""
    _, mantissa = layout(x.dtype)
    return (bits_of(x) >> mantissa << mantissa).view(x.dtype)


def bits_of(x: Tensor) -> Tensor:
    return x.contiguous().view(layout(x.dtype)[0])


def layout(dtype: torch.dtype) -> tuple[torch.dtype, int]:
    """The integer as wide as this type of float, and how many of its bits are the mantissa."""
    return (torch.int64, 52) if dtype == torch.float64 else (torch.int32, 23)


def range_of(dtype: torch.dtype) -> tuple[float, float]:
    """The least origin of a grid, and the largest query: results computed from them are normal."""
    return (2.0**-1000, 2.0**1000) if dtype == torch.float64 else (2.0**-100, 2.0**100)


class PlacedPoints(NamedTuple):
    """The cells of points, and the blocks they lie in: octaves of one half of one row."""

    cell: Tensor  # (R, n): of each point, counted through all blocks
    t: Tensor  # (R, n): where it is in the cell, from -1 to 1
    row: Tensor  # of each block, rising
    half: Tensor
    near: Tensor  # the point where the block begins
    far: Tensor  # where its points end
    width: Tensor

    def spans(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Some points of every row at a time: their columns, cells, and places in the cells."""
        for span in columns(self.t.shape):
            yield span, self.cell[:, span].flatten().long(), self.t[:, span].flatten()


def columns(shape: torch.Size) -> Iterator[slice]:
    step = max(1, POINTS // shape[0])
    return (slice(i, i + step) for i in range(0, shape[1], step))


def placed(points: Points, shape: torch.Size, reach: Tensor, opposite: Tensor) -> PlacedPoints:
    """Place points >= 0 of two halves.

    `reach` and `opposite`, (R, 1), are the largest point of each row here and in the other grid.
    """
    dtype, device = reach.dtype, reach.device
    origin = torch.minimum(2 * power_of_two(reach), 8 / power_of_two(opposite))
    origin = origin.clamp_min(range_of(dtype)[0])
    integer, mantissa = layout(dtype)
    inside = mantissa - BITS
    least = bits_of(origin) >> mantissa
    octaves = int(((bits_of(reach + origin) >> mantissa) - least).max()) + 1
    row = torch.arange(shape[0], device=device).unsqueeze(-1)

    def locate(span: slice) -> tuple[Tensor, Tensor, Tensor]:
        point, half = points(span)
        shifted = point + origin
        bits = bits_of(shifted)
        edge = (bits >> inside << inside).view(dtype) - origin
        t = (point - edge) * (2 * CELLS_PER_OCTAVE / power_of_two(shifted)) - 1
        code = (2 * row + half) * octaves + ((bits >> mantissa) - least)
        return t, code, bits >> inside & (CELLS_PER_OCTAVE - 1)

    seen = torch.zeros(2 * shape[0] * octaves, device=device, dtype=torch.bool)
    for span in columns(shape):
        seen[locate(span)[1]] = True
    block = seen.cumsum(0, dtype=torch.int32) - 1
    cell = torch.empty(shape, device=device, dtype=torch.int32)
    t = torch.empty(shape, device=device, dtype=dtype)
    for span in columns(shape):
        t[:, span], code, within = locate(span)
        cell[:, span] = block[code] * CELLS_PER_OCTAVE + within

    code = seen.nonzero().squeeze(-1)
    row = code // (2 * octaves)
    origin, reach = origin[row, 0], reach[row, 0]
    width = (bits_of(origin) + ((code % octaves).to(integer) << mantissa)).view(dtype)
    near = width - origin
    far = torch.minimum(near + width, reach)
    return PlacedPoints(cell, t, row, code // octaves % 2, near, far, width)
