"""SHA-256 of everything a certificate speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import TypedDict

from rankone.certify.attention import array
from rankone.corpus import Corpus
from rankone.nn import Model

ModelHashes = TypedDict(
    "ModelHashes", {"weights": str, "network": str, "vocabulary": str, "label names": str}
)


class Hashes(ModelHashes):
    corpus: str


def hashes(model: Model, corpus: Corpus) -> Hashes:
    """Those of a model and a corpus.

    A corpus counts as its words and labels, sentence by sentence, however the file spells them:
    blank lines, other columns and compression do not matter.
    """
    text = sha256()
    for words in (corpus.vocabulary, corpus.label_names):
        text.update(_text(words))
    for column in (corpus.token_ids, corpus.label_ids, corpus.offsets):
        text.update(column.astype("<i8").tobytes())
    return {**model_hashes(model), "corpus": text.hexdigest()}


def model_hashes(model: Model) -> ModelHashes:
    """The part of them that the model has."""
    weights = sha256()
    for name, parameter in sorted(model.network.named_parameters()):
        weights.update(f"{name} {tuple(parameter.shape)}\n".encode())
        weights.update(array(parameter).astype("<f8").tobytes())
    shape = [f"{name}={value}" for name, value in asdict(model.network.shape).items()]
    return {
        "weights": weights.hexdigest(),
        "network": sha256(_text(shape)).hexdigest(),
        "vocabulary": sha256(_text(model.vocabulary)).hexdigest(),
        "label names": sha256(_text(model.labels)).hexdigest(),
    }


def _text(words: Sequence[str]) -> bytes:
    """No word holds a NUL, so different lists are different texts."""
    return "\0".join([str(len(words)), *words, ""]).encode()
