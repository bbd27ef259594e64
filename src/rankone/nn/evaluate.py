"""Running a network over a whole corpus: no padding, and rank-1 layers by their fast paths."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankone.deadline import tick
from rankone.kernels import rank1_attention_ragged
from rankone.kernels.ragged import by_length
from rankone.nn.attention import Rank1Attention, SelfAttention
from rankone.nn.classifier import TokenClassifier
from rankone.nn.feedforward import FeedForward, Rank1FeedForward
from rankone.spans import spans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Layer = Callable[[Floats, Ints], Floats]
Head = tuple[Floats, Floats, Floats, Floats]

CELLS = 1 << 22  # numbers in the largest table (scores or hidden units) made at once


class Evaluator:
    """Applies a network to sentences ``offsets[j]:offsets[j + 1]`` of a column of token ids.

    Equal to the network's own forward pass up to rounding, with the weights it has when the
    evaluator is made, and in float64 whatever their type. Sentences come in chunks of about
    65,000 tokens, so memory does not grow with the corpus, and as in the paper tokens are columns:
    layers map (d, tokens) to (d, tokens). Softmax attention of rank 1, also that of eq. 2 whose
    matrices have rank 1, goes through `rank1_attention_ragged`, in linear time; a feed-forward
    layer of rank 1 through `PiecewiseLinear`, O(log q) per token instead of O(q).
    """

    def __init__(self, network: TokenClassifier) -> None:
        if any(p.dtype != torch.float64 for p in network.parameters()):
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
    heads = rank1_heads(attention)
    if heads is not None:

        def rank1(z: Floats, offsets: Ints) -> Floats:
            contexts = []
            for query, key, value, _ in heads:
                x = key @ z
                u = x if value is key else value @ z
                contexts.append(rank1_attention_ragged(query @ z, x, u, offsets, causal=causal))
            for (*_, output), context in zip(heads, contexts, strict=True):
                z += output[:, None] * context
            return z

        return rank1
    assert isinstance(attention, SelfAttention)

    @torch.no_grad()
    def general(z: Floats, offsets: Ints) -> Floats:
        rows, out = np.ascontiguousarray(z.T), np.empty(z.shape[::-1])
        for length, starts in by_length(offsets, CELLS // len(attention.key)):
            tick()
            at = starts[:, None] + np.arange(length)
            out[at] = attention(torch.from_numpy(rows[at]), causal=causal).numpy()
        return np.ascontiguousarray(out.T)

    return general


def rank1_heads(attention: nn.Module | Tensor) -> list[Head] | None:
    """Query, key, value and output vectors of heads that have one number for each of the first
    three; None if some head has more.

    Eq. 2 with W^K = u_K k^T, W^Q = u_Q q^T and W^V = u_V v^T is eq. 20 with the query direction
    (u_K^T u_Q) q, the key k, the value v, and W^O u_V written.
    """
    if isinstance(attention, Rank1Attention):
        v1, v2, output = map(_numpy, (attention.v1, attention.v2, attention.output))
        return [(v2, v1, v1, output)]
    if not isinstance(attention, SelfAttention) or attention.kind != "softmax":
        return None
    heads = []
    weights = map(_numpy, (attention.query, attention.key, attention.value, attention.output))
    for *three, output in zip(*weights, strict=True):
        found = [factors(weight) for weight in three]
        if None in found:
            return None
        (u_q, q), (u_k, k), (u_v, v) = (pair for pair in found if pair is not None)
        heads.append(((u_k @ u_q) * q, k, v, output @ u_v))
    return heads


def factors(weight: Floats) -> tuple[Floats, Floats] | None:
    """u and a with W = u a^T to the last digits, or None if W has not rank 1."""
    i, j = np.unravel_index(np.abs(weight).argmax(), weight.shape)
    a = weight[i]
    u = weight[:, j] / (weight[i, j] or 1.0)
    product = np.outer(u, a)
    close = np.abs(weight - product) <= 4 * np.finfo(np.float64).eps * np.abs(product)
    return (u, a) if close.all() else None


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
        parts = []
        for part in torch.split(rows, step):
            tick()
            parts.append(layer(part))
        return np.ascontiguousarray(torch.cat(parts).numpy().T)

    return general


def _numpy(parameter: Tensor) -> Floats:
    return np.array(parameter.detach().numpy())


def _columns(table: Tensor) -> Floats:
    return np.ascontiguousarray(_numpy(table).T)
