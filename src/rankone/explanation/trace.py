"""Trace a memorised model: one sentence from tokens to labels, and the readout as a staircase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from rankone.arrays import Floats
from rankone.corpus import Corpus
from rankone.nn import Model, Rank1FeedForward
from rankone.nn.feedforward import PiecewiseLinear
from rankone.nn.layers import AttentionLayer

LONGEST = 8  # tokens of the sentence that is shown
SENTENCES = 2000  # examined, from the start of the corpus


@dataclass(frozen=True)
class Trace:
    """A sentence from tokens to labels.

    Per token its ``keys`` v1^T x, the ``weights`` it gives to all of them, where it stands
    ``alone`` on the line of the readout and where attention moves it, its context id, in ``ids``,
    the output of the readout in ``outputs``, and the nearest ``labels``.
    """

    words: list[str]
    keys: Floats
    weights: Floats
    alone: Floats
    ids: Floats
    outputs: Floats
    labels: list[str]


@dataclass(frozen=True)
class Staircase:
    """The output of the readout at every context id: ``ids`` in order, all different.

    ``tokens`` has the word of each (and its position), ``labels`` the number of its label,
    ``names`` those of the labels. The output at s is s + piecewise(s) + ``ground``.
    """

    ids: Floats
    tokens: list[str]
    labels: Floats
    names: tuple[str, ...]
    numbers: Floats
    piecewise: PiecewiseLinear
    ground: float

    def __call__(self, s: Floats) -> Floats:
        return np.asarray(s + self.piecewise(s) + self.ground)


@dataclass(frozen=True)
class LineReadout:
    """A model of one block whose readout looks along one ``coordinate``, and writes to it."""

    model: Model
    attention: AttentionLayer
    readout: Rank1FeedForward
    coordinate: int

    @classmethod
    def of(cls, model: Model) -> LineReadout | None:
        """The readout of a model, None if it is not of this form."""
        network = model.network
        attention, readout = network.blocks[0].attention, network.blocks[0].feedforward
        heads = attention.heads
        rank1 = attention.kind == "softmax" and len(heads) == len(heads[0].key) == 1
        if len(network.blocks) > 1 or not rank1 or not isinstance(readout, Rank1FeedForward):
            return None
        weight = network.head.weight.detach()
        coordinate = int(weight.abs().sum(0).argmax())
        unit = torch.eye(weight.shape[1], dtype=weight.dtype)[coordinate]
        looks = (readout.direction == unit).all() and (readout.out_direction == unit).all()
        if not looks or (weight * (1 - unit)).any():
            return None
        return cls(model, attention, readout, coordinate)

    @torch.no_grad()
    def run(self, corpus: Corpus, sentence: int) -> tuple[Trace, Floats]:
        """The sentence, and the numbers of its labels."""
        start, end = corpus.offsets[sentence : sentence + 2]
        words = [corpus.vocabulary[i] for i in corpus.token_ids[start:end]]
        network = self.model.network
        z = network.table[torch.from_numpy(self.model.rows(words))]
        if network.positions is not None:
            z = z + network.positions[: len(z)]
        (head,) = self.attention.heads
        key, query = z @ head.key[0], z @ head.query[0]
        weights = torch.softmax(query[:, None] * key, -1)
        h = self.attention(z)
        out = self.readout(h)
        label = network.head(out).argmax(-1)
        trace = Trace(
            words,
            key.numpy(),
            weights.numpy(),
            (z @ self.readout.direction).numpy(),
            (h @ self.readout.direction).numpy(),
            out[:, self.coordinate].numpy(),
            [self.model.labels[i] for i in label],
        )
        return trace, self.numbers[label.numpy()]

    @property
    def numbers(self) -> Floats:
        """The number c of each label: the head has the weights 2 c."""
        return np.asarray(self.model.network.head.weight.detach()[:, self.coordinate].numpy() / 2)


def trace(model: Model, corpus: Corpus) -> Trace | None:
    """A short sentence with as many different labels as there are; None for other networks."""
    line = LineReadout.of(model)
    short = np.flatnonzero(corpus.lengths <= LONGEST)
    if line is None or not len(short):
        return None
    offsets = corpus.offsets

    def variety(sentence: int) -> tuple[int, int]:
        labels = corpus.label_ids[offsets[sentence] : offsets[sentence + 1]]
        return len(np.unique(labels)), len(labels)

    return line.run(corpus, max(short[:SENTENCES].tolist(), key=variety))[0]


def staircase(model: Model, corpus: Corpus) -> Staircase | None:
    """All context ids of the first sentences; None for other networks, and for a single id."""
    line = LineReadout.of(model)
    if line is None:
        return None
    ids, labels, tokens = [], [], []
    placed = model.network.positions is not None
    for sentence in range(min(SENTENCES, corpus.n_sentences)):
        found, numbers = line.run(corpus, sentence)
        ids.append(found.ids)
        labels.append(numbers)
        tokens += [f"{w} at {k + 1}" if placed else w for k, w in enumerate(found.words)]
    every, first = np.unique(np.concatenate(ids), return_index=True)
    if len(every) < 2:
        return None
    readout = line.readout
    return Staircase(
        every,
        [tokens[i] for i in first],
        np.concatenate(labels)[first],
        model.labels,
        line.numbers,
        readout.piecewise(),
        float(readout.bias2[line.coordinate].detach()),
    )
