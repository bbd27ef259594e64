"""Verification: run the finished model over its corpus, by the fast path and as written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from rankone.construct.mapping import Floats, Ints
from rankone.construct.targets import ContextTargets
from rankone.corpus import Corpus
from rankone.nn import Block, Evaluator, SelfAttention, TokenClassifier

SAMPLE = 1000  # tokens checked by the dense network, if not all are
CELLS = 1 << 20  # scores or hidden activations of the dense network held at once


@dataclass(frozen=True)
class Check:
    """Outputs y against labels: a label is the nearest whole number to y.

    ``wrong`` counts tokens whose output is not nearest to the label in the file; ``max_error`` is
    the largest distance of y from the label it should have; ``difference`` the largest from the
    output of the fast path. ``head_error`` bounds how far the rounding of the head may shift the
    border between two labels: the model's label is the nearest number while the two errors
    together stay below 1/2.
    """

    tokens: int
    wrong: int
    max_error: float
    head_error: float = 0.0
    difference: float = 0.0

    @property
    def margin(self) -> float:
        return 0.5 - self.max_error

    def holds(self, wrong: int, reserve: float) -> bool:
        """Whether just so many labels are wrong, and `reserve` is left of the margin."""
        return self.wrong == wrong and self.margin - self.head_error >= reserve


def outputs(network: TokenClassifier, corpus: Corpus) -> tuple[Floats, float]:
    """The output y of every token by the fast path, and the error of the head.

    The head's row for label c is 2c p with bias -c^2, so the first one (c = 1) is 2p, y = p^T z,
    and the logit of c is 2c y - c^2. It is added up in d + 3 roundings from numbers whose sizes add
    up to at most 2c |p|^T |z| + c^2, so it is off by no more than that times (d + 3) eps.
    """
    p = network.head.weight[0].detach().numpy() / 2
    sizes = []

    def read(z: Floats) -> Floats:
        sizes.append(float((np.abs(p) @ np.abs(z)).max()))
        return np.asarray(p @ z)

    y = Evaluator(network).run(corpus.token_ids, corpus.offsets, read)
    labels, dim = network.head.weight.shape
    terms = 2 * labels * max(sizes) + labels**2
    return np.asarray(y, dtype=np.float64), (dim + 3) * float(np.finfo(np.float64).eps) * terms


def check_fast(y: Floats, head_error: float, corpus: Corpus, targets: ContextTargets) -> Check:
    """Every token; labels are numbered from 0 in the corpus and from 1 by the network."""
    return Check(
        tokens=len(y),
        wrong=int((np.rint(y) != corpus.label_ids + 1).sum()),
        max_error=float(np.abs(y - (targets.labels + 1)).max()),
        head_error=head_error,
    )


def check_dense(
    network: TokenClassifier,
    corpus: Corpus,
    targets: ContextTargets,
    y: Floats,
    rng: np.random.Generator,
    every: bool,
    progress: Callable[[float], None],
) -> tuple[Check, int]:
    """The network as written, all matrices multiplied out; on a sample, or on `every` token.

    Also how many labels must be wrong there. Labels are decided by the largest logit.
    """
    error = np.abs(y - (targets.labels + 1))
    at = np.arange(corpus.n_tokens) if every else sample_tokens(corpus, error, rng)
    dense, decided = dense_outputs(network, corpus, at, progress)
    found = Check(
        tokens=len(at),
        wrong=int((decided != corpus.label_ids[at]).sum()),
        max_error=float(np.abs(dense - (targets.labels[at] + 1)).max()),
        difference=float(np.abs(dense - y[at]).max()),
    )
    return found, int((targets.labels[at] != corpus.label_ids[at]).sum())


def sample_tokens(corpus: Corpus, error: Floats, rng: np.random.Generator) -> Ints:
    """The tokens with the largest errors and others at random, `SAMPLE` of them, in order."""
    if corpus.n_tokens <= SAMPLE:
        return np.arange(corpus.n_tokens)
    worst = np.argpartition(-error, SAMPLE // 40)[: SAMPLE // 40]
    others = np.setdiff1d(rng.choice(corpus.n_tokens, SAMPLE, replace=False), worst)
    return np.sort(np.concatenate([worst, rng.permutation(others)[: SAMPLE - len(worst)]]))


@torch.no_grad()
def dense_outputs(
    network: TokenClassifier,
    corpus: Corpus,
    tokens: Ints,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[Floats, Ints]:
    """Outputs and labels of some tokens, by the network with all matrices multiplied out.

    Padded batches through the modules' own matrices: nothing is shared with the fast path. A token
    costs as many scores as its sentence has tokens, and as many activations as there are units.
    """
    dense = network.expand()
    (block,) = dense.blocks
    assert isinstance(block, Block)
    assert isinstance(block.attention, SelfAttention)
    step = max(1, CELLS // network.shape.hidden)  # rows of hidden activations held at once
    y, decided, done = np.empty(len(tokens)), np.empty(len(tokens), dtype=np.int64), 0
    for sentences, asking in batches(corpus, tokens, network.shape.head_size):
        n = int(corpus.lengths[sentences].max())
        starts = corpus.offsets[sentences][:, None]
        there = np.arange(n) < corpus.lengths[sentences][:, None]
        ids = np.zeros(there.shape, dtype=np.int64)
        ids[there] = corpus.token_ids[(starts + np.arange(n))[there]]
        z = block.attention.at(
            dense.embed(torch.from_numpy(ids)),
            torch.from_numpy(tokens[asking] - starts),
            None if there.all() else torch.from_numpy(there[:, None]),
            causal=network.shape.causal,
        )
        own, first = np.unique(asking, return_index=True)  # rows are filled up with copies
        for piece, some in zip(
            torch.split(z.flatten(0, 1)[first], step),
            np.split(own, range(step, len(own), step)),
            strict=True,
        ):
            features = block.feedforward(piece)
            y[some] = features @ (dense.head.weight[0] / 2)
            decided[some] = dense.head(features).argmax(-1)
        done += len(own)
        progress(done / len(tokens))
    return y, decided


def batches(corpus: Corpus, tokens: Ints, head_size: int) -> Iterator[tuple[Ints, Ints]]:
    """Sentences, and for each a row of places in `tokens` that lie in it; rows may repeat one.

    `tokens` are in order. A sentence of n tokens has as many rows as it takes for m of them at a
    time, m n <= `CELLS`; so many sentences of similar length go together. (Or as many as have
    `CELLS` numbers in their keys.)
    """
    home = corpus.sentence_of[tokens]
    most = np.maximum(1, CELLS // corpus.lengths[home])
    first = np.flatnonzero(np.diff(home, prepend=-1))
    counts = np.diff(first, append=len(home))
    within = np.arange(len(home)) - np.repeat(first, counts)
    starts = np.flatnonzero(within % most == 0)
    counts = np.diff(starts, append=len(home))
    order = np.argsort(-corpus.lengths[home[starts]], kind="stable")
    starts, counts = starts[order], counts[order]
    while len(starts):
        n = int(corpus.lengths[home[starts[0]]])
        widest = np.maximum.accumulate(counts)
        fits = np.maximum(widest, head_size) * n * np.arange(1, len(starts) + 1) <= CELLS
        size = max(1, int(fits.argmin()) if not fits.all() else len(fits))
        inner = np.minimum(np.arange(widest[size - 1]), counts[:size, None] - 1)
        yield home[starts[:size]], starts[:size, None] + inner
        starts, counts = starts[size:], counts[size:]
