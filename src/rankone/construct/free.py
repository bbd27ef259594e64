"""A contextual mapping where the token table is free: three coordinates are enough."""

from __future__ import annotations

import numpy as np

from rankone.construct.cells import GUARD, SLOT, changes_in_cells, fill_cells, order_cells
from rankone.construct.line import Line
from rankone.construct.mapping import ContextualMapping
from rankone.construct.targets import ContextTargets
from rankone.corpus import Corpus

KEY = 1.0  # keys of tokens lie in [-1, 1],
STEP = 0.5  # those of positions in [-1/2, 1/2], so a sequence id lies in [-3/2, 3/2]
QUERY = 2.0  # scores lie in [-3, 3]


def free_line(
    corpus: Corpus,
    targets: ContextTargets,
    *,
    length: int,
    causal: bool,
    all_apart: bool,
    rng: np.random.Generator,
) -> Line:
    """Choose the table so that the readout stays small and its rounding errors too.

    A token is the vector (cell, key, 1), a position (slot, key, 0). Attention asks with the third
    coordinate, which is constant, so by footnote 3 of the paper all tokens of a sentence get the
    same softmax average of the keys, the sequence id; it is added to the first coordinate:

        s = cell of the token + slot of the position + sequence id

    Every token owns a cell of `length` slots and never leaves it, whatever the sentence (the
    structure of eq. 28), so attention has to tell apart only the contexts of one token at one
    position. The query must not be 0: a plain mean of keys would not see the order of tokens.

    If all contexts must lie apart, not just those with different labels (`all_apart`), the slots of
    a cell overlap instead and together move a token by less than 1: the line must be short, for
    all of it is in use.
    """
    size = len(corpus.vocabulary) + 1
    slot, width = (1 / length, 2 * SLOT) if all_apart else (SLOT, SLOT * length)
    table = np.stack([np.zeros(size), rng.uniform(-KEY, KEY, size), np.ones(size)], axis=1)
    positions = None
    if length > 1:
        slots, keys = slot * np.arange(length), rng.uniform(-STEP, STEP, length)
        positions = np.stack([slots, keys, np.zeros(length)], axis=1)
    cell, key, one = np.eye(3)
    mapping = ContextualMapping(table, positions, key, QUERY * one, cell, cell, write=cell)

    within = mapping.project(corpus, cell) + mapping.averages(corpus, causal)
    cells = fill_cells(within, corpus.token_ids, targets.labels, size)
    rank = order_cells(cells, all_apart)
    table[:, 0] = SLOT / 2 - width * (rank + 1)
    ids = np.take(table[:, 0], corpus.token_ids) + within
    begin = float(table[-1, 0]) - SLOT / 2
    ends = begin + GUARD / 2, begin + width - GUARD / 2
    return Line(mapping, ids, changes_in_cells(cells, table[:, 0], ids), ends)
