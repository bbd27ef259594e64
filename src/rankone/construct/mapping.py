"""The contextual mapping: what the attention layer is, and the context ids it gives (Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rankone.corpus import Corpus
from rankone.nn.attention import Rank1Attention, SelfAttention
from rankone.nn.evaluate import attention_layer, embed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ContextualMapping:
    """Token vectors and the attention layer that tells their contexts apart.

    A token's context id is the vector F^(SA)(X + E)_k; the readout sees it through one direction,
    as the number s = direction^T F^(SA)(X + E)_k. Both layers write along coordinate ``out``,
    where ``direction`` is exactly 1, so that what they write adds to s unchanged.
    ``cell`` is the width of the interval of s that a token owns: its contexts lie in
    ``table[token, out] + [-2, cell - 2]``, whatever the sentence. None: tokens own no intervals.
    """

    table: Floats  # (vocabulary + 1, d)
    positions: Floats | None  # (length, d)
    v1: Floats
    v2: Floats
    output: Floats
    direction: Floats
    out: int
    cell: float | None = None

    def attention(self, head_size: int = 1) -> Rank1Attention | SelfAttention:
        """Eq. 20, or eq. 2 with matrices of rank 1 where the head size is not 1."""
        rank1 = Rank1Attention(len(self.v1), dtype=torch.float64)
        with torch.no_grad():
            for parameter, vector in (
                (rank1.v1, self.v1),
                (rank1.v2, self.v2),
                (rank1.output, self.output),
            ):
                parameter.copy_(torch.from_numpy(vector))
        return rank1 if head_size == 1 else rank1.expand(head_size)

    def context_ids(
        self, corpus: Corpus, attention: Rank1Attention | SelfAttention, causal: bool
    ) -> Floats:
        """The number s of every token of the corpus."""
        layer = attention_layer(attention, causal)
        return np.concatenate(
            [
                layer(z, chunk) @ self.direction
                for chunk, z in embed(self.table, self.positions, corpus.token_ids, corpus.offsets)
            ]
        )
