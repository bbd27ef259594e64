"""The claims of a certificate, judged: by the evidence in float64, then by the referee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb

from rankone.certify.evidence import Readings
from rankone.certify.ids import ContextIds
from rankone.certify.labels import Head, NoHead
from rankone.certify.mapping import measure
from rankone.certify.outcome import Outcome
from rankone.certify.referee import Referee
from rankone.certify.rounding import Ints
from rankone.corpus.ceilings import best_targets

NOTHING = 2.0**-850  # attention that adds nothing at all is known well enough
LOOSE = 2.0**-20  # of the size of what attention adds: worse than that is computed with more digits


@dataclass(frozen=True)
class MappingClaim:
    """Definition 2: none longer than r, none that must differ closer than delta."""

    outcome: Outcome
    r: float
    delta: arb
    pair: tuple[int, int] | None


@dataclass(frozen=True)
class LabelClaim:
    """As many labels wrong as must be, and the margin of all decisions.

    `witness` is a token that is wrong without need, and what the network decides for.

    A token whose label the cap leaves undecided counts neither as right nor as wrong. All is None
    if the model decides for no labels.
    """

    outcome: Outcome | None = None
    wrong: int | None = None
    unavoidable: int | None = None
    margin: arb | None = None
    worst: int | None = None
    witness: tuple[int, int] | None = None


def judge_mapping(ids: ContextIds, referee: Referee) -> MappingClaim:
    """The distances of all contexts, in float64 and, where that is not enough, in Arb."""
    scale = float(np.nanmax(np.abs(ids.along.mid), initial=0.0))
    with np.errstate(invalid="ignore"):
        known = (ids.along.rad <= LOOSE * scale + NOTHING) & np.isfinite(ids.along.mid)
        known &= np.isfinite(ids.shade) & np.isfinite(ids.size)
    ids = referee.refine(ids, np.flatnonzero(~known))
    r = float(ids.size.max())
    if referee.undecided:
        return MappingClaim(Outcome.UNDECIDED, r, arb(0), None)
    gaps = measure(ids)
    same = referee.separate(ids, gaps)
    if same is not None:
        return MappingClaim(Outcome.REFUTED, r, arb(0), same)
    if gaps.unsure:
        return MappingClaim(Outcome.UNDECIDED, r, arb(0), gaps.pair)
    return MappingClaim(Outcome.CERTIFIED, r, gaps.lower, gaps.pair)


def judge_labels(
    readings: Readings, gold: Ints, contexts: Ints, head: Head, referee: Referee
) -> LabelClaim:
    """The label of every token, and whether one more could have been right."""
    if isinstance(head, NoHead):
        return LabelClaim()
    margin, worst = referee.decode(head, readings)
    sure = readings.off < 0.5
    wrong = (readings.labels != gold) & sure
    targets = best_targets(contexts, gold)
    errors = np.bincount(contexts, wrong, len(gold))
    least = np.bincount(contexts, targets.labels != gold, len(gold))
    too_many = np.flatnonzero(wrong & (errors > least)[contexts])
    outcome = Outcome.CERTIFIED if sure.all() else Outcome.UNDECIDED
    if len(too_many):
        outcome = Outcome.REFUTED
    furthest = int(np.where(np.isnan(readings.off), np.inf, readings.off).argmax())
    left = (0.5 - arb(float(readings.off[furthest]))).lower()
    if not margin < left:
        margin, worst = left, furthest
    return LabelClaim(
        outcome,
        int(wrong.sum()),
        targets.errors,
        margin if sure.all() else None,
        worst,
        (int(too_many[0]), int(readings.labels[too_many[0]])) if len(too_many) else None,
    )
