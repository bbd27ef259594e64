"""Steps 2 and 4: from the moments of cells to charges on the nodes of groups, and its transpose."""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats
from rankone.kernels.chebyshev import CELLS_PER_OCTAVE, GROUPS, MEMBERS, NODES, TERMS
from rankone.kernels.compiled.compiler import SUMS, compiled, inlined

LANES = 2  # moments of two quantities, side by side


@compiled()
def merge(table: Floats, refinement: Floats) -> Floats:
    """Charges on the nodes of groups that act like the points whose moments are given."""
    count = len(table) // (CELLS_PER_OCTAVE * TERMS * LANES)
    charges = np.zeros((count, LANES, GROUPS, NODES))
    cells = table.reshape(count, GROUPS, MEMBERS, TERMS, LANES)
    for block in range(count):
        for group in range(GROUPS):
            for i in range(MEMBERS):
                _merge_cell(cells[block, group, i], refinement[i], charges[block], group)
    return charges


@inlined
def _merge_cell(moments: Floats, factors: Floats, charges: Floats, group: int) -> None:
    for lane in range(LANES):
        for j in range(TERMS):
            if moments[j, lane] != 0.0:
                _add_multiple(moments[j, lane], factors[j], charges[lane, group])


@inlined
def _add_multiple(factor: float, row: Floats, out: Floats) -> None:
    for m in range(len(row)):
        out[m] += factor * row[m]


@compiled(fastmath=SUMS)
def refine(values: Floats, refinement: Floats) -> Floats:
    """The polynomials on cells from values on the nodes of groups."""
    count, lanes = values.shape[:2]
    table = np.zeros(count * CELLS_PER_OCTAVE * TERMS * lanes)
    cells = table.reshape(count, GROUPS, MEMBERS, TERMS, lanes)
    for block in range(count):
        for group in range(GROUPS):
            if np.any(values[block, :, group]):  # otherwise there is no point here
                _refine_group(values[block], group, refinement, cells[block, group])
    return table


@inlined
def _refine_group(values: Floats, group: int, refinement: Floats, cells: Floats) -> None:
    for i in range(MEMBERS):
        for j in range(TERMS):
            for lane in range(len(values)):
                cells[i, j, lane] = dot(refinement[i, j], values[lane, group])


@inlined
def dot(x: Floats, y: Floats) -> float:
    """sum_m x_m y_m, in the order that suits the caller."""
    total = 0.0
    for m in range(len(x)):
        total += x[m] * y[m]
    return total
