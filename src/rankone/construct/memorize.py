"""Memorization: a labelled corpus becomes a verified one-layer Transformer (Cor. 1 and 2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankone.construct.assemble import assemble
from rankone.construct.clock import Clock
from rankone.construct.closeness import DRAWS, RESERVE, Closeness, closeness
from rankone.construct.conditions import (
    check_settings,
    check_size,
    given_vectors,
    position_rows,
    remarks_on,
)
from rankone.construct.free import free_line
from rankone.construct.given import given_line
from rankone.construct.line import Line
from rankone.construct.memorized import Memorized
from rankone.construct.readout import Kind, merged_readout, paper_readout
from rankone.construct.refusal import refusal
from rankone.construct.targets import choose_targets
from rankone.construct.verify import check_dense, check_fast, outputs
from rankone.corpus import Corpus, as_corpus
from rankone.corpus.rows import Column
from rankone.nn import Model
from rankone.progress import Progress


def memorize(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any],
    *,
    token_column: Column | None = None,
    label_column: Column | None = None,
    vectors: ArrayLike | str | os.PathLike[str] | None = None,
    positions: bool = True,
    causal: bool = False,
    head_size: int = 1,
    readout: Kind = "merged",
    strict: bool = False,
    max_length: int | None = None,
    verify: Literal["sample", "dense"] = "sample",
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> Memorized:
    """Exact weights for a labelled corpus, without training.

    The corpus may be a path, or any iterable of sentences, such as a Hugging Face dataset;
    `token_column` and `label_column` choose among its columns. `vectors` gives the token table: an
    array with a row per word of ``corpus.vocabulary``, or a file in the manner of GloVe; without
    it the construction chooses the table. `positions` adds positional encodings (Corollary 2; off:
    Corollary 1); `max_length` makes their table longer than the longest sentence. `head_size` is
    s, the matrices keep rank 1. `readout` is "merged" (units only where labels change) or "paper"
    (one unit per context id). Contexts with contradicting labels get the majority label, or are
    refused if `strict`. The finished network is run over every token by the fast path, and as
    written over a sample, or over every token with ``verify="dense"``; a model that is not right
    is never returned. `progress` is called with the stage and the share of it that is
    done.

    >>> import rankone
    >>> rankone.memorize(rankone.read_corpus("builtin")).wrong
    0
    """
    flags = {"positions": positions, "causal": causal, "strict": strict}
    check_settings(head_size, readout, verify, max_length, seed, **flags)
    corpus = as_corpus(corpus, token_column, label_column)
    length = position_rows(corpus, positions, max_length)
    given = given_vectors(corpus, vectors)
    check_size(corpus, length, 3 if given is None else given.shape[1], head_size)
    clock = Clock(corpus.seconds, progress)

    clock.start("construct")
    positions, causal, strict = bool(positions), bool(causal), bool(strict)
    targets = choose_targets(corpus, positions=positions, causal=causal, strict=strict)
    lay: Callable[..., Line] = free_line
    if given is not None:
        lay = partial(given_line, vectors=given)
    closest: Closeness | None = None
    for draw in range(1, DRAWS + 1):
        clock.start("construct")
        rng = np.random.default_rng([seed, draw])
        line = lay(
            corpus, targets, length=length, causal=causal, all_apart=readout == "paper", rng=rng
        )
        units = (
            merged_readout(line.changes)
            if readout == "merged"
            else paper_readout(line, targets.labels, targets.contexts)
        )
        if units is not None:
            attention = line.mapping.attention(head_size)
            network = assemble(line.mapping, attention, units, len(corpus.label_names), causal)
            clock.start("verify")
            y, head_error = outputs(network, corpus)
            fast = check_fast(y, head_error, corpus, targets)
            if fast.holds(targets.unavoidable, RESERVE):
                clock.start("dense")
                dense, unavoidable = check_dense(
                    network, corpus, targets, y, rng, verify == "dense", clock.share
                )
                if dense.holds(unavoidable, RESERVE):
                    break
        before, closest = closest, closeness(line, targets, readout)
        if draw == DRAWS or not closest.hopeful(before, corpus.n_tokens):
            raise refusal(
                closest,
                corpus,
                targets,
                draws=draw,
                given=given is not None,
                length=length,
                readout=readout,
            )

    assert units is not None
    longest, dim = corpus.longest, network.shape.dim
    return Memorized(
        model=Model(network, corpus.vocabulary, corpus.label_names, corpus.reading),
        source=corpus.source,
        tokens=corpus.n_tokens,
        sentences=corpus.n_sentences,
        wrong=fast.wrong,
        unavoidable=targets.unavoidable,
        hidden_units=network.shape.hidden,
        parameters=sum(p.numel() for p in network.parameters()),
        paper_parameters=4 * (head_size + dim) + dim * (2 * longest * corpus.n_sentences + dim),
        max_error=fast.max_error,
        margin=fast.margin,
        min_gap=units.min_gap if np.isfinite(units.min_gap) else None,
        dense_tokens=dense.tokens,
        dense_error=dense.max_error,
        dense_difference=dense.difference,
        draws=draw,
        settings={
            "vectors": "free" if given is None else "given",
            "dim": dim,
            "positions": network.shape.positions,
            "causal": causal,
            "head_size": head_size,
            "readout": readout,
            "strict": strict,
            "verify": verify,
            "seed": seed,
            "scheme": corpus.scheme,
            "columns": asdict(corpus.columns),
        },
        seconds=clock.stop(),
        conflicts=targets.conflicts,
        remarks=remarks_on(corpus, targets, positions),
    )
