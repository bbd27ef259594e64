"""What can be said of a text before any model of its next token."""

from __future__ import annotations

from rankone.audit.texts.branches import Branches
from rankone.audit.texts.ceilings import enough, text_ceilings
from rankone.audit.texts.conflicts import branching_contexts
from rankone.audit.texts.passages import find_passages, passage
from rankone.audit.texts.result import TextConflict, TextFigures
from rankone.audit.texts.suffixes import Suffixes
from rankone.corpus.corpus import Corpus
from rankone.corpus.splitting import WIDEST


def text_figures(corpus: Corpus) -> tuple[TextFigures, tuple[TextConflict, ...]]:
    """The figures of a corpus that asks for the next token, and the contexts of a model of it that
    have several continuations. All of its tokens must ask (`unmarked`)."""
    suffixes = Suffixes.of(corpus)
    inside = Branches.of(suffixes, WIDEST)
    wholes = Branches.of(suffixes.documents, WIDEST)
    first, length = inside.limit
    limit = passage(corpus, suffixes, *suffixes.run(first, length), length) if length else None
    found = TextFigures(
        corpus.window,
        text_ceilings(corpus, inside, wholes),
        enough(inside),
        limit,
        find_passages(corpus, suffixes),
    )
    return found, branching_contexts(corpus, inside, wholes)
