"""F2: stairs along the line of context ids, one level per id (eq. 67, 68 corrected)."""

from __future__ import annotations

import numpy as np
import torch

from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.stream_layout import StreamLayout
from rankone.arrays import Floats
from rankone.errors import PrecisionError
from rankone.nn import Stairs


def line(grid: CellGrid, layout: StreamLayout, reach: float) -> torch.Tensor:
    """The direction a of s = a^T h, `reach` being the largest key: see `GridMapping`."""
    own = layout.number(grid.cells)
    if grid.positions:
        own[layout.place] = float(grid.tokens)
    return layout.vector({**own, layout.context: 0.5 / reach})


def constant_readout(
    direction: torch.Tensor, layout: StreamLayout, ids: Floats, values: Floats
) -> Stairs:
    """A step between neighbouring ids with different values, in the middle third of their gap::

    f(after)  ........______        where the paper has a tent per id (three units, two here):
                     /              on either side the value is that of the id, also if the id
    f(before) ______/........       is off by rounding, and beyond the last id it is bounded
             id        next id
    """
    order = np.argsort(ids)
    ids, values = ids[order], values[order]
    change = np.flatnonzero((values[1:] != values[:-1]).any(1))
    gap = ids[change + 1] - ids[change]
    third = gap / 3
    if not (third > 4 * np.spacing(ids[change + 1])).all():
        raise PrecisionError(
            "two contexts have the same id in float64", remedy="use a smaller grid"
        )
    return Stairs.assemble(
        direction=direction[None].clone(),
        start=torch.from_numpy(ids[change] + third)[None],
        width=torch.from_numpy(third)[None],
        level=torch.from_numpy(values[np.append(change, len(values) - 1)])[None],
        output=to_output(layout),
    )


def to_output(layout: StreamLayout) -> torch.Tensor:
    """O of the readout: onto the output coordinates."""
    eye = torch.eye(layout.width, dtype=torch.float64)
    return eye[:, layout.width - layout.outputs :].clone()
