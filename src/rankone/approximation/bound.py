"""What the proof promises: a bound on the error from how fast f can change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.approximation.build import Built
from rankone.approximation.functions import Modulus
from rankone.approximation.grid import Grid
from rankone.approximation.verify import largest_plane

CURVED = 1.25  # attention is not quite linear in the residuals: at most a few percent


@dataclass(frozen=True)
class Bound:
    """The sum of three parts, as in the proof (eq. 71): cells, cells with repeated tokens, ramps.

    ``guaranteed`` if the modulus of continuity is known, not only what was seen of it.
    """

    total: float
    parts: dict[str, float]
    guaranteed: bool


def bound(
    built: Built, grid: Grid, modulus: Modulus, *, outputs: int, p: float, guaranteed: bool
) -> Bound:
    """On a cell with centre c, |f(X) - g(X)| <= L |X - c|^alpha + |g(X) - f(c)|.

    The second term is 0 unless the readout is linear. X - c is uniform, so the mean of |X - c|^2 is
    n/12 (h_1^2 + ... + h_d^2) for cells of size h_i; other powers follow by Jensen's inequality, or
    from the largest |X - c|. On a ramp g is between values of f, and f at most L radius^alpha
    outside of them. Rounding adds what is nothing beside these.
    """
    n, D, entries = grid.n, grid.cells, grid.n * outputs
    h = grid.span / D
    diagonal = float(h.max() * np.sqrt(n * ((h / h.max()) ** 2).sum()))
    mean, radius = diagonal / 12**0.5, diagonal / 2  # of |X - c|: root mean square, largest
    alpha = modulus.exponent
    shared = min(alpha, 2 / p)  # (E |X - c|^(alpha p))^(1/p) <= mean^shared radius^(the rest)
    euclidean = entries ** max(0.0, 1 / p - 0.5)  # |y|_p <= euclidean |y|_2
    steps = euclidean * modulus.constant * mean**shared * radius ** (alpha - shared)

    level = built.f2.level.detach().numpy()
    steps += entries ** (1 / p) * built.height * CURVED
    distinct = 1.0 if grid.positions else float(np.prod(1 - np.arange(n) / grid.tokens))
    between = float(level.max() - level.min()) + 2 * largest_plane(built, grid)
    on_ramp = entries ** (1 / p) * (between + modulus.constant * radius**alpha)
    ramps = min(1.0, n * grid.d * (D - 1) * built.delta)
    whole = grid.volume_root(p)
    parts = {
        "steps": steps * whole * distinct ** (1 / p),
        "repeated": steps * whole * (1 - distinct) ** (1 / p),
        "ramps": on_ramp * whole * ramps ** (1 / p),
    }
    return Bound(sum(parts.values()), parts, guaranteed)
