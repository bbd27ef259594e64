"""The certificate: what was proved, of which weights and which corpus."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from rankone import documents
from rankone.certify.hashes import Hashes, model_hashes
from rankone.certify.outcome import Outcome
from rankone.corpus import Corpus
from rankone.errors import CertificateError
from rankone.files import write_file
from rankone.nn import Model

FORMAT, VERSION = "rankone certificate", 2
MOST = 10**9  # digits: a number of so many fills half a gigabyte

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0)]
# as `decimals` writes numbers: they may be smaller, or larger, than any float
Decimals = Annotated[
    str, Meta(pattern=r"^-?(inf|[0-9]{1,30}(\.[0-9]{1,30})?(e[+-]?[0-9]{1,18})?)\Z")
]


class Decided(TypedDict):
    """How many tokens float64 decided, how many needed Arb, and how many are left."""

    float: Count
    exact: Count
    undecided: Count


@dataclass(frozen=True)
class Spot:
    """A token of the corpus: sentence and position count from 1, line is that of the file."""

    sentence: Number
    position: Number
    line: Count

    @classmethod
    def of(cls, corpus: Corpus, token: int) -> Spot:
        sentence = int(corpus.sentence_of[token])
        return cls(sentence + 1, int(corpus.positions[token]) + 1, int(corpus.lines[token]))

    def __str__(self) -> str:
        return f"line {self.line} (sentence {self.sentence}, position {self.position})"


def spots(corpus: Corpus, pair: tuple[int, int] | None) -> tuple[Spot, Spot] | None:
    return None if pair is None else (Spot.of(corpus, pair[0]), Spot.of(corpus, pair[1]))


@dataclass(frozen=True)
class Left:
    """What is not decided: the labels of so many ``tokens`` in so many ``sentences``, and whether
    so many ``pairs`` of contexts are apart. ``time``: time ran out, not digits."""

    tokens: Count
    sentences: Count
    pairs: Count
    time: bool


@dataclass(frozen=True)
class Certificate:
    """What is proved of the exact-real network, its weights taken as exact numbers.

    ``mapping``: every two contexts that the network's input lets differ have context ids (what the
    first attention layer puts out) that are further apart than ``delta``; all are shorter than
    ``r`` (Definition 2). ``closest`` are the two that lie closest.
    ``labels``: ``wrong`` labels differ from the file's, and ``unavoidable`` must in any function of
    the same input; equal numbers are certified. For every token the output is within
    1/2 - ``margin`` of the number of the label that the network decides for, or beyond the first
    or the last label; with a head of another kind the label's logit leads all others by twice
    ``margin`` or more (which is never said to be more than 1/2). ``worst`` is where it is least.
    A model that has no readout, whose head is all zeros, says nothing of labels: then all this is
    None.
    ``float_labels``: the float64 run, what `predict` computes, decides for the same labels; None if
    that is not decided. ``float_distance``: no output of it is further from the exact one.
    ``outcome``: certified if all three hold, refuted if one of them is proved wrong.
    ``reason`` is the witness of what is refuted, or what is missing; ``left`` counts what is left
    undecided. ``decided`` counts the tokens that floats decided, those that needed Arb (``exact``),
    and those still undecided; ``digits`` is the largest precision used there, ``cap`` the largest
    allowed, ``limit`` the seconds allowed; ``dtype`` is what the weights are stored in.
    """

    outcome: Outcome
    mapping: Outcome
    labels: Outcome | None
    float_labels: bool | None
    reason: str | None
    left: Left | None
    r: Decimals
    delta: Decimals
    closest: tuple[Spot, Spot] | None
    contexts: Count
    margin: float | None
    worst: Spot | None
    tokens: Count
    wrong: Count | None
    unavoidable: Count | None
    float_distance: Decimals
    decided: Decided
    digits: Count
    cap: Annotated[int, Meta(ge=1, le=MOST)]
    limit: Seconds | None
    dtype: str
    source: str
    hashes: Hashes
    seconds: dict[str, Seconds]

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.CERTIFIED

    @property
    def claims(self) -> dict[str, Outcome | None]:
        """The three claims by the name of their field; None if the model has no labels."""
        run = None
        if self.labels is not None:
            run = {True: Outcome.CERTIFIED, False: Outcome.REFUTED, None: Outcome.UNDECIDED}[
                self.float_labels
            ]
        return {"mapping": self.mapping, "labels": self.labels, "float_labels": run}

    def is_of(self, model: Model) -> bool:
        """Whether it speaks of this model, bit for bit."""
        return all(self.hashes[name] == found for name, found in model_hashes(model).items())  # type: ignore[literal-required]

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, "ok": self.ok, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file, whole or not at all."""
        return write_file(path, documents.dump(self.to_json(), indent=2))


@dataclass(frozen=True)
class Header:
    """The fields of the file that the certificate does not have."""

    format: Any = None
    version: Any = None
    ok: Any = None


def read_certificate(
    path: str | os.PathLike[str], *, remedy: str = "name a file that certify wrote"
) -> Certificate:
    """A certificate from its file; refuses what is none."""
    where, again = os.fspath(path), "certify again"
    data = documents.read_bytes(path, error=CertificateError, missing=remedy)
    header = documents.parse_document(data, Header, where, CertificateError, remedy)
    if header.format != FORMAT:
        raise CertificateError("not a certificate", where=where, remedy=remedy)
    if header.version != VERSION:
        what = f"a certificate in another format than version {VERSION}"
        raise CertificateError(what, where=where, remedy=again)
    found = documents.parse_document(data, Certificate, where, CertificateError, again)
    problem = contradiction(found, header.ok)
    if problem is not None:
        raise CertificateError(f"altered: {problem}", where=where, remedy=again)
    return found


def contradiction(found: Certificate, ok: object) -> str | None:
    """What two fields of one certificate cannot both say."""
    joint, left = Outcome.of(*found.claims.values()), found.left
    none = {name for name in ("labels", "wrong", "unavoidable") if getattr(found, name) is None}
    if found.outcome is not joint:
        return f"outcome {found.outcome}, but the claims make it {joint}"
    if ok is not found.ok:
        return f"ok does not fit the outcome {found.outcome}"
    if (joint is Outcome.UNDECIDED and left is None) or (found.ok and left is not None):
        return f"left does not fit the outcome {found.outcome}"
    if left is not None and left.time and found.limit is None:
        return "time ran out, but there was no limit"
    if len(none) not in (0, 3) or (none and (found.margin, found.float_labels) != (None, None)):
        return f"figures without labels, or labels without {' and '.join(sorted(none))}"
    return None
