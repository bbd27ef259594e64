"""Attention of networks with a window: in general, and where the past fades geometrically."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.deadline import tick
from rankone.nn.classifier import TokenClassifier
from rankone.nn.layers import AttentionLayer
from rankone.nn.rank1_heads import along, rank1_heads
from rankone.spans import SPAN, places

Numbers = NDArray[Any]
HELD = 1 << 22  # numbers in the windows that are laid out at once


@dataclass(frozen=True)
class Fading:
    """sum_j e^(-decay j) u_(k-j) / sum_j e^(-decay j) over the tokens of a window: what a head adds
    to token k, times ``output``. u is ``value`` times the row of the token's word.

    That is eq. 2 where all tokens have the same query y and, but for their positions, the same key:
    positions are E_k = k e, so the score of token l is ``decay`` l plus a number that all share.
    """

    decay: float
    value: Numbers
    output: Numbers

    @classmethod
    def of(cls, network: TokenClassifier) -> list[Fading] | None:
        """The heads of a network of one block with a window; None if one of them is another."""
        heads = rank1_heads(network.blocks[0].attention)
        if network.step is None or network.shape.depth > 1 or heads is None:
            return None
        table, step = (x.detach().numpy() for x in (network.table, network.step))
        found = []
        for head in heads:
            key, query = along(head.key, table.T), along(head.query, table.T)
            if head.query @ step or head.value @ step or np.ptp(key) or np.ptp(query):
                return None
            decay = float(query[0]) * float(head.key @ step)
            if not 0 < decay < np.inf:
                return None
            found.append(cls(decay, head.value, head.output))
        return found


def stretches(offsets: Ints, window: int, size: int = SPAN) -> Iterator[tuple[int, int, Ints]]:
    """Pieces of about `size` tokens of texts laid end to end: first token, last, and the offsets of
    the texts in it, where what a window sees in front of the piece belongs to it, too.

    A piece begins ``offsets[0]`` tokens before its first token, counted from there. (Texts may be
    much longer than sentences are.)
    """
    total = int(offsets[-1])
    for first in range(int(offsets[0]), total, size):
        last = min(first + size, total)
        text = int(offsets.searchsorted(first, side="right")) - 1
        begin = max(int(offsets[text]), first - window + 1)
        end = int(offsets.searchsorted(last, side="left"))
        inner = offsets[text + 1 : end]
        yield first, last, np.concatenate([[begin], inner, [last]]) - begin


class Fade:
    """The heads of `Fading` as a layer, whose columns may lack coordinates that nobody reads."""

    def __init__(self, heads: list[Fading], window: int, live: Ints | None) -> None:
        self.window, taken = window, slice(None) if live is None else live
        self.heads = [Fading(h.decay, h.value[taken], h.output[taken]) for h in heads]

    def __call__(self, z: Numbers, offsets: Ints) -> Numbers:
        from rankone.kernels.compiled import threads  # compiled code: loaded when used
        from rankone.kernels.compiled.window_sums import window_averages

        def averages(head: Fading) -> Numbers:
            values, out = np.asarray(along(head.value, z), np.float64), np.empty(z.shape[1])
            window_averages(values, head.decay, self.window, offsets, out)
            return out.astype(z.dtype)

        found = threads.share(averages, self.heads, threads.count())
        for head, average in zip(self.heads, found, strict=True):
            at = np.flatnonzero(head.output)
            z[at] += head.output[at, None] * average
        return z


class Windows:
    """Attention of any kind, with the tokens of each window laid out."""

    def __init__(self, attention: AttentionLayer, window: int) -> None:
        self.attention: Any = attention.expand()
        self.window = window

    @torch.no_grad()
    def __call__(self, z: Numbers, offsets: Ints) -> Numbers:
        rows, out = np.ascontiguousarray(z.T), np.empty(z.shape[::-1], z.dtype)
        back, last = np.arange(1 - self.window, 1), self.window - 1
        step = max(1, HELD // (self.window * len(z)))
        inner = places(offsets)
        for i in range(0, len(rows), step):
            tick()
            tokens = np.arange(i, min(i + step, len(rows)))
            there = inner[tokens, None] + back >= 0
            near = np.where(there, tokens[:, None] + back, 0)
            mask, asked = torch.from_numpy(there[:, None]), torch.full((len(tokens), 1), last)
            out[tokens] = self.attention.at(torch.from_numpy(rows[near]), asked, mask)[:, 0].numpy()
        return np.ascontiguousarray(out.T)
