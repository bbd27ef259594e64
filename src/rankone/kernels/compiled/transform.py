"""Step 3: from charges on the nodes of one grid to sums of exponentials on those of the other.

A query gives a key the weight e^(-|y| d), with d the distance from the end that belongs to the sign
of the query. For keys of the other half, d = extent - point.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats
from rankone.kernels.chebyshev import GROUPS, NODES
from rankone.kernels.compiled.compiler import SUMS, compiled, inlined
from rankone.kernels.compiled.exponential import exponential
from rankone.kernels.compiled.merge_and_refine import LANES, dot, merge, refine
from rankone.kernels.compiled.placement import Frame
from rankone.kernels.compiled.polynomials import mix


@compiled()
def carry(
    moments: Floats,
    frame: Frame,
    from_keys: bool,
    placed: bool,
    refinement: Floats,
    nodes: Floats,
) -> Floats:
    """The table to read at the queries from the moments of the keys, or vice versa."""
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
    belongs to the sign of the query. The output lanes are those of the input and, if `placed`, the
    same with q d in place of q. Otherwise t is d, s is |y|, q is (w, w out), and the lanes are the
    sums of w, of w y out, and of w y over the queries y >= 0 and y < 0. Exponents beyond the cutoff
    are left out.
    """
    targets = frame.query if from_keys else frame.key
    lanes = 2 * LANES if placed else LANES
    out = np.zeros((len(targets.octaves), lanes, GROUPS, NODES))
    for block in range(len(targets.octaves)):
        spans = _spans(frame, from_keys, targets.halves[block])
        _fill_block(charges, frame, from_keys, placed, nodes, block, spans, out[block])
    return out


@compiled()
def _spans(frame: Frame, from_keys: bool, half: int) -> Floats:
    """For each source block, as a target half sees it: where its groups begin, how wide they are,
    the least distance of a point, and the sign of the queries if they are the sources."""
    sources, extent = frame.key if from_keys else frame.query, frame.ends.high - frame.ends.low
    spans = np.empty((len(sources.octaves), 4))
    for source in range(len(spans)):
        width = np.ldexp(sources.origin, sources.octaves[source])
        near = width - sources.origin
        nearest = near
        width /= GROUPS
        if from_keys and sources.halves[source] != half:
            far = min(near + GROUPS * width, sources.reach[1 - half])
            nearest, near, width = extent - far, extent - near, -width
        spans[source, 0], spans[source, 1], spans[source, 2] = near, width, nearest
        spans[source, 3] = -1.0 if sources.halves[source] and not from_keys else 1.0
    return spans


@compiled(fastmath=SUMS)
def _fill_block(
    charges: Floats,
    frame: Frame,
    from_keys: bool,
    placed: bool,
    nodes: Floats,
    block: int,
    spans: Floats,
    out: Floats,
) -> None:
    """Fill the nodes of a target block. Inner loops get plain arrays: copying tuples is slow."""
    targets, ends, cutoff = frame.query if from_keys else frame.key, frame.ends, frame.cutoff
    halves = frame.key.halves if from_keys else frame.query.halves
    half, reach = targets.halves[block], targets.reach[targets.halves[block]]
    extent, jump = ends.high - ends.low, ends.values[1] - ends.values[0]
    top = np.ldexp(targets.origin, targets.octaves[block])
    start, span = top - targets.origin, top / GROUPS
    step, place = np.empty(GROUPS), np.empty(GROUPS)
    within, total, moved = np.empty(len(nodes)), np.empty(len(nodes)), np.empty(len(nodes))
    found = np.zeros(2 * LANES)
    for node in range(GROUPS * NODES):
        group, m = node // NODES, node % NODES
        low = start + group * span
        if low > reach:
            break
        point = low + 0.5 * span * (1.0 + nodes[m])
        for source in range(len(charges)):
            same = halves[source] == half
            t = point if same or from_keys else extent - point
            near, width, sign = spans[source, 0], spans[source, 1], spans[source, 3]
            if t * spans[source, 2] > cutoff:
                continue
            _weigh(t, near, width, sign, nodes, step, place, within)
            half_width = 0.5 * sign * width
            for lane in range(LANES):
                row = (source * LANES + lane) * GROUPS
                mix(step, charges, row, total)
                found[lane] = dot(within, total)
                found[LANES + lane] = (
                    _moved(charges, row, place, moved, half_width, nodes, within, total)
                    if placed
                    else 0.0
                )
            if from_keys and not same:  # values relative to the other end
                found[0] += (-jump if half else jump) * found[1]
                found[2] += (-jump if half else jump) * found[3]
            for lane in range(len(out) if from_keys else 0):
                out[lane, group, m] += found[lane]
            if not from_keys:
                out[0, group, m] += found[0]
                out[1, group, m] += found[3]
                out[2 + halves[source], group, m] += found[2]


@inlined
def _weigh(
    t: float,
    near: float,
    width: float,
    sign: float,
    nodes: Floats,
    step: Floats,
    place: Floats,
    within: Floats,
) -> None:
    """e^(-t s) = e^(-t middle) e^(-t (s - middle)): `step` for groups, `within` for their nodes."""
    for g in range(GROUPS):
        place[g] = near + (g + 0.5) * width
        step[g] = exponential(-t * place[g])
        place[g] *= sign * step[g]
    for i in range(len(nodes)):
        within[i] = exponential(-0.5 * t * width * nodes[i])


@inlined
def _moved(
    charges: Floats,
    row: int,
    place: Floats,
    moved: Floats,
    half_width: float,
    nodes: Floats,
    within: Floats,
    total: Floats,
) -> float:
    """The sum of charges times their place, which is the middle of the group plus an offset."""
    mix(place, charges, row, moved)
    value = 0.0
    for i in range(len(nodes)):
        shift = half_width * nodes[i]
        value += within[i] * (moved[i] + shift * total[i])
    return value
