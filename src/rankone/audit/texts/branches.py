"""Where a text branches: what stands in it more than once, and goes on in different ways.

Neighbours in the order of suffixes that share d symbols form a run; the runs lie in each other like
the nodes of a tree. A run of n suffixes branches after d symbols: the next symbol divides it into
parts. Nothing else is lost to a model that sees d tokens, so one sweep over the runs counts for all
windows: of each run, n - max part tokens are errors, and the next symbol has
n log n - sum part log part bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from rankone.arrays import Floats, Ints
from rankone.audit.texts.sorting import Numbers
from rankone.audit.texts.suffixes import END, Suffixes

SEVERAL = -1  # in place of the symbol before a run, if there are several


@dataclass(frozen=True)
class Lost:
    """What is lost where a text branches: runs, their tokens, errors, and bits in all."""

    runs: int
    tokens: int
    errors: int
    bits: float

    def __add__(self, other: Lost) -> Lost:
        return Lost(
            self.runs + other.runs,
            self.tokens + other.tokens,
            self.errors + other.errors,
            self.bits + other.bits,
        )


@dataclass(frozen=True)
class Branches:
    """Of the runs that branch after d tokens: how many they are, their tokens, errors and bits.

    ``sharing[d]`` is how many suffixes share d tokens or more with the one before. The last entry
    of each column is about everything deeper; ``shared`` is the sum of the tokens shared.
    ``limit`` is the deepest run that has different symbols before it: rank of the first suffix,
    and tokens (0: there is none).
    """

    suffixes: Suffixes
    runs: Ints
    tokens: Ints
    errors: Ints
    bits: Floats
    sharing: Ints
    shared: int
    limit: tuple[int, int]

    @classmethod
    def of(cls, suffixes: Suffixes, deepest: int) -> Branches:
        """Count for each number of tokens up to `deepest`."""
        counts = np.zeros((4, deepest + 2), dtype=np.int64)
        bits = np.zeros(deepest + 2)
        none = np.empty((0, 4), dtype=np.int64)
        first, depth, shared, _ = _sweep(*_columns(suffixes), 1, 0, counts, bits, none)
        runs, tokens, errors, pairs = counts
        sharing = pairs[::-1].cumsum()[::-1]
        return cls(suffixes, runs, tokens, errors, bits, sharing, shared, (first, depth))

    def at(self, depth: int) -> Lost:
        """What is lost after exactly so many tokens."""
        return self._lost(slice(depth, depth + 1))

    def below(self, depth: int | None = None) -> Lost:
        """What is lost after less than so many tokens (None: after any number)."""
        return self._lost(slice(depth))

    def _lost(self, depths: slice) -> Lost:
        runs, tokens, errors = (
            int(column[depths].sum()) for column in (self.runs, self.tokens, self.errors)
        )
        return Lost(runs, tokens, errors, float(self.bits[depths].sum()))

    def between(self, low: int, high: int | None = None) -> Ints:
        """The runs that branch after `low` to `high` tokens (None: or more): of each the rank of
        the first suffix, the number of suffixes, the depth and the errors."""
        end = len(self.runs) if high is None else high + 1
        found = np.empty((int(self.runs[low:end].sum()), 4), dtype=np.int64)
        counts, bits = np.zeros((4, 2), dtype=np.int64), np.zeros(2)
        high = len(self.suffixes.text) if high is None else high
        *_, taken = _sweep(*_columns(self.suffixes), low, high, counts, bits, found)
        return found[:taken]


def _columns(suffixes: Suffixes) -> tuple[Numbers, Numbers, Numbers]:
    return suffixes.text, suffixes.order, suffixes.shared


@njit(nogil=True, cache=True)
def _sweep(
    text: Numbers,
    order: Numbers,
    shared: Numbers,
    low: int,
    high: int,
    counts: Ints,
    bits: Floats,
    found: Ints,
) -> tuple[int, int, int, int]:
    """The runs that have not ended yet lie in each other: they are the rows of `stack`, which are
    depth, rank of the first suffix, largest part, and the symbol before all of it.

    Returns the first suffix and depth of the limit, all tokens that are shared, and how many of the
    runs from `low` to `high` were entered in `found`.
    """
    stack, logs = np.empty((64, 4), np.int64), np.empty(64)
    deeper = counts.shape[1] - 1
    top, taken, total = -1, 0, 0
    limit, limit_first = 0, 0
    for i in range(1, len(order) + 1):
        length = shared[i]
        first, size = i - 1, 1  # of the part that ends here, at first a single suffix
        before = text[order[i - 1] - 1] if order[i - 1] > 0 else END
        while top >= 0 and stack[top, 0] >= length:
            run = stack[top]
            run[2] = max(run[2], size)
            if size > 1:
                logs[top] += size * np.log2(size)
            if run[3] != before:
                run[3] = SEVERAL
            if run[0] == length:
                break
            depth, first, before = run[0], run[1], run[3]
            size = i - first
            if text[order[first] + depth - 1] != END:  # else nothing follows
                lost, at = size - run[2], min(depth, deeper)
                counts[0, at] += 1
                counts[1, at] += size
                counts[2, at] += lost
                bits[at] += size * np.log2(size) - logs[top]
                if before == SEVERAL and depth > limit:
                    limit, limit_first = depth, first
                if low <= depth <= high:
                    found[taken, 0], found[taken, 1] = first, size
                    found[taken, 2], found[taken, 3] = depth, lost
                    taken += 1
            top -= 1
        if length == 0:
            continue
        tokens = length - (text[order[i] + length - 1] == END)
        counts[3, min(tokens, deeper)] += 1
        total += tokens
        if top < 0 or stack[top, 0] < length:
            top += 1
            if top == len(stack):
                stack = np.concatenate((stack, np.empty_like(stack)))
                logs = np.concatenate((logs, np.empty_like(logs)))
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = length, first, size, before
            logs[top] = size * np.log2(size) if size > 1 else 0.0
    return limit_first, limit, total, taken
