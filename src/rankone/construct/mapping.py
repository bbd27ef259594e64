"""The contextual mapping: token vectors and the attention layer that tells contexts apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rankone.corpus import Corpus
from rankone.kernels import rank1_attention_ragged
from rankone.nn import Rank1Attention, SelfAttention
from rankone.spans import spans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ContextualMapping:
    """Token vectors X, positions E, and the attention of eq. 20 (Theorem 2).

    A token's context id is the vector F^(SA)(X + E)_k. The readout sees it through one direction,
    as the number s = direction^T F^(SA)(X + E)_k; the line is where these numbers lie. Both layers
    write along the vector ``write``, with direction^T write = 1, so what they write adds to s.
    """

    table: Floats  # (vocabulary + 1, d)
    positions: Floats | None  # (length, d)
    v1: Floats
    v2: Floats
    output: Floats
    direction: Floats
    write: Floats

    def attention(self, head_size: int = 1) -> Rank1Attention | SelfAttention:
        """Eq. 20, or eq. 2 with matrices of rank 1 where the head size is not 1."""
        rank1 = Rank1Attention.assemble(*map(tensor, (self.v1, self.v2, self.output)))
        return rank1 if head_size == 1 else rank1.expand(head_size)

    def project(self, corpus: Corpus, direction: Floats) -> Floats:
        """direction^T (X + E) for every token of the corpus."""
        return self._projection(direction)(corpus, slice(None))

    def averages(self, corpus: Corpus, causal: bool) -> Floats:
        """What attention adds along ``output``: the softmax average of the keys, per token."""
        keys, queries = self._projection(self.v1), self._projection(self.v2)
        out = np.empty(corpus.n_tokens)
        for first, last in spans(corpus.offsets):
            offsets = corpus.offsets[first : last + 1]
            at = slice(offsets[0], offsets[-1])
            key, query = keys(corpus, at), queries(corpus, at)
            out[at] = rank1_attention_ragged(query, key, key, offsets - offsets[0], causal=causal)
        return out

    def _projection(self, direction: Floats) -> Callable[[Corpus, slice], Floats]:
        """Project tables, not tokens: then only numbers have to be looked up."""
        words = self.table @ direction
        places = None if self.positions is None else self.positions @ direction

        def look_up(corpus: Corpus, at: slice) -> Floats:
            values = np.take(words, corpus.token_ids[at])
            if places is not None:
                values += np.take(places, corpus.positions[at])
            return values

        return look_up


def tensor(values: Floats) -> torch.Tensor:
    """A tensor with memory of its own: parameters must not share any."""
    return torch.from_numpy(values).clone()
