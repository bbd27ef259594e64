"""Certify a model on a corpus: prove or refute what its weights do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from math import ceil, inf, log2, log10
from typing import Any

import numpy as np
from flint import arb

from rankone.arrays import Bools, Ints
from rankone.certification.align import AnyCorpus, align, taken
from rankone.certification.any_order import ARITHMETIC, WINDOWED, AnyOrder
from rankone.certification.certificate import (
    EXACT,
    MOST,
    Certificate,
    Left,
    Outcome,
    Spot,
    hashes,
    spots,
)
from rankone.certification.claims import (
    Proof,
    decide,
    judge_labels,
    judge_mapping,
    judge_run,
)
from rankone.certification.entropy import least_total
from rankone.certification.exact_proof import judge_later, prove_exactly
from rankone.certification.float_evaluation import Readings, evaluate, head_for
from rankone.certification.forgotten import Forgotten, find_forgotten
from rankone.certification.gated_balls import GatedBalls
from rankone.certification.label_heads import NoHead
from rankone.certification.parted.prove import ALONE, prove_parts
from rankone.certification.reasons import reason
from rankone.certification.recited import Recited
from rankone.certification.referee import Referee
from rankone.certification.windows import check_window
from rankone.corpus import Corpus
from rankone.corpus.contexts import visible_contexts
from rankone.corpus.parted import PartedCorpus
from rankone.corpus.read import corpus_like
from rankone.deadline import time_left, time_limit
from rankone.decimals import ceiled, floored
from rankone.errors import ModelError, SettingError
from rankone.nn import Model
from rankone.nn.classifier import dtype_name
from rankone.nn.exact import ExactModel
from rankone.progress import Progress

CAP = 200_000  # decimal digits
FLOAT_DIGITS = 16


def certify(
    model: Model | ExactModel,
    corpus: AnyCorpus | str | os.PathLike[str] | Iterable[Any],
    *,
    forgotten: Corpus | str | os.PathLike[str] | Iterable[Any] | None = None,
    cap: int = CAP,
    seconds: float | None = None,
    progress: Progress = lambda *_: None,
) -> Certificate:
    """Prove or refute the claims of a `Certificate` for a model on a corpus.

    Every token is first evaluated in float64 with bounds on the rounding errors. What that leaves
    undecided is evaluated in Arb, doubling the precision each time, up to `cap` decimal digits and
    for at most `seconds` (default: no limit). Exact models are evaluated in fractions, and in Arb
    from their first softmax on. `forgotten` are sentences that the model should not hold: the
    certificate says what it has left of them (`Forgotten`). The model may come from anywhere: only
    its weights are used. A path is read with the settings that the model's own corpus was read
    with. A corpus in parts (`PartedCorpus`) need not fit in memory, if the network has gates.

    >>> import rankone
    >>> corpus = rankone.builtin_corpus(50)
    >>> rankone.certify(rankone.memorize(corpus).model, corpus).outcome.value
    'certified'
    """
    given = taken(model, corpus)
    left = None if forgotten is None else left_of(model, given, forgotten)
    proof = prove(model, given, cap=cap, seconds=seconds, progress=progress)
    mapping, labels, run, recited = proof.mapping, proof.labels, proof.run, proof.recited
    decided = {Outcome.CERTIFIED: True, Outcome.REFUTED: False}
    return Certificate(
        outcome=proof.outcome,
        mapping=mapping.outcome,
        labels=labels.outcome,
        float_labels=None if run.outcome is None else decided.get(run.outcome),
        reason=reason(proof, model, given, cap, seconds),
        left=proof.left,
        layer=mapping.layer,
        r=ceiled(mapping.r),
        delta=floored(mapping.delta),
        closest=spots(given, mapping.pair),
        contexts=proof.contexts,
        margin=float(floored(labels.margin)) if labels.margin is not None else None,
        worst=None if labels.worst is None else Spot.of(given, labels.worst),
        tokens=given.n_tokens,
        wrong=labels.wrong,
        unavoidable=labels.unavoidable,
        float_distance=ceiled(run.distance),
        any_order=proof.any_order,
        arithmetic=None if proof.any_order is None else arithmetic(model),
        documents=None if recited is None else recited.documents,
        recited=None if recited is None else recited.recited,
        branches=None if recited is None else recited.branches,
        excess=None if proof.excess is None else ceiled(proof.excess),
        forgotten=left,
        decided=proof.decided,
        digits=proof.digits,
        cap=cap,
        limit=seconds,
        dtype=EXACT if isinstance(model, ExactModel) else dtype_name(model.network),
        source=given.source,
        hashes=hashes(model, given),
        seconds=proof.seconds,
    )


def arithmetic(model: Model | ExactModel) -> str:
    """What is assumed of a run in any order."""
    windowed = isinstance(model, Model) and model.network.shape.window
    return WINDOWED if windowed else ARITHMETIC


def left_of(model: Model | ExactModel, corpus: AnyCorpus, sentences: Any) -> Forgotten:
    """What the model has left of these sentences; a file is read as its own corpus was."""
    if isinstance(corpus, PartedCorpus):
        raise SettingError(
            "what is left of forgotten sentences is looked for in memory",
            where=corpus.source,
            remedy=f"leave out forgotten (--forgotten), or {ALONE}",
        )
    if isinstance(model, ExactModel):
        raise ModelError(
            "an exact model has no gates that could forget",
            remedy="leave out forgotten (certify --forgotten)",
        )
    given = corpus_like(sentences, model.reading, model.labels, labelled=None)
    return find_forgotten(model, corpus, given)


def prove(
    model: Model | ExactModel,
    corpus: AnyCorpus,
    *,
    cap: int,
    seconds: float | None,
    progress: Progress,
) -> Proof:
    """Evaluate the network and judge the claims."""
    check_limits(cap, seconds)
    if isinstance(corpus, PartedCorpus):
        return prove_parts(model, corpus, cap=cap, seconds=seconds, progress=progress)
    clock = [time.perf_counter()]
    check_window(model, corpus)
    rows, gold = align(model, corpus)
    if isinstance(model, ExactModel):
        with time_limit(inf if seconds is None else seconds):
            return prove_exactly(model.network, corpus, rows, gold, cap, progress)
    shape = model.network.shape
    given: dict[str, Any] = {
        "positions": bool(shape.positions),
        "causal": shape.causal,
        "window": shape.window,
    }
    contexts = visible_contexts(corpus, **given)
    inputs = contexts
    if shape.depth > 1:  # context ids come from the first layer, and later ones may see more
        inputs = visible_contexts(corpus, **given, depth=shape.depth)
    referee = Referee(model.network, rows, corpus.offsets, ceil(cap * log2(10)), progress)
    limit = (inf if seconds is None else seconds) - (time.perf_counter() - clock[0])
    # what overflows gets an infinite radius or NaN, and counts as undecided
    with time_limit(limit), np.errstate(over="ignore", invalid="ignore"):
        balls, order = GatedBalls.of(model.network), None
        head = head_for(model.network, balls)
        if balls is not None:
            referee.only = balls.out
            if not isinstance(head, NoHead):
                order = AnyOrder.of(model.network, balls, gold, corpus.longest, head)
        ids, readings = evaluate(
            model.network,
            rows,
            corpus.offsets,
            contexts,
            head,
            progress,
            balls,
            order,
            losses=(inputs, gold),
        )
        readings.leave(np.flatnonzero(gold < 0))
        clock.append(time.perf_counter())
        with time_limit(time_left() / 2):  # leave time for the distances
            in_time = decide(head, readings, referee)
        mapping = judge_mapping(ids, referee, contexts)
        in_time = in_time or decide(head, readings, referee)
        if mapping.outcome is Outcome.REFUTED:
            mapping = judge_later(mapping, model.network, corpus, rows, inputs, cap, progress)
    seen = contexts if mapping.layer == 1 else inputs
    labelled = not isinstance(head, NoHead)
    labels, run = judge_labels(readings, gold, inputs, labelled), judge_run(readings, labelled)
    any_order = None
    if order is not None and labels.outcome is not Outcome.UNDECIDED:
        any_order = order.right
    clock.append(time.perf_counter())

    open = mapping.open | set(np.flatnonzero(~readings.sure).tolist())
    exact = len(referee.tokens - open)
    tokens = 0 if labels.outcome is None else int((~readings.sure).sum())
    sentences = len(np.unique(corpus.sentence_of[~readings.sure])) if tokens else 0
    left = Left(tokens, sentences, mapping.left, time=mapping.late or not in_time)
    return Proof(
        mapping,
        labels,
        run,
        contexts=int((seen == np.arange(len(seen))).sum()),
        left=left if open else None,
        decided={"float": len(rows) - exact - len(open), "exact": exact, "undecided": len(open)},
        any_order=any_order,
        recited=Recited.of(corpus, shape.causal, *right_and_wrong(readings, gold)),
        excess=excess_of(readings.loss, inputs, gold),
        digits=ceil(referee.bits * log10(2)) if referee.bits else FLOAT_DIGITS,
        seconds={
            "float": clock[1] - clock[0],
            "exact": clock[2] - clock[1],
            "total": clock[2] - clock[0],
        },
    )


def right_and_wrong(readings: Readings, gold: Ints) -> tuple[Bools, Bools]:
    """The tokens whose labels are proved to be those of the file, and those with other ones."""
    equal, asked = readings.labels == gold, readings.sure & (gold >= 0)
    return asked & equal, asked & ~equal


def excess_of(loss: float, contexts: Ints, gold: Ints) -> arb | None:
    """How far the mean of -log p is above the least possible, at most, given the sum of it."""
    asked = int((gold >= 0).sum())
    if not loss < inf or not asked:
        return None
    return arb(((arb(loss) - least_total(contexts, gold)) / asked).upper())


def check_limits(cap: int, seconds: float | None) -> None:
    if not isinstance(cap, int) or isinstance(cap, bool) or not 1 <= cap <= MOST:
        raise SettingError(
            f"{cap!r} is not a number of decimal digits",
            where="cap",
            remedy=f"give a whole number from 1 to {MOST:,}",
        )
    if seconds is not None and not (isinstance(seconds, int | float) and 0 <= seconds < inf):
        raise SettingError(
            f"{seconds!r} is not a time limit",
            where="seconds",
            remedy="give a number of seconds from 0, or None for no limit",
        )
