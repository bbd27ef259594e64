"""The audit: counts, ceilings and conflicts of a corpus, before any model."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankone.corpus import contexts
from rankone.corpus.ceilings import best_targets
from rankone.corpus.conflicts import Conflict, find_conflicts
from rankone.corpus.corpus import Corpus
from rankone.corpus.read import as_corpus
from rankone.corpus.rows import Column, Columns, Ints


@dataclass(frozen=True)
class Ceiling:
    """The best training accuracy of any function of one input, and the errors it must make."""

    accuracy: float
    errors: int

    @classmethod
    def of(cls, errors: int, tokens: int) -> Ceiling:
        return cls((tokens - errors) / tokens, errors)


@dataclass(frozen=True)
class Audit:
    """What can be said of a corpus before any model.

    ``ceilings`` holds, for each input a model may see, the best accuracy any function of it can
    reach: ``majority`` (nothing), ``token``, ``set`` and ``multiset`` (the token and its sentence's
    tokens, unordered), ``sequence`` (whole sentence and position), ``prefix`` (sentence so far).
    """

    source: str
    format: str
    columns: Columns
    scheme: str | None
    sentences: int
    tokens: int
    vocabulary: int
    labels: dict[str, int]
    longest: int
    longest_line: int
    mean_length: float
    sentences_with_repeated_token: int
    distinct_sentences: int
    surplus_copies: int
    disagreeing_sequences: int
    disagreeing_copies: int
    ceilings: dict[str, Ceiling]
    conflicts: list[Conflict]

    @property
    def ok(self) -> bool:
        """Whether the sequence determines every label."""
        return not self.conflicts

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def inspect(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any],
    *,
    token_column: Column | None = None,
    label_column: Column | None = None,
) -> Audit:
    """Count, and compute the best that any model could do.

    Takes whatever `memorize` takes: a corpus, a path, sentences, a dataset, a data frame.

    >>> inspect("builtin").ceilings["sequence"]
    Ceiling(accuracy=1.0, errors=0)
    """
    corpus = as_corpus(corpus, token_column, label_column)
    labels = corpus.label_ids
    counts = np.bincount(labels)
    sequence = contexts.by_sequence(corpus)
    groups = {
        "majority": np.zeros_like(labels),
        "token": contexts.by_token(corpus),
        "set": contexts.by_set(corpus),
        "multiset": contexts.by_multiset(corpus),
        "sequence": sequence,
        "prefix": contexts.by_prefix(corpus),
    }
    best = {name: best_targets(group, labels) for name, group in groups.items()}
    copies = np.bincount(corpus.sentence_of[sequence[corpus.offsets[:-1]]])
    at_odds = _sentences_at_odds(corpus, sequence)
    return Audit(
        source=corpus.source,
        format=corpus.format,
        columns=corpus.columns,
        scheme=corpus.scheme,
        sentences=corpus.n_sentences,
        tokens=corpus.n_tokens,
        vocabulary=len(corpus.vocabulary),
        labels={corpus.label_names[i]: int(counts[i]) for i in np.argsort(-counts, kind="stable")},
        longest=corpus.longest,
        longest_line=int(corpus.lines[corpus.offsets[corpus.lengths.argmax()]]),
        mean_length=corpus.n_tokens / corpus.n_sentences,
        sentences_with_repeated_token=sentences_with_repeats(corpus),
        distinct_sentences=int((copies > 0).sum()),
        surplus_copies=int(corpus.n_sentences - (copies > 0).sum()),
        disagreeing_sequences=len(at_odds),
        disagreeing_copies=int(copies[at_odds].sum()),
        ceilings={
            name: Ceiling.of(targets.errors, corpus.n_tokens) for name, targets in best.items()
        },
        conflicts=find_conflicts(corpus, sequence, best["sequence"].members),
    )


def sentences_with_repeats(corpus: Corpus) -> int:
    """How many sentences hold some token more than once."""
    pairs = np.sort(corpus.sentence_of * len(corpus.vocabulary) + corpus.token_ids)
    again = pairs[1:][pairs[1:] == pairs[:-1]] // len(corpus.vocabulary)
    return len(np.unique(again))


def _sentences_at_odds(corpus: Corpus, sequence: Ints) -> Ints:
    """First copies of the sentences that stand in the file with different labels."""
    disagree = corpus.label_ids != corpus.label_ids[sequence]
    return np.unique(corpus.sentence_of[sequence[disagree]])
