"""How good predicted labels are: accuracy of tokens, and F1 of entities."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, astuple, dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.corpus import Corpus
from rankone.errors import OutputError
from rankone.files import write_file
from rankone.nn import Model
from rankone.nn.ragged import LONGER, check_lengths, in_pieces
from rankone.nn.store import Words

Entity = tuple[int, int, str]
BREAKS = {"\t", "\n", "\r"}  # in a word they would break the rows of a file


@dataclass(frozen=True)
class Scores:
    """Scores of a model on one corpus. ``tokens`` counts the tokens for which the task asks for a
    label, ``unknown`` those that are not in the vocabulary, ``in_pieces`` the sentences longer than
    the table of positions. Precision, recall and F1 are those of whole entities, None if labels are
    not entity tags."""

    source: str
    tokens: int
    unknown: int
    right: int
    accuracy: float
    in_pieces: int = 0
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Counts:
    """What scores are made of, for some sentences: those of parts add up. Of entities, some are
    ``wanted`` and some ``given``, ``both`` are the same."""

    asked: int
    unknown: int
    right: int
    in_pieces: int
    wanted: int = 0
    given: int = 0
    both: int = 0

    @classmethod
    def of(cls, names: Words, longest: int, corpus: Corpus, found: Ints, unknown: int) -> Counts:
        """From the labels, numbered as the model does, which has these `names` and so many rows of
        its table of positions."""
        number = {name: i for i, name in enumerate(names)}
        gold = np.array([number.get(name, -1) for name in corpus.label_names])
        asked = corpus.asked
        right = int((gold[corpus.label_ids[asked]] == found[asked]).sum()) if len(asked) else 0
        counts = len(asked), unknown, right, in_pieces(corpus.lengths, longest)
        if corpus.scheme is None or not corpus.labelled:
            return cls(*counts)
        wanted = entities([corpus.label_names[i] for i in corpus.label_ids.tolist()], corpus)
        given = entities([names[i] for i in found.tolist()], corpus)
        return cls(*counts, len(wanted), len(given), len(wanted & given))

    @classmethod
    def total(cls, parts: Iterable[Counts]) -> Counts:
        return cls(*map(sum, zip(*(astuple(part) for part in parts), strict=True)))

    def scores(self, corpus: Corpus) -> Scores:
        """Of all sentences; `corpus` says where they come from and how tags are written."""
        found: dict[str, float] = {}
        if corpus.scheme is not None:
            both, given, wanted = self.both, self.given, self.wanted
            found = {
                "precision": both / given if given else 0.0,
                "recall": both / wanted if wanted else 0.0,
                "f1": 2 * both / (given + wanted) if given or wanted else 0.0,
            }
        return Scores(
            source=corpus.source,
            tokens=self.asked,
            unknown=self.unknown,
            right=self.right,
            accuracy=self.right / self.asked,
            in_pieces=self.in_pieces,
            **found,
        )


class Figures:
    """What is said of all labels of a corpus together, for which ``heading`` stands."""

    unknown: int
    in_pieces: int
    scores: Scores | None

    @property
    def heading(self) -> Corpus:
        raise NotImplementedError

    @property
    def n_tokens(self) -> int:
        raise NotImplementedError

    @property
    def ok(self) -> bool:
        """Whether no label differs from that of the corpus."""
        return self.scores is None or self.scores.right == self.scores.tokens

    def to_json(self) -> dict[str, Any]:
        """The figures, and how the corpus was read."""
        figures: dict[str, Any] = {
            "ok": self.ok,
            "source": self.heading.source,
            "format": self.heading.format,
            "columns": asdict(self.heading.columns),
            "remarks": list(self.heading.remarks),
            "tokens": self.n_tokens,
            "unknown": self.unknown,
            "in_pieces": self.in_pieces,
            **dict.fromkeys(("right", "accuracy", "precision", "recall", "f1")),
        }
        return figures if self.scores is None else figures | self.scores.to_json()


@dataclass(frozen=True)
class Prediction(Figures):
    """The labels that a model gives to a corpus, sentence by sentence; ``scores`` compares them
    with those of the corpus, and is None if it has none."""

    corpus: Corpus
    labels: tuple[tuple[str, ...], ...]
    unknown: int
    in_pieces: int
    scores: Scores | None

    @property
    def heading(self) -> Corpus:
        return self.corpus

    @property
    def n_tokens(self) -> int:
        return self.corpus.n_tokens

    def listed(self) -> dict[str, Any]:
        """The sentences with their labels, as JSON."""
        return {
            "sentences": [
                {"tokens": s.tokens, "labels": labels, "line": s.line}
                for s, labels in zip(self.corpus.sentences, self.labels, strict=True)
            ]
        }

    def rows(self) -> str:
        """A token, a TAB and its label per line, with an empty line between sentences. Words that
        would break the rows are refused; JSON files may hold such words."""

        def where(number: int) -> str:
            return self.corpus.place(int((self.corpus.token_ids == number).argmax()))

        check_rows(self.corpus, sorted({*chain(*self.labels)}), where)
        return self.text()

    def text(self) -> str:
        """The same, unchecked."""
        return "\n".join(
            "".join(f"{token}\t{label}\n" for token, label in zip(s.tokens, labels, strict=True))
            for s, labels in zip(self.corpus.sentences, self.labels, strict=True)
        )

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the rows to a file."""
        return [write_file(path, self.rows())]


