"""Equal documents with different labels."""

from __future__ import annotations

from dataclasses import fields

from rankone.arrays import Ints
from rankone.audit.pieces import piece, unit
from rankone.audit.texts.result import TextConflict
from rankone.corpus.conflicts import Conflict, find_conflicts
from rankone.corpus.corpus import Corpus


def documents_at_odds(corpus: Corpus, contexts: Ints, members: Ints) -> tuple[TextConflict, ...]:
    """Equal documents with different labels. `members` are the tokens that carry these labels,
    ``contexts[i]`` is the first token of the corpus with the same document before it."""
    firsts = dict.fromkeys(contexts[members].tolist())
    found = []
    for first, conflict in zip(firsts, find_conflicts(corpus, contexts, members), strict=True):
        start = corpus.offsets[corpus.offsets.searchsorted(first, side="right") - 1]
        text = piece(corpus, int(start), first + 1)
        kept = {field.name: getattr(conflict, field.name) for field in fields(Conflict)}
        changed = {"token": "", "sentence": [text], "start": 1, "unit": unit(corpus)}
        found.append(TextConflict(**{**kept, **changed}))
    return tuple(found)
