"""The line of context ids, and the places on it where the label changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.construct.mapping import ContextualMapping, Floats, Ints


@dataclass(frozen=True)
class Changes:
    """Label `before` up to `left`, label `after` from `right` on; `first` is left of them all.

    Only here does a readout need units. Labels count from 1, as in the paper.
    """

    left: Floats
    right: Floats
    before: Ints
    after: Ints
    first: int

    @property
    def min_gap(self) -> float:
        """The smallest gap in which a label changes, infinite if none does."""
        return float((self.right - self.left).min()) if len(self.left) else np.inf


@dataclass(frozen=True)
class Line:
    """A contextual mapping with the number s of every token of the corpus, and the changes.

    ``unknown`` are the ends of the cell of the unknown word, where tokens have cells.
    """

    mapping: ContextualMapping
    ids: Floats
    changes: Changes
    unknown: tuple[float, ...] = ()


def changes_on_line(ids: Floats, labels: Ints) -> Changes:
    """Sort the context ids; neighbours with different labels make a change."""
    order = np.argsort(ids)
    s, y = ids[order], labels[order] + 1
    at = np.flatnonzero(y[1:] != y[:-1])
    return Changes(s[at], s[at + 1], y[at], y[at + 1], int(y[0]))
