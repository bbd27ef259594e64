"""Labelled corpora: how to read them, and what can be said about them before any model."""

from rankone.corpus.audit import Audit, Ceiling, inspect
from rankone.corpus.builtin import builtin_corpus
from rankone.corpus.conflicts import Conflict
from rankone.corpus.corpus import Corpus
from rankone.corpus.read import as_corpus, read_corpus
from rankone.corpus.rows import Columns, Sentence

__all__ = [
    "Audit",
    "Ceiling",
    "Columns",
    "Conflict",
    "Corpus",
    "Sentence",
    "as_corpus",
    "builtin_corpus",
    "inspect",
    "read_corpus",
]
