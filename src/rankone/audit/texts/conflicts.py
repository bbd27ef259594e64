"""Conflicts in texts: contexts that go on in different ways."""

from __future__ import annotations

import numpy as np

from rankone.audit.pieces import piece, unit
from rankone.audit.texts.branches import Branches
from rankone.audit.texts.passages import NEXT, continuations, rows_at
from rankone.audit.texts.result import TextConflict
from rankone.audit.texts.suffixes import Suffixes, tokens_at
from rankone.corpus.corpus import PYTHON, Corpus

LISTED = 1000  # contexts
ROWS = 20  # of each continuation


def branching_contexts(
    corpus: Corpus, inside: Branches, wholes: Branches
) -> tuple[TextConflict, ...]:
    """The contexts with several continuations, those that cost the most errors first; at most 1000.

    Contexts are windows if the corpus has one, else prefixes.
    """
    window = corpus.window
    found = [(wholes.suffixes, wholes.between(1, window - 1 if window else None))]
    if window:
        found.append((inside.suffixes, inside.between(window, window)))
    costly = [
        (int(errors), of, int(first), int(size), int(depth))
        for of, runs in found
        for first, size, depth, errors in runs[np.argsort(-runs[:, 3], kind="stable")[:LISTED]]
    ]
    costly.sort(key=lambda run: -run[0])
    return tuple(_branching(corpus, *run) for _, *run in costly[:LISTED])


def _branching(
    corpus: Corpus, suffixes: Suffixes, first: int, size: int, depth: int
) -> TextConflict:
    places = np.sort(suffixes.order[first : first + size].astype(np.int64))
    (start,), (document,) = (column.tolist() for column in tokens_at(corpus, places[:1]))
    following = list(continuations(corpus, suffixes, places + depth))
    rows = {name: rows_at(corpus, copies[:ROWS] - 1) for name, copies in following[:NEXT]}
    several = len(corpus.files) > 1
    return TextConflict(
        token=corpus.vocabulary[int(corpus.token_ids[start + depth - 1])],
        position=start + depth - int(corpus.offsets[document]),
        sentence=[piece(corpus, start, start + depth, of="tail")],
        labels={name: [row.line for row in of_one] for name, of_one in rows.items()},
        files={
            name: [row.file or PYTHON for row in of_one]
            for name, of_one in rows.items()
            if several
        },
        unit=unit(corpus),
        counts={name: len(copies) for name, copies in following[:NEXT]},
        others=max(len(following) - NEXT, 0),
    )
