"""Conflicts in texts: contexts that go on in different ways."""

from __future__ import annotations

import numpy as np

from rankone.arrays import Ints
from rankone.audit.pieces import piece
from rankone.audit.texts.branches import Branches
from rankone.audit.texts.passages import continuations, least, rows_at, token_of
from rankone.audit.texts.result import TextConflict
from rankone.audit.texts.suffixes import Suffixes, tokens_at
from rankone.corpus.corpus import Corpus

LISTED = 1000  # contexts
ROWS = 20  # of each continuation


def branching_contexts(
    corpus: Corpus, inside: Branches, wholes: Branches
) -> tuple[TextConflict, ...]:
    """The contexts with several continuations, those that cost the most errors first; at most 1000.

    Contexts are windows if the corpus has one, else prefixes.
    """
    window = corpus.window
    sides = [(wholes.suffixes, wholes.between(1, window - 1 if window else None))]
    if window:
        sides.append((inside.suffixes, inside.between(window, window)))
    found = [
        (errors, suffixes, first, size, depth)
        for suffixes, runs in sides
        for first, size, depth, errors in _costly(runs).tolist()
    ]
    found.sort(key=lambda run: -run[0])
    return tuple(
        _branching(corpus, suffixes, first, size, depth)
        for _, suffixes, first, size, depth in found[:LISTED]
    )


def _costly(runs: Ints) -> Ints:
    """Those that cost the most errors."""
    return runs[np.argsort(-runs[:, 3], kind="stable")[:LISTED]]


def _branching(
    corpus: Corpus, suffixes: Suffixes, first: int, size: int, depth: int
) -> TextConflict:
    places = suffixes.order[first : first + size]
    (start,), (document,) = (of.tolist() for of in tokens_at(corpus, least(places, 1)))
    following, others = continuations(suffixes, places, depth)
    names = [token_of(corpus, symbol) for symbol, _ in following]
    rows = [rows_at(corpus, least(copies, ROWS) + depth - 1) for _, copies in following]
    return TextConflict.at(
        corpus,
        dict(zip(names, rows, strict=True)),
        token=corpus.vocabulary[int(corpus.token_ids[start + depth - 1])],
        position=start + depth - int(corpus.offsets[document]),
        sentence=[piece(corpus, start, start + depth, of="tail")],
        counts={name: len(copies) for name, (_, copies) in zip(names, following, strict=True)},
        others=others,
    )
