"""Cells: every token owns an interval of the line. What is in them, and in which order they lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.construct.dominoes import lay_dominoes
from rankone.construct.line import Changes
from rankone.construct.mapping import Floats, Ints
from rankone.spans import SPAN, spans

SLOT = 4.0  # a sequence id moves a token by at most 3/2 either way: 1/2 is left free on both sides
GUARD = 1.0  # so between the contexts of neighbouring cells there is at least this much


@dataclass(frozen=True)
class Cells:
    """The contexts of the tokens that have several labels, sorted by token, then along the line.

    ``members`` are their indices in the corpus, ``tokens`` and ``labels`` belong to them.
    ``first`` and ``last`` are the labels at the two ends of every token's cell, ``counts`` its
    occurrences. A word without any, as the unknown one, has the most frequent label.
    """

    members: Ints
    tokens: Ints
    labels: Ints
    first: Ints
    last: Ints
    counts: Ints
    several: Ints  # the tokens with several labels


def fill_cells(within: Floats, tokens: Ints, labels: Ints, size: int) -> Cells:
    """Sort what needs sorting: a token with one label needs no order in its cell."""
    first = np.full(size, np.bincount(labels).argmax())
    first[tokens] = labels
    several = np.zeros(size, dtype=bool)
    several[tokens[labels != np.take(first, tokens)]] = True
    which = np.flatnonzero(several)
    members, inside = _sorted(np.flatnonzero(np.take(several, tokens)), tokens, within, which)
    names = labels[members]
    last = first.copy()
    first[inside[::-1]] = names[::-1]
    last[inside] = names
    return Cells(members, inside, names, first, last, np.bincount(tokens, minlength=size), which)


def _sorted(members: Ints, tokens: Ints, within: Floats, which: Ints) -> tuple[Ints, Ints]:
    """Members by token, then along the line, and their tokens; `which` are the tokens there are.

    If they are many, they are grouped by token first, and then sorted so many whole groups at a
    time that they stay in the cache.
    """
    number = np.zeros(which[-1] + 1 if len(which) else 0, dtype=np.int64)
    number[which] = np.arange(len(which))
    groups = np.take(number, tokens[members])
    counts = np.bincount(groups, minlength=len(which))
    if len(which) < 1 << 16:
        groups = groups.astype(np.uint16)  # numbers of 16 bits are sorted in linear time
    bounds = np.array([0, len(members)])
    if len(members) > 2 * SPAN:
        order = np.argsort(groups, kind="stable")
        members, groups, bounds = members[order], groups[order], np.append(0, np.cumsum(counts))
    places = within[members]
    for a, b in spans(bounds):
        part = slice(bounds[a], bounds[b])
        order = np.argsort(places[part])
        order = order[np.argsort(groups[part][order], kind="stable")]
        members[part] = members[part][order]
    return members, np.repeat(which, counts)


def order_cells(cells: Cells, all_apart: bool) -> Ints:
    """The rank of every token's cell, 0 for the one that ends at the number 0.

    Cells lie left of 0. Floating-point numbers are densest at 0, and a unit that bends the readout
    at theta is off by rounding in proportion to |theta| / gap; so the tokens with most contexts,
    whose gaps are the smallest, come nearest to 0.

    If `all_apart`, that is all: no two contexts may share a place. Otherwise only changes of
    label matter. Outermost lie the tokens with one label, side by side by label; then those with
    several, frequent ones further in by powers of 4, chained so that neighbours' labels agree.
    """
    size = len(cells.counts)
    if all_apart:
        line = np.argsort(cells.counts, kind="stable")
    else:
        single = np.ones(size, dtype=bool)
        single[cells.several] = False
        outer = np.flatnonzero(single)
        outer = outer[np.lexsort((cells.counts[outer], cells.first[outer]))]
        line = np.concatenate([outer, _inner(cells, int(cells.last[outer[-1]]))])
    rank = np.empty(size, dtype=np.int64)
    rank[line] = np.arange(size - 1, -1, -1)
    return rank


def _inner(cells: Cells, label: int) -> Ints:
    """The tokens with several labels from the outside in, next to `label`."""
    classes = np.log2(cells.counts[cells.several]) // 2
    chain: list[int] = []
    for frequency in np.unique(classes):
        tokens = cells.several[classes == frequency]
        ends = cells.first[tokens].tolist(), cells.last[tokens].tolist()
        chain += lay_dominoes(list(zip(tokens.tolist(), *ends, strict=True)), label)
        label = int(cells.last[chain[-1]])
    return np.array(chain, dtype=np.int64)


def changes_in_cells(cells: Cells, places: Floats, ids: Floats) -> Changes:
    """Where labels change inside cells, and between them.

    The cell of token t begins at ``places[t] - 2``. Between two cells the change lies on their
    border, so that no sentence whatever can carry a token into it.
    """
    t, y = cells.tokens, cells.labels
    at = np.flatnonzero((t[1:] == t[:-1]) & (y[1:] != y[:-1]))
    line = np.argsort(places)
    between = np.flatnonzero(cells.last[line[:-1]] != cells.first[line[1:]])
    borders = places[line[between + 1]] - SLOT / 2
    return Changes(
        left=np.concatenate([ids[cells.members[at]], borders - GUARD / 2]),
        right=np.concatenate([ids[cells.members[at + 1]], borders + GUARD / 2]),
        before=np.concatenate([y[at], cells.last[line[between]]]) + 1,
        after=np.concatenate([y[at + 1], cells.first[line[between + 1]]]) + 1,
        first=int(cells.first[line[0]]) + 1,
    )
