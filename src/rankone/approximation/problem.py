"""A function with all settings, to be solved on one grid after another as far as memory allows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from rankone.approximation.build import ReadoutKind, build
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.error_bound import error_bound
from rankone.approximation.functions import Modulus, Named, named_function
from rankone.approximation.measured_error import MeasuredError, measure_error
from rankone.approximation.result import Approximation
from rankone.approximation.stream_layout import StreamLayout
from rankone.approximation.target import PROBES, Function, Target
from rankone.approximation.verify import DENSE_UNITS, verify
from rankone.arrays import Floats
from rankone.errors import FunctionError, SizeError
from rankone.memory import installed
from rankone.progress import Progress


@dataclass(frozen=True)
class Problem:
    """``target`` is f as it was checked, ``modulus`` its modulus of continuity, if known.

    ``grid`` is the domain, with any number of cells. The rest is as in `approximate`.
    """

    target: Target
    modulus: Modulus | None
    grid: CellGrid
    readout: ReadoutKind
    p: float
    delta: float | None
    samples: int
    memory: float | None
    seed: int
    epsilon: float | None
    progress: Progress

    @property
    def linear(self) -> bool:
        return self.readout == "linear"

    def solve(self, cells: int, tried: tuple[tuple[int, float], ...]) -> Approximation:
        """Build, verify and measure."""
        grid, target, p = replace(self.grid, cells=cells), self.target, self.p
        check_size(grid, target.outputs, linear=self.linear, memory=self.memory)
        self.progress(f"{grid.context_ids:,} context ids", 0.0)
        times = [time.perf_counter()]
        built = build(target, grid, self.readout, self.delta, self.progress)
        times.append(time.perf_counter())
        verified = verify(target, built, grid, self.seed, self.progress)
        times.append(time.perf_counter())
        measured = measure_error(
            target,
            built,
            grid,
            p=p,
            samples=self.samples,
            seed=self.seed,
            progress=self.progress,
        )
        times.append(time.perf_counter())
        seconds = dict(zip(("build", "verify", "measure"), np.diff(times).tolist(), strict=True))
        modulus = self.modulus or Modulus(measured.steepest.slope)
        check_modulus(target, modulus, measured)
        known = self.modulus is not None
        promised = error_bound(target, built, grid, modulus, p=p, known=known)
        if not np.isfinite([promised.total, measured.error, measured.worst.deviation]).all():
            raise FunctionError(
                "its error, or the bound on it, is out of range for float64",
                where=target.name,
                remedy="rescale f, or give a smaller Lipschitz constant",
            )
        return Approximation(
            name=target.name,
            outputs=target.outputs,
            target=target,
            network=built.network,
            grid=grid,
            readout=self.readout,
            p=p,
            epsilon=self.epsilon,
            measured=measured,
            bound=promised,
            verified=verified,
            gap=built.mapping.gap,
            delta=built.delta,
            tried=tried,
            seed=self.seed,
            seconds={**seconds, "total": times[-1] - times[0]},
        )


def resolve(f: Function | str, grid: CellGrid, seed: int, lipschitz: float | None) -> Named:
    """A built-in function by its name, or the user's own."""
    given = None if lipschitz is None else Modulus(float(lipschitz))
    if isinstance(f, str):
        named = named_function(f, n=grid.n, low=grid.low, high=grid.high, seed=seed)
        return replace(named, modulus=given or named.modulus)
    if not callable(f):
        raise FunctionError(
            f"{f!r} cannot be called", remedy="give a function, or the name of a built-in one"
        )
    name = getattr(f, "__name__", type(f).__name__)
    return Named("f" if name == "<lambda>" else name, f, given)


def probes(grid: CellGrid, seed: int) -> Floats:
    """Inputs to test f on: random ones, equal tokens, and corners of the box."""
    rng = np.random.default_rng(seed)
    z = rng.random((PROBES, grid.n, grid.d))
    z[-8:] = z[-8:, :1]
    z[-12:-8] = np.round(z[-12:-8])
    z[-14:-12] = np.array([0.0, 1.0])[:, None, None]
    return grid.points(z)


def check_modulus(target: Target, modulus: Modulus, measured: MeasuredError) -> None:
    """Raise an error if f was seen to violate its Lipschitz constant."""
    seen = measured.steepest
    if modulus.exponent == 1.0 and seen.slope > modulus.constant * (1 + 1e-9):
        raise FunctionError(
            f"changes by {seen.slope:.6g} times the distance between {seen.point} and the centre "
            f"of its cell: more than the Lipschitz constant {modulus.constant:g}, and more than "
            "rounding explains",
            where=target.name,
            remedy="give a larger constant, or none; if f computes in a type with fewer digits "
            "than float64, return that type",
        )


def needed(grid: CellGrid, outputs: int, *, linear: bool = False) -> int:
    """Bytes: sequences and values; ids, sorted, as weights; the matrices of the dense check."""
    per_id = 6 + 4 * outputs + (2 + 2 * outputs * (1 + grid.d) if linear else 0)
    width = StreamLayout(grid.d, outputs, grid.positions).width
    units = 2 * grid.context_ids * (1 + grid.d if linear else 1)
    dense = 9 * width * min(units, DENSE_UNITS)  # two matrices, and copies of them on the way
    return 8 * (grid.context_ids * per_id + grid.sequences * grid.n * (3 + 2 * outputs) + dense)


def largest_grid(grid: CellGrid, outputs: int, *, linear: bool, memory: float | None) -> int:
    """The most cells per coordinate that fit, up to those of the grid; 0 if none fits."""
    limit = allowed_memory(memory)

    def fits(cells: int) -> bool:
        return needed(replace(grid, cells=cells), outputs, linear=linear) <= limit

    if fits(grid.cells):
        return grid.cells
    best, beyond = 0, grid.cells
    while beyond - best > 1:
        middle = (best + beyond) // 2
        best, beyond = (middle, beyond) if fits(middle) else (best, middle)
    return best


def check_size(grid: CellGrid, outputs: int, *, linear: bool, memory: float | None) -> None:
    """Raise `SizeError` if the grid does not fit in memory."""
    best = largest_grid(grid, outputs, linear=linear, memory=memory)
    if best == grid.cells:
        return
    limit = allowed_memory(memory)
    size = needed(grid, outputs, linear=linear)
    raise SizeError(
        f"grid {large(grid.cells)} with n = {grid.n} and d = {grid.d} has "
        f"{large(grid.context_ids)} context ids; they need about "
        f"{large(-(-size // 10**6))} MB, and the limit is {limit / 1e6:,.0f} MB",
        remedy=f"the largest grid that fits is {best:,}"
        if best
        else "use a smaller n or d, or allow more memory (--memory)",
    )


def large(number: int) -> str:
    """A number with all its digits, or as a power of ten."""
    bits = number.bit_length()
    return f"{number:,}" if bits <= 50 else f"10^{int(bits * math.log10(2))}"


def allowed_memory(asked: float | None) -> float:
    """The memory asked for, at most what is installed; by default half of that."""
    return installed() / 2 if asked is None else min(asked, installed())
