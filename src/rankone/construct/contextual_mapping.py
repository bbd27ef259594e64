"""The contextual mapping: token vectors and the attention layer that tells contexts apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from rankone.arrays import Floats
from rankone.construct.problem import end_to_end, joined, pieces
from rankone.corpus import Corpus
from rankone.kernels import rank1_attention_ragged
from rankone.nn import (
    Architecture,
    Block,
    Rank1Attention,
    Rank1FeedForward,
    SelfAttention,
    TokenClassifier,
)
from rankone.nn.layers import module_of
from rankone.spans import spans


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

    def network(
        self,
        readout: Rank1FeedForward,
        weight: Floats,
        bias: Floats,
        *,
        head_size: int = 1,
        causal: bool = False,
    ) -> TokenClassifier:
        """One block, of this attention and a readout, and a head with weights (labels, d)."""
        attention, positions = self.attention(head_size), None
        if self.positions is not None:
            positions = nn.Parameter(tensor(self.positions))
        sizes = {"in_features": self.table.shape[1], "out_features": len(bias)}
        shape = Architecture(
            vocabulary=len(self.table),
            labels=len(bias),
            dim=self.table.shape[1],
            positions=0 if positions is None else len(positions),
            causal=causal,
            **attention.settings,
            **readout.settings,
        )
        return TokenClassifier.assemble(
            shape,
            nn.Parameter(tensor(self.table)),
            positions,
            [Block(attention, readout)],
            module_of(nn.Linear, {"weight": tensor(weight), "bias": tensor(bias)}, sizes),
        )

    def project(self, parts: Sequence[Corpus], direction: Floats) -> Floats:
        """direction^T (X + E) for every token of all parts."""
        look_up = self._projection(direction)
        return joined([look_up(part, slice(None)) for part in parts])

    def averages(self, parts: Sequence[Corpus], causal: bool) -> Floats:
        """What attention adds along ``output``: the softmax average of the keys, per token.

        The spans do not depend on how the corpus is cut into parts: rounding depends on what is
        computed together.
        """
        keys, queries = self._projection(self.v1), self._projection(self.v2)
        all_offsets = end_to_end(parts)
        out = np.empty(all_offsets[-1])
        for first, last in spans(all_offsets):
            offsets = all_offsets[first : last + 1]
            a, b = int(offsets[0]), int(offsets[-1])
            held = list(pieces(parts, a, b))
            key, query = (joined([f(part, at) for part, at in held]) for f in (keys, queries))
            out[a:b] = rank1_attention_ragged(query, key, key, offsets - a, causal=causal)
        return out

    def _projection(self, direction: Floats) -> Callable[[Corpus, slice], Floats]:
        """Project the tables, not the tokens: then each token needs only a lookup."""
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
