"""A contextual mapping where the token table is free: three coordinates are enough."""

from __future__ import annotations

import numpy as np

from rankone.construct.mapping import ContextualMapping, Ints
from rankone.corpus import Corpus

KEY = 1.0  # keys of tokens lie in [-1, 1],
STEP = 0.5  # those of positions in [-1/2, 1/2], so an average of keys lies in [-3/2, 3/2]
SLOT = 4.0  # and moves a token by less than half a slot: 1/2 is left free on either side
QUERY = 2.0  # scores lie in [-3, 3]


def free_mapping(
    corpus: Corpus, targets: Ints, *, length: int, demand: bool, rng: np.random.Generator
) -> ContextualMapping:
    """Choose the table so that the readout stays small and its rounding errors too.

    A token is the vector (cell, key, 1), a position (slot, key, 0). Attention asks with the third
    coordinate, which is constant, so by footnote 3 of the paper all tokens of a sentence get the
    same softmax average of the keys, the sequence id; it is added to the first coordinate:

        s = cell of the token + slot of the position + sequence id

    Every token owns a cell of `length` slots and never leaves it, whatever the sentence (the
    structure of eq. 28), so only contexts of one token at one position are told apart by
    attention. The query must not be 0: a plain mean of keys would not see the order of tokens.

    Cells lie left of 0 in the order of `cell_order`. Floating-point numbers are densest at 0, and
    a unit that bends the readout at theta is off by rounding in proportion to |theta| / gap; so
    the tokens with the most contexts, whose gaps are the smallest, get the cells nearest to 0.
    """
    size = len(corpus.vocabulary)
    rank = np.empty(size + 1)
    rank[cell_order(corpus, targets, demand)] = np.arange(size + 1)
    table = np.empty((size + 1, 3))
    table[:, 0] = -SLOT * length * (rank + 1) + SLOT / 2
    table[:, 1] = rng.uniform(-KEY, KEY, size + 1)
    table[:, 2] = 1.0
    positions = None
    if length > 1:
        positions = np.zeros((length, 3))
        positions[:, 0] = SLOT * np.arange(length)
        positions[:, 1] = rng.uniform(-STEP, STEP, length)
    cell, key, one = np.eye(3)
    return ContextualMapping(table, positions, key, QUERY * one, cell, cell, 0, SLOT * length)


def cell_order(corpus: Corpus, targets: Ints, demand: bool) -> Ints:
    """Tokens (and last of all numbers, the unknown word) from the cell at 0 outwards.

    By number of occurrences, the most frequent first, if `demand` says that every context needs
    its own place. Otherwise tokens with several labels come first in that order; behind them those
    with a single label stand side by side by label, the unknown word among the most frequent one.
    """
    size, names = len(corpus.vocabulary), len(corpus.label_names)
    counts = np.append(np.bincount(corpus.token_ids, minlength=size), 0)
    if demand:
        return np.argsort(-counts, kind="stable")
    label = np.full(size + 1, np.bincount(targets, minlength=names).argmax())
    label[corpus.token_ids[::-1]] = targets[::-1]
    label[corpus.token_ids[targets != label[corpus.token_ids]]] = -1  # several labels
    return np.lexsort((-counts, label))
