"""Error against D: a table and its slope."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankone.approximation.approximate import approximate
from rankone.approximation.result import Approximation
from rankone.approximation.target import Function
from rankone.files import made


@dataclass(frozen=True)
class Convergence:
    """Approximations of one function on finer and finer grids, one a row."""

    rows: tuple[Approximation, ...]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    @property
    def slope(self) -> float | None:
        """Slope of log(error) against log(D), by least squares: -1 means half the error at 2 D."""
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

    @property
    def seconds(self) -> dict[str, float]:
        """Time of each stage, all grids together."""
        stages = dict.fromkeys(stage for row in self.rows for stage in row.seconds)
        return {stage: sum(row.seconds[stage] for row in self.rows) for stage in stages}

    def to_json(self) -> dict[str, Any]:
        names = ("grid", "error", "interval", "bound", "context_ids", "hidden_units", "sources")
        rows = [row.to_json() for row in self.rows]
        return {
            "ok": self.ok,
            "slope": self.slope,
            "seconds": self.seconds,
            "rows": [
                {**{name: row[name] for name in names}, "ratio": ratio}
                for row, ratio in zip(rows, self.ratios, strict=True)
            ],
        }

    def save(self, directory: str | os.PathLike[str], *, plots: bool = True) -> list[Path]:
        """Write the finest approximation and a plot of error against D; returns the files."""
        from rankone.approximation.plots import draw_plots

        with made(directory) as home:
            files = self.rows[-1].save(home, plots=False)
            return [*files, *draw_plots(home, self.rows[-1], self)] if plots else files


def converge(f: Function | str, grids: Sequence[int], **settings: Any) -> Convergence:
    """Approximate f on each grid; settings are those of `approximate`."""
    return Convergence(tuple(approximate(f, grid=cells, **settings) for cells in grids))
