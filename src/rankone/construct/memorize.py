"""Memorization: a labelled corpus becomes a verified one-layer Transformer (Cor. 1 and 2)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankone.construct.assemble import assemble
from rankone.construct.free import free_line
from rankone.construct.given import given_line
from rankone.construct.mapping import Floats
from rankone.construct.memorized import Memorized
from rankone.construct.readout import Kind, merged_readout, paper_readout
from rankone.construct.targets import ContextTargets, choose_targets
from rankone.construct.vectors import check_vectors, read_vectors
from rankone.construct.verify import check_dense, check_fast, outputs
from rankone.corpus import Corpus, read_corpus
from rankone.corpus.audit import sentences_with_repeats
from rankone.errors import CorpusError, PrecisionError, RankOneError
from rankone.nn import Model
from rankone.nn.model import check_lengths

DRAWS = 8  # directions are drawn so often before float64 is said not to do
RESERVE = 0.25  # half of the margin is kept for machines that round in another order

Progress = Callable[[str, float], None]


def memorize(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any],
    *,
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

    The corpus may be a path, or any iterable of sentences. `vectors` gives the token table: an
    array with a row per word of ``corpus.vocabulary``, or a file in the manner of GloVe; without
    it the construction chooses the table. `positions` adds positional encodings (Corollary 2; off:
    Corollary 1); `max_length` makes their table longer than the longest sentence. `head_size` is
    s, the matrices keep rank 1. `readout` is "merged" (units only where labels change) or "paper"
    (one unit per context id). Contexts with contradicting labels get the majority label, or are
    refused if `strict`. The finished network is run over every token by the fast path, and as
    written over a sample, or over every token with ``verify="dense"``; a model that is not right
    is never returned. `progress` is told the stage and the share of it that is done.

    >>> import rankone
    >>> rankone.memorize(rankone.read_corpus("builtin")).wrong
    0
    """
    _check_settings(head_size, readout, verify, max_length, seed)
    corpus = _as_corpus(corpus)
    length = _positions(corpus, positions, max_length)
    given = _given(corpus, vectors)
    clock = _Clock(corpus.seconds, progress)

    clock.start("construct")
    positions, causal = bool(positions), bool(causal)
    targets = choose_targets(corpus, positions=positions, causal=causal, strict=strict)
    lay = partial(free_line) if given is None else partial(given_line, vectors=given)
    for draw in range(1, DRAWS + 1):
        clock.start("construct")
        rng = np.random.default_rng([seed, draw])
        line = lay(
            corpus, targets, length=length, causal=causal, by_demand=readout == "paper", rng=rng
        )
        units = (
            merged_readout(line.changes)
            if readout == "merged"
            else paper_readout(line, targets.labels, targets.contexts)
        )
        if units is None:
            continue
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
    else:
        raise PrecisionError(
            f"float64 cannot tell all contexts apart in any of {DRAWS} draws",
            where=corpus.source,
            remedy="leave the table free (no vectors), turn positions on, use the merged readout, "
            "or try another seed",
        )

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
            "positions": length if positions else 0,
            "causal": causal,
            "head_size": head_size,
            "readout": readout,
            "strict": strict,
            "verify": verify,
            "seed": seed,
            "scheme": corpus.scheme,
        },
        seconds=clock.stop(),
        conflicts=targets.conflicts,
        remarks=_remarks(corpus, targets, positions),
    )


def _as_corpus(corpus: Corpus | str | os.PathLike[str] | Iterable[Any]) -> Corpus:
    if isinstance(corpus, str | os.PathLike):
        corpus = read_corpus(corpus)
    elif not isinstance(corpus, Corpus):
        corpus = Corpus.from_sentences(corpus)
    if not corpus.labelled:
        raise CorpusError("no labels", where=corpus.source, remedy="give a labelled file")
    return corpus


def _positions(corpus: Corpus, positions: bool, max_length: int | None) -> int:
    """Rows of the table of positions; 1 where there is none."""
    if not positions:
        return 1
    length = corpus.longest if max_length is None else max_length
    first = corpus.offsets[:-1]
    check_lengths(
        corpus.lengths, length, lambda j: f"{corpus.source}, line {corpus.lines[first[j]]}"
    )
    return length


def _given(corpus: Corpus, vectors: ArrayLike | str | os.PathLike[str] | None) -> Floats | None:
    if vectors is None:
        return None
    if isinstance(vectors, str | os.PathLike):
        vectors = read_vectors(vectors, corpus.vocabulary)
    return check_vectors(vectors, corpus.vocabulary)


def _check_settings(
    head_size: int, readout: str, verify: str, max_length: int | None, seed: int
) -> None:
    for name, number, least, most in (
        ("head_size", head_size, 1, 1 << 16),
        ("max_length", 1 if max_length is None else max_length, 1, 1 << 24),
        ("seed", seed, 0, None),
    ):
        if not isinstance(number, int) or number < least or (most and number > most):
            upper = f" to {most}" if most else " up"
            raise RankOneError(
                f"{name} cannot be {number!r}", remedy=f"give a whole number from {least}{upper}"
            )
    for value, choices in ((readout, ("merged", "paper")), (verify, ("sample", "dense"))):
        if value not in choices:
            raise RankOneError(f"{value!r} is none of the choices", remedy=" or ".join(choices))


def _remarks(corpus: Corpus, targets: ContextTargets, positions: bool) -> list[str]:
    """What the paper's conditions forbid or leave without content, and what was done about it."""
    remarks = []
    if targets.conflicts:
        remarks.append(
            f"{len(targets.conflicts)} contexts carry contradicting labels, which the paper "
            f"excludes; each got its majority label, so {targets.unavoidable} tokens stay wrong"
        )
    repeats = 0 if positions else sentences_with_repeats(corpus)
    if repeats:
        remarks.append(
            f"{repeats} sentences repeat a token, which Corollary 1 excludes without positions; "
            "sentences are told apart by the share of each token"
        )
    for count, thing in (
        (corpus.n_sentences, "sentence"),
        (corpus.longest, "token per sentence"),
        (len(corpus.vocabulary), "word"),
        (len(corpus.label_names), "label"),
    ):
        if count == 1:
            remarks.append(f"only one {thing}: the theorem holds, but says little here")
    return remarks


class _Clock:
    """Time per stage; a stage may come again."""

    def __init__(self, read: float, progress: Progress) -> None:
        self.seconds = {"read": read, "construct": 0.0, "verify": 0.0, "dense": 0.0}
        self.progress, self.stage, self.since = progress, "", 0.0

    def start(self, stage: str) -> None:
        self.stop()
        self.stage, self.since = stage, time.perf_counter()
        self.progress(stage, 0.0)

    def share(self, done: float) -> None:
        self.progress(self.stage, done)

    def stop(self) -> dict[str, float]:
        now = time.perf_counter()
        if self.stage:
            self.seconds[self.stage] += now - self.since
        self.since = now
        return self.seconds
