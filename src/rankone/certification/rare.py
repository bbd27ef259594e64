"""Coordinates that few labels have: of the distributions in a head there may be thousands.

All but a few tokens are exactly 0 there, in every run, too: what is added is 0 times something. So
only numbers other than 0 are looked at, as rows of indices and values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.arrays import Bools, Floats, Ints

SELDOM = 64  # in one of so many rows


@dataclass(frozen=True)
class Entries:
    """Those of row r are ``column`` and ``value`` from number ``first[r]`` to ``first[r + 1]``."""

    first: Ints
    column: Ints
    value: Floats

    @classmethod
    def of(cls, rows: Floats, columns: Ints, names: Ints) -> Entries:
        """The numbers other than 0 in some columns, which get other names."""
        row, at = np.nonzero(rows[:, columns])
        first = np.searchsorted(row, np.arange(len(rows) + 1))
        return cls(first, names[at], rows[row, columns[at]])

    def at(self, rows: Ints) -> tuple[Ints, Ints, Floats]:
        """Index, column and value of all entries of some rows, which are repeated as they are."""
        start, count = self.first[rows], self.first[rows + 1] - self.first[rows]
        index = np.repeat(np.arange(len(rows)), count)
        entry = np.arange(len(index)) + np.repeat(start - (np.cumsum(count) - count), count)
        return index, self.column[entry], self.value[entry]


@dataclass(frozen=True)
class Rare:
    """The coordinates `writes` that are rare (``there``): of few codes, few words, and no position;
    no head writes them. They are named by their place in `out`."""

    there: Bools
    codes: Entries
    words: Entries

    @classmethod
    def of(
        cls, writes: Ints, out: Ints, codes: Floats, table: Floats, positions: Floats, written: Ints
    ) -> Rare:
        own = table[:, writes]
        seldom = [np.count_nonzero(x, axis=0) * SELDOM <= len(x) for x in (codes, own)]
        there = seldom[0] & seldom[1] & ~positions[:, writes].any(0)
        there &= np.isin(writes, out) & ~np.isin(writes, written)
        at = np.flatnonzero(there)
        names = np.searchsorted(out, writes[at])
        return cls(there, Entries.of(codes, at, names), Entries.of(own, at, names))


def by_place(k: Ints, token: Ints, *columns: Floats) -> tuple[tuple[Ints, Ints], list[Floats]]:
    """Sums of numbers that belong to a coordinate and a token; each pair of these once."""
    size = int(token.max(initial=0)) + 1
    pairs, back = np.unique(k * size + token, return_inverse=True)
    sums = [np.asarray(np.bincount(back, x, len(pairs)), np.float64) for x in columns]
    return (np.asarray(pairs // size), np.asarray(pairs % size)), sums
