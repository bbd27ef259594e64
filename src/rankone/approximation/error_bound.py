"""The error bound of the proof, from the modulus of continuity of f."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.approximation.build import Built
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.functions import Modulus
from rankone.approximation.planes import largest_plane
from rankone.approximation.rounding_error import (
    domain_norm,
    function_rounding,
    network_rounding,
    well_apart,
)
from rankone.approximation.target import Target


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
    of_f = function_rounding(target, modulus, size=size, norm=domain_norm(grid))
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
