"""How much memory a grid needs, computed before anything is built."""

from __future__ import annotations

import math
from dataclasses import replace

from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.stream_layout import StreamLayout
from rankone.approximation.verify import DENSE_UNITS
from rankone.errors import SizeError
from rankone.memory import installed


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
