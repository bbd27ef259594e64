"""How much rounding, in float64 or in the type of f, adds to the error."""

from __future__ import annotations

import numpy as np
import torch

from rankone.approximation.build import Built
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.functions import Modulus
from rankone.approximation.target import ULPS, Target
from rankone.nn import Rank1Attention, TiltedStairs

UNIT = 2.0**-53  # the largest relative error of one operation
APART = {"constant": 3, "linear": 12}  # an id may be off by the gap divided by this


def function_rounding(target: Target, modulus: Modulus, *, size: float, norm: float) -> float:
    """How far one entry of f as computed may be from f itself.

    f has the modulus of continuity, and what is computed is f(X') + E, where

        |X' - X| <= 2 eps |X|,    |E_kj| <= 2 (eps max |f| + tiny):

    two units in the last place, of the input and of the output, in the type that f returns (eps,
    and tiny for its smallest numbers). So an entry is off by w <= modulus(2 eps |X|) + 2 (eps F +
    tiny), with F = max |f|. `norm` is the largest |X|; `size` is the largest |f| that could be
    there but for that, and f itself can be larger than what is computed: F <= (size +
    modulus(2 eps |X|) + 2 tiny) / (1 - 2 eps).
    """
    moved = modulus(ULPS * target.epsilon * norm)
    largest = (size + moved + ULPS * target.tiny) / (1 - ULPS * target.epsilon)
    return moved + ULPS * (target.epsilon * largest + target.tiny)


def id_rounding(built: Built, grid: CellGrid) -> float:
    """How far a context id s, as computed, may be from that of the same weights in real numbers.

    For sums in any order: a product of vectors with w entries that are not 0 is off by at most w
    units of the sum of its absolute terms, M for a key and S for an id. Scores are off by y M units
    more; so the weights of attention are off, relatively, by 2 y M (w + 1) units for their scores
    and 2 n + 8 for exponentials, sums and quotient. (F1 makes integers, without rounding.)
    """
    attention = built.network.attention
    assert isinstance(attention, Rank1Attention)
    v1 = attention.v1.detach().abs()
    line = built.f2.direction[0].detach().abs()
    h = largest_stream(built, grid)
    M, S = float(v1 @ h), float(line @ h)
    w = int(torch.count_nonzero(v1))
    average = M * (w + 2 * grid.n + 8 + 2 * built.mapping.query * M * (w + 1))
    context = float(line[built.layout.context])
    return UNIT * (context * average + int(torch.count_nonzero(line)) * S)


def largest_stream(built: Built, grid: CellGrid) -> torch.Tensor:
    """The largest absolute value of each coordinate before F2: see `StreamLayout`."""
    layout = built.layout
    h = torch.zeros(layout.width, dtype=torch.float64)
    h[: grid.d] = 1.0
    h[grid.d : layout.key] = grid.cells - 1
    h[layout.key] = 0 if built.mapping.keys is None else built.mapping.widest
    h[layout.one] = 1.0
    h[layout.context] = built.mapping.range(grid.n)
    if grid.positions:
        h[layout.place] = grid.n - 1
    return h


def network_rounding(built: Built, grid: CellGrid) -> float:
    """How far the network, as computed off the ramps, may be from its weights in real numbers.

    A constant readout gives a level, without rounding. A plane takes the rounding of the id times
    its tilt, that of the residual z - (t + 1/2) / D, a few units of 1, times its slopes, and a few
    of its own.
    """
    f2 = built.f2
    if not isinstance(f2, TiltedStairs):
        return 0.0
    slope, tilt = f2.slope.detach().abs().sum(-1), f2.tilt.detach().abs()
    own = f2.level[0].detach().abs() + built.height
    return float((tilt * id_rounding(built, grid) + 8 * UNIT * (slope + own)).max())


def well_apart(built: Built, grid: CellGrid) -> bool:
    """Whether rounding cannot move a context id from its level, or its plane, to the next."""
    kind = "linear" if isinstance(built.f2, TiltedStairs) else "constant"
    return bool(APART[kind] * id_rounding(built, grid) <= built.mapping.gap)


def domain_norm(grid: CellGrid) -> float:
    """The largest |X| on the domain."""
    largest = np.maximum(np.abs(grid.low), np.abs(grid.high))
    return float(largest.max() * np.sqrt(grid.n * ((largest / largest.max()) ** 2).sum()))
