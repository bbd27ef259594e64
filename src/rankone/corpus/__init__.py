"""Labelled corpora: reading them, and what can be said of them before any model."""

from rankone.corpus.audit import Audit, Ceiling, Conflict, inspect
from rankone.corpus.builtin import builtin_corpus
from rankone.corpus.corpus import Corpus, Sentence
from rankone.corpus.read import read_corpus

__all__ = [
    "Audit",
    "Ceiling",
    "Conflict",
    "Corpus",
    "Sentence",
    "builtin_corpus",
    "inspect",
    "read_corpus",
]
