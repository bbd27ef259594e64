"""SHA-256 hashes of everything that a certificate is about."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from typing import TypedDict

from rankone.certification.attention_balls import array
from rankone.corpus import Corpus
from rankone.corpus.rows import spelled_out
from rankone.nn import Model

ModelHashes = TypedDict(
    "ModelHashes", {"weights": str, "network": str, "vocabulary": str, "label names": str}
)


class Hashes(ModelHashes):
    corpus: str


def hashes(model: Model, corpus: Corpus) -> Hashes:
    """Those of a model and a corpus."""
    return {**model_hashes(model), "corpus": corpus.sha256}


def model_hashes(model: Model) -> ModelHashes:
    """The part of them that the model has."""
    weights = sha256()
    for name, parameter in sorted(model.network.named_parameters()):
        weights.update(f"{name} {tuple(parameter.shape)}\n".encode())
        weights.update(array(parameter).astype("<f8").tobytes())
    shape = [f"{name}={value}" for name, value in asdict(model.network.shape).items()]
    return {
        "weights": weights.hexdigest(),
        "network": sha256(spelled_out(shape)).hexdigest(),
        "vocabulary": sha256(spelled_out(model.vocabulary)).hexdigest(),
        "label names": sha256(spelled_out(model.labels)).hexdigest(),
    }
