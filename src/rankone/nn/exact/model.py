"""An exact network with its words and labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb, ctx

from rankone.arrays import Ints
from rankone.corpus import Corpus
from rankone.corpus.read import Source, read_like
from rankone.errors import ModelError, PrecisionError
from rankone.nn.exact import store
from rankone.nn.exact.evaluate import evaluate
from rankone.nn.exact.floats import to_float64
from rankone.nn.exact.network import ExactNetwork
from rankone.nn.exact.numbers import Vector
from rankone.nn.model import Model, load

FIRST, MOST = 128, 1 << 20  # bits of working precision


@dataclass(frozen=True, repr=False)
class ExactModel:
    """Row i of the token table is ``vocabulary[i]``; there is none for other words.

    ``reading`` says how the corpus was read, as in `Model`.
    """

    network: ExactNetwork
    vocabulary: tuple[str, ...]
    labels: tuple[str, ...]
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        count = self.network.count
        return f"ExactModel({count.layers} layers, {count.nonzero} weights of {count.bits} bits)"

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The label of every token of some sentences, proved: working precision rises until the
        largest logit is certain."""
        rows = [tuple(self.rows(list(words)).tolist()) for words in sentences]
        for j, ids in enumerate(rows):
            if len(self.vocabulary) in ids:
                word = sentences[j][ids.index(len(self.vocabulary))]
                raise ModelError(
                    f"the model does not have the word {word!r}",
                    where=f"sentence {j + 1}",
                    remedy="give sentences of known words",
                )
            if self.positions and len(ids) > self.positions:
                raise ModelError(
                    f"{len(ids)} tokens, but there are {self.positions} positions",
                    where=f"sentence {j + 1}",
                    remedy="give shorter sentences",
                )
        bits = FIRST
        while True:
            with ctx.workprec(bits):
                found = evaluate(self.network, rows)
                labels = [winner(logits) for logits in found.logits]
            if None not in labels:
                return [[self.labels[labels[i] or 0] for i in places] for places in found.where]
            bits *= 2
            if bits > MOST:
                raise PrecisionError(
                    f"a label is not certain with {bits // 2:,} bits", remedy="certify the model"
                )

    @property
    def positions(self) -> int:
        """Rows of the table of positions, 0 for none."""
        return self.network.length

    def rows(self, words: Sequence[str]) -> Ints:
        """Rows of the token table for these words; unknown words get the number after the last."""
        unknown, index = len(self.vocabulary), self._index
        return np.fromiter((index.get(word, unknown) for word in words), np.int64, len(words))

    def read(self, path: Source, *, labelled: bool | None = None, **given: Any) -> Corpus:
        """Read a file, or several, as the model's own corpus was read."""
        return read_like(path, self.reading, self.labels, labelled=labelled, **given)

    def to_float64(self) -> Model:
        """The same model in float64; an error if a weight is not a float64 number."""
        return Model(to_float64(self.network), self.vocabulary, self.labels, self.reading)

    def save(
        self, directory: str | os.PathLike[str], *, report: Mapping[str, Any] | None = None
    ) -> list[Path]:
        """Write the model directory, whole or not at all; returns the files."""
        contents = store.contents_of(
            self.network, self.vocabulary, self.labels, self.reading, report
        )
        return store.save(directory, contents)

    @cached_property
    def weights_sha256(self) -> str:
        """A fingerprint of the network."""
        return sha256(store.written_network(self.network)).hexdigest()

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary)}


def winner(logits: Vector) -> int | None:
    """The label whose logit is certainly the largest (of equal ones the first), or None."""
    best = 0
    for c, logit in enumerate(logits):
        if logit > logits[best]:
            best = c
    for c, logit in enumerate(logits):
        if c == best or logit < logits[best]:
            continue
        tied = not isinstance(logit, arb) and logit == logits[best]
        if not tied or c < best:
            return None
    return best


def load_any(directory: str | os.PathLike[str]) -> Model | ExactModel:
    """A model of either kind from its directory."""
    return load_exact(directory) if store.is_exact(directory) else load(directory)


def load_exact(directory: str | os.PathLike[str]) -> ExactModel:
    """An exact model from its directory, as `compare` writes it."""
    return ExactModel(*store.load(directory))
