"""Running a network over a whole corpus: no padding, and rank-1 layers by their fast paths."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankone.arrays import Ints
from rankone.deadline import tick
from rankone.kernels import rank1_attention_ragged
from rankone.kernels.ragged import by_length
from rankone.nn.classifier import TokenClassifier
from rankone.nn.feedforward import Rank1FeedForward
from rankone.nn.gated_layer import gated_layer
from rankone.nn.gatekeeper import gated_layer_of
from rankone.nn.layers import AttentionLayer, FeedForwardLayer, Head
from rankone.nn.rank1_heads import along, rank1_heads
from rankone.nn.windows import Fade, Fading, Windows, stretches
from rankone.spans import SPAN, places, spans

Numbers = NDArray[Any]  # float32 or float64: those of the network
Layer = Callable[[Numbers, Ints], Numbers]

PROOF = 64  # rows of a table with given vectors take as long to prove as a token without the proof
ROWS = 256  # of a chunk of a text with a window; where there are more, it is shorter
LEAST = 4096  # tokens in it, all the same
NUMBERS_HELD = 1 << 22  # numbers in the largest table (scores or hidden units) made at once


class Evaluator:
    """Applies a network to sentences ``offsets[j]:offsets[j + 1]`` of a column of token ids.

    Equal to the network's own forward pass up to the rounding of its dtype, with the weights it has
    when the evaluator is made. It runs in that dtype (`dtype` asks for another one; float32 at
    least): every layer takes and gives numbers of it. Inside, the kernels of rank-1 attention and
    the pieces of a rank-1 feed-forward layer compute in float64, and round once.

    Sentences come in chunks of about 65,000 tokens, so memory does not grow with the corpus, and
    as in the paper tokens are columns: layers map (d, tokens) to (d, tokens). Softmax attention of
    rank 1, also that of eq. 2 whose matrices have rank 1, goes through `rank1_attention_ragged`, in
    linear time; a feed-forward layer of rank 1 through `PiecewiseLinear`, O(log q) per token
    instead of O(q).
    """

    def __init__(
        self,
        network: TokenClassifier,
        dtype: torch.dtype | None = None,
        *,
        only: Ints | None = None,
        tokens: int | None = None,
    ) -> None:
        """`only` are the coordinates of the features that are wanted, by default all. Where it is
        known that just a few `tokens` will come, no proof about a gated layer is tried that takes
        longer than they do."""
        dtype = torch.promote_types(dtype or network.dtype, torch.float32)
        if any(p.dtype != dtype for p in network.parameters() if p.is_floating_point()):
            network = copy.deepcopy(network).to(dtype)
        many = tokens is None or tokens * PROOF >= len(network.table)
        self.gated = gated_layer(network, inexact=many)
        self.window = network.shape.window
        fading = Fading.of(network) if self.window else None
        self.fades = fading is not None
        whole = self.gated is None or only is None or (self.window > 0 and not self.fades)
        live = None if whole or only is None else read_by(network, only)
        self.table = _columns(network.table, live)
        self.placed, self.positions = np.empty(0, np.int64), None
        if network.positions is not None:  # most of its coordinates may be 0
            used = network.positions.detach().any(0).numpy()
            self.placed = np.flatnonzero(used if live is None else used[live])
            self.positions = _columns(
                network.positions, np.flatnonzero(used) if live is None else live[self.placed]
            )
        self.step = None if network.step is None else _columns(network.step.detach()[None], live)
        self.layers: list[Layer] = []
        for block in network.blocks:
            if fading is not None:
                self.layers.append(Fade(fading, self.window, live))
            elif self.window:
                self.layers.append(Windows(block.attention, self.window))
            else:
                self.layers.append(attention_layer(block.attention, network.shape.causal, live))
            if self.gated is None:
                self.layers.append(feedforward_layer(block.feedforward))
        self.only = only
        if self.gated is not None and only is not None and live is not None:
            self.gated, self.only = self.gated.at(live), np.searchsorted(live, only)

    def run(
        self, token_ids: Ints, offsets: Ints, read: Callable[[Numbers], NDArray[np.generic]]
    ) -> NDArray[np.generic]:
        """Apply `read` to the features (d, tokens) of every chunk, and concatenate the results."""
        results = [read(z) for z in self.features(token_ids, offsets)]
        return np.concatenate(results or [read(self.table[:, :0])])

    def features(self, token_ids: Ints, offsets: Ints) -> Iterator[Numbers]:
        """What the last block puts out, (d, tokens) of one chunk after the other, or the rows of it
        that are wanted."""
        for chunk in self.embedded(token_ids, offsets):
            z = chunk.z
            if self.gated is not None:
                z = self.layers[0](z, chunk.offsets)[:, chunk.lead :]
                ids = token_ids[chunk.first : chunk.first + z.shape[1]]
                spots = places(chunk.offsets)[chunk.lead :]
                for i in range(0, z.shape[1], SPAN):
                    part = slice(i, i + SPAN)
                    piece = z[:, part]
                    self.gated(piece, ids[part], spots[part])
                    yield piece if self.only is None else piece[self.only]
                continue
            for layer in self.layers:
                z = layer(z, chunk.offsets)
            z = z[:, chunk.lead :]
            yield z if self.only is None else z[self.only]

    def embedded(self, token_ids: Ints, offsets: Ints) -> Iterator[Chunk]:
        """X + E."""
        if self.fades:
            size = max(LEAST, SPAN * ROWS // max(ROWS, len(self.table)))
            for first, last, inner in stretches(offsets, self.window, size):
                lead = int(inner[-1]) - (last - first)
                yield Chunk(first, lead, inner, self._embed(token_ids, offsets, first - lead, last))
            return
        for a, b in spans(offsets):
            first, last = offsets[[a, b]].tolist()
            chunk = offsets[a : b + 1] - first
            yield Chunk(first, 0, chunk, self._embed(token_ids, offsets, first, last))

    def _embed(self, token_ids: Ints, offsets: Ints, first: int, last: int) -> Numbers:
        z = np.take(self.table, token_ids[first:last], axis=1)
        if self.positions is None and self.step is None:
            return z
        text = int(offsets.searchsorted(first, side="right")) - 1
        end = int(offsets.searchsorted(last, side="left"))
        spots = places(np.append(offsets[text:end], last))[first - int(offsets[text]) :]
        if self.positions is not None:
            for row, at in enumerate(self.placed.tolist()):
                z[at] += np.take(self.positions[row], spots)
        if self.step is not None:
            steps = np.flatnonzero(self.step)
            z[steps] += self.step[steps] * spots.astype(z.dtype)
        return z


@dataclass(frozen=True)
class Chunk:
    """X + E of the tokens from number ``first`` on, one column each, after ``lead`` columns of
    tokens that they see and that have been given before; ``offsets`` are those of the texts among
    all columns."""

    first: int
    lead: int
    offsets: Ints
    z: Numbers


def read_by(network: TokenClassifier, only: Ints) -> Ints | None:
    """The coordinates that count for some coordinates of the features of a network with gates, once
    these are known; None for heads that are not of rank 1."""
    layer, heads = gated_layer_of(network), rank1_heads(network.blocks[0].attention)
    if layer is None or heads is None:
        return None
    vectors = [v for head in heads for v in (head.key, head.query, head.value, head.output)]
    used = np.any([v != 0 for v in vectors], axis=0)
    used[[*layer.reads.tolist(), *layer.writes.tolist(), *only.tolist()]] = True
    return np.flatnonzero(used)


def coordinates(head: nn.Linear) -> Ints | None:
    """The coordinates that a head reads, None if it reads all."""
    used = head.weight.detach().numpy().any(0)
    return None if used.all() else np.flatnonzero(used)


@dataclass(frozen=True)
class OfRankOne:
    """Attention whose matrices all have rank 1, as a function of (columns, offsets), which can be
    sent to other processes."""

    heads: list[Head[Numbers]]
    causal: bool

    def __call__(self, z: Numbers, offsets: Ints) -> Numbers:
        contexts = []
        for head in self.heads:
            x = along(head.key, z)
            u = x if head.shared else along(head.value, z)
            query = along(head.query, z)
            found = rank1_attention_ragged(query, x, u, offsets, causal=self.causal)
            contexts.append(found.astype(z.dtype, copy=False))
        for head, context in zip(self.heads, contexts, strict=True):
            at = np.flatnonzero(head.output)
            if len(at) == 1:
                z[at[0]] += head.output[at[0]] * context
            else:
                z += head.output[:, None] * context
        return z


def attention_layer(attention: AttentionLayer, causal: bool, live: Ints | None = None) -> Layer:
    """The attention as a function of (columns, offsets)."""
    heads = rank1_heads(attention)
    if heads is not None and live is not None:
        heads = [head.map(lambda vector: vector[live]) for head in heads]
    if heads is not None:
        return OfRankOne(heads, causal)
    count = len(attention.heads)

    @torch.no_grad()
    def general(z: Numbers, offsets: Ints) -> Numbers:
        rows, out = np.ascontiguousarray(z.T), np.empty(z.shape[::-1], z.dtype)
        for length, starts in by_length(offsets, NUMBERS_HELD // count):
            tick()
            at = starts[:, None] + np.arange(length)
            out[at] = attention(torch.from_numpy(rows[at]), causal=causal).numpy()
        return np.ascontiguousarray(out.T)

    return general


def feedforward_layer(layer: FeedForwardLayer) -> Layer:
    """The feed-forward layer as a function of columns."""
    if isinstance(layer, Rank1FeedForward):
        f = layer.piecewise()
        a, w, bias2 = map(_numpy, (layer.direction, layer.out_direction, layer.bias2))

        def folded(h: Numbers, _: Ints) -> Numbers:
            added = f((a @ h).astype(np.float64, copy=False)).astype(h.dtype, copy=False)
            h += w[:, None] * added + bias2[:, None]
            return h

        return folded

    @torch.no_grad()
    def general(h: Numbers, _: Ints) -> Numbers:
        step = max(1, NUMBERS_HELD // max(1, layer.hidden))
        rows = torch.from_numpy(np.ascontiguousarray(h.T))
        parts = []
        for part in torch.split(rows, step):
            tick()
            parts.append(layer(part))
        return np.ascontiguousarray(torch.cat(parts).numpy().T)

    return general


def _numpy(parameter: Tensor) -> Numbers:
    return np.array(parameter.detach().numpy())


def _columns(table: Tensor, live: Ints | None = None) -> Numbers:
    own = table.detach().numpy()
    return np.ascontiguousarray((own if live is None else own[:, live]).T)
