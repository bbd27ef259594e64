"""Batches of whole sentences, laid end to end, in an order given by seed and epoch alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rankone.corpus import Corpus
from rankone.nn.ragged import Ragged
from rankone.spans import places
from rankone.training.processes import Processes


@dataclass(frozen=True)
class Batch:
    """``words`` are the rows of the token table that the batch needs, each once, and
    ``words[index]`` the rows of its tokens; ``asked`` is the number of tokens, over all processes,
    for which the task asks for a label."""

    words: Tensor
    index: Tensor
    labels: Tensor
    sentences: Ragged
    asked: int


def count(corpus: Corpus, size: int) -> int:
    """The number of batches in an epoch."""
    return -(-corpus.n_sentences // size)


def batches(
    corpus: Corpus, size: int, *, seed: int, epoch: int, first: int, processes: Processes
) -> Iterator[Batch]:
    """The batches of an epoch from number `first` on; every process gets its share of each."""
    order = np.random.default_rng([seed, epoch]).permutation(corpus.n_sentences)
    for i in range(first * size, len(order), size):
        chosen = order[i : i + size]
        own = chosen[processes.rank :: processes.world]
        at, offsets = gather(corpus, own)
        if processes.world == 1:
            words, index = np.unique(corpus.token_ids[at], return_inverse=True)
            everyone = at
        else:  # the rows of all, so that their gradients can be added
            everyone = gather(corpus, chosen)[0]
            words = np.unique(corpus.token_ids[everyone])
            index = np.searchsorted(words, corpus.token_ids[at])
        device = processes.device
        yield Batch(
            words=torch.from_numpy(words).to(device),
            index=torch.from_numpy(index).to(device),
            labels=torch.from_numpy(corpus.label_ids[at]).to(device),
            sentences=Ragged(offsets, device),
            asked=int((corpus.label_ids[everyone] >= 0).sum()),
        )


def gather(corpus: Corpus, sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of these sentences, and where each sentence begins among them."""
    lengths = corpus.lengths[sentences]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    at = places(offsets) + np.repeat(corpus.offsets[sentences], lengths)
    return at, offsets
