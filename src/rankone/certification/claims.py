"""Judge the claims of a certificate: in float64 first, then by the referee in Arb."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import comb, inf

import numpy as np
from flint import arb

from rankone.arrays import Ints
from rankone.certification.certificate import Decided, Left, Outcome
from rankone.certification.context_gaps import Gaps, measure_gaps
from rankone.certification.context_ids import ContextIds
from rankone.certification.float_evaluation import Readings
from rankone.certification.label_heads import Head
from rankone.certification.recited import Recited
from rankone.certification.referee import Referee
from rankone.corpus.tallies import best_targets
from rankone.deadline import TimeIsUpError

NOTHING = 2.0**-850  # a radius that is always small enough, also where attention adds 0
LOOSE = 2.0**-20  # largest radius, relative to what attention adds, before Arb is used


@dataclass(frozen=True)
class MappingClaim:
    """Definition 2: no context id longer than r, no two that must differ closer than delta.

    ``left`` pairs of contexts are undecided, those of the tokens ``open``; ``late`` if the time
    limit was hit. ``layer`` is the block whose attention puts out the context ids.
    """

    outcome: Outcome
    r: float | arb
    delta: arb = field(default_factory=lambda: arb(0))
    pair: tuple[int, int] | None = None
    left: int = 0
    open: frozenset[int] = frozenset()
    late: bool = False
    layer: int = 1


@dataclass(frozen=True)
class LabelClaim:
    """No more labels wrong than must be, and the smallest margin.

    ``witnesses`` are the tokens that could have been right, with the label the network chooses. A
    token whose label is undecided counts neither as right nor as wrong. All fields are None if the
    model has no labels.
    """

    outcome: Outcome | None = None
    wrong: int | None = None
    unavoidable: int | None = None
    margin: arb | None = None
    worst: int | None = None
    witnesses: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class RunClaim:
    """The run in the weights' own type is off by at most ``distance`` and chooses the same labels.

    ``witnesses`` are the tokens whose label differs: token, exact label, label of the run. There is
    no outcome if there are no labels.
    """

    outcome: Outcome | None
    distance: float
    witnesses: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Proof:
    """The claims with their figures as proved, not yet rounded for a file."""

    mapping: MappingClaim
    labels: LabelClaim
    run: RunClaim
    contexts: int
    left: Left | None
    decided: Decided
    digits: int
    seconds: dict[str, float]
    any_order: bool | None = None
    recited: Recited | None = None
    excess: arb | None = None

    @property
    def outcome(self) -> Outcome:
        return Outcome.of(self.mapping.outcome, self.labels.outcome, self.run.outcome)


def judge_mapping(ids: ContextIds | None, referee: Referee, contexts: Ints) -> MappingClaim:
    """Distances of all contexts, in float64 and, where that is not enough, in Arb."""
    r, gaps, late = inf, None, ids is None
    if ids is not None:
        try:
            ids = referee.refine(ids, np.flatnonzero(~known(ids)))
            r = float(ids.size.max())
            if not referee.undecided:
                gaps = measure_gaps(ids)
                same = referee.separate(ids.direction, gaps)
                if same is not None:
                    return MappingClaim(Outcome.REFUTED, r, pair=same)
                if not gaps.unsure:
                    return MappingClaim(Outcome.CERTIFIED, r, gaps.lower, gaps.pair)
        except TimeIsUpError:
            late = True
        if gaps is not None:
            left, unsure = pairs_left(gaps, ids), frozenset(gaps.unsure)
            return MappingClaim(Outcome.UNDECIDED, r, arb(0), gaps.pair, left, unsure, late)
    every = np.flatnonzero(contexts == np.arange(len(contexts))).tolist()  # no pair was measured
    unsure = frozenset(every if late else referee.undecided)
    return MappingClaim(Outcome.UNDECIDED, r, arb(0), None, comb(len(every), 2), unsure, late)


def scale_of(ids: ContextIds) -> float:
    """The largest number that attention adds along the direction."""
    return float(np.nanmax(np.abs(ids.along.mid), initial=0.0))


def known(ids: ContextIds, scale: float | None = None) -> np.ndarray:
    """Which context ids float64 knows precisely enough to measure distances, those of all contexts
    being as large as `scale`."""
    scale = scale_of(ids) if scale is None else scale
    with np.errstate(invalid="ignore"):
        small = (ids.along.rad <= LOOSE * scale + NOTHING) & np.isfinite(ids.along.mid)
        if ids.shade is not None:
            small &= np.isfinite(ids.shade)
    return np.asarray(small & np.isfinite(ids.size))


def pairs_left(gaps: Gaps, ids: ContextIds | None) -> int:
    """How many pairs the clusters contain; in those of `different`, which need the context ids,
    only pairs with different x."""
    left = sum(comb(len(cluster), 2) for cluster in (*gaps.same, *gaps.different))
    if not gaps.different or ids is None:
        return left
    place = dict(zip(ids.tokens.tolist(), ids.place.tolist(), strict=True))
    for cluster in gaps.different:
        left -= sum(comb(n, 2) for n in Counter(place[token] for token in cluster).values())
    return left


def decide(head: Head, readings: Readings, referee: Referee) -> bool:
    """Let the referee decide the open labels; returns whether time sufficed for all of them."""
    try:
        referee.decode(head, readings)
    except TimeIsUpError:
        return False
    return bool(readings.reached.all())


def judge_labels(readings: Readings, gold: Ints, contexts: Ints, labelled: bool) -> LabelClaim:
    """The label of every token, and whether more could have been right."""
    if not labelled:
        return LabelClaim()
    sure = readings.sure
    asked = gold >= 0
    wrong = (readings.labels != gold) & sure & asked
    targets = best_targets(contexts, gold)
    errors = np.bincount(contexts, wrong, len(gold))
    least = np.bincount(contexts, (targets.labels != gold) & asked, len(gold))
    too_many = np.flatnonzero(wrong & (errors > least)[contexts])
    outcome = Outcome.CERTIFIED if sure.all() else Outcome.UNDECIDED
    if len(too_many):
        outcome = Outcome.REFUTED
    furthest = int(np.where(np.isnan(readings.off), np.inf, readings.off).argmax())
    margin, worst = readings.margin, readings.worst
    left = (0.5 - arb(float(readings.off[furthest]))).lower()
    if not margin < left:
        margin, worst = left, furthest
    return LabelClaim(
        outcome,
        int(wrong.sum()),
        targets.errors,
        margin if sure.all() else None,
        worst,
        tuple(zip(too_many.tolist(), readings.labels[too_many].tolist(), strict=True)),
    )


def judge_run(readings: Readings, labelled: bool) -> RunClaim:
    """Whether the run in the weights' own type chooses the labels of the exact network."""
    sure = readings.sure
    distance = readings.distance if sure.all() else inf
    if not labelled:
        return RunClaim(None, distance)
    other = np.flatnonzero(sure & (readings.run_labels != readings.labels))
    if len(other):
        both = readings.labels[other].tolist(), readings.run_labels[other].tolist()
        witnesses = tuple(zip(other.tolist(), *both, strict=True))
        return RunClaim(Outcome.REFUTED, distance, witnesses)
    return RunClaim(Outcome.CERTIFIED if sure.all() else Outcome.UNDECIDED, distance)
