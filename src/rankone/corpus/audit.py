"""The audit: counts, ceilings and conflicts of a corpus, before any model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankone.corpus import contexts
from rankone.corpus.ceilings import best_targets
from rankone.corpus.corpus import Corpus, Ints
from rankone.errors import CorpusError


@dataclass(frozen=True)
class Ceiling:
    """The best training accuracy of any function of one input, and the errors it must make."""

    accuracy: float
    errors: int

    @classmethod
    def of(cls, errors: int, tokens: int) -> Ceiling:
        return cls((tokens - errors) / tokens, errors)


@dataclass(frozen=True)
class Conflict:
    """One context with several labels: its token, its place in the (first) sentence, and the lines
    that carry each label."""

    token: str
    position: int  # from 1
    labels: dict[str, list[int]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        sides = "; ".join(
            f"{label} on line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
            for label, lines in self.labels.items()
        )
        return f"{self.token!r} (token {self.position}): {sides}"


@dataclass(frozen=True)
class Audit:
    """What can be said of a corpus before any model.

    ``ceilings`` holds, for each input a model may see, the best accuracy any function of it can
    reach: ``majority`` (nothing), ``token``, ``set`` and ``multiset`` (the token and its sentence's
    tokens, unordered), ``sequence`` (whole sentence and position), ``prefix`` (sentence so far).
    """

    source: str
    format: str
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


def inspect(corpus: Corpus) -> Audit:
    """Count, and compute the best that any model could do.

    >>> from rankone import read_corpus
    >>> inspect(read_corpus("builtin")).ceilings["sequence"]
    Ceiling(accuracy=1.0, errors=0)
    """
    if not corpus.labelled:
        raise CorpusError("no labels", where=corpus.source, remedy="give a labelled file")
    labels = corpus.label_ids
    counts = np.bincount(labels, minlength=len(corpus.label_names))
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
    copies = np.bincount(
        np.searchsorted(corpus.offsets, sequence[corpus.offsets[:-1]]), minlength=1
    )
    at_odds = _sentences_at_odds(corpus, sequence)
    return Audit(
        source=corpus.source,
        format=corpus.format,
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


def find_conflicts(corpus: Corpus, groups: Ints, members: Ints) -> list[Conflict]:
    """The contexts that carry more than one label, with the lines of every row, in file order.

    `members` are the tokens of those contexts, as `best_targets` finds them.
    """
    found: dict[int, Conflict] = {}
    columns = groups, corpus.token_ids, corpus.positions, corpus.label_ids, corpus.lines
    for group, token, position, label, line in zip(
        *(column[members].tolist() for column in columns), strict=True
    ):
        if group not in found:
            found[group] = Conflict(corpus.vocabulary[token], position + 1, {})
        found[group].labels.setdefault(corpus.label_names[label], []).append(line)
    return list(found.values())


def sentences_with_repeats(corpus: Corpus) -> int:
    """How many sentences hold some token more than once."""
    pairs = np.sort(corpus.sentence_of * len(corpus.vocabulary) + corpus.token_ids)
    again = pairs[1:][pairs[1:] == pairs[:-1]] // len(corpus.vocabulary)
    return len(np.unique(again))


def _sentences_at_odds(corpus: Corpus, sequence: Ints) -> Ints:
    """First copies of the sentences that stand in the file with different labels."""
    disagree = corpus.label_ids != corpus.label_ids[sequence]
    return np.unique(corpus.sentence_of[sequence[disagree]])
