"""What `recite` and `check_recitation` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rankone.documents import figures
from rankone.plural import plural

Ended = Literal["end", "count", "positions", "loop"]


@dataclass(frozen=True, repr=False)
class Recitation:
    """How a model goes on from a prompt.

    ``tokens`` are what it says, and ``text`` is their text (of the tokenizer `bytes`, a character
    for each byte). ``ended`` says why there are no more: "end", the document ends here; "count",
    there are as many as were asked for; "positions", the model has no more positions; "loop", what
    it sees it has seen before, so that it would repeat itself for ever. ``known`` says whether the
    prompt is in the corpus of the model (None: the model does not tell); ``prompt`` counts its
    tokens.
    """

    text: str
    tokens: tuple[str, ...]
    ended: Ended
    prompt: int
    known: bool | None
    remarks: tuple[str, ...]
    seconds: dict[str, float]

    def __repr__(self) -> str:
        return f"Recitation({plural(len(self.tokens), 'token')}, ended by {self.ended})"

    @property
    def ok(self) -> bool:
        """Unless the prompt is known not to be in the corpus."""
        return self.known is not False

    def to_json(self) -> dict[str, Any]:
        return figures(self)


@dataclass(frozen=True)
class Branch:
    """A place where the model parts from the text.

    ``text`` is the token of the text, ``said`` that of the model; the end of a document is
    ``<|end|>``. ``line`` and ``file`` are those of the token in the text; ``document``, and the
    ``position`` of the token in it, count from 1. ``before`` is how the text before it ends.
    ``avoidable`` says whether another choice would have been better: whether some token follows
    this context more often in this corpus.
    """

    line: int
    file: str | None
    document: int
    position: int
    before: str
    text: str
    said: str
    avoidable: bool


@dataclass(frozen=True, repr=False)
class RecitationCheck:
    """What a model recites of a corpus.

    Each of the ``documents`` is recited from its first token to its end, one token after the other;
    where the model parts from the text, it goes on after the token of the text. ``tokens`` counts
    those that it is asked for: all that follow a first one, and the ends. ``recited`` are those
    that it says, and ``whole`` the documents without a branch. ``parted`` counts the branches, of
    which the first 10,000 are listed, and ``avoidable`` those of them that another choice for the
    same context would have avoided. ``strange`` counts tokens whose context is not in the corpus of
    the model, None if it does not tell.
    """

    source: str
    documents: int
    tokens: int
    recited: int
    whole: int
    parted: int
    avoidable: int
    strange: int | None
    branches: tuple[Branch, ...]
    remarks: tuple[str, ...]
    seconds: dict[str, float]

    def __repr__(self) -> str:
        found = f"{self.recited:,} of {plural(self.tokens, 'token')} recited"
        return f"RecitationCheck({self.source!r}: {found}, {self.avoidable:,} avoidable branches)"

    @property
    def ok(self) -> bool:
        """Whether greedy choices recite all that contexts determine, and no others recite more."""
        return self.avoidable == 0

    def to_json(self) -> dict[str, Any]:
        return figures(self)
