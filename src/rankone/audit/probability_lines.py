"""Probabilities as JSON lines: one object per sentence, ``{"probabilities": [[...], ...]}``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from rankone.arrays import Floats
from rankone.corpus.blocks import read_lines
from rankone.corpus.corpus import Corpus
from rankone.corpus.distributions import check_columns
from rankone.corpus.label_columns import named
from rankone.corpus.rows import DOCSTART
from rankone.documents import parse_document
from rankone.errors import ProbabilityError
from rankone.plural import plural

FORM = 'give one object per sentence: {"labels": [...], "probabilities": [[...], ...]}'
NAMED = 'give "labels" in the first line, or a mapping from label to probability for each token'
SAME = "give probabilities for the sentences of the corpus, in its order"


@dataclass(frozen=True)
class Line:
    """A sentence: for each token a list in the order of the labels, or a mapping from labels."""

    probabilities: list[list[float] | dict[str, float]]
    labels: list[str] | None = None
    tokens: list[str] | None = None


def read_sentences(path: str | os.PathLike[str], corpus: Corpus) -> tuple[Floats, list[str]]:
    """The numbers of all tokens, and the labels of their columns: those that the first line names,
    or else all that the mappings have. A label that a mapping does not have gets 0."""
    name, lines = read_lines(path)
    table, sentence = Table(corpus), 0
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        where = f"{name}, line {number}"
        line = parse_document(text, Line, where, ProbabilityError, FORM)
        table.name(line.labels, where)
        if line.tokens == [DOCSTART] or not (line.probabilities or line.tokens):
            continue  # as in a corpus
        if sentence == corpus.n_sentences:
            raise ProbabilityError(
                f"one more sentence than the {corpus.n_sentences:,} of {corpus.source}",
                where=where,
                remedy=SAME,
            )
        table.fill(sentence, line, where)
        sentence += 1
    if sentence < corpus.n_sentences:
        raise ProbabilityError(
            f"{plural(sentence, 'sentence')}, but {corpus.source} has {corpus.n_sentences:,}; the "
            f"first without probabilities is that of {corpus.place_of_sentence(sentence)}",
            where=name,
            remedy=SAME,
        )
    return table.values[:, : len(table.labels)], list(table.labels)


class Table:
    """What has been read: a row per token, and columns as labels turn up."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.labels = corpus, dict[str, int]()
        self.closed: bool | None = None  # whether the labels are given; None before the first line
        self.values = np.zeros((corpus.n_tokens, len(corpus.label_names)))

    def name(self, labels: list[str] | None, where: str) -> None:
        """The labels of a line: those of the first line are those of the file."""
        if self.closed is None:
            self.closed = labels is not None
            check_columns(labels or [], self.corpus, where)  # a dict would hide a repeated one
            self._add(labels or [], where)
        elif labels is not None and not (self.closed and labels == list(self.labels)):
            raise ProbabilityError(
                "other labels than the first line", where=where, remedy="give them once"
            )

    def fill(self, sentence: int, line: Line, where: str) -> None:
        """The rows of a sentence."""
        rows = line.probabilities
        first, behind = self.corpus.offsets[sentence : sentence + 2].tolist()
        if line.tokens is not None:
            self._check_words(line.tokens, first, behind, where)
        if len(rows) != behind - first:
            raise ProbabilityError(
                f"probabilities for {plural(len(rows), 'token')}, but the sentence of "
                f"{self.corpus.place(first)} has {behind - first:,}",
                where=where,
                remedy=SAME,
            )
        for token, row in enumerate(rows, start=first):
            self._fill_row(token, row, f"{where}, token {token - first + 1}")

    def _check_words(self, tokens: list[str], first: int, behind: int, where: str) -> None:
        corpus, end = self.corpus, "no more tokens"
        words = [corpus.vocabulary[i] for i in corpus.token_ids[first:behind].tolist()]
        given = [word.lower() for word in tokens] if corpus.reading.get("lower") else tokens
        for k, (ours, theirs) in enumerate(zip_longest(words, given), start=1):
            if ours != theirs:
                ours, theirs = (end if word is None else repr(word) for word in (ours, theirs))
                raise ProbabilityError(
                    f"token {k} is {theirs}, but {ours} in the sentence of {corpus.place(first)}",
                    where=where,
                    remedy=SAME,
                )

    def _fill_row(self, token: int, row: list[float] | dict[str, float], where: str) -> None:
        if isinstance(row, dict):
            new = [label for label in row if label not in self.labels]
            if new and self.closed:
                what = f"{named(new)} is not among the labels of the first line"
                raise ProbabilityError(what, where=where, remedy="name all labels there")
            self._add(new, where)
            self.values[token, [self.labels[label] for label in row]] = list(row.values())
            return
        if not self.closed:
            raise ProbabilityError("numbers without labels", where=where, remedy=NAMED)
        if len(row) != len(self.labels):
            raise ProbabilityError(
                f"{plural(len(row), 'number')} for {plural(len(self.labels), 'label')}",
                where=where,
                remedy="give one number per label",
            )
        self.values[token, : len(row)] = row

    def _add(self, labels: list[str], where: str) -> None:
        if not labels:
            return
        self.labels |= {label: i for i, label in enumerate(labels, start=len(self.labels))}
        check_columns(list(self.labels), self.corpus, where)
        more = len(self.labels) - self.values.shape[1]
        if more > 0:
            room = max(more, self.values.shape[1])  # twice as many columns, not one by one
            self.values = np.pad(self.values, ((0, 0), (0, room)))
