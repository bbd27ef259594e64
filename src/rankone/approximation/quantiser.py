"""F1: the quantiser of eq. 56 to 58 on the compact domain, one staircase per coordinate."""

from __future__ import annotations

import math

import numpy as np
import torch

from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.grid_mapping import GridMapping
from rankone.approximation.stream_layout import StreamLayout
from rankone.errors import PrecisionError, SettingError
from rankone.nn import Stairs

STEEPEST = 44  # ramps are at least 2^-44 wide, so that some floats of [0, 1] lie on them
RESERVE = {"constant": 4, "linear": 6}  # bits by which rounding must stay below the gap


def choose_delta(grid: CellGrid, mapping: GridMapping, readout: str, delta: float | None) -> float:
    """The width of a ramp in the unit cube: a power of two, as narrow as float64 can carry.

    Rounding in a dense sum of steps of slope 1/delta puts a cell number off by about 2^-53 / delta,
    the number of a token by D^(d-1) times that, and the context ids are apart by the gap. A power
    of two, and steps with few bits, make the sums exact where nothing else goes wrong.
    """
    finest = math.inf if grid.cells == 1 else mapping.gap / grid.cells ** (grid.d - 1)
    steepest = 2.0**STEEPEST
    if finest < math.inf:
        steepest = min(steepest, 2.0 ** (53 - RESERVE[readout]) * finest)
    if not steepest >= 4 * grid.cells:
        raise PrecisionError(
            f"the {grid.context_ids:,} context ids of grid {grid.cells} with n = {grid.n} and "
            f"d = {grid.d} are only {mapping.gap:.1e} apart, too little for float64",
            remedy="use a smaller grid, n or d",
        )
    if delta is None:
        return 2.0 ** -math.floor(math.log2(steepest))
    if not 1 / steepest <= delta <= 0.5 / grid.cells:
        raise SettingError(
            f"delta = {delta:g} cannot be used with grid {grid.cells}",
            remedy=f"give {1 / steepest:.1e} to {0.5 / grid.cells:.1e}, or leave it out",
        )
    return 2.0 ** math.floor(math.log2(delta))


def quantiser(grid: CellGrid, mapping: GridMapping, layout: StreamLayout, delta: float) -> Stairs:
    """Coordinate i of a token stays; its cell number and its key go into other coordinates.

    Eq. 57 has steps at t/D, t = 0..D-1. On the compact domain the first is not needed; the other
    ramps lie on [t/D, t/D + delta) as there (t/D rounded to 44 bits). Eq. 57 sends a
    cell to its upper corner; here its number t is kept, and f is evaluated at the centre, which
    is twice as near.
    """
    d, D = grid.d, grid.cells
    start = np.round(np.arange(1, D) / D * 2.0**STEEPEST) / 2.0**STEEPEST
    level = np.zeros((d, D, d + 2))
    for i in range(d):
        level[i, :, i] = np.arange(D)
    level[0, :, d] = 0.0 if mapping.keys is None else mapping.keys
    level[0, :, d + 1] = 1.0
    eye = torch.eye(layout.width, dtype=torch.float64)
    return Stairs.assemble(
        direction=eye[:d].clone(),
        start=torch.from_numpy(np.tile(start, (d, 1))),
        width=torch.full((d, D - 1), delta, dtype=torch.float64),
        level=torch.from_numpy(level),
        output=eye[:, d : 2 * d + 2].clone(),
    )
