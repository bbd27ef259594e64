"""Memorization: a labelled corpus becomes a verified Transformer (Cor. 1 and 2)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple, TypeGuard, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from rankone import choices
from rankone.construct.constructions import CONSTRUCTIONS
from rankone.construct.memorized import Memorized
from rankone.construct.problem import (
    RESERVE,
    Draft,
    Draw,
    Problem,
    check_size,
    given_vectors,
    pose,
    position_rows,
)
from rankone.construct.remarks import remarks_on
from rankone.construct.verify import Check, check_dense, check_fast
from rankone.corpus import Corpus, as_corpus
from rankone.corpus.parted import PartedCorpus
from rankone.corpus.rows import Column
from rankone.corpus.tasks import task_of
from rankone.errors import SettingError
from rankone.nn import Model, TokenClassifier
from rankone.nn.memory import Made
from rankone.progress import Progress
from rankone.theory import parameter_counts

DRAWS = 8  # attempts before giving up
OPTIONS = {
    "vectors": None,
    "causal": False,
    "head_size": 1,
    "readout": "merged",
    "heads": None,
    "dtype": "float64",
    "directions": 64,
    "editable": False,
}
# What decides on the weights of a model that can be changed, besides its corpus.
SETTINGS = tuple("positions causal heads dtype directions strict max_length seed".split(" "))
RANGES = {
    "head_size": (1, 1 << 16),
    "heads": (1, 64),
    "directions": (1, 64),
    "max_length": (1, 1 << 24),
    "seed": (0, (1 << 63) - 1),
}


def memorize(
    corpus: Corpus | PartedCorpus | str | os.PathLike[str] | Iterable[Any] | Sequence[Corpus],
    *,
    token_column: Column | None = None,
    label_column: Column | None = None,
    construction: choices.Construction | None = None,
    vectors: ArrayLike | str | os.PathLike[str] | None = None,
    positions: bool = True,
    causal: bool = False,
    head_size: int = 1,
    readout: choices.Readout = "merged",
    heads: int | None = None,
    dtype: choices.Dtype = "float64",
    directions: int = 64,
    editable: bool = False,
    strict: bool = False,
    max_length: int | None = None,
    verify: choices.Verify = "sample",
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> Memorized:
    """Exact weights for a labelled corpus, without training.

    The corpus may be a path, or any iterable of sentences, such as a Hugging Face dataset;
    `token_column` and `label_column` choose among its columns. It may also be a list of corpora,
    the parts of one, which share one vocabulary and one list of labels: the weights do not depend
    on where it is cut. Parts that an engine keeps (`read_parts`) need not fit in memory; they are
    memorized by "gated". `construction` is the way to the weights: one of this project ("line",
    "gated"), or one of the field where float64 can hold it; by default "gated" for next tokens, and
    "line" for other tasks. `vectors` gives the token table:
    an array with a row per word of ``corpus.vocabulary``, or a file in the format of GloVe; without
    it the construction chooses the table. `positions` adds positional encodings (Corollary 2; off:
    Corollary 1); `max_length` makes their table longer than the longest sentence. `head_size` is
    s, the matrices keep rank 1. `readout` is "merged" (units only where labels change) or "paper"
    (one unit per context id). The construction "gated" takes `heads`, by default as few as the
    precision needs; `dtype`, what the weights are and the network computes in; the number of
    `directions` that are tried for every group of units; and `editable`: the model keeps its
    sentences, for `learn` and `forget`. Contexts with
    contradicting labels get the majority label, or are refused if `strict`. The finished network is
    run over every token by the fast path, and as written over a sample, or over every token with
    ``verify="dense"``; a model that is not right is never returned. `progress` is called with the
    stage and the share of it that is done.

    >>> import rankone
    >>> rankone.memorize(rankone.read_corpus("builtin")).wrong
    0
    """
    check_settings(head_size=head_size, heads=heads, max_length=max_length, seed=seed)
    check_settings(readout=readout, verify=verify, dtype=dtype)
    check_settings(positions=positions, causal=causal, strict=strict, editable=editable)
    check_settings(directions=directions)
    positions, causal, strict = bool(positions), bool(causal), bool(strict)  # numpy's, perhaps
    given_options = {"vectors": vectors, "causal": causal, "head_size": head_size}
    given_options |= {"readout": readout, "heads": heads, "dtype": dtype}
    given_options |= {"directions": directions, "editable": editable}
    if editable and vectors is not None:
        raise SettingError(
            "a model of given vectors cannot be edited: the words that come have none",
            remedy="leave out editable (memorize --editable), or vectors (--vectors)",
        )
    given_parts: Iterable[Any] = corpus if _in_parts(corpus) else [corpus]
    whole = corpus.check_labelled() if isinstance(corpus, PartedCorpus) else None
    if whole is None:
        parts = [as_corpus(part, token_column, label_column) for part in given_parts]
    else:
        parts = [whole.heading]
    usual: choices.Construction = "gated" if task_of(parts[0].task).name == "next" else "line"
    construction = usual if construction is None else construction
    check_settings(construction=construction)
    _refuse_ignored(construction, given_options)
    if parts[0].window and construction != "gated":
        raise SettingError(
            f"{construction} has no windows",
            remedy="choose gated, or leave out window (memorize --window)",
        )
    first, clock = parts[0], Clock(sum(part.seconds for part in parts), progress)
    if whole is None:
        steps = Steps(pose, CONSTRUCTIONS[construction].draw, check_fast, check_dense)
        length = max(position_rows(part, positions, max_length) for part in parts)
        given = given_vectors(first, vectors)
        for part in parts:
            check_size(part, length, 3 if given is None else given.shape[1], head_size)
    else:
        from rankone.construct.parted.steps import check_parts, steps_of

        given, length = None, check_parts(whole, construction, given_options, positions, max_length)
        steps = steps_of(whole, progress)
    causal = causal or task_of(first.task).causal
    clock.start("construct")
    problem = steps.pose(
        parts,
        positions=positions,
        strict=strict,
        length=length,
        causal=causal,
        vectors=given,
        head_size=head_size,
        readout=readout,
        heads=heads,
        dtype=dtype,
        directions=directions,
        distributions=first.task == "next" and construction == "gated" and given is None,
    )
    before: Draft | None = None
    share = partial(progress, "dense")
    for draw in range(1, DRAWS + 1):
        clock.start("construct")
        rng = seeded(seed, draw)
        draft = steps.draw(problem, rng)
        network = draft.network
        if network is not None:
            clock.start("verify")
            fast, found = steps.check_fast(network, problem)
            if fast.holds(RESERVE):
                clock.start("dense")
                dense = steps.check_dense(network, problem, found, rng, verify == "dense", share)
                if dense.holds(RESERVE):
                    break
        if draw == DRAWS or not draft.hopeful(before):
            raise draft.refusal(draw)
        before = draft

    assert network is not None
    shape = network.shape
    gated = construction == "gated"
    if gated and given is None:
        from rankone.construct.gated.draw import GatedDraft, model_of

        settings = (positions, causal, heads, dtype, directions, strict, max_length, seed)
        made = dict(zip(SETTINGS, settings, strict=True), construction="gated")
        drawn = cast(GatedDraft, draft)
        model = model_of(drawn, first.reading, cast(Made, made), editable=editable)
    else:
        words, labels = first.vocabulary, first.label_names
        model = Model(network, words, labels, first.reading, contexts=problem.fingerprints)
    return Memorized(
        model=model,
        source=first.source,
        tokens=problem.tokens,
        asked=problem.asked,
        sentences=problem.sentences,
        wrong=fast.wrong,
        unavoidable=fast.unavoidable,
        bits=problem.bits,
        hidden_units=shape.hidden * shape.depth,
        least_units=getattr(draft, "least_units", None),
        parameters=sum(p.numel() for p in network.parameters()),
        dense_parameters=dense_parameters(network),
        paper_parameters=parameter_counts(
            problem.longest, problem.sentences, shape.dim, head_size
        ).paper,
        max_error=fast.max_error,
        margin=fast.margin,
        min_gap=draft.min_gap if np.isfinite(draft.min_gap) else None,
        dense_tokens=dense.tokens,
        dense_error=dense.max_error,
        dense_difference=dense.difference,
        draws=draw,
        settings={
            "construction": construction,
            "vectors": "free" if given is None else "given",
            "dim": shape.dim,
            "positions": shape.positions,
            "causal": causal,
            "head_size": head_size,
            "heads": shape.heads,
            "dtype": dtype,
            "directions": directions,
            "editable": editable,
            "readout": readout,
            "strict": strict,
            "verify": verify,
            "seed": seed,
            "scheme": first.scheme,
            "columns": asdict(first.columns),
        },
        seconds=clock.stop(),
        conflicts=problem.targets.conflicts,
        remarks=remarks_on(problem, positions),
    )


class Steps(NamedTuple):
    """What is done with a problem; for a corpus in parts, over its parts."""

    pose: Callable[..., Problem]
    draw: Draw
    check_fast: Callable[[TokenClassifier, Problem], tuple[Check, Any]]
    check_dense: Callable[..., Check]


def seeded(seed: int, draw: int) -> np.random.Generator:
    """The random numbers of a draw, the first of which is number 1."""
    return np.random.default_rng([seed, draw])


def dense_parameters(network: TokenClassifier) -> int:
    """How many numbers the network would hold with all matrices written out."""
    tables = [network.table, network.head.weight, network.head.bias]
    tables += [] if network.positions is None else [network.positions]
    shape, attention = network.shape, network.blocks[0].attention
    heads = 4 * shape.heads * shape.head_size * shape.dim - (
        shape.dim * shape.head_size if attention.heads[0].shared else 0
    )
    block = heads + shape.hidden * (2 * shape.dim + 1) + shape.dim
    return sum(p.numel() for p in tables) + shape.depth * block


def _refuse_ignored(construction: str, given: dict[str, Any]) -> None:
    """Refuse options that the construction does not heed."""
    for name, usual in OPTIONS.items():
        changed = given[name] is not usual and (name == "vectors" or given[name] != usual)
        if changed and name not in CONSTRUCTIONS[construction].takes:
            raise SettingError(
                f"{construction} does not take {name}",
                remedy=f"leave out {name} (--{name.replace('_', '-')}), or choose "
                + ("gated" if name in CONSTRUCTIONS["gated"].takes else "line"),
            )


def _in_parts(corpus: object) -> TypeGuard[Sequence[Corpus]]:
    return isinstance(corpus, list | tuple) and {*map(type, corpus)} == {Corpus}


def check_settings(**settings: Any) -> None:
    """Refuse settings of the wrong type or out of range."""
    words = {
        "construction": tuple(CONSTRUCTIONS),
        "readout": get_args(choices.Readout),
        "verify": get_args(choices.Verify),
        "dtype": get_args(choices.Dtype),
    }
    for name, value in settings.items():
        if name in RANGES:
            least, most = RANGES[name]
            sound = type(value) is int and least <= value <= most
            sound = sound or (name in ("max_length", "heads") and value is None)
            wanted = f"a whole number from {least} to {most}"
        else:
            known = words.get(name, (True, False))
            sound = isinstance(value, str | bool | np.bool_) and value in known
            wanted = " or ".join(map(repr, known))
        SettingError.unless(sound, name, value, wanted)


class Clock:
    """Time per stage, reported as progress; a stage may occur more than once."""

    def __init__(self, read: float, progress: Progress) -> None:
        self.seconds = {"read": read, "construct": 0.0, "verify": 0.0, "dense": 0.0}
        self.progress, self.stage, self.since = progress, "", 0.0

    def start(self, stage: str) -> None:
        self.stop()
        self.stage, self.since = stage, time.perf_counter()
        self.progress(stage, 0.0)

    def stop(self) -> dict[str, float]:
        now = time.perf_counter()
        if self.stage:
            self.seconds[self.stage] += now - self.since
        self.since = now
        return self.seconds
