"""Equal documents with different labels."""

from __future__ import annotations

import numpy as np

from rankone.arrays import Ints
from rankone.audit.findings import rows_of
from rankone.audit.pieces import piece
from rankone.audit.texts.result import TextConflict
from rankone.corpus.corpus import Corpus


def documents_at_odds(corpus: Corpus, contexts: Ints, members: Ints) -> tuple[TextConflict, ...]:
    """Equal documents with different labels. `members` are the tokens that carry these labels,
    ``contexts[i]`` is the first token of the corpus with the same document before it."""
    groups: dict[int, dict[int, list[int]]] = {}  # context, label: documents
    documents = np.searchsorted(corpus.offsets, members, side="right") - 1
    for context, label, document in zip(
        contexts[members].tolist(),
        corpus.label_ids[members].tolist(),
        documents.tolist(),
        strict=True,
    ):
        groups.setdefault(context, {}).setdefault(label, []).append(document)
    return tuple(_conflict(corpus, labels) for labels in groups.values())


def _conflict(corpus: Corpus, labels: dict[int, list[int]]) -> TextConflict:
    first = min(map(min, labels.values()))
    start, end = corpus.offsets[first : first + 2].tolist()
    rows = {corpus.label_names[label]: rows_of(corpus, of_one) for label, of_one in labels.items()}
    return TextConflict.at(
        corpus,
        rows,
        token="",
        position=end - start,
        sentence=[piece(corpus, start, end)],
        counts={name: len(of_one) for name, of_one in rows.items()},
    )
