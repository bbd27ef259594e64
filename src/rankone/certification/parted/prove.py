"""Prove the claims of a certificate for a corpus in parts."""

from __future__ import annotations

import time
from functools import partial
from math import ceil, comb, inf, log2, log10

import numpy as np
from flint import arb

from rankone.arrays import Ints
from rankone.certification.align import numbers_of
from rankone.certification.any_order import AnyOrder
from rankone.certification.certificate import Left, Outcome
from rankone.certification.claims import MappingClaim, Proof, pairs_left
from rankone.certification.context_gaps import gaps_of, needs_others
from rankone.certification.float_evaluation import head_for
from rankone.certification.gated_balls import GatedBalls
from rankone.certification.gathered import is_straight, main_direction
from rankone.certification.label_heads import MixedHead, NoHead
from rankone.certification.parted.contexts import Scattered
from rankone.certification.parted.evaluate import Kit, evaluate_part
from rankone.certification.parted.labels import Labels
from rankone.certification.parted.referee import PartedReferee
from rankone.corpus.contexts import visible
from rankone.corpus.parted import PartedCorpus
from rankone.corpus.picked import laid_end_to_end
from rankone.corpus.shuffle import settle
from rankone.corpus.tasks import asks_next
from rankone.deadline import TimeIsUpError, time_left, time_limit
from rankone.errors import SettingError
from rankone.nn import Evaluator, Model
from rankone.nn.exact import ExactModel
from rankone.progress import Progress
from rankone.spans import SPAN

CONTEXT = 250  # bytes that a bucket takes for each of them
ALONE = "leave out memory and engine (--memory, --engine)"  # for what needs all of a corpus


def prove_parts(
    model: Model | ExactModel,
    corpus: PartedCorpus,
    *,
    cap: int,
    seconds: float | None,
    progress: Progress,
) -> Proof:
    """The same as in memory, whatever the engine and wherever the corpus is cut."""
    clock = [time.perf_counter()]
    model = check_kind(model, corpus)
    rows, labels = numbers_of(model, corpus)
    shape, engine = model.network.shape, corpus.engine
    look = visible(positions=bool(shape.positions), causal=shape.causal)
    settled = settle(corpus, look, partial(progress, "contexts"))
    cap_bits = ceil(cap * log2(10))
    referee = PartedReferee(model.network, corpus, rows, cap_bits, progress)
    with np.errstate(over="ignore", invalid="ignore"):
        kit = kit_of(model, corpus, rows, labels)
    referee.only = kit.balls.out
    limit = (inf if seconds is None else seconds) - (time.perf_counter() - clock[0])
    with time_limit(limit), np.errstate(over="ignore", invalid="ignore"):
        shared, buckets = engine.share(kit), engine.buckets(CONTEXT * corpus.n_tokens)
        until = time.time() + time_left()
        calls = [
            (shared, part.columns, table, part.start, part.before, buckets, until)
            for part, table in zip(corpus.parts, settled.tables, strict=True)
        ]
        found = engine.split(evaluate_part, calls, 1 + buckets, partial(progress, "float64"))
        engine.drop(settled.tables)
        figures = [dict(engine.take(refs[0])) for refs in found]
        engine.drop(refs[0] for refs in found)
        readings = Labels(figures, settled.unavoidable, not isinstance(kit.head, NoHead))
        contexts = Scattered(kit, engine, shared, figures, [refs[1:] for refs in found], progress)
        clock.append(time.perf_counter())
        referee.fetch(readings.open)
        with time_limit(time_left() / 2):  # leave time for the distances
            in_time = readings.decide(kit.head, referee)
        mapping, every = judge_mapping(model, contexts, referee)
        in_time = in_time or readings.decide(kit.head, referee)
    labelled, run = readings.claim(), readings.run_claim()
    any_order = None
    if kit.order is not None and labelled.outcome is not Outcome.UNDECIDED:
        any_order = all(bool(table["right"][0]) for table in figures)
    clock.append(time.perf_counter())

    open_, left = readings.left_with(mapping.open, every, contexts.count), None
    exact = len(referee.tokens - mapping.open - readings.left)
    if every:
        exact = readings.decided_by(referee)
    if open_:
        tokens = 0 if labelled.outcome is None else readings.tokens_left
        sentences = readings.sentences_left if tokens else 0
        left = Left(tokens, sentences, mapping.left, time=mapping.late or not in_time)
    decided = {"float": corpus.n_tokens - exact - open_, "exact": exact, "undecided": open_}
    stages = {"float": clock[1] - clock[0], "exact": clock[2] - clock[1]}
    return Proof(
        mapping,
        labelled,
        run,
        contexts=contexts.count,
        left=left,
        decided={name: decided[name] for name in ("float", "exact", "undecided")},  # type: ignore[arg-type]
        any_order=any_order,
        digits=ceil(referee.bits * log10(2)) if referee.bits else 16,
        seconds={**stages, "total": clock[2] - clock[0]},
    )


