"""Where the label changes along the line of context ids: only there does the readout need units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.construct.mapping import ContextualMapping, Floats, Ints

GUARD = 1.0  # between the contexts of neighbouring cells, at least


@dataclass(frozen=True)
class Changes:
    """Label `before` up to `left`, label `after` from `right` on; `first` is left of them all.

    Labels count from 1, as in the paper.
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


def changes_on_line(ids: Floats, labels: Ints) -> Changes:
    """Sort the context ids; neighbours with different labels make a change."""
    order = np.argsort(ids, kind="stable")
    s, y = ids[order], labels[order] + 1
    at = np.flatnonzero(y[1:] != y[:-1])
    return Changes(s[at], s[at + 1], y[at], y[at + 1], int(y[0]))


def changes_in_cells(
    mapping: ContextualMapping, ids: Floats, tokens: Ints, labels: Ints
) -> Changes:
    """The same where every token owns a cell: the label changes inside cells and between them.

    Only tokens with several labels are sorted. Between two cells the change lies on their border,
    so that no sentence whatever can carry a token into it. A word without occurrences, as the
    unknown one, has the most frequent label.
    """
    assert mapping.cell is not None
    first = np.full(len(mapping.table), np.bincount(labels).argmax())
    first[tokens[::-1]] = labels[::-1]
    several = np.zeros(len(mapping.table), dtype=bool)
    several[tokens[labels != first[tokens]]] = True
    inside = np.flatnonzero(several[tokens])
    inside = inside[np.argsort(ids[inside], kind="stable")]
    s, t, y = ids[inside], tokens[inside], labels[inside]
    last = first.copy()
    first[t[::-1]] = y[::-1]
    last[t] = y

    at = np.flatnonzero((t[1:] == t[:-1]) & (y[1:] != y[:-1]))
    places = mapping.table[:, mapping.out]
    line = np.argsort(places)
    between = np.flatnonzero(last[line[:-1]] != first[line[1:]])
    borders = (places[line[between]] + places[line[between + 1]] - 4 + mapping.cell) / 2
    return Changes(
        left=np.concatenate([s[at], borders - GUARD / 2]),
        right=np.concatenate([s[at + 1], borders + GUARD / 2]),
        before=np.concatenate([y[at], last[line[between]]]) + 1,
        after=np.concatenate([y[at + 1], first[line[between + 1]]]) + 1,
        first=int(first[line[0]]) + 1,
    )
