"""Long lists of sequences go through in parts."""

from __future__ import annotations

from collections.abc import Iterator


def at_once(n: int) -> int:
    """How many sequences of n tokens go through the network at once."""
    return max(16, (1 << 15) // n)


def slices(length: int, size: int) -> Iterator[slice]:
    """Cut 0, ..., length - 1 into parts."""
    return (slice(i, i + size) for i in range(0, length, size))
