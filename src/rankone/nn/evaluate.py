"""Running a network over a whole corpus: no padding, and rank-1 layers by their fast paths."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankone.kernels import rank1_attention_ragged
from rankone.kernels.ragged import by_length
from rankone.nn.attention import Rank1Attention, SelfAttention
from rankone.nn.classifier import TokenClassifier
from rankone.nn.feedforward import FeedForward, Rank1FeedForward
from rankone.spans import spans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Layer = Callable[[Floats, Ints], Floats]

CELLS = 1 << 22  # numbers in the largest table (scores or hidden units) made at once


class Evaluator:
    """Applies a network to sentences ``offsets[j]:offsets[j + 1]`` of a column of token ids.

    Equal to the network's own forward pass up to rounding, with the weights it has when the
    evaluator is made, and in float64 whatever their type. Sentences come in chunks of about
    65,000 tokens, so memory does not grow with the corpus, and as in the paper tokens are columns:
    layers map (d, tokens) to (d, tokens). Attention of rank 1 goes through
    `rank1_attention_ragged`; a feed-forward layer of rank 1 through `PiecewiseLinear`, O(log q)
    per token instead of O(q).
    """

    def __init__(self, network: TokenClassifier) -> None:
        if network.table.dtype != torch.float64:
            network = copy.deepcopy(network).double()
        self.table = _columns(network.table)
        self.positions = None if network.positions is None else _columns(network.positions)
        self.layers: list[Layer] = []
        for block in network.blocks:
            self.layers.append(attention_layer(block.attention, network.shape.causal))
            self.layers.append(feedforward_layer(block.feedforward))

    def run(
        self, token_ids: Ints, offsets: Ints, read: Callable[[Floats], NDArray[np.generic]]
    ) -> NDArray[np.generic]:
        """`read` of the features (d, tokens) of every chunk, put together again."""
        results = [read(z) for z in self.features(token_ids, offsets)]
        return np.concatenate(results or [read(self.table[:, :0])])

    def features(self, token_ids: Ints, offsets: Ints) -> Iterator[Floats]:
        """What the last block puts out, (d, tokens) of one chunk after the other."""
        for chunk, z in self.embedded(token_ids, offsets):
            for layer in self.layers:
                z = layer(z, chunk)
            yield z

    def embedded(self, token_ids: Ints, offsets: Ints) -> Iterator[tuple[Ints, Floats]]:
        """X + E of whole sentences: (their offsets within the chunk, one column per token)."""
        for first, last in spans(offsets):
            chunk = offsets[first : last + 1] - offsets[first]
            z = np.take(self.table, token_ids[offsets[first] : offsets[last]], axis=1)
            if self.positions is not None:
                place = np.arange(z.shape[1]) - np.repeat(chunk[:-1], np.diff(chunk))
                z += np.take(self.positions, place, axis=1)
            yield chunk, z


def attention_layer(attention: nn.Module | Tensor, causal: bool) -> Layer:
    """The attention as a function of (columns, offsets)."""
    if isinstance(attention, Rank1Attention):
        v1, v2, output = map(_numpy, (attention.v1, attention.v2, attention.output))

        def rank1(z: Floats, offsets: Ints) -> Floats:
            key = v1 @ z
            z += output[:, None] * rank1_attention_ragged(v2 @ z, key, key, offsets, causal=causal)
            return z

        return rank1
    assert isinstance(attention, SelfAttention)

    @torch.no_grad()
    def general(z: Floats, offsets: Ints) -> Floats:
        rows, out = np.ascontiguousarray(z.T), np.empty(z.shape[::-1])
        for length, starts in by_length(offsets, CELLS // len(attention.key)):
            at = starts[:, None] + np.arange(length)
            out[at] = attention(torch.from_numpy(rows[at]), causal=causal).numpy()
        return np.ascontiguousarray(out.T)

    return general


def feedforward_layer(layer: nn.Module | Tensor) -> Layer:
    """The feed-forward layer as a function of columns."""
    if isinstance(layer, Rank1FeedForward):
        f = layer.piecewise()
        a, w, bias2 = map(_numpy, (layer.direction, layer.out_direction, layer.bias2))

        def folded(h: Floats, _: Ints) -> Floats:
            h += w[:, None] * f(a @ h) + bias2[:, None]
            return h

        return folded
    assert isinstance(layer, FeedForward)

    @torch.no_grad()
    def general(h: Floats, _: Ints) -> Floats:
        step = max(1, CELLS // max(1, len(layer.bias1)))
        rows = torch.from_numpy(np.ascontiguousarray(h.T))
        out = torch.cat([layer(part) for part in torch.split(rows, step)])
        return np.ascontiguousarray(out.numpy().T)

    return general


def _numpy(parameter: Tensor) -> Floats:
    return np.array(parameter.detach().numpy())


def _columns(table: Tensor) -> Floats:
    return np.ascontiguousarray(_numpy(table).T)
