"""Sentences for onnxruntime: in batches, padded in several ways, and made up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.nn import Architecture

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from rankone.interop.onnx.state import Step

Padding = Literal["alone", "right", "left", "scattered"]

NUMBERS_HELD = 1 << 17  # in the largest table of one run, if one sentence does not need more
PIECE = 5  # tokens that a graph with a state takes at once, at most, is one less
MADE_UP, LONGEST = 64, 512  # lengths of made-up sentences: all up to the first, and a longer one


def run(
    session: InferenceSession,
    shape: Architecture,
    rows: Ints,
    offsets: Ints,
    padding: Padding,
    rng: np.random.Generator,
    *,
    whole: bool = False,
) -> Floats:
    """onnxruntime's logits, (tokens, labels), or (sentences, labels) of `whole` sentences; infinite
    if one of a run, masked or not, is not."""
    out = np.empty((len(offsets) - 1 if whole else len(rows), shape.labels))
    for sentences in batches(np.diff(offsets), shape, 1 if padding == "alone" else NUMBERS_HELD):
        starts, lengths = offsets[:-1][sentences], np.diff(offsets)[sentences]
        if padding == "scattered":  # and a sentence without any token
            starts, lengths = np.append(starts, 0), np.append(lengths, 0)
        real = mask(lengths, padding, rng)
        at = (starts[:, None] + np.cumsum(real, axis=1) - 1)[real]
        ids = rng.integers(-(1 << 40), 1 << 40, real.shape)  # any number may stand under the mask
        ids[real] = rows[at]
        given = {"input_ids": ids, "attention_mask": real.astype(np.int64)}
        logits = session.run(["logits"], given)[0]
        if not np.isfinite(logits).all():
            logits = np.full_like(logits, np.inf)
        if whole:
            out[sentences] = logits[: len(sentences)]
        else:
            out[at] = logits[real]
    return out


def run_pieces(
    session: InferenceSession,
    step: Step,
    rows: Ints,
    offsets: Ints,
    padding: Padding,
    rng: np.random.Generator,
) -> Floats:
    """The same by a graph with a state, in pieces: of one token, or, with padding on the left, of
    several."""
    lengths = np.diff(offsets)
    batch = [[i] for i in range(len(lengths))] if padding == "alone" else [range(len(lengths))]
    out = np.empty((len(rows), len(step.bias)))
    for sentences in batch:
        starts, own = offsets[:-1][sentences], lengths[sentences]
        real = mask(own, "left", rng)
        at = np.where(real, starts[:, None] + np.cumsum(real, axis=1) - 1, 0)
        ids = np.where(real, rows[at], rng.integers(-(1 << 40), 1 << 40, real.shape))
        state = {name: zero.numpy() for name, zero in step.zeros(len(own)).items()}
        i = 0
        while i < real.shape[1]:
            j = i + (1 if padding == "alone" else int(rng.integers(1, PIECE)))
            given = {"input_ids": ids[:, i:j], "attention_mask": real[:, i:j].astype(np.int64)}
            logits, *after = session.run(None, {**given, **state})
            state = dict(zip(state, after, strict=True))
            out[at[:, i:j][real[:, i:j]]] = logits[real[:, i:j]]
            i = j
    return out


def batches(lengths: Ints, shape: Architecture, cells: int) -> Iterator[Ints]:
    """Sentences of similar lengths, the longest first, at most `cells` numbers per table."""
    order = np.argsort(-lengths, kind="stable")
    hidden = 0 if shape.feedforward == "rank1" else shape.hidden
    widest = max(shape.dim, shape.labels, shape.gates, hidden)
    while len(order):
        n = int(lengths[order[0]])
        count = max(1, cells // (n * max(n * shape.heads, widest)))
        yield order[:count]
        order = order[count:]


def mask(lengths: Ints, padding: Padding, rng: np.random.Generator) -> Bools:
    """Which places are real: as many as each sentence has tokens."""
    n = int(lengths.max())
    if padding == "left":
        return np.arange(n) >= n - lengths[:, None]
    if padding == "scattered":  # each place of a row has a rank in the lottery; the first ones win
        lottery = rng.random((len(lengths), n + n // 2 + 1)).argsort(axis=1)
        return lottery < lengths[:, None]
    return np.arange(n) < lengths[:, None]


def made_up(shape: Architecture) -> tuple[Ints, Ints]:
    """Rows of sentences of random words, one in ten unknown; the same for every network."""
    rng = np.random.default_rng(0)
    longest = min(shape.positions or MADE_UP, LONGEST)
    lengths = np.append(np.arange(1, min(longest, MADE_UP) + 1), longest)
    rows = rng.integers(0, shape.vocabulary, lengths.sum())
    rows[rng.random(len(rows)) < 0.1] = shape.vocabulary - 1
    return rows, np.append(0, np.cumsum(lengths))
