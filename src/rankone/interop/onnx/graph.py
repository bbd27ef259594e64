"""The network as one torch module of plain operations, each of which ONNX Runtime has for float32
and for float64."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from rankone.nn import FeedForward, PiecewiseLinear, Rank1FeedForward, TokenClassifier
from rankone.nn.gated import GatedFeedForward
from rankone.nn.layers import FeedForwardLayer, Head


class Graph(nn.Module):
    """Logits of `input_ids` where `attention_mask` is not 0, both (batch, n): of every token, or of
    the `whole` sentence, which are those of its last token.

    All numbers are of the type of the weights, float32 or float64, but for those of `Pieces`.

    A sentence is its real tokens in their order: they alone are counted for positions, and they
    alone are attended to, so padding before, behind or between them changes nothing. Any number
    may stand under the mask; the logits there are finite and mean nothing.

    The modules of `rankone.nn` are said again, not called: they choose a way by the length of the
    sentence, and a graph has one way for all lengths.
    """

    def __init__(self, network: TokenClassifier, *, whole: bool = False) -> None:
        super().__init__()
        self.causal, self.whole = network.shape.causal, whole
        self.table, self.positions = network.table, network.positions
        self.weight, self.bias = turned(network.head.weight), network.head.bias
        # A tensor: torch's exporter writes a number as float32, where that of float64 is infinite.
        lowest = torch.finfo(network.dtype).min
        self.lowest = nn.Buffer(torch.tensor(lowest, dtype=network.dtype))
        self.layers = nn.ModuleList()
        for block in network.blocks:
            attention, layer = block.attention, block.feedforward
            heads = attention.heads
            rank1 = attention.kind == "softmax" and len(heads) == len(heads[0].key) == 1
            self.layers += [
                Average(heads[0]) if rank1 and heads[0].shared else Heads(heads, attention.kind),
                feedforward(layer),
            ]

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        real = attention_mask != 0
        ids = torch.where(real, input_ids, 0)
        # ONNX would count negative numbers from the end of the table; beyond it they are an error.
        z = embedding(torch.where(ids < 0, len(self.table), ids), self.table)
        if self.positions is not None:
            place = torch.cumsum(real.long(), -1) - 1
            z = z + embedding(place.clamp(min=0), self.positions)
        seen = real.unsqueeze(-2)
        if self.causal:
            at = torch.arange(input_ids.shape[-1])
            seen = seen & (at <= at.unsqueeze(-1))
        # Added to scores: their weight is then 0, and still a number where nothing is seen at all.
        hidden = torch.where(seen, 0.0, self.lowest)
        for layer in self.layers[:-1]:
            z = layer(z, real, hidden)
        if self.whole:  # the feed-forward layer at the end needs no other tokens
            z = z.gather(1, last(real)[:, None, None].expand(-1, 1, z.shape[-1]))
        for layer in self.layers[-1:]:
            z = layer(z, real, hidden)
        logits: Tensor = z @ self.weight + self.bias
        return logits.squeeze(1) if self.whole else logits


def last(real: Tensor) -> Tensor:
    """The last real place of every row."""
    return torch.where(real, torch.arange(real.shape[-1]), 0).argmax(-1)


class Average(nn.Module):
    """`Rank1Attention`; as in its kernels, keys are taken relative to an extreme one."""

    def __init__(self, head: Head[Tensor]) -> None:
        super().__init__()
        self.v1, self.v2 = column(head.key[0]), column(head.query[0])
        self.output = head.output[:, 0]

    def forward(self, z: Tensor, real: Tensor, hidden: Tensor) -> Tensor:
        query, key = z @ self.v2, z @ self.v1
        least = key.amin(-2, keepdim=True)
        largest = torch.where(real.unsqueeze(-1), key, least).amax(-2, keepdim=True)
        key = key - largest
        weights = (query * key.mT + hidden).softmax(-1)
        return z + (weights @ key + largest) * self.output


class Heads(nn.Module):
    """Any attention, the matrices of all heads side by side."""

    def __init__(self, heads: list[Head[Tensor]], kind: str) -> None:
        super().__init__()
        self.kind, self.heads = kind, len(heads)
        self.key, self.query, self.value = (
            turned(torch.cat([getattr(head, name) for head in heads]))
            for name in ("key", "query", "value")
        )
        self.output = turned(torch.cat([head.output for head in heads], 1))

    def forward(self, z: Tensor, _: Tensor, hidden: Tensor) -> Tensor:
        key, query, value = (
            (z @ weight).reshape(*z.shape[:-1], self.heads, -1).transpose(-3, -2)
            for weight in (self.key, self.query, self.value)
        )
        scores = query @ key.mT + hidden.unsqueeze(-3)
        if self.kind == "softmax":
            weights = scores.softmax(-1)
        else:
            largest = (scores == scores.amax(-1, keepdim=True)).to(z.dtype)
            weights = largest / largest.sum(-1, keepdim=True)
        added: Tensor = (weights @ value).transpose(-3, -2).flatten(-2) @ self.output
        return z + added


def feedforward(layer: FeedForwardLayer) -> nn.Module:
    """As it is stored, where the graph knows how; else with both matrices written out."""
    if isinstance(layer, Rank1FeedForward):
        return Folded(layer)
    return Gated(layer) if isinstance(layer, GatedFeedForward) else Dense(layer.expand())


class Dense(nn.Module):
    """`FeedForward`."""

    def __init__(self, layer: FeedForward) -> None:
        super().__init__()
        self.weight1, self.bias1 = turned(layer.weight1), layer.bias1
        self.weight2, self.bias2 = turned(layer.weight2), layer.bias2

    def forward(self, h: Tensor, *_: Tensor) -> Tensor:
        return h + (torch.relu(h @ self.weight1 + self.bias1) @ self.weight2 + self.bias2)


class Gated(nn.Module):
    """`GatedFeedForward`: every gate once, then all units, silent or not.

    `source` tells for every coordinate which column of `output` is added to it: the last one, of
    zeros, where nothing is written.
    """

    def __init__(self, layer: GatedFeedForward) -> None:
        super().__init__()
        self.gates, self.word, self.position = turned(layer.gates), layer.word, layer.position
        self.penalty, self.bias1 = layer.penalty, layer.bias1
        self.reads, self.slopes = layer.reads, turned(layer.slopes)
        written, coordinates = outputs(layer)
        self.output = nn.Buffer(torch.cat([written, written.new_zeros(len(written), 1)], 1))
        source = torch.full((layer.gates.shape[1],), len(coordinates))
        source[coordinates] = torch.arange(len(coordinates))
        self.source = nn.Buffer(source)

    def forward(self, h: Tensor, *_: Tensor) -> Tensor:
        fines = h @ self.gates
        fine = fines.index_select(-1, self.word) + fines.index_select(-1, self.position)
        seen = h.index_select(-1, self.reads) @ self.slopes
        active = torch.relu(self.penalty * fine + seen + self.bias1)
        return h + (active @ self.output).index_select(-1, self.source)


class Folded(nn.Module):
    """`Rank1FeedForward` by its pieces, in O(log q); multiplied out, huge terms would cancel."""

    def __init__(self, layer: Rank1FeedForward) -> None:
        super().__init__()
        self.direction, self.out_direction = column(layer.direction), layer.out_direction
        self.bias2, self.pieces = layer.bias2, Pieces(layer.piecewise())

    def forward(self, h: Tensor, *_: Tensor) -> Tensor:
        added: Tensor = self.pieces((h @ self.direction).squeeze(-1))
        return h + (added.unsqueeze(-1) * self.out_direction + self.bias2)


class Pieces(nn.Module):
    """`PiecewiseLinear`, with its bisection unrolled: ONNX has no operation that searches.

    Its numbers are float64 also where s is float32, and it rounds once: values and slopes are sums
    over all hidden units, and in float32 they would lose more digits than the rest of the network.

    ``knots`` and ``values`` are counted from 1 here. Behind the last knot come infinite ones up to
    a power of two, so that every step halves what is left and none reads beyond the end.
    """

    def __init__(self, f: PiecewiseLinear) -> None:
        super().__init__()
        count = len(f.knots)
        self.start, self.steps = f.start, [1 << i for i in reversed(range(count.bit_length()))]
        knots = np.full(2 * self.steps[0], np.inf)
        knots[1 : count + 1] = f.knots
        self.knots, self.values, self.slopes = (
            column(torch.from_numpy(x)) for x in (knots, np.append(0.0, f.values), f.slopes)
        )

    def forward(self, s: Tensor) -> Tensor:
        dtype, s = s.dtype, s.double()
        piece = torch.zeros_like(s, dtype=torch.int64)  # how many knots lie left of s
        for step in self.steps:
            ahead = piece + step
            piece = torch.where(take(self.knots, ahead) < s, ahead, piece)
        anchor = torch.where(piece > self.start, piece, piece + 1)
        rise = take(self.slopes, piece) * (s - take(self.knots, anchor))
        return (take(self.values, anchor) + rise).to(dtype)


@torch.no_grad()
def outputs(layer: GatedFeedForward) -> tuple[Tensor, Tensor]:
    """What every unit of a gated layer writes, (units, columns), and to which coordinates."""
    o = layer.amplitude[:, None] * (layer.codes[layer.plus] - layer.codes[layer.minus])
    coordinates, column = torch.unique(layer.writes, return_inverse=True)
    return o.new_zeros(len(o), len(coordinates)).index_add(1, column, o), coordinates


def take(numbers: Tensor, at: Tensor) -> Tensor:
    """numbers[at] of a column, in the one way that becomes a Gather."""
    return embedding(at, numbers).squeeze(-1)


def column(vector: Tensor) -> nn.Buffer:
    """A matrix of one column: onnxruntime multiplies by a vector many times slower."""
    return nn.Buffer(vector.unsqueeze(-1))


def turned(weight: Tensor) -> nn.Buffer:
    """The transpose, stored as such."""
    return nn.Buffer(weight.mT.contiguous())
