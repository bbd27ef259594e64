"""The certificate: what was proved, for which weights and which corpus."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
from msgspec import Meta

from rankone import documents
from rankone.certification.attention_balls import array
from rankone.certification.forgotten import Forgotten
from rankone.corpus import Corpus
from rankone.corpus.parted import PartedCorpus
from rankone.corpus.rows import spelled_out
from rankone.errors import CertificateError
from rankone.files import write_file
from rankone.nn import Model
from rankone.nn.exact import ExactModel

FORMAT, VERSION = "rankone certificate", 5
EXACT = "exact"  # the type of weights that are fractions
MOST = 10**9  # digits: such a number takes half a gigabyte

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0)]
# numbers as `decimals` writes them, which may be smaller or larger than any float
Decimals = Annotated[
    str, Meta(pattern=r"^-?(inf|[0-9]{1,30}(\.[0-9]{1,30})?(e[+-]?[0-9]{1,18})?)\Z")
]
ModelHashes = TypedDict(
    "ModelHashes", {"weights": str, "network": str, "vocabulary": str, "label names": str}
)


class Hashes(ModelHashes):
    corpus: str


def hashes(model: Model | ExactModel, corpus: Corpus | PartedCorpus) -> Hashes:
    """Those of a model and a corpus."""
    return {**model_hashes(model), "corpus": corpus.sha256}


def model_hashes(model: Model | ExactModel) -> ModelHashes:
    """The part of them that the model has."""
    if isinstance(model, ExactModel):
        network = model.network
        sizes = (len(network.table.rows), network.length, network.dim, len(network.blocks))
        weights, shape = model.weights_sha256, [f"{EXACT} {sizes} causal={network.causal}"]
    else:
        digest = sha256()
        for name, parameter in sorted(model.network.named_parameters()):
            digest.update(f"{name} {tuple(parameter.shape)}\n".encode())
            digest.update(np.ascontiguousarray(array(parameter), "<f8").reshape(-1).data)
        weights = digest.hexdigest()
        shape = [f"{name}={value}" for name, value in asdict(model.network.shape).items()]
    return {
        "weights": weights,
        "network": sha256(spelled_out(shape)).hexdigest(),
        "vocabulary": sha256(spelled_out(model.vocabulary)).hexdigest(),
        "label names": sha256(spelled_out(model.labels)).hexdigest(),
    }


class Outcome(StrEnum):
    """Certified: proved. Refuted: disproved, with a witness. Undecided: neither, within limits."""

    CERTIFIED = "certified"
    REFUTED = "refuted"
    UNDECIDED = "undecided"

    @classmethod
    def of(cls, *parts: Outcome | None) -> Outcome:
        """Outcome of several claims that must all hold; None is a claim that was not made."""
        for outcome in (cls.REFUTED, cls.UNDECIDED):
            if outcome in parts:
                return outcome
        return cls.CERTIFIED


class Decided(TypedDict):
    """How many tokens were decided in float64, how many in Arb, and how many are undecided."""

    float: Count
    exact: Count
    undecided: Count


@dataclass(frozen=True)
class Spot:
    """A token of the corpus: sentence and position, counted from 1, and the line in the file."""

    sentence: Number
    position: Number
    line: Count

    @classmethod
    def of(cls, corpus: Corpus | PartedCorpus, token: int) -> Spot:
        part, own, before = where_is(corpus, token)
        sentence = int(part.offsets.searchsorted(own, side="right")) - 1
        position = own - int(part.offsets[sentence])
        return cls(before + sentence + 1, position + 1, int(part.lines[own]))

    def __str__(self) -> str:
        return f"line {self.line} (sentence {self.sentence}, position {self.position})"


def where_is(corpus: Corpus | PartedCorpus, token: int) -> tuple[Corpus, int, int]:
    """The corpus or part that holds a token, its number there, and how many sentences are before
    the part."""
    if isinstance(corpus, Corpus):
        return corpus, token, 0
    number, own = corpus.part_of(token)
    return corpus.part(number), own, corpus.parts[number].before


def spots(corpus: Corpus | PartedCorpus, pair: tuple[int, int] | None) -> tuple[Spot, Spot] | None:
    return None if pair is None else (Spot.of(corpus, pair[0]), Spot.of(corpus, pair[1]))


@dataclass(frozen=True)
class Left:
    """What is undecided: the labels of ``tokens`` tokens in ``sentences`` sentences, and the
    distances of ``pairs`` pairs of contexts. ``time``: the time limit was hit, not the cap."""

    tokens: Count
    sentences: Count
    pairs: Count
    time: bool


@dataclass(frozen=True)
class Certificate:
    """What is proved about the network in exact arithmetic, its weights taken as exact numbers.

    ``mapping``: any two contexts that the network can tell apart from its input have context ids
    (outputs of the attention of block number ``layer``) more than ``delta`` apart, and all context
    ids are shorter than ``r`` (Definition 2). ``closest`` is the closest pair. The layer is the
    first; or, where several blocks attend and the first does not tell contexts apart, the last
    that attends. There, and for exact weights, ids consist of the coordinates that later layers
    read, and ``closest`` is the pair that is closest along some direction.
    ``labels``: ``wrong`` tokens get another label than in the file, and ``unavoidable`` must in any
    function of the same input; certified if the two are equal. For every token the output is within
    1/2 - ``margin`` of the number of the label that the network chooses, or beyond the first or
    the last label; for other heads the label's logit leads all others by at least twice ``margin``
    (which is capped at 1/2). ``worst`` is the token with the smallest margin. If the model has no
    readout (its head is all zeros), nothing is claimed about labels and these fields are None.
    ``float_labels``: the run in ``dtype``, which `predict` makes, chooses the same labels; None if
    undecided. ``float_distance``: an upper bound on how far its outputs are from the exact ones.
    ``any_order``: every run in ``dtype`` chooses these labels, in whatever order it takes its sums,
    under the assumptions that ``arithmetic`` lists; False if that is not proved for some token,
    None if it was not tried. ``forgotten``: what remains of sentences that were taken out, if that
    was asked. Of the task "next" greedy decoding puts out ``recited`` of ``documents`` whole, by
    induction (`Recited`); at ``branches`` tokens it goes on with another one. ``excess``: an upper
    bound, in nats, on how far the mean of -log p of the labels is above the least that any function
    of the contexts can reach, their conditional entropy; None for heads that give no distributions.
    None of these has a part in the outcome.
    ``outcome``: certified if all three claims hold, refuted if one of them is disproved.
    ``reason`` gives the witness of a refutation, or what is undecided; ``left`` counts that.
    ``decided`` counts the tokens decided in float64 (``float``), those that needed Arb (``exact``)
    and those still undecided; ``digits`` is the largest precision used, ``cap`` the largest
    allowed, ``limit`` the time limit in seconds, ``dtype`` the type of the weights, in which the
    model runs; if it is "exact", weights are fractions, and there is no run in floats to make a
    claim about. ``seconds`` has the time of each stage.
    """

    outcome: Outcome
    mapping: Outcome
    labels: Outcome | None
    float_labels: bool | None
    reason: str | None
    left: Left | None
    layer: Number
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
    any_order: bool | None
    arithmetic: str | None
    documents: Count | None
    recited: Count | None
    branches: Count | None
    excess: Decimals | None
    forgotten: Forgotten | None
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
        """Outcome of each of the three claims, by field; None for a claim that is not made."""
        run = None
        if self.labels is not None and self.dtype != EXACT:
            run = {True: Outcome.CERTIFIED, False: Outcome.REFUTED, None: Outcome.UNDECIDED}[
                self.float_labels
            ]
        return {"mapping": self.mapping, "labels": self.labels, "float_labels": run}

    def is_of(self, model: Model | ExactModel) -> bool:
        """Whether it is about this model, bit for bit."""
        return all(self.hashes[name] == found for name, found in model_hashes(model).items())  # type: ignore[literal-required]

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, "ok": self.ok, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file, whole or not at all."""
        return write_file(path, documents.dump(self.to_json(), indent=2))


@dataclass(frozen=True)
class Header:
    """Fields of the file that are not fields of `Certificate`."""

    format: Any = None
    version: Any = None
    ok: Any = None


def read_certificate(
    path: str | os.PathLike[str], *, remedy: str = "give a file written by certify"
) -> Certificate:
    """Read a certificate; raises `CertificateError` if the file is not one."""
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
    """Which fields of a certificate contradict each other, or None."""
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
    if (found.arithmetic is None) is not (found.any_order is None):
        return "any_order does not fit arithmetic"
    if len(none) not in (0, 3) or (none and (found.margin, found.float_labels) != (None, None)):
        return f"figures without labels, or labels without {' and '.join(sorted(none))}"
    if len({x is None for x in (found.documents, found.recited, found.branches)}) > 1:
        return "documents, recited and branches do not fit each other"
    return None