def predict(model: Model, corpus: Corpus) -> Prediction:
    """Label a corpus, and compare where it has labels."""
    ids, unknown = label_ids(model, corpus)
    return Prediction(
        corpus=corpus,
        labels=named(model.labels, ids, corpus),
        unknown=unknown,
        in_pieces=in_pieces(corpus.lengths, model.network.shape.positions),
        scores=compare(model, corpus, ids, unknown) if corpus.labelled else None,
    )


def named(names: Words, ids: Ints, corpus: Corpus) -> tuple[tuple[str, ...], ...]:
    """The labels with these numbers, sentence by sentence."""
    found = [names[i] for i in ids.tolist()]
    return tuple(tuple(found[a:b]) for a, b in pairwise(corpus.offsets.tolist()))


def check_rows(corpus: Corpus, labels: Iterable[str], where: Callable[[int], str]) -> None:
    """Refuse words and labels that would break a row; `where` says where a word occurs first."""
    for kind, known in (("token", corpus.vocabulary), ("label", labels)):
        for number, word in enumerate(known):
            if not BREAKS.isdisjoint(word):
                raise OutputError(
                    f"the {kind} {word!r} does not fit into a row",
                    where=where(number) if kind == "token" else corpus.source,
                    remedy="use --json, which can hold it",
                )


def score(model: Model, corpus: Corpus) -> Scores:
    """Run the model over a labelled corpus and compare."""
    return compare(model, corpus, *label_ids(model, corpus))


def label_ids(model: Model, corpus: Corpus) -> tuple[Ints, int]:
    """The number of each token's label, and how many tokens are unknown words. The label of a piece
    is not that of a whole document: if that is asked for, no document may be too long."""
    if model.task.whole:
        check_lengths(corpus.lengths, model.positions, corpus.place_of_sentence, LONGER)
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    found = model.label_ids(rows, corpus.offsets)
    return found, int((rows == len(model.vocabulary)).sum())


def compare(model: Model, corpus: Corpus, found: Ints, unknown: int) -> Scores:
    """Compare predicted labels with those of the corpus."""
    counts = Counts.of(model.labels, model.positions, corpus.check_labelled(), found, unknown)
    return counts.scores(corpus)


def entities(tags: list[str], corpus: Corpus) -> set[Entity]:
    """(first token, end, type) of every entity, as the CoNLL shared task counts them.

    One begins at B-X, and at I-X where no X is open; so this reads IOB1 and IOB2 alike.
    """
    found: set[Entity] = set()
    bounds = set(corpus.offsets.tolist())
    first, open_type = 0, ""
    for i, tag in enumerate(chain(tags, ["O"])):
        kind, _, type_ = tag.partition("-")
        goes_on = kind == "I" and type_ == open_type and i not in bounds
        if open_type and not goes_on:
            found.add((first, i, open_type))
            open_type = ""
        if type_ and not goes_on:
            first, open_type = i, type_
    return found
