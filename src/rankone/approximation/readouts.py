"""F2: stairs along the line of context ids, with a constant or a plane on each cell.

A constant readout has one level per id (eq. 67, 68 corrected). A linear one has a plane.

A network that is constant on cells is off by the slope of f times the size of a cell: 1/D. But a
token also has its place in its cell, the residual r_k = z - (t + 1/2) / D, and F2 can add a slope
times that. The residuals of the others must come through attention, which passes one number.
Adding eta (r_l1 + ... + r_ld) to the keys moves it, inside the gap around a context id, by

    eta sum_l g_l (r_l1 + ... + r_ld),     g_l = p_l (1 + y (x_l - c)),  the gradient of boltz.

For n = 2 and d = 1 that is the other's residual: F2 knows everything to first order, and the error
falls like 1/D^2. So it does for n = 1, and, with d = 1 and no positions, for every f that is linear
in the sum of the others. In general (n - 1) d residuals would have to pass, and one number varies
in one direction only: the part of f across it stays constant on cells, and the error 1/D, with a
smaller constant. Steeper keys would not help: whatever the weights, the derivative of the network
with respect to the other tokens is, wherever it exists, a multiple of that one gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.grid_mapping import GridMapping, keys_of, weights
from rankone.approximation.stream_layout import StreamLayout
from rankone.approximation.target import Target
from rankone.arrays import Floats, Ints
from rankone.errors import PrecisionError
from rankone.nn import Stairs, TiltedStairs

LINEAR = 1 / 64  # how far a score may move
REACH = 1 + 1e-9  # largest residual in half cells, with its rounding
STEP = 0.25  # of a cell: step of the central differences of f


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


@dataclass(frozen=True)
class Planes:
    """Per context id, in the order of the sequences: f is about

        level + slope r_k + share sum_(l != k) g_l (r_l1 + ... + r_ld)

    on its cell. ``slope`` is ids x m x d, ``share`` ids x m, ``own`` the g_k of the token itself,
    ``others`` the sum of the |g_l| of the others.
    """

    slope: Floats
    share: Floats
    own: Floats
    others: Floats

    def height(self, reach: float, bend: float) -> float:
        """How far a plane is from its level on its cell, at most, in one entry.

        `reach` is the largest residual, `bend` the largest error of attention's gradient.
        """
        d = self.slope.shape[2]
        others = self.others[:, None] * d * reach + bend
        return float((np.abs(self.slope).sum(2) * reach + np.abs(self.share) * others).max())


def gradient(grid: CellGrid, mapping: GridMapping, sequences: Ints) -> Floats:
    """g_l for every token of the sequences."""
    x = keys_of(grid, mapping, sequences)
    p = weights(mapping, x)
    c = (p * x).sum(1, keepdims=True)
    return np.asarray(p * (1 + mapping.query * (x - c)))


def choose_eta(grid: CellGrid, mapping: GridMapping, g: Floats) -> float:
    """The largest eta for which residuals move an id by at most a quarter of the gap to the next.

    Scores also move so little that attention is nearly linear in them: what `bend` allows moves an
    id by at most a twelfth of the gap more. (A move of the keys by Delta makes the gap at least
    2 Delta / range, and bends ids by (2 + y range) y Delta^2 / (4 range).)
    """
    if not np.isfinite(mapping.gap):
        return 0.0
    residual = 0.5 * grid.d / grid.cells  # r_l1 + ... + r_ld at most
    spread = float(np.abs(g).sum(1).max())
    inside = 2 * mapping.range(grid.n) * mapping.gap / 4 / spread
    straight = min(LINEAR, 0.5 / (2 + mapping.query * mapping.range(grid.n) + 2 * LINEAR))
    return min(inside, straight / mapping.query) / residual


def bend(grid: CellGrid, mapping: GridMapping, eta: float) -> float:
    """Largest deviation of the average, divided by eta, from its linear part in the residuals.

    With keys x + t delta, weights p of e^(y x) and c the average, c' = E delta + y Cov(x, delta)
    and c'' = 2 y Var(delta) + y^2 E (x - c)(delta - E delta)^2. |delta| <= Delta, the range of the
    keys is at most range + 2 Delta, and Taylor's remainder is half of the largest c''.
    """
    residual = 0.5 * REACH * grid.d / grid.cells
    y, most = mapping.query, eta * residual
    return 0.5 * (2 * y + y**2 * (mapping.range(grid.n) + 2 * most)) * most * residual


def find_planes(target: Target, grid: CellGrid, sequences: Ints, g: Floats) -> Planes:
    """Central differences of f in each coordinate of the token and in the others together."""
    row, k = np.nonzero(grid.owners(sequences))
    parts = [
        _differences(target, grid, sequences[row[part]], k[part], g[row[part]])
        for part in grid.batches(len(row))
    ]
    slope, share = (np.concatenate(part) for part in zip(*parts, strict=True))
    own = g[row, k]
    return Planes(slope, share, own, np.abs(g).sum(1)[row] - np.abs(own))


def _differences(
    target: Target, grid: CellGrid, sequences: Ints, k: Ints, g: Floats
) -> tuple[Floats, Floats]:
    ids, d = np.arange(len(k)), grid.d
    centre = grid.centres(sequences)
    step = STEP / grid.cells

    def along(move: Floats) -> Floats:
        """The derivative of the token's own f, for moves measured in the unit cube."""
        x = move * step * grid.span
        return np.asarray((target(centre + x) - target(centre - x))[ids, k] / (2 * step))

    slope = np.empty((len(k), target.outputs, d))
    for i in range(d):
        move = np.zeros_like(centre)
        move[ids, k, i] = 1.0
        slope[..., i] = along(move)
    others = g.copy()
    others[ids, k] = 0.0
    largest = np.abs(others).max(1, initial=0.0)
    if not largest.all():  # a sequence of one token
        return slope, np.zeros((len(k), target.outputs))
    together = along(np.repeat((others / largest[:, None])[..., None], d, axis=2))
    return slope, together * (largest / (d * (others**2).sum(1)))[:, None]


