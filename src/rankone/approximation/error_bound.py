"""The error bound of the proof, from the modulus of continuity of f; rounding included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from rankone.approximation.build import Built
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.functions import Modulus
from rankone.approximation.readouts import largest_plane
from rankone.approximation.target import ULPS, Target
from rankone.nn import Rank1Attention, TiltedStairs

UNIT = 2.0**-53  # the largest relative error of one operation
APART = {"constant": 3, "linear": 12}  # an id may be off by the gap divided by this


@dataclass(frozen=True)
class ErrorBound:
    """A bound on d_p(f, network), both as computed in floating point.

    ``parts`` has the three of the proof (eq. 71), "steps" for cells, "repeated" for cells with a
    repeated token, "ramps", each the d_p over its part of the domain; and "rounding", over all of
    it. ``total`` is (steps^p + repeated^p + ramps^p)^(1/p) + rounding, for the three parts of the
    domain do not overlap. ``guaranteed`` if the modulus of continuity is known, not estimated from
    samples, and rounding cannot mix up context ids.
    """

    total: float
    parts: dict[str, float]
    guaranteed: bool


def error_bound(
    target: Target, built: Built, grid: CellGrid, modulus: Modulus, *, p: float, known: bool
) -> ErrorBound:
    """Let omega be the modulus of f, c the centre of the cell of X, g the network, N = n m.

    **Cells.** g(X) = f(c) + plane, and no entry of the plane is larger than its height (0 for a
    constant readout, `Planes.height` otherwise), so that

        |f(X) - g(X)|_p <= N^max(0, 1/p - 1/2) omega(|X - c|) + N^(1/p) height.

    X - c is uniform on a box with sides h_i, so the mean of |X - c|^2 is n/12 (h_1^2 + ... +
    h_d^2), and |X - c| is at most the radius, sqrt(3) times the root of that. With omega(r) = L
    r^alpha, the mean of |X - c|^(alpha p) follows by Jensen's inequality if alpha p <= 2, and
    from |X - c|^2 radius^(alpha p - 2) otherwise. A share of (1 - 1/V) ... (1 - (n - 1)/V) of
    the cells has different tokens; with positions, all.

    **Ramps.** The share of the domain with a coordinate on a ramp is at most n d (D - 1) delta.
    There an entry of g lies between two levels of its output, up to a plane (`largest_plane`),
    and one of f within omega(radius) of a level.

    **Rounding.** Both values of f, at X and at c, may be off by `function_rounding` in every
    entry, and g by `network_rounding`.
    """
    n, D, entries = grid.n, grid.cells, grid.n * target.outputs
    h = grid.span / D
    diagonal = float(h.max() * np.sqrt(n * ((h / h.max()) ** 2).sum()))
    mean, radius = diagonal / 12**0.5, diagonal / 2  # of |X - c|: root mean square, largest
    alpha = modulus.exponent
    shared = min(alpha, 2 / p)  # (E |X - c|^(alpha p))^(1/p) <= mean^shared radius^(the rest)
    euclidean = entries ** max(0.0, 1 / p - 0.5)  # |y|_p <= euclidean |y|_2
    every = entries ** (1 / p)  # |y|_p <= every max |y_kj|
    steps = euclidean * modulus.constant * mean**shared * radius ** (alpha - shared)
    steps += every * built.height

    level = built.f2.level[0].detach().numpy()
    between = float((level.max(0) - level.min(0)).max())
    on_ramp = every * (between + largest_plane(built.f2) + modulus(radius))
    ramps = min(1.0, n * grid.d * (D - 1) * built.delta)

    size = float(np.abs(level).max()) + modulus(radius)
    x = np.maximum(np.abs(grid.low), np.abs(grid.high))
    norm = float(x.max() * np.sqrt(n * ((x / x.max()) ** 2).sum()))  # the largest |X|
    of_f = function_rounding(target, modulus, size=size, norm=norm)
    rounding = every * (2 * of_f + network_rounding(built, grid))

    distinct = 1.0 if grid.positions else float(np.prod(1 - np.arange(n) / grid.tokens))
    whole = grid.volume_root(p)
    parts = {
        "steps": steps * whole * distinct ** (1 / p),
        "repeated": steps * whole * (1 - distinct) ** (1 / p),
        "ramps": on_ramp * whole * ramps ** (1 / p),
    }
    total = p_norm(list(parts.values()), p) + rounding * whole
    return ErrorBound(
        total, {**parts, "rounding": rounding * whole}, known and well_apart(built, grid)
    )


def p_norm(numbers: list[float], p: float) -> float:
    """(a^p + b^p + ...)^(1/p), also where the powers overflow."""
    size = max(numbers)
    return float(size * sum((x / size) ** p for x in numbers) ** (1 / p)) if size else 0.0


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
