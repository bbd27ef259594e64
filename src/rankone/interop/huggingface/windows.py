"""Windows over a long sentence that overlap: a word is read where it has context around it."""

from __future__ import annotations


def windows(length: int, room: int) -> list[tuple[int, int, range]]:
    """Start and end of each window, at most `room` long, and the places that are read from it.

    Every place is read once. It has at least a quarter of `room` on both sides, or all there is.

    >>> windows(7, 8)
    [(0, 7, range(0, 7))]
    >>> windows(11, 8)
    [(0, 8, range(0, 5)), (3, 11, range(5, 11))]
    """
    context = room // 4
    last = max(0, length - room)
    starts = [*range(0, last, room - 2 * context), last]
    edges = [0, *(start + context for start in starts[1:]), length]
    return [
        (start, min(start + room, length), range(edges[k], edges[k + 1]))
        for k, start in enumerate(starts)
    ]
