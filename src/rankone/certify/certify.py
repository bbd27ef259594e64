"""Certification: what saved weights do to a corpus, proved or refuted."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import ceil, log2, log10

import numpy as np

from rankone.certify.certificate import Certificate, Spot, hashes, spots
from rankone.certify.claims import LabelClaim, MappingClaim, judge_labels, judge_mapping
from rankone.certify.evidence import align, evaluate
from rankone.certify.labels import head_of
from rankone.certify.outcome import Outcome
from rankone.certify.referee import Referee
from rankone.corpus import Corpus
from rankone.corpus.contexts import visible_contexts
from rankone.decimals import ceiled, floored
from rankone.nn import Model
from rankone.progress import Progress

CAP = 200_000  # decimal digits
FLOAT_DIGITS = 16


@dataclass(frozen=True)
class Proof:
    """The claims with the numbers as they were proved, not yet rounded for a file."""

    mapping: MappingClaim
    labels: LabelClaim
    contexts: int
    float_distance: float
    float_labels: bool | None
    decided: dict[str, int]
    digits: int
    seconds: dict[str, float]

    @property
    def outcome(self) -> Outcome:
        return Outcome.of(self.mapping.outcome, self.labels.outcome)


def certify_model(
    model: Model, corpus: Corpus, *, cap: int = CAP, progress: Progress = lambda *_: None
) -> Certificate:
    """Prove or refute what `Certificate` says, for a model on a corpus.

    Every token goes through float64 with a bound on its rounding errors first; what that leaves
    undecided goes through Arb, with twice the digits each time, up to `cap` decimal digits. The
    model may be anybody's: nothing is believed of it but its weights.

    >>> import rankone
    >>> corpus = rankone.builtin_corpus(50)
    >>> rankone.certify_model(rankone.memorize(corpus).model, corpus).outcome.value
    'certified'
    """
    proof = prove(model, corpus, cap=cap, progress=progress)
    mapping, labels = proof.mapping, proof.labels
    return Certificate(
        outcome=proof.outcome,
        mapping=mapping.outcome,
        labels=labels.outcome,
        reason=reason(model, corpus, mapping, labels, cap),
        r=ceiled(mapping.r),
        delta=floored(mapping.delta),
        closest=spots(corpus, mapping.pair),
        contexts=proof.contexts,
        margin=float(floored(labels.margin)) if labels.margin is not None else None,
        worst=None if labels.worst is None else Spot.of(corpus, labels.worst),
        tokens=corpus.n_tokens,
        wrong=labels.wrong,
        unavoidable=labels.unavoidable,
        float_distance=ceiled(proof.float_distance),
        float_labels=proof.float_labels,
        decided=proof.decided,
        digits=proof.digits,
        cap=cap,
        source=corpus.source,
        hashes=hashes(model, corpus),
        seconds=proof.seconds,
    )


def prove(model: Model, corpus: Corpus, *, cap: int, progress: Progress) -> Proof:
    """The evidence in float64, and the claims judged by it."""
    clock = [time.perf_counter()]
    rows, gold = align(model, corpus)
    shape, head = model.network.shape, head_of(model.network.head)
    given = {"positions": bool(shape.positions), "causal": shape.causal}
    contexts = visible_contexts(corpus, **given)
    inputs = contexts
    if shape.depth > 1:  # later layers may see more than the first one, which makes context ids
        inputs = visible_contexts(corpus, **given, depth=shape.depth)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # what comes of that is not known, and said so
        ids, readings = evaluate(model.network, rows, corpus.offsets, contexts, head, progress)
        clock.append(time.perf_counter())
        referee = Referee(model.network, rows, corpus.offsets, ceil(cap * log2(10)), progress)
        mapping = judge_mapping(ids, referee)
    labels = judge_labels(readings, gold, inputs, head, referee)
    clock.append(time.perf_counter())

    same = bool((readings.run_labels == readings.labels).all())
    undecided = len(referee.undecided)
    exact = len(referee.tokens - referee.undecided)
    return Proof(
        mapping,
        labels,
        contexts=len(ids.tokens),
        float_distance=readings.distance,
        float_labels=None if labels.outcome is None else same,
        decided={"float": len(rows) - exact - undecided, "exact": exact, "undecided": undecided},
        digits=ceil(referee.bits * log10(2)) if referee.bits else FLOAT_DIGITS,
        seconds={
            "float": clock[1] - clock[0],
            "exact": clock[2] - clock[1],
            "total": clock[2] - clock[0],
        },
    )


def reason(
    model: Model, corpus: Corpus, mapping: MappingClaim, labels: LabelClaim, cap: int
) -> str | None:
    """The witnesses of what does not hold, or what is missing."""
    found = []
    closest = spots(corpus, mapping.pair)
    if mapping.outcome is Outcome.REFUTED and closest is not None:
        found.append(f"{closest[0]} and {closest[1]} must differ, but have one context id")
    if labels.witness is not None:
        token, decided = labels.witness
        given = corpus.label_names[corpus.label_ids[token]]
        found.append(
            f"{Spot.of(corpus, token)} is labelled {given}, but the network decides for "
            f"{model.labels[decided]}"
        )
    if not found and Outcome.UNDECIDED in (mapping.outcome, labels.outcome):
        found.append(f"{cap:,} digits, the cap, are not enough: give a larger --cap")
    return "; ".join(found) or None