def check_kind(model: Model | ExactModel, corpus: PartedCorpus) -> Model:
    """Refuse networks and tasks that take a whole corpus at once."""
    what = None
    if isinstance(model, ExactModel):
        what = "an exact model is certified in memory"
    elif asks_next(corpus.heading.task) or model.network.shape.window:
        what = "models of the next token are certified in memory"
    elif model.network.shape.feedforward != "gated" or model.network.shape.depth > 1:
        what = "only networks with gates (construction gated) are certified in parts"
    if what is not None:
        raise SettingError(what, where=corpus.source, remedy=ALONE)
    assert isinstance(model, Model)
    return model


def kit_of(model: Model, corpus: PartedCorpus, rows: Ints, labels: Ints) -> Kit:
    network = model.network
    balls = GatedBalls.of(network)
    head = head_for(network, balls)
    if balls is None or isinstance(head, MixedHead):
        raise SettingError(
            "the weights do not prove that units are 0 outside of their groups, so all are looked "
            "at, which is done in memory",
            where=corpus.source,
            remedy=ALONE,
        )
    order = None
    if not isinstance(head, NoHead):
        nothing = np.empty(0, np.int64)
        order = AnyOrder.of(network, balls, nothing, corpus.longest, head)
    direction = first_direction(balls, corpus, rows)
    evaluator = Evaluator(network, only=balls.out)
    straight = is_straight(network)
    return Kit(rows, labels, network.shape, balls, head, evaluator, order, direction, straight)


def first_direction(balls: GatedBalls, corpus: PartedCorpus, rows: Ints) -> np.ndarray:
    """What is chosen of the first piece of the whole corpus, wherever that is cut."""
    tables, tokens = [], 0
    for part in corpus.parts:
        if tokens <= SPAN:
            tables.append(corpus.engine.take(part.columns))
            tokens += part.tokens
    first, _ = laid_end_to_end(corpus.heading, tables)
    chunk = next(balls.run(rows[first.token_ids], first.offsets))
    return main_direction(chunk.moved.mid, balls.written, balls.table.shape[1])


def judge_mapping(
    model: Model, contexts: Scattered, referee: PartedReferee
) -> tuple[MappingClaim, bool]:
    """Distances of all contexts, and whether those of all of them are open."""
    r, gaps, late = inf, None, not contexts.whole
    if contexts.whole:
        try:
            r = contexts.refine(referee)
            if not referee.undecided:
                found = contexts.nearest()
                gaps = gaps_of(found, contexts.kit.direction, contexts.kit.straight)
                if needs_others(gaps, contexts.apart(model.network), contexts.count):
                    contexts.compare_others(gaps)
                referee.fetch(gaps.unsure)
                same = referee.separate(contexts.kit.direction, gaps)
                if same is not None:
                    return MappingClaim(Outcome.REFUTED, r, pair=same), False
                if not gaps.unsure:
                    return MappingClaim(Outcome.CERTIFIED, r, gaps.lower, gaps.pair), False
        except TimeIsUpError:
            late = True
        if gaps is not None:
            left, unsure = pairs_left(gaps, contexts.ids), frozenset(gaps.unsure)
            undecided = Outcome.UNDECIDED
            return MappingClaim(undecided, r, arb(0), gaps.pair, left, unsure, late), False
    unsure = frozenset[int]() if late else frozenset(referee.undecided)
    left = comb(contexts.count, 2)  # no pair was measured
    return MappingClaim(Outcome.UNDECIDED, r, arb(0), None, left, unsure, late), late
