"""Verification: run the finished model over its corpus, by the fast path and as written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from rankone.construct.mapping import Floats, Ints
from rankone.construct.targets import ContextTargets
from rankone.corpus import Corpus
from rankone.nn import Evaluator, TokenClassifier, padding_mask

SAMPLE = 1000  # tokens checked by the dense network, if not all are
CELLS = 1 << 20  # hidden activations of the dense network held at once


@dataclass(frozen=True)
class Check:
    """Outputs y against labels: a label is the nearest whole number to y.

    ``wrong`` counts tokens whose output is not nearest to the label in the file; ``max_error`` is
    the largest distance of y from the label it should have; ``difference`` the largest from the
    output of the fast path.
    """

    tokens: int
    wrong: int
    max_error: float
    difference: float = 0.0

    @property
    def margin(self) -> float:
        return 0.5 - self.max_error


def outputs(network: TokenClassifier, corpus: Corpus) -> Floats:
    """The output y of every token by the fast path.

    The head's row for label c is 2c p; y = p^T features, and the first row (c = 1) is 2p.
    """
    p = network.head.weight[0].detach().numpy() / 2
    found = Evaluator(network).run(corpus.token_ids, corpus.offsets, lambda z: p @ z)
    return np.asarray(found, dtype=np.float64)


def check_fast(y: Floats, corpus: Corpus, targets: ContextTargets) -> Check:
    """Every token; labels are numbered from 0 in the corpus and from 1 by the network."""
    return Check(
        tokens=len(y),
        wrong=int((np.rint(y) != corpus.label_ids + 1).sum()),
        max_error=float(np.abs(y - (targets.labels + 1)).max()),
    )


def check_dense(
    network: TokenClassifier,
    corpus: Corpus,
    targets: ContextTargets,
    y: Floats,
    rng: np.random.Generator,
    every: bool,
    progress: Callable[[float], None],
) -> Check:
    """The network as written, all matrices multiplied out; on a sample, or on `every` token."""
    error = np.abs(y - (targets.labels + 1))
    sentences = np.arange(corpus.n_sentences) if every else sample_sentences(corpus, error, rng)
    at, dense = dense_outputs(network, corpus, sentences, progress)
    return Check(
        tokens=len(at),
        wrong=int((np.rint(dense) != corpus.label_ids[at] + 1).sum()),
        max_error=float(np.abs(dense - (targets.labels[at] + 1)).max()),
        difference=float(np.abs(dense - y[at]).max()),
    )


def sample_sentences(corpus: Corpus, error: Floats, rng: np.random.Generator) -> Ints:
    """The sentences with the largest errors, then others at random, to about `SAMPLE` tokens."""
    if corpus.n_tokens <= SAMPLE:
        return np.arange(corpus.n_sentences)
    worst = np.unique(corpus.sentence_of[np.argsort(-error)[: SAMPLE // 40]])
    others = np.setdiff1d(rng.permutation(corpus.n_sentences)[:SAMPLE], worst)
    order = np.concatenate([worst, rng.permutation(others)])
    return order[: 1 + int(np.searchsorted(np.cumsum(corpus.lengths[order]), SAMPLE))]


@torch.no_grad()
def dense_outputs(
    network: TokenClassifier,
    corpus: Corpus,
    sentences: Ints,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[Ints, Floats]:
    """Token indices and their outputs, by the network with all matrices multiplied out.

    Padded batches through the module's own forward pass: nothing is shared with the fast path.
    """
    dense = network.expand()
    p = dense.head.weight[0] / 2
    hidden = max(1, network.shape.hidden)
    order = sentences[np.argsort(corpus.lengths[sentences], kind="stable")]
    where, found = [], []
    while len(order):
        n = int(corpus.lengths[order[-1]])
        size = max(1, CELLS // (hidden * n))
        part, order = order[-size:], order[:-size]
        at = corpus.offsets[part][:, None] + np.arange(n)
        real = np.arange(n) < corpus.lengths[part][:, None]
        ids = torch.zeros(at.shape, dtype=torch.int64)
        ids[torch.from_numpy(real)] = torch.from_numpy(corpus.token_ids[at[real]])
        mask = padding_mask(torch.from_numpy(corpus.lengths[part]), n)
        y = dense.features(ids, mask) @ p
        where.append(at[real])
        found.append(y.numpy()[real])
        progress(1 - len(order) / len(sentences))
    return np.concatenate(where), np.concatenate(found)
