"""The result of an audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rankone.audit.findings import Comparison, Duplicate, Suspect
from rankone.audit.texts.result import TextFigures
from rankone.corpus.ceilings import Ceiling
from rankone.corpus.conflicts import Conflict
from rankone.corpus.corpus import PYTHON
from rankone.corpus.rows import Columns

ASKED = ("task", "asked")


@dataclass(frozen=True, repr=False)
class Audit:
    """What can be said about a corpus before any model.

    ``ceilings`` holds, for each input a model may see, the best accuracy any function of it can
    reach: ``majority`` (nothing), ``token``, ``set`` and ``multiset`` (the token and its sentence's
    tokens, unordered), ``sequence`` (whole sentence and position), ``prefix`` (sentence so far).

    ``inputs`` are the files that were read; ``longest_line`` is a line of ``longest_file``.
    ``conflicts`` are contexts with several labels, and those that only another split contradicts;
    ``duplicates`` are sentences that stand in the corpus more than once; ``against`` compares the
    corpus with each other split; ``suspects`` are the tokens most likely to be mislabelled, the
    likeliest first.

    Of a text (task "next"), ``text`` has the ceilings by prefixes and windows, and the passages
    that stand in it more than once. ``conflicts`` are then contexts with several continuations,
    those that cost the most errors first.
    """

    source: str
    format: str
    columns: Columns
    scheme: str | None
    inputs: tuple[str, ...]
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
    duplicates: tuple[Duplicate, ...] = ()
    against: tuple[Comparison, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    task: str = "tags"
    asked: int = 0
    longest_file: str = PYTHON
    text: TextFigures | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing contradicts a label: the sequence determines each."""
        return not self.conflicts

    def to_json(self) -> dict[str, Any]:
        """All figures; the task and the number of tokens asked only if not all of them are. Those
        of a text, whose labels are its tokens, only for texts, and then no labels."""
        found = {"ok": self.ok, **asdict(self)}
        if self.text is None:
            del found["text"]
        else:
            found["text"] = self.text.to_json()
            del found["labels"]
        return found if self.task != "tags" else {k: found[k] for k in found if k not in ASKED}

    def __repr__(self) -> str:
        return (
            f"Audit({self.source!r}: {len(self.conflicts)} conflicts, "
            f"{len(self.duplicates)} duplicates, {sum(len(c.leaks) for c in self.against)} leaks, "
            f"{len(self.suspects)} suspects)"
        )
