"""Where a key or a query lies: the grid of a range of either, and the cell of a point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Bools, Floats, Ints
from rankone.kernels import chebyshev
from rankone.kernels.chebyshev import BITS, CELLS_PER_OCTAVE
from rankone.kernels.compiled.compiler import compiled, inlined

FEW = 8  # octaves that are laid out without checking which of them have points
STRETCH = 1024  # points looked at together
CUTOFF = 40.0  # e^-40 is below rounding, even if all keys have such a weight
BIAS, MANTISSA = 1023, 52
FRACTION = MANTISSA - BITS  # the bits inside a cell
MAGNITUDE = np.int64((1 << 63) - 1)  # all bits but the sign
INSIDE = np.int64((1 << MANTISSA) - 1)
ONE = np.int64(BIAS << MANTISSA)  # the bits of 1.0

origin_of = compiled()(chebyshev.origin)


class Ends(NamedTuple):
    """The extreme keys of a range and their values.

    Values are taken relative to that of the extreme key: where it has all the weight, its value
    comes out exactly, and the gradient is 0 and not the rounding error of a large query.
    """

    low: float
    high: float
    # The same for y >= 0 and for y < 0. Signs come in random order: looking the end up costs
    # nothing, while a branch would be mispredicted.
    keys: Floats
    values: Floats


class CellGrid(NamedTuple):
    """Two half lines of octaves; those that have points are blocks of CELLS_PER_OCTAVE cells each.

    For queries the halves are y >= 0 and y < 0, and a point is |y|. For keys the halves are the
    ends of the range; half 0 is the largest key. A key belongs to the nearer end, and its point is
    the distance from there.
    """

    origin: float
    least: np.int64  # the biased exponent of the origin
    reach: Floats  # the largest point of each half, -1 if it has none
    slots: NDArray[np.uint64]  # from leading bits to cells: an offset per octave and half
    dense: bool  # no octave is left out: all octaves of a half have one offset
    halves: Ints  # of each block
    octaves: Ints


@compiled()
def biased_exponent(x: float) -> np.int64:
    """The exponent of a number, plus 1023."""
    return np.float64(x).view(np.int64) >> MANTISSA


@compiled()
def blocks(origin: float, reach: Floats, seen: Bools) -> CellGrid:
    """The grid with a block for each octave that is seen; half by half, octave by octave."""
    halves, octaves = np.nonzero(seen)
    least = biased_exponent(origin)
    slots = np.zeros(seen.shape, np.uint64)
    for block in range(len(octaves)):
        leading = (least + octaves[block]) << BITS  # bits of the least number in this octave
        slots[halves[block], octaves[block]] = np.uint64(block * CELLS_PER_OCTAVE) - np.uint64(
            leading
        )
    dense = True
    for half in range(2):
        dense &= bool(seen[half, : seen[half].sum()].all())
    return CellGrid(origin, least, reach, slots, dense, halves, octaves)


@compiled()
def nearer_end(x: float, ends: Ends) -> tuple[float, np.uint64]:
    """The distance of a key from the nearer end, and which half that is."""
    above, below = ends.high - x, x - ends.low
    return min(above, below), np.uint64(above > below)


@compiled()
def locate_dense(
    point: float, half: np.uint64, origin: float, starts: NDArray[np.uint64]
) -> tuple[np.uint64, float]:
    """`locate` in a dense grid; `starts` are the slots of the first octave."""
    bits = np.float64(point + origin).view(np.int64)
    cell = np.uint64(bits >> FRACTION) + starts[half]
    return cell, np.int64(((bits << BITS) & INSIDE) | ONE).view(np.float64) * 2.0 - 3.0


@compiled()
def locate(point: float, half: np.uint64, grid: CellGrid) -> tuple[np.uint64, float]:
    """The cell of a point (its leading bits), and its place t there, -1 to 1 (the other bits)."""
    bits = np.float64(point + grid.origin).view(np.int64)
    octave = np.uint64((bits >> MANTISSA) - grid.least)
    cell = np.uint64(bits >> FRACTION) + grid.slots[half, octave]
    return cell, np.int64(((bits << BITS) & INSIDE) | ONE).view(np.float64) * 2.0 - 3.0


@compiled()
def rank(x: float) -> np.int64:
    """An integer that grows with x. NaN lies beyond the infinities, so that it cannot hide."""
    bits = np.float64(x).view(np.int64)
    return bits ^ MAGNITUDE if bits < 0 else bits


@inlined
def _ranks(points: Floats, there: Bools, start: int, stop: int) -> tuple[np.int64, np.int64]:
    """The least and the largest rank of a stretch."""
    least, most = MAGNITUDE, ~MAGNITUDE
    if len(there):
        for i in range(start, stop):
            if there[i]:
                least, most = min(least, rank(points[i])), max(most, rank(points[i]))
    else:
        for i in range(start, stop):
            least, most = min(least, rank(points[i])), max(most, rank(points[i]))
    return least, most


@compiled()
def extremes(points: Floats, there: Bools, first: int, last: int) -> tuple[int, int]:
    """The indices of the least and the largest point of a range; -1 if there is none."""
    at = np.array([-1, -1])
    low, high = MAGNITUDE, ~MAGNITUDE
    for start in range(first, last, STRETCH):  # find the stretch, then the place in it
        least, most = _ranks(points, there, start, min(start + STRETCH, last))
        if least > most:  # nothing is there
            continue
        if at[0] < 0 or least < low:
            low, at[0] = least, start
        if at[1] < 0 or most > high:
            high, at[1] = most, start
    if at[0] >= 0:
        for end, extreme in enumerate((low, high)):
            while rank(points[at[end]]) != extreme or (len(there) and not there[at[end]]):
                at[end] += 1
    return at[0], at[1]


@compiled()
def key_grid(key: Floats, there: Bools, first: int, last: int, ends: Ends, size: float) -> CellGrid:
    """The grid of a range of keys, for queries up to `size`."""
    extent = ends.high - ends.low
    origin = origin_of(extent, size)
    far = 0.5 * extent
    octaves = biased_exponent(far + origin) - biased_exponent(origin) + 1
    seen = np.ones((2, octaves), np.bool_)
    reach = np.array([far, far])
    if octaves > FEW:
        every = blocks(origin, reach, seen)
        seen[:] = False
        for i in range(first, last):
            if len(there) == 0 or there[i]:
                point, half = nearer_end(np.float64(key[i]), ends)
                cell, _ = locate(point, half, every)
                seen[half, cell // np.uint64(CELLS_PER_OCTAVE) - half * np.uint64(octaves)] = True
    return blocks(origin, reach, seen)


@compiled()
def query_grid(
    query: Floats, first: int, last: int, low: float, high: float, extent: float
) -> CellGrid:
    """The grid of queries between `low` and `high`, for keys that are `extent` apart."""
    reach = np.array([high if high >= 0.0 else -1.0, -low if low < 0.0 else -1.0])
    origin = origin_of(reach.max(), extent)
    octaves = biased_exponent(reach.max() + origin) - biased_exponent(origin) + 1
    seen = np.ones((2, octaves), np.bool_)
    for half in range(2):
        last_octave = biased_exponent(max(reach[half], 0.0) + origin) - biased_exponent(origin)
        seen[half, last_octave + 1 if reach[half] >= 0.0 else 0 :] = False
    if octaves > FEW:
        every = blocks(origin, reach, np.ones((2, octaves), np.bool_))
        seen[:] = False
        for i in range(first, last):
            sign = np.uint64(query[i] < 0.0)
            cell, _ = locate(abs(np.float64(query[i])), sign, every)
            seen[sign, cell // np.uint64(CELLS_PER_OCTAVE) - sign * np.uint64(octaves)] = True
    return blocks(origin, reach, seen)


class Frame(NamedTuple):
    """What all scores of a range of keys and a range of queries share."""

    ends: Ends
    key: CellGrid
    query: CellGrid
    cutoff: float  # larger exponents do not count


@compiled()
def frame(
    query: Floats,
    key: Floats,
    value: Floats,
    there: Bools,
    keys: tuple[int, int],
    queries: tuple[int, int],
    key_extremes: tuple[int, int],
    query_extremes: tuple[int, int],
) -> Frame:
    """The grids of keys and queries, from the indices of their extremes."""
    low, high = key_extremes
    keys_at, values_at = np.empty(2), np.empty(2)
    keys_at[0], keys_at[1] = key[high], key[low]
    values_at[0], values_at[1] = value[high], value[low]
    ends = Ends(keys_at[1], keys_at[0], keys_at, values_at)
    least, most = np.float64(query[query_extremes[0]]), np.float64(query[query_extremes[1]])
    larger = max(keys[1] - keys[0], queries[1] - queries[0])
    return Frame(
        ends,
        key_grid(key, there, keys[0], keys[1], ends, max(-least, most)),
        query_grid(query, queries[0], queries[1], least, most, ends.high - ends.low),
        CUTOFF + np.log(larger),
    )
