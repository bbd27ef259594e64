"""Run a network over the grid it was built for, before it is returned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from rankone.approximation.build import Built
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.readouts import largest_plane
from rankone.approximation.target import Target, check_order
from rankone.arrays import Floats
from rankone.errors import PrecisionError
from rankone.nn import FeedForward
from rankone.progress import Progress

EXACT = 1e-12  # of the size of f: largest error of the network at the centres
ROUNDINGS = 4  # rounding errors that the dense network may have
PLANES = 1 / 64  # of a plane: what rounding before the readout may add
DENSE_TOKENS, DENSE_UNITS = 48, 1 << 21


@dataclass(frozen=True)
class Verified:
    """Largest errors found before the network is returned.

    ``grid_error`` is the distance from the values of f that the network was built from, over the
    centres of all cells, with the tokens of each sequence shuffled; ``dense_difference`` is the
    distance of the network with every matrix multiplied out from the fast path on some sequences,
    None if it has too many units to try.
    """

    grid_error: float
    dense_difference: float | None


def verify(target: Target, built: Built, grid: CellGrid, seed: int, progress: Progress) -> Verified:
    """Check f at every centre and the dense network on a sample; raises an error if one is off.

    The network is permutation equivariant; that f is too is checked on a sample.
    """
    rng = np.random.default_rng(seed)
    if not grid.positions:
        some = rng.integers(len(built.sequences), size=min(len(built.sequences), grid.at_once))
        order = rng.permuted(np.tile(np.arange(grid.n), (len(some), 1)), axis=1)
        check_order(target, grid.centres(built.sequences[some]), built.values[some], order)
    size = 1e-300 + float(np.abs(built.values).max())
    worst = 0.0
    for part in grid.batches(len(built.sequences)):
        progress("verify", part.start / len(built.sequences))
        sequences, values = built.sequences[part], built.values[part]
        if not grid.positions:
            order = rng.permuted(np.tile(np.arange(grid.n), (len(sequences), 1)), axis=1)
            sequences = np.take_along_axis(sequences, order, 1)
            values = np.take_along_axis(values, order[..., None], 1)
        worst = max(worst, float(np.abs(run(built, grid.centres(sequences)) - values).max()))
    if not worst <= EXACT * size:
        raise PrecisionError(
            f"the network is off by {worst:.1e} at the centre of a cell",
            remedy="use a smaller grid",
        )
    progress("dense", 0.0)
    if built.f2.hidden > DENSE_UNITS:
        return Verified(worst, None)
    difference, allowed = compare_dense(built, grid, rng)
    if not difference <= allowed + EXACT * size:
        raise PrecisionError(
            f"the network multiplied out is {difference:.1e} off the fast path",
            remedy="use a smaller grid",
        )
    return Verified(worst, difference)


def run(built: Built, x: Floats) -> Floats:
    with torch.no_grad():
        return np.asarray(built.network(torch.from_numpy(x)).numpy())


def compare_dense(built: Built, grid: CellGrid, rng: np.random.Generator) -> tuple[float, float]:
    """How far the network multiplied out is off the fast path, and how far it may be by rounding.

    On random inputs off the ramps, where a last bit may take a token to another level. F1 and
    attention move nothing if levels are constant, and planes by a small share. In F2 a rounding
    is 2^-53 sum_j |w_j| |u|_j for a sum over units w_j relu(u_j), |u|_j being the size of what u_j
    is added up from. (The sum has far more than one, but they hardly ever agree in sign.)
    """
    rows = rng.integers(len(built.sequences), size=max(1, DENSE_TOKENS // grid.n))
    inside = rng.uniform(0.02, 0.98, (len(rows), grid.n, grid.d))
    inside = np.maximum(inside, 2 * grid.cells * built.delta) - 0.5
    x = torch.from_numpy(grid.centres(built.sequences[rows]) + inside * grid.span / grid.cells)
    network, full = built.network, built.network.expand()
    f2 = full.f2
    assert isinstance(f2, FeedForward)
    with torch.no_grad():
        h = full.contexts(x).reshape(-1, full.width)
        size = f2.weight1.abs() @ h.abs().amax(0) + f2.bias1.abs()
        rounding = 2.0**-53 * (f2.weight2.abs() @ size).max()
        chunks = torch.split(h, max(1, DENSE_UNITS // max(1, f2.hidden)))
        dense = torch.cat([f2(chunk) for chunk in chunks])[:, -network.outputs :]
        off = (dense - network(x).reshape(dense.shape)).abs().max()
    return float(off), float(ROUNDINGS * rounding) + PLANES * largest_plane(built.f2)
