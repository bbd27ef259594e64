"""The audit: counts, ceilings and conflicts of a corpus, before any model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankone.corpus import contexts
from rankone.corpus.conflicts import Conflict, find_conflicts
from rankone.corpus.contexts import Look
from rankone.corpus.corpus import Corpus
from rankone.corpus.read import as_corpus
from rankone.corpus.rows import Column, Columns
from rankone.corpus.tallies import best, tally_parts

ASKED = ("task", "asked")
INPUTS: Mapping[str, Look] = {  # what a model may see
    "majority": contexts.by_nothing,
    "token": contexts.by_token,
    "set": contexts.by_set,
    "multiset": contexts.by_multiset,
    "sequence": contexts.by_sequence,
    "prefix": contexts.by_prefix,
}


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
    """What can be said about a corpus before any model.

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
    conflicts: tuple[Conflict, ...]
    task: str = "tags"
    asked: int = 0

    @property
    def ok(self) -> bool:
        """Whether the sequence determines every label."""
        return not self.conflicts

    def to_json(self) -> dict[str, Any]:
        """All figures; the task and the number of tokens asked only if not all of them are."""
        found = {"ok": self.ok, **asdict(self)}
        return found if self.task != "tags" else {k: found[k] for k in found if k not in ASKED}


def inspect(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any],
    *,
    token_column: Column | None = None,
    label_column: Column | None = None,
) -> Audit:
    """Count, and compute the best result that any model could reach.

    Takes whatever `memorize` takes: a corpus, a path, sentences, a dataset, a data frame.

    >>> inspect("builtin").ceilings["sequence"]
    Ceiling(accuracy=1.0, errors=0)
    """
    corpus = as_corpus(corpus, token_column, label_column)
    counts = np.bincount(corpus.label_ids[corpus.asked])
    tallies = {name: tally_parts([corpus], look) for name, look in INPUTS.items()}
    found = {name: best(tally) for name, (tally, _) in tallies.items()}
    (sequence,) = tallies["sequence"][1]
    members = found["sequence"].members(sequence, corpus.label_ids)
    copies = np.bincount(corpus.sentence_of[sequence[corpus.offsets[:-1]]])
    at_odds = np.unique(corpus.sentence_of[sequence[members]])  # first copies
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
            name: Ceiling.of(of_all.errors, len(corpus.asked)) for name, of_all in found.items()
        },
        conflicts=tuple(find_conflicts(corpus, sequence, members)),
        task=corpus.task,
        asked=len(corpus.asked),
    )


def sentences_with_repeats(corpus: Corpus) -> int:
    """The number of sentences in which some token occurs more than once."""
    pairs = np.sort(corpus.sentence_of * len(corpus.vocabulary) + corpus.token_ids)
    again = pairs[1:][pairs[1:] == pairs[:-1]] // len(corpus.vocabulary)
    return len(np.unique(again))
