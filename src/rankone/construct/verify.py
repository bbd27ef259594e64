"""Verification: run the finished model over its corpus, by the fast path and as written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from rankone.construct.mapping import Floats, Ints
from rankone.construct.targets import ContextTargets
from rankone.corpus import Corpus
from rankone.nn import Block, Evaluator, TokenClassifier
from rankone.nn.masks import per_query

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
    sentences = np.arange(corpus.n_sentences) if every else sample_sentences(corpus, error, rng)
    at, dense, decided = dense_outputs(network, corpus, sentences, progress)
    found = Check(
        tokens=len(at),
        wrong=int((decided != corpus.label_ids[at]).sum()),
        max_error=float(np.abs(dense - (targets.labels[at] + 1)).max()),
        difference=float(np.abs(dense - y[at]).max()),
    )
    return found, int((targets.labels[at] != corpus.label_ids[at]).sum())


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
) -> tuple[Ints, Floats, Ints]:
    """Tokens, their outputs and labels, by the network with all matrices multiplied out.

    Padded batches through the modules' own forward passes: nothing is shared with the fast path.
    """
    dense = network.expand()
    block = dense.blocks[0]
    assert isinstance(block, Block)
    rows = max(1, CELLS // network.shape.hidden)  # of hidden activations held at once
    order = sentences[np.argsort(corpus.lengths[sentences], kind="stable")]
    total = int(corpus.lengths[sentences].sum())
    where, decided = np.empty((2, total), dtype=np.int64)
    y, done = np.empty(total), 0
    while len(order):
        n = int(corpus.lengths[order[-1]])
        size = max(1, CELLS // (n * n))
        part, order = order[-size:], order[:-size]
        at = corpus.offsets[part][:, None] + np.arange(n)
        real = np.arange(n) < corpus.lengths[part][:, None]
        ids, tokens = torch.zeros(at.shape, dtype=torch.int64), torch.from_numpy(real)
        ids[tokens] = torch.from_numpy(corpus.token_ids[at[real]])
        z = block.attention(dense.embed(ids), per_query(tokens), causal=network.shape.causal)[
            tokens
        ]
        where[done : done + len(z)] = at[real]
        for piece in torch.split(z, rows):
            features = block.feedforward(piece)
            some = slice(done, done + len(piece))
            y[some] = features @ (dense.head.weight[0] / 2)
            decided[some] = dense.head(features).argmax(-1)
            done += len(piece)
        progress(done / total)
    return where, y, decided
