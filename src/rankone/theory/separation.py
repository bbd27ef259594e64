"""Definition 1: norms of token vectors and their distances from each other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.errors import VectorError
from rankone.theory.closest import as_points, closest_pair
from rankone.theory.pair_search import CHUNK, U


@dataclass(frozen=True)
class Separation:
    """r_min < |x_i| < r_max and |x_i - x_j| > epsilon for all i != j (Definition 1).

    ``r_min``, ``r_max`` and ``epsilon`` are numbers for which the strict inequalities are proven,
    the float64 coordinates taken as exact. ``smallest``, ``largest`` and ``distance`` are the
    measured values; ``shortest``, ``longest`` and ``closest`` are the rows that attain them.
    For a single vector ``distance`` and ``closest`` are None, and ``epsilon`` is 2 r_max by
    convention, which no distance of two such vectors exceeds.
    ``broken`` lists the conditions of Theorem 2 that the vectors do not meet.
    """

    vectors: int
    dim: int
    r_min: float
    r_max: float
    epsilon: float
    smallest: float
    largest: float
    distance: float | None
    shortest: int
    longest: int
    closest: tuple[int, int] | None
    broken: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the vectors meet the condition of Theorem 2."""
        return not self.broken

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}


@dataclass(frozen=True)
class Norms:
    """``below`` < |x_i| < ``above`` for all rows (``below`` = 0 if one is 0), and the extremes."""

    below: float
    above: float
    smallest: float
    largest: float
    shortest: int
    longest: int


def separation(vectors: ArrayLike) -> Separation:
    """Definition 1 for the rows of `vectors`, all of which must be finite and different."""
    x = as_points(vectors)
    if not len(x):
        raise VectorError("no vectors", remedy="give at least one row")
    sizes = norms(x)
    found = closest_pair(x)
    broken = []
    if not sizes.below:
        broken.append(
            f"row {sizes.shortest + 1} has norm {sizes.smallest:g}, and Theorem 2 needs r_min > 0"
        )
    if found is not None and not found.ok:
        first, second = found.pair
        rows = f"rows {first + 1} and {second + 1}"
        if (x[first] == x[second]).all():
            raise VectorError(
                "the same vector twice, which no function of the vectors can tell apart",
                where=rows,
                remedy="give different vectors, or merge the two tokens",
            )
        broken.append(f"{rows} are too close, relative to their norms, to bound epsilon")
    return Separation(
        vectors=len(x),
        dim=x.shape[1],
        r_min=sizes.below,
        r_max=sizes.above,
        epsilon=2 * sizes.above if found is None else found.lower,
        smallest=sizes.smallest,
        largest=sizes.largest,
        distance=None if found is None else found.distance,
        shortest=sizes.shortest,
        longest=sizes.longest,
        closest=None if found is None else found.pair,
        broken=tuple(broken),
    )


def norms(x: Floats) -> Norms:
    """|x_i| of every row, bounded on both sides.

    Each row is multiplied by a power of two that makes its largest entry about 1; a norm computed
    from its squares then errs by at most (d/2 + 1) u of itself, u = 2^-53. The bounds are
    (1 -+ (d + 8) u) times the extremes and one float further out; the last step makes up for the
    roundings of subnormal numbers, which are absolute.
    """
    count, dim = x.shape
    sizes = np.empty(count)
    step = max(1, CHUNK // dim)
    for a in range(0, count, step):
        rows = x[a : a + step]
        exponents = np.frexp(np.abs(rows).max(1))[1]
        rows = np.ldexp(rows, -exponents[:, None])
        roots = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        sizes[a : a + step] = np.ldexp(roots, exponents)
    shortest, longest = int(sizes.argmin()), int(sizes.argmax())
    smallest, largest = float(sizes[shortest]), float(sizes[longest])
    margin = (dim + 8) * U
    return Norms(
        below=nextafter(smallest * (1 - margin), 0.0),
        above=nextafter(largest * (1 + margin), inf),
        smallest=smallest,
        largest=largest,
        shortest=shortest,
        longest=longest,
    )
