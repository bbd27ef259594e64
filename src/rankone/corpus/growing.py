"""A long column that grows: in narrow integers until its length is known."""

from __future__ import annotations

from array import array

import numpy as np

from rankone.arrays import Ints

PART = 1 << 23  # rows; so large that memory is given back to the system with the part


class Column:
    """Whole numbers from 0. Nothing is copied when it grows, and `joined` holds every number once,
    but for one part.

    >>> column = Column()
    >>> column.add(np.array([1, 2])), column.add(np.array([1 << 40]))
    (None, None)
    >>> column.joined()
    array('q', [1, 2, 1099511627776])
    """

    def __init__(self, part: int = PART) -> None:
        self.part, self.parts, self.free = part, list[Ints](), 0

    def add(self, numbers: Ints) -> None:
        """Add numbers to the end."""
        while len(numbers):
            kind = np.min_scalar_type(int(numbers.max()))
            if self.free == 0 or self.parts[-1].dtype.itemsize < kind.itemsize:
                self._end()
                self.parts.append(np.empty(self.part, kind))
                self.free = self.part
            last, some = self.parts[-1], numbers[: self.free]
            at = len(last) - self.free
            last[at : at + len(some)] = some
            self.free -= len(some)
            numbers = numbers[len(some) :]

    def joined(self) -> array[int]:
        """All numbers; the column itself has none afterwards."""
        self._end()
        column = array("q", [0]) * sum(map(len, self.parts))
        numbers = np.frombuffer(column, dtype=np.int64) if column else np.empty(0)
        self.parts.reverse()
        at = 0
        while self.parts:
            part = self.parts.pop()
            numbers[at : at + len(part)] = part
            at += len(part)
        return column

    def numbers(self) -> Ints:
        """The same as an array."""
        column = self.joined()
        return np.frombuffer(column, np.int64) if column else np.empty(0, np.int64)

    def _end(self) -> None:
        """The last part takes no more."""
        if self.free:
            self.parts[-1] = self.parts[-1][: -self.free]
            self.free = 0
