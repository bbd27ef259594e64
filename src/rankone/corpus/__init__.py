"""Labelled corpora: how to read them, their contexts, conflicts and ceilings."""

from rankone.corpus.builtin import builtin_corpus
from rankone.corpus.ceilings import Ceiling
from rankone.corpus.conflicts import Conflict
from rankone.corpus.corpus import Corpus
from rankone.corpus.join import join
from rankone.corpus.read import as_corpus, read_corpus
from rankone.corpus.rows import Columns, Sentence

__all__ = [
    "Ceiling",
    "Columns",
    "Conflict",
    "Corpus",
    "Sentence",
    "as_corpus",
    "builtin_corpus",
    "join",
    "read_corpus",
]
