"""The certificate: what was proved, of which weights and which corpus."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

from rankone.certify.attention import array
from rankone.certify.outcome import Outcome
from rankone.corpus import Corpus
from rankone.errors import CertificateError
from rankone.files import write_file
from rankone.nn import Model

FORMAT, VERSION = "rankone certificate", 1


@dataclass(frozen=True)
class Spot:
    """A token of the corpus: sentence and position count from 1, line is that of the file."""

    sentence: int
    position: int
    line: int

    @classmethod
    def of(cls, corpus: Corpus, token: int) -> Spot:
        sentence = int(corpus.sentence_of[token])
        return cls(sentence + 1, int(corpus.positions[token]) + 1, int(corpus.lines[token]))

    def __str__(self) -> str:
        return f"line {self.line} (sentence {self.sentence}, position {self.position})"


def spots(corpus: Corpus, pair: tuple[int, int] | None) -> tuple[Spot, Spot] | None:
    return None if pair is None else (Spot.of(corpus, pair[0]), Spot.of(corpus, pair[1]))


@dataclass(frozen=True)
class Certificate:
    """What is proved of the exact-real network, its float64 weights taken as exact numbers.

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
    ``float_distance``: no output of the float64 run is further than this from the exact one; and
    ``float_labels`` tells whether it decides for the same labels.
    ``decided`` counts the tokens that floats decided, those that needed Arb (``exact``), and those
    still undecided; ``digits`` is the largest precision used there, ``cap`` the largest allowed.
    ``reason`` is the witness of what is refuted, or what is missing.
    """

    outcome: Outcome
    mapping: Outcome
    labels: Outcome | None
    reason: str | None
    r: str
    delta: str
    closest: tuple[Spot, Spot] | None
    contexts: int
    margin: float | None
    worst: Spot | None
    tokens: int
    wrong: int | None
    unavoidable: int | None
    float_distance: str
    float_labels: bool | None
    decided: dict[str, int]
    digits: int
    cap: int
    source: str
    hashes: dict[str, str]
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.CERTIFIED

    def is_of(self, model: Model) -> bool:
        """Whether it speaks of this model, bit for bit."""
        return all(self.hashes[name] == found for name, found in model_hashes(model).items())

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, "ok": self.ok, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file, whole or not at all."""
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=2) + "\n"
        return write_file(path, text)


def read_certificate(path: str | os.PathLike[str]) -> Certificate:
    """A certificate from its file; refuses what is none."""
    where = str(path)
    remedy = "name a file that certify wrote"
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CertificateError("no such file", where=where, remedy=remedy) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CertificateError(f"cannot be read ({error})", where=where, remedy=remedy) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CertificateError("not a certificate", where=where, remedy=remedy)
    if document.get("version") != VERSION:
        raise CertificateError(
            f"version {document.get('version')} of the format, this reads {VERSION}",
            where=where,
            remedy="certify again",
        )
    try:
        given = {f.name: document[f.name] for f in fields(Certificate)}
        for name, kind in KINDS.items():
            if type(given[name]) not in kind:
                raise ValueError(f"{name} {given[name]!r}")
        for name in ("r", "delta", "float_distance"):
            if Decimal(given[name]).is_nan():
                raise ValueError(f"{name} {given[name]!r}")
        for name in ("outcome", "mapping", "labels"):
            given[name] = None if given[name] is None else Outcome(given[name])
        closest, worst = given["closest"], given["worst"]
        given["closest"] = None if closest is None else tuple(Spot(**spot) for spot in closest)
        given["worst"] = None if worst is None else Spot(**worst)
        for name, keys in (("hashes", HASHED), ("decided", ("float", "exact", "undecided"))):
            if set(given[name]) != set(keys):
                raise KeyError(name)
        found = Certificate(**given)
        if found.cap < 1:
            raise ValueError(f"cap {found.cap}")
        if document["ok"] is not found.ok:
            raise ValueError(f"ok {document['ok']} beside outcome {found.outcome.value}")
        return found
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise CertificateError(
            f"incomplete or altered ({error})", where=where, remedy="certify again"
        ) from None


TEXT, COUNT, NOTHING = (str,), (int,), (type(None),)
KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("outcome", "mapping", "r", "delta", "float_distance", "source"), TEXT),
    **dict.fromkeys(("labels", "reason"), TEXT + NOTHING),
    **dict.fromkeys(("contexts", "tokens", "digits", "cap"), COUNT),
    **dict.fromkeys(("wrong", "unavoidable"), COUNT + NOTHING),
    **dict.fromkeys(("hashes", "decided", "seconds"), (dict,)),
    "margin": (float, *NOTHING),
    "float_labels": (bool, *NOTHING),
    "closest": (list, *NOTHING),
    "worst": (dict, *NOTHING),
}
HASHED = ("weights", "network", "vocabulary", "label names", "corpus")


def hashes(model: Model, corpus: Corpus) -> dict[str, str]:
    """SHA-256 of everything a certificate speaks of.

    A corpus counts as its words and labels, sentence by sentence, however the file spells them:
    blank lines, other columns and compression do not matter.
    """
    text = sha256()
    for words in (corpus.vocabulary, corpus.label_names):
        text.update(_text(words))
    for column in (corpus.token_ids, corpus.label_ids, corpus.offsets):
        text.update(column.astype("<i8").tobytes())
    return {**model_hashes(model), "corpus": text.hexdigest()}


def model_hashes(model: Model) -> dict[str, str]:
    """The part of them that the model has."""
    weights = sha256()
    for name, parameter in sorted(model.network.named_parameters()):
        weights.update(f"{name} {tuple(parameter.shape)}\n".encode())
        weights.update(array(parameter).tobytes())
    network = [f"{name}={value}" for name, value in asdict(model.network.shape).items()]
    parts = (sha256(_text(words)) for words in (network, model.vocabulary, model.labels))
    return {
        name: part.hexdigest() for name, part in zip(HASHED[:-1], [weights, *parts], strict=True)
    }


def _text(words: Sequence[str]) -> bytes:
    """No word holds a NUL, so different lists are different texts."""
    return "\0".join([str(len(words)), *words, ""]).encode()
