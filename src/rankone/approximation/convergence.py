"""Error against D: a table, and the slope."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankone.approximation.approximate import approximate
from rankone.approximation.function import Function
from rankone.approximation.result import Approximation


@dataclass(frozen=True)
class Convergence:
    """Approximations of one function on finer and finer grids."""

    rows: list[Approximation]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    @property
    def slope(self) -> float | None:
        """log(error) against log(D), by least squares: -1 means that twice the grid is half off."""
        seen = [(row.grid.cells, row.error) for row in self.rows if row.error > 0]
        if len(seen) < 2:
            return None
        cells, errors = np.log(np.array(seen)).T
        return float(np.polyfit(cells, errors, 1)[0])

    @property
    def ratios(self) -> list[float | None]:
        """How many times smaller each error is than the one before."""
        errors = [row.error for row in self.rows]
        pairs = itertools.pairwise(errors)
        return [None, *(old / new if new > 0 else None for old, new in pairs)]

    def to_json(self) -> dict[str, Any]:
        names = ("grid", "error", "interval", "bound", "context_ids", "hidden_units", "sources")
        rows = [row.to_json() for row in self.rows]
        return {
            "slope": self.slope,
            "rows": [
                {**{name: row[name] for name in names}, "ratio": ratio}
                for row, ratio in zip(rows, self.ratios, strict=True)
            ],
        }


def converge(f: Function | str, grids: Sequence[int], **settings: Any) -> Convergence:
    """Approximate f on each grid; settings are those of `approximate`."""
    return Convergence([approximate(f, grid=cells, **settings) for cells in grids])
