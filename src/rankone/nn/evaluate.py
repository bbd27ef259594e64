"""Running a network over a whole corpus: no padding, and rank-1 layers by their fast paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from rankone.kernels import rank1_attention_ragged
from rankone.kernels.ragged import by_length
from rankone.nn.attention import Rank1Attention, SelfAttention
from rankone.nn.classifier import TokenClassifier
from rankone.nn.feedforward import FeedForward, Rank1FeedForward

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Layer = Callable[[Floats, Ints], Floats]

CHUNK = 1 << 16  # tokens held at once
CELLS = 1 << 22  # numbers in the largest table (scores or hidden units) made at once


class Evaluator:
    """Applies a network to sentences ``offsets[j]:offsets[j + 1]`` of a column of token ids.

    Equal to the network's own forward pass up to rounding. Sentences come in chunks of about
    65,000 tokens, so memory does not grow with the corpus. Attention of rank 1 goes through
    `rank1_attention_ragged`; a feed-forward layer of rank 1 through `PiecewiseLinear`, O(log q)
    per token instead of O(q).
    """

    def __init__(self, network: TokenClassifier) -> None:
        self.table = network.table.detach().numpy()
        self.positions = None if network.positions is None else network.positions.detach().numpy()
        self.layers: list[Layer] = []
        for block in network.blocks:
            self.layers.append(attention_layer(block.attention, network.shape.causal))  # type: ignore[arg-type]
            self.layers.append(feedforward_layer(block.feedforward))  # type: ignore[arg-type]

    def run(
        self, token_ids: Ints, offsets: Ints, read: Callable[[Floats], NDArray[np.generic]]
    ) -> NDArray[np.generic]:
        """`read` of the features (tokens, d) of every chunk, put together again."""
        results = []
        for chunk, z in self.embedded(token_ids, offsets):
            for layer in self.layers:
                z = layer(z, chunk)
            results.append(read(z))
        return np.concatenate(results)

    def embedded(self, token_ids: Ints, offsets: Ints) -> Iterator[tuple[Ints, Floats]]:
        """X + E chunk by chunk: (offsets within the chunk, one row per token)."""
        return embed(self.table, self.positions, token_ids, offsets)


def embed(
    table: Floats, positions: Floats | None, token_ids: Ints, offsets: Ints
) -> Iterator[tuple[Ints, Floats]]:
    """X + E for whole sentences, about `CHUNK` tokens at a time."""
    n_sentences, first = len(offsets) - 1, 0
    while first < n_sentences:
        last = int(np.searchsorted(offsets, offsets[first] + CHUNK, side="right")) - 1
        last = min(max(last, first + 1), n_sentences)
        chunk = offsets[first : last + 1] - offsets[first]
        z = table[token_ids[offsets[first] : offsets[last]]]
        if positions is not None:
            z += positions[np.arange(len(z)) - np.repeat(chunk[:-1], np.diff(chunk))]
        yield chunk, z
        first = last


@torch.no_grad()
def attention_layer(attention: SelfAttention | Rank1Attention, causal: bool) -> Layer:
    """The attention as a function of (rows, offsets)."""
    if isinstance(attention, Rank1Attention):
        v1, v2, output = (
            p.detach().numpy() for p in (attention.v1, attention.v2, attention.output)
        )

        def rank1(z: Floats, offsets: Ints) -> Floats:
            key = z @ v1
            context = rank1_attention_ragged(z @ v2, key, key, offsets, causal=causal)
            return z + context[:, None] * output

        return rank1

    @torch.no_grad()
    def general(z: Floats, offsets: Ints) -> Floats:
        out = np.empty_like(z)
        for length, starts in by_length(offsets, CELLS // len(attention.key)):
            at = starts[:, None] + np.arange(length)
            mask = torch.ones(length, length, dtype=torch.bool).tril() if causal else None
            out[at] = attention(torch.from_numpy(z[at]), mask).numpy()
        return out

    return general


def feedforward_layer(layer: FeedForward | Rank1FeedForward) -> Layer:
    """The feed-forward layer as a function of rows."""
    if isinstance(layer, Rank1FeedForward):
        f, bias2 = layer.piecewise(), layer.bias2.detach().numpy()
        a, w = layer.direction.detach().numpy(), layer.out_direction.detach().numpy()

        def folded(h: Floats, _: Ints) -> Floats:
            return h + f(h @ a)[:, None] * w + bias2

        return folded

    @torch.no_grad()
    def general(h: Floats, _: Ints) -> Floats:
        step = max(1, CELLS // max(1, len(layer.bias1)))
        rows = torch.from_numpy(h)
        return torch.cat([layer(part) for part in rows.split(step)]).numpy()

    return general
