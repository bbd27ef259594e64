"""The contextual mapping: token vectors and the attention layer that tells contexts apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rankone.corpus import Corpus
from rankone.kernels import rank1_attention_ragged
from rankone.nn import Rank1Attention, SelfAttention

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ContextualMapping:
    """Token vectors X, positions E, and the attention of eq. 20 (Theorem 2).

    A token's context id is the vector F^(SA)(X + E)_k. The readout sees it through one direction,
    as the number s = direction^T F^(SA)(X + E)_k; the line is where these numbers lie. Both layers
    write along coordinate ``out``, where ``direction`` is exactly 1, so what they write adds to s
    unchanged.
    """

    table: Floats  # (vocabulary + 1, d)
    positions: Floats | None  # (length, d)
    v1: Floats
    v2: Floats
    output: Floats
    direction: Floats
    out: int

    def attention(self, head_size: int = 1) -> Rank1Attention | SelfAttention:
        """Eq. 20, or eq. 2 with matrices of rank 1 where the head size is not 1."""
        rank1 = Rank1Attention.assemble(*map(tensor, (self.v1, self.v2, self.output)))
        return rank1 if head_size == 1 else rank1.expand(head_size)

    def project(self, corpus: Corpus, direction: Floats) -> Floats:
        """direction^T (X + E) for every token of the corpus."""
        values = np.take(self.table @ direction, corpus.token_ids)
        if self.positions is not None:
            values += np.take(self.positions @ direction, corpus.positions)
        return values

    def averages(self, corpus: Corpus, causal: bool) -> Floats:
        """What attention adds along ``output``: the softmax average of the keys, per token."""
        key, query = self.project(corpus, self.v1), self.project(corpus, self.v2)
        return rank1_attention_ragged(query, key, key, corpus.offsets, causal=causal)


def tensor(values: Floats) -> torch.Tensor:
    """A tensor with memory of its own: parameters must not share any."""
    return torch.from_numpy(values).clone()