def tilted_readout(
    direction: torch.Tensor,
    grid: CellGrid,
    mapping: GridMapping,
    layout: StreamLayout,
    ids: Floats,
    values: Floats,
    planes: Planes,
    eta: float,
) -> Stairs:
    """A plane around every id, as wide as residuals move it, and a ramp to the next."""
    order = np.argsort(ids)
    ids = ids[order]
    around = np.diff(ids).min(initial=math.inf) / 3
    per_share = eta * 0.5 / mapping.range(grid.n)  # how far s moves
    share, own = planes.share[order], planes.own[order]
    slope = planes.slope[order] - (share * own[:, None])[..., None]
    vectors = {
        "start": (ids[:-1] + around)[None],
        "width": (np.diff(ids) - 2 * around)[None],
        "level": values[order][None],
        "tilt": share / per_share if per_share else np.zeros_like(share),
        "middle": ids,
        "slope": slope,
    }
    residuals = [layout.vector(layout.residual(i, grid.cells)) for i in range(grid.d)]
    return TiltedStairs.assemble(
        direction=direction[None].clone(),
        output=to_output(layout),
        residual=torch.stack(residuals),
        reach=torch.tensor(0.5 / grid.cells * REACH, dtype=torch.float64),
        **{name: torch.from_numpy(vector) for name, vector in vectors.items()},
    )


def largest_plane(f2: Stairs) -> float:
    """How far a readout is from its levels anywhere, in one entry; 0 if it is constant.

    Along s as far as planes go, and across it, on a ramp, from one slope to the next in each
    residual by itself.
    """
    if not isinstance(f2, TiltedStairs):
        return 0.0
    slope, tilt, reach = (x.detach().abs() for x in (f2.slope, f2.tilt, f2.reach))
    if not f2.start.numel():
        return float(slope.sum(-1).max() * reach)
    around = float((f2.start[0] - f2.middle[:-1]).detach().max())
    across = torch.maximum(slope[1:], slope[:-1]).sum(-1) * reach
    along = torch.maximum(tilt[1:], tilt[:-1]) * around
    return float((across + along).max())
