"""The construction of Proposition 1, step by step: F1, attention, F2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.grid_mapping import GridMapping, choose_mapping
from rankone.approximation.readouts import (
    REACH,
    Planes,
    bend,
    choose_eta,
    constant_readout,
    find_planes,
    gradient,
    line,
    tilted_readout,
)
from rankone.approximation.stream_layout import StreamLayout
from rankone.approximation.target import ORDER, Target, show
from rankone.arrays import Floats, Ints
from rankone.errors import FunctionError, PrecisionError, SettingError
from rankone.nn import Approximator, FeedForward, Rank1Attention, Stairs
from rankone.progress import Progress

ReadoutKind = Literal["constant", "linear"]  # what each cell gets


@dataclass(frozen=True)
class Built:
    """The network and its parts; ``sequences`` of cells, and ``values`` of f at their centres."""

    network: Approximator
    f1: Stairs
    f2: Stairs
    mapping: GridMapping
    layout: StreamLayout
    delta: float
    planes: Planes | None
    height: float  # of the planes of the readout on their cells; 0 if it is constant
    sequences: Ints
    values: Floats

    @property
    def edges(self) -> Floats:
        """Where the ramps of F1 begin, in the unit cube."""
        return np.asarray(self.f1.start[0].detach().numpy())


def build(
    target: Target, grid: CellGrid, kind: ReadoutKind, delta: float | None, progress: Progress
) -> Built:
    """Weights for f on a grid, not yet verified."""
    sequences = grid.all_sequences()
    layout = StreamLayout(grid.d, target.outputs, grid.positions)

    progress("context ids", 0.0)
    mapping = choose_mapping(grid, sequences)
    delta = choose_delta(grid, mapping, kind, delta)
    f1 = quantiser(grid, mapping, layout, delta)
    g = gradient(grid, mapping, sequences) if kind == "linear" else None
    eta = 0.0 if g is None else choose_eta(grid, mapping, g)
    attention = rank1_attention(grid, mapping, layout, eta)

    direction = line(grid, layout, mapping.range(grid.n))
    network = Approximator(
        n=grid.n,
        low=torch.from_numpy(grid.low),
        span=torch.from_numpy(grid.span),
        f1=f1,
        attention=attention,
        f2=FeedForward(layout.width, 0),  # a placeholder: F2 needs the context ids
        outputs=target.outputs,
        positions=grid.positions,
    )
    owners = grid.owners(sequences)
    ids = np.empty(sequences.shape)
    values = np.empty((*sequences.shape, target.outputs))
    for part in grid.batches(len(sequences)):
        progress("values", part.start / len(sequences))
        x = grid.centres(sequences[part])
        with torch.no_grad():
            h = network.contexts(torch.from_numpy(x))
            ids[part] = (h @ direction).numpy()
        values[part] = target(x)
    if not grid.positions:
        values = alike(target, grid, sequences, values)

    progress("readout", 0.0)
    line_ids, levels = ids[owners], values[owners]
    f2: Stairs
    planes, height = None, 0.0
    if g is None:
        f2 = constant_readout(direction, layout, line_ids, levels)
    else:
        planes = find_planes(target, grid, sequences, g)
        height = planes.height(0.5 * REACH / grid.cells, bend(grid, mapping, eta))
        f2 = tilted_readout(direction, grid, mapping, layout, line_ids, levels, planes, eta)
    network.f2 = f2
    return Built(network, f1, f2, mapping, layout, delta, planes, height, sequences, values)


def alike(target: Target, grid: CellGrid, sequences: Ints, values: Floats) -> Floats:
    """Give equal tokens of a sequence the value of the first; they may differ by rounding only."""
    first = np.maximum.accumulate(grid.owners(sequences) * np.arange(grid.n), 1)[..., None]
    equal = np.take_along_axis(values, first, 1)
    off = np.abs(values - equal).max((1, 2))
    row = int(off.argmax())
    if off[row] > target.rounding(values):
        x = grid.centres(sequences[row])
        raise FunctionError(
            f"not permutation equivariant: at {show(x)}, where tokens are equal, it returns "
            f"{show(values[row])}",
            where=target.name,
            remedy=ORDER,
        )
    return equal


def rank1_attention(
    grid: CellGrid, mapping: GridMapping, layout: StreamLayout, eta: float
) -> Rank1Attention:
    """Eq. 20: v1 makes the key, v2 a multiple of the coordinate that is 1, W^O a new coordinate."""
    unscaled = layout.number(grid.cells) if mapping.keys is None else {layout.key: 1.0}
    key = layout.vector(unscaled) / mapping.widest
    for i in range(grid.d):
        key += eta * layout.vector(layout.residual(i, grid.cells))
    if grid.positions:
        key[layout.place] = mapping.place
    return Rank1Attention.assemble(
        key,
        layout.vector({layout.one: mapping.query}),
        layout.vector({layout.context: 1.0}),
    )


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
