"""From moments in the cells of one grid to polynomials on the cells of the other.

A query weighs keys by their distance d from the end of its own sign, e^(-|y| d). For keys of the
other half that is d = extent - point.
"""

from __future__ import annotations

import numpy as np

from rankone.kernels.cells import Floats, Frame
from rankone.kernels.compiled import compiled
from rankone.kernels.exponential import exponential
from rankone.kernels.grid import CELLS, GROUPS, MEMBERS, NODES, TERMS
from rankone.kernels.lanes import mix

SUMS = {"contract", "reassoc"}  # sums may be taken in the order that suits the registers
LANES = 2


@compiled()
def merge(table: Floats, refinement: Floats) -> Floats:
    """Charges on the nodes of groups that act as the points behind the moments of cells do."""
    count = len(table) // (CELLS * TERMS * LANES)
    charges = np.zeros((count, LANES, GROUPS, NODES))
    cells = table.reshape(count, GROUPS, MEMBERS, TERMS, LANES)
    nodes = refinement.shape[2]
    for block in range(count):
        for group in range(GROUPS):
            for i in range(MEMBERS):
                for lane in range(LANES):
                    out = charges[block, lane, group]
                    for j in range(TERMS):
                        moment = cells[block, group, i, j, lane]
                        if moment != 0.0:
                            for m in range(nodes):
                                out[m] += moment * refinement[i, j, m]
    return charges


@compiled(fastmath=SUMS)
def refine(values: Floats, refinement: Floats) -> Floats:
    """The polynomials on cells from values on the nodes of groups."""
    count, lanes, _, nodes = values.shape
    table = np.zeros(count * CELLS * TERMS * lanes)
    cells = table.reshape(count, GROUPS, MEMBERS, TERMS, lanes)
    for block in range(count):
        for group in range(GROUPS):
            if not np.any(values[block, :, group]):  # no point is here
                continue
            for i in range(MEMBERS):
                for j in range(TERMS):
                    for lane in range(lanes):
                        total = 0.0
                        for m in range(nodes):
                            total += refinement[i, j, m] * values[block, lane, group, m]
                        cells[block, group, i, j, lane] = total
    return table


@compiled()
def carry(
    moments: Floats,
    frame: Frame,
    from_keys: bool,
    placed: bool,
    refinement: Floats,
    nodes: Floats,
) -> Floats:
    """The table to read at the queries from the moments of the keys, or the other way."""
    charges = merge(moments, refinement)
    return refine(transform(charges, frame, from_keys, placed, nodes), refinement)


@compiled(fastmath=SUMS)
def transform(
    charges: Floats,
    frame: Frame,
    from_keys: bool,
    placed: bool,
    nodes: Floats,
) -> Floats:
    """f(t) = sum over charges q of q e^(-t s), on the nodes of the target groups.

    If the charges are those of keys, t is |y| and s the distance d of a key from the end that
    belongs to the sign of the query; the lanes out are those in, then, if `placed`, those with
    q d for q. Else t is d, s is |y|, q is (w, w out), and the lanes are the sums of w, of w y out,
    and of w y over the queries y >= 0 and y < 0. Exponents beyond the cutoff are left out.
    """
    ends = frame.ends
    extent = ends.high - ends.low
    sources, targets = frame.key, frame.query
    if not from_keys:
        sources, targets = targets, sources
    lanes = 2 * LANES if placed else LANES
    out = np.zeros((len(targets.octaves), lanes, GROUPS, NODES))
    step, place = np.empty(GROUPS), np.empty(GROUPS)
    within = np.empty(NODES)
    total, moved = np.empty(NODES), np.empty(NODES)
    found = np.zeros(2 * LANES)
    count = len(nodes)
    for block in range(len(targets.octaves)):
        half = targets.halves[block]
        top = np.ldexp(targets.origin, targets.octaves[block])
        span = top / GROUPS
        for group in range(GROUPS):
            low = (top - targets.origin) + group * span
            if low > targets.reach[half]:
                break
            for m in range(NODES):
                point = low + 0.5 * span * (1.0 + nodes[m])
                for source in range(len(charges)):
                    same = sources.halves[source] == half
                    t = point if same or from_keys else extent - point
                    width = np.ldexp(sources.origin, sources.octaves[source])
                    near = width - sources.origin
                    nearest = near
                    width /= GROUPS
                    if from_keys and not same:
                        far = min(near + GROUPS * width, sources.reach[1 - half])
                        nearest, near, width = extent - far, extent - near, -width
                    if t * nearest > frame.cutoff:
                        continue
                    sign = -1.0 if sources.halves[source] and not from_keys else 1.0
                    for g in range(GROUPS):
                        place[g] = near + (g + 0.5) * width
                        step[g] = exponential(-t * place[g])
                        place[g] *= sign * step[g]
                    for i in range(count):
                        within[i] = exponential(-0.5 * t * width * nodes[i])
                    for lane in range(LANES):
                        row = (source * LANES + lane) * GROUPS
                        mix(step, charges, row, total)
                        value = 0.0
                        for i in range(count):
                            value += within[i] * total[i]
                        found[lane] = value
                        if placed:
                            mix(place, charges, row, moved)
                            value = 0.0
                            for i in range(count):
                                shift = 0.5 * sign * width * nodes[i]
                                value += within[i] * (moved[i] + shift * total[i])
                            found[LANES + lane] = value
                    if from_keys:
                        if not same:  # values relative to the other end
                            jump = ends.values[1] - ends.values[0]
                            jump = -jump if half else jump
                            found[0] += jump * found[1]
                            found[2] += jump * found[3]
                        for lane in range(lanes):
                            out[block, lane, group, m] += found[lane]
                    else:
                        out[block, 0, group, m] += found[0]
                        out[block, 1, group, m] += found[3]
                        out[block, 2 + sources.halves[source], group, m] += found[2]
    return out
