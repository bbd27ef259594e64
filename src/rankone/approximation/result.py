"""What `approximate` returns: the network and its figures."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from rankone.approximation.build import ReadoutKind
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.error_bound import ErrorBound
from rankone.approximation.measured_error import MeasuredError
from rankone.approximation.target import Target, one_line
from rankone.approximation.verify import Verified
from rankone.arrays import Floats
from rankone.errors import FunctionError
from rankone.files import made
from rankone.nn import Approximator


@dataclass(frozen=True, repr=False)
class Approximation:
    """A network for the function called ``name``, with m = ``outputs``, and its error.

    ``error`` is the measured d_p (eq. 1) with its 95 % ``interval``; ``bound`` is the bound of the
    proof, guaranteed if the modulus of continuity of f is known; ``verified`` what was checked
    before; ``tried`` the grids and errors on the way to ``epsilon``, if that was given. ``gap`` is
    the smallest distance of two context ids on the readout's line, where those of different tokens
    are at least 1/2 apart; ``delta`` the width of the quantiser's ramps in the unit cube.
    ``target`` is f as it was checked, None if the approximation was loaded; ``seconds`` has the
    time of each stage. Call the approximation like f.
    """

    name: str
    outputs: int
    target: Target | None
    network: Approximator
    grid: CellGrid
    readout: ReadoutKind
    p: float
    epsilon: float | None
    measured: MeasuredError
    bound: ErrorBound
    verified: Verified
    gap: float
    delta: float
    tried: tuple[tuple[int, float], ...]
    seed: int
    seconds: dict[str, float]

    def __repr__(self) -> str:
        grid, error = self.grid, self.measured.error
        return f"Approximation({self.name!r}: n = {grid.n}, grid {grid.cells}, error {error:.3g})"

    def __call__(self, x: ArrayLike) -> Floats:
        """The network on an array (..., n, d) of numbers in the domain."""
        try:
            points = np.asarray(x, np.float64).copy()  # contiguous, and a copy
            what = None if points.ndim > 1 else f"shape {points.shape}"
        except (TypeError, ValueError, RuntimeError) as error:
            what = one_line(error)
        if what is not None:
            raise FunctionError(
                f"cannot be evaluated here ({what})",
                where=self.name,
                remedy=f"give numbers, (..., {self.grid.n}, {self.grid.d})",
            )
        with torch.no_grad():
            return np.asarray(self.network(torch.from_numpy(points)).numpy())

    @property
    def error(self) -> float:
        return self.measured.error

    @property
    def interval(self) -> tuple[float, float]:
        return self.measured.interval

    @property
    def hidden_units(self) -> dict[str, int]:
        f1, f2 = self.network.f1.hidden, self.network.f2.hidden
        return {"f1": f1, "f2": f2, "total": f1 + f2}

    @property
    def ok(self) -> bool:
        """Whether the error is within the bound, if that is guaranteed, and within epsilon.

        The error is an estimate and the bound may be attained, so the error may exceed it by its
        interval.
        """
        low, high = self.interval
        within = low - (high - low) <= self.bound.total or not self.bound.guaranteed
        return within and (self.epsilon is None or self.interval[1] <= self.epsilon)

    def to_json(self) -> dict[str, Any]:
        """The figures, without the network."""
        grid, measured = self.grid, self.measured
        return {
            "ok": self.ok,
            "function": self.name,
            "n": grid.n,
            "d": grid.d,
            "m": self.outputs,
            "domain": {"low": grid.low.tolist(), "high": grid.high.tolist()},
            "positions": grid.positions,
            "grid": grid.cells,
            "readout": self.readout,
            "p": self.p,
            "epsilon": self.epsilon,
            "error": self.error,
            "interval": list(self.interval),
            "bound": self.bound.total,
            "bound_guaranteed": self.bound.guaranteed,
            "bound_rounding": self.bound.parts["rounding"],
            "worst": asdict(measured.worst),
            "steepest": asdict(measured.steepest),
            "context_ids": grid.context_ids,
            "hidden_units": self.hidden_units,
            "sources": {
                name: {**asdict(source), "bound": self.bound.parts[name]}
                for name, source in measured.sources.items()
            },
            "gap": self.gap if np.isfinite(self.gap) else None,
            "delta": self.delta,
            "grid_error": self.verified.grid_error,
            "dense_difference": self.verified.dense_difference,
            "points": measured.points,
            "seed": self.seed,
            "tried": [{"grid": cells, "error": error} for cells, error in self.tried],
            "seconds": self.seconds,
        }

    def save(self, directory: str | os.PathLike[str], *, plots: bool = True) -> list[Path]:
        """Write the weights, this report and, for n = 2 and d = 1, a plot; returns the files."""
        from rankone.approximation.plots import draw_plots
        from rankone.approximation.store import save_approximation

        with made(directory) as home:
            files = save_approximation(home, self)
            return [*files, *draw_plots(home, self)] if plots else files
