"""What is said of a text: ceilings, passages, and contexts with several continuations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from rankone.audit.findings import Row
from rankone.corpus.ceilings import Ceiling
from rankone.corpus.conflicts import Conflict
from rankone.corpus.corpus import PYTHON, Corpus
from rankone.documents import figures
from rankone.plural import plural

SIDES = 5  # continuations of a conflict that are spelled out
LINES = 3  # of each


@dataclass(frozen=True)
class TextCeiling:
    """What a model of the next token can reach at best if it sees this much of the text.

    ``context`` is "prefix" (the document so far; ``window`` is then 0) or "window" (the last
    ``window`` tokens; a document that is shorter so far is seen whole, and seen to begin there).
    ``contexts`` are the different ones, and ``branching`` those with several continuations. Of all
    ``tokens``, ``determined`` have a next one that is determined: their context has only one
    continuation. A model gets at least ``errors`` of the next tokens wrong. ``bits`` is the
    conditional entropy sum_c n_c/N H(p_c) of the next token, in bits per token.
    """

    context: Literal["prefix", "window"]
    window: int
    contexts: int
    branching: int
    tokens: int
    determined: int
    errors: int
    bits: float

    @property
    def ok(self) -> bool:
        """Whether every next token is determined."""
        return self.determined == self.tokens

    @property
    def accuracy(self) -> float:
        """The best accuracy."""
        return (self.tokens - self.errors) / self.tokens

    @property
    def share(self) -> float:
        """The share of tokens whose next one is determined."""
        return self.determined / self.tokens

    @property
    def perplexity(self) -> float:
        """The lowest perplexity, 2 to the power of ``bits``."""
        return float(2.0**self.bits)

    @property
    def ceiling(self) -> Ceiling:
        """Accuracy and errors alone."""
        return Ceiling.of(self.errors, self.tokens)

    def to_json(self) -> dict[str, Any]:
        derived = ("share", "accuracy", "perplexity")
        return {**figures(self), **{name: getattr(self, name) for name in derived}}


@dataclass(frozen=True)
class Passage:
    """Tokens that stand in a text more than once: how many they are, the number of copies, the
    places of the first 100, and an excerpt.

    ``continuations`` are the tokens that follow, the most frequent first, each with the number of
    copies that go on so; ``others`` is how many more different ones there are.
    """

    length: int
    copies: int
    rows: tuple[Row, ...]
    text: str
    continuations: dict[str, int]
    others: int = 0

    @property
    def parts(self) -> bool:
        """Whether its copies go on in different ways."""
        return len(self.continuations) > 1


@dataclass(frozen=True)
class TextConflict(Conflict):
    """A context of a text with several continuations, or equal documents with several labels.

    ``sentence`` is an excerpt of the context, in one piece, and ``position`` the place of its last
    token in the first document. ``token`` is that token, but empty for documents as a whole.
    ``labels`` may be only the most frequent ones, with their first rows: ``counts`` says how many
    rows each has, ``others`` how many more labels there are.
    """

    counts: dict[str, int] = field(default_factory=dict)
    others: int = 0

    @classmethod
    def at(cls, corpus: Corpus, rows: Mapping[str, Sequence[Row]], **rest: Any) -> TextConflict:
        """The conflict whose labels stand at these rows of a corpus."""
        labels = {name: [row.line for row in of_one] for name, of_one in rows.items()}
        files = {name: [row.file or PYTHON for row in of_one] for name, of_one in rows.items()}
        return cls(
            labels=labels,
            files=files if len(corpus.files) > 1 else {},
            unit="document" if set(corpus.files) == {None} else "line",
            **rest,
        )

    @property
    def n_labels(self) -> int:
        return len(self.labels) + self.others

    def n_rows(self, label: str) -> int:
        return self.counts.get(label, len(self.labels[label]))

    def __str__(self) -> str:
        """The labels of documents; or the first continuations, and how often each is one."""
        if not self.token:
            return self.sides()
        sides = [
            f"{label!r} {plural(self.n_rows(label), 'time')} ({self.places(label, LINES)})"
            for label in islice(self.labels, SIDES)
        ]
        more = self.n_labels - len(sides)
        return "; ".join([*sides, *([f"and {more:,} more"] if more else [])])

    def excerpt(self) -> str:
        return self.sentence[0]


@dataclass(frozen=True)
class TextFigures:
    """``ceilings`` has a row for every window, and the last for prefixes. ``window`` is that of the
    corpus (0: models of it see prefixes); contexts with several continuations are listed for it.

    Windows of ``enough`` tokens or more say as much as prefixes: their contexts with several
    continuations are the same. Shorter ones do not, because of ``limit``, the longest passage that
    stands after different tokens and goes on in different ways (None: there is none). ``passages``
    are the longest ones that stand more than once, at most 100, each with 100 places at most.
    """

    window: int
    ceilings: tuple[TextCeiling, ...]
    enough: int
    limit: Passage | None
    passages: tuple[Passage, ...]

    @property
    def ok(self) -> bool:
        """Whether the window, or prefixes if there is none, determine every next token."""
        return self.ceiling(self.window).ok

    def ceiling(self, window: int = 0) -> TextCeiling:
        """The row of a window, or of prefixes."""
        return next(row for row in self.ceilings if row.window == window)

    def to_json(self) -> dict[str, Any]:
        return figures(self)
