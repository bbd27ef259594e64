"""Rank-1 softmax attention over sentences of different lengths, without padding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import pad_sequence

from rankone.arrays import Bools, Floats, Ints
from rankone.errors import AttentionError
from rankone.kernels.batched import EXACT, SWITCH, rank1_attention

SCORES = 1 << 22  # entries of the largest table of scores made at once
SAFE_SPREAD = 600.0  # e^-600 is still a normal number, so no prefix of a sum can vanish


def rank1_attention_ragged(
    query: Floats, key: Floats, value: Floats, offsets: Ints, *, causal: bool = False
) -> Floats:
    """`rank1_attention` of each sentence ``offsets[j]:offsets[j + 1]`` with itself.

    If all tokens have the same query (a query direction that is constant on the vocabulary), all
    tokens of a sentence share their weights: one exponential per token and one sum per sentence,
    O(n). Otherwise sentences of equal length are processed together.
    """
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    lengths, offsets = _lengths(query, key, value, offsets), np.asarray(offsets)
    if query.size == 0:
        return query.copy()
    offsets = offsets[np.append(lengths > 0, True)]  # reduceat cannot sum over nothing
    if query.min() == query.max():
        same = float(query[0])
        if not causal:
            return _sequence_ids(same, key, value, offsets)
        top, bottom = (f.reduceat(key, offsets[:-1]) for f in (np.maximum, np.minimum))
        far = ~(abs(same) * (top - bottom) <= SAFE_SPREAD)
        if not far.any():
            return _prefix_ids(same, key, value, offsets)
        if not far.all():
            return _apart(far, query, key, value, offsets)
    out = np.empty_like(query)
    for length, starts in by_length(offsets, SCORES):
        at = starts[:, None] + np.arange(length)
        y, x, u = (torch.from_numpy(column[at]) for column in (query, key, value))
        out[at] = rank1_attention(y, x, u.unsqueeze(-1), causal=causal).squeeze(-1).numpy()
    return out


def ragged_attention(
    query: Tensor, key: Tensor, value: Tensor, offsets: Ints, *, causal: bool = False
) -> Tensor:
    """`rank1_attention` of each sentence with itself, as tensors with gradients, for training.

    On the CPU, in float32 or float64, short sentences cost one exponential per score and nothing
    else; if one of them is long enough for linear time, each is processed by itself. In all other
    cases sentences are padded.
    """
    lengths = _lengths(query, key, value, offsets)
    compiled = query.dtype == key.dtype == value.dtype and query.dtype in EXACT
    if query.device.type != "cpu" or not compiled:
        rows = [
            pad_sequence(list(torch.split(x, lengths.tolist())), True) for x in (query, key, value)
        ]
        there = torch.from_numpy(lengths).to(query.device)
        padded = rank1_attention(*rows, causal=causal, lengths=there)
        return padded[torch.arange(padded.shape[1], device=query.device) < there[:, None]]
    if len(lengths) and lengths.max() ** 2 >= SWITCH:
        parts = zip(*(torch.split(x, lengths.tolist()) for x in (query, key, value)), strict=True)
        return torch.cat([rank1_attention(y, x, u, causal=causal) for y, x, u in parts])
    out: Tensor = Sentences.apply(query, key, value, offsets, causal)  # type: ignore[no-untyped-call]
    return out


def _lengths(query: Any, key: Any, value: Any, offsets: Ints) -> Ints:
    """The length of each sentence. Checked, because compiled code does not check its indices."""
    shapes = {tuple(x.shape) for x in (query, key, value)}
    offsets = np.asarray(offsets)
    if len(shapes) == 1 and query.ndim == 1 and offsets.ndim == 1 and offsets.size:
        lengths: Ints = np.diff(offsets)
        whole = offsets[0] == 0 and offsets[-1] == len(query) and (lengths >= 0).all()
        if whole and np.issubdtype(offsets.dtype, np.integer):
            return lengths
    raise AttentionError(
        f"columns of shape {sorted(shapes)} and offsets {offsets.tolist()[:5]} of "
        f"{offsets.size:,}, ending in {offsets.tolist()[-1:]}",
        where="ragged attention",
        remedy="give three columns of one length n, and whole numbers rising from 0 to n",
    )


class Sentences(torch.autograd.Function):
    """The compiled loops over short sentences; the weights are kept for the gradients."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, offsets: Ints, causal: bool
    ) -> Tensor:
        from rankone.kernels.compiled.sentences import attend  # compiled code: loaded when used

        lengths = np.diff(offsets)
        scores = int((lengths * (lengths + 1) // 2 if causal else lengths * lengths).sum())
        query, key, value = (x.detach().contiguous() for x in (query, key, value))
        out, weights = torch.empty_like(query), query.new_empty(scores)
        y, x, u = (tensor.numpy() for tensor in (query, key, value))
        attend(y, x, u, offsets, causal, out.numpy(), weights.numpy())
        ctx.save_for_backward(query, key, value, out, weights)
        ctx.offsets, ctx.causal = offsets, causal
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from rankone.kernels.compiled.sentences import turn

        query, key, value, out, weights = ctx.saved_tensors
        grads = torch.zeros(3, len(query), dtype=query.dtype)
        g, y, x, u, c, p = (
            tensor.numpy() for tensor in (grad.contiguous(), query, key, value, out, weights)
        )
        turn(g, y, x, u, ctx.offsets, ctx.causal, c, p, *grads.numpy())
        return *grads, None, None


def by_length(offsets: Ints, scores: int) -> Iterator[tuple[int, Ints]]:
    """Sentences of equal length as (length, first tokens), with at most `scores` at a time."""
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")
    starts, lengths = offsets[:-1][order], lengths[order]
    edges = np.flatnonzero(np.diff(lengths, prepend=-1, append=-1))
    for a, b in pairwise(edges.tolist()):
        length = int(lengths[a])
        step = max(1, scores // max(1, length * length))
        for i in range(a, b, step):
            yield length, starts[i : min(i + step, b)]


def _weights(query: float, key: Floats, offsets: Ints) -> Floats:
    """e^(y (x_l - x*)) with x* the key of its sentence that has the highest score.

    So what comes out for a sentence does not depend on the others, to the last bit.
    """
    best = np.maximum if query >= 0 else np.minimum
    extreme = np.repeat(best.reduceat(key, offsets[:-1]), np.diff(offsets))
    weights: Floats = np.exp(query * (key - extreme))
    return weights


def _sequence_ids(query: float, key: Floats, value: Floats, offsets: Ints) -> Floats:
    """One number per sentence, the same for all its tokens."""
    weight = _weights(query, key, offsets)
    total = np.add.reduceat(weight, offsets[:-1])
    weight *= value
    return np.repeat(np.add.reduceat(weight, offsets[:-1]) / total, np.diff(offsets))


def _apart(far: Bools, query: Floats, key: Floats, value: Floats, offsets: Ints) -> Floats:
    """Causal attention of sentences with scores that lie far apart, and of the others."""
    out, lengths = np.empty_like(query), np.diff(offsets)
    for some in (far, ~far):
        at, own = np.repeat(some, lengths), np.append(0, np.cumsum(lengths[some]))
        out[at] = rank1_attention_ragged(query[at], key[at], value[at], own, causal=True)
    return out


def _prefix_ids(query: float, key: Floats, value: Floats, offsets: Ints) -> Floats:
    """One number per prefix: running sums within each sentence."""
    weight = _weights(query, key, offsets)
    weighted = weight * value
    out = np.empty_like(key)
    for length, starts in by_length(offsets, SCORES):
        at = starts[:, None] + np.arange(length)
        out[at] = np.cumsum(weighted[at], axis=1) / np.cumsum(weight[at], axis=1)
    return out
