"""The claims by themselves: what complete evidence makes of them, and what is left by other."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from flint import arb

from rankone.certification.ball_arithmetic import Balls
from rankone.certification.certificate import Left, Outcome
from rankone.certification.claims import (
    LOOSE,
    NOTHING,
    LabelClaim,
    RunClaim,
    judge_labels,
    judge_run,
    known,
    pairs_left,
)
from rankone.certification.context_gaps import Gaps
from rankone.certification.context_ids import ContextIds
from rankone.certification.float_evaluation import Readings
from rankone.certification.reasons import explained, unfinished

C, R, U = Outcome.CERTIFIED, Outcome.REFUTED, Outcome.UNDECIDED
HEAD, NONE = True, False  # whether there are labels


def readings(labels: list[int], off: list[float], run: list[int]) -> Readings:
    return Readings(np.array(labels, np.int32), np.array(off), np.array(run, np.int32), 0.25)


@pytest.mark.parametrize(
    ("labels", "off", "run", "outcome", "witnesses"),
    [
        ([0, 1], [0.1, 0.2], [0, 1], C, ()),
        ([0, 1], [0.1, 0.2], [0, 2], R, ((1, 1, 2),)),
        ([0, 1], [0.1, 0.2], [1, 2], R, ((0, 0, 1), (1, 1, 2))),
        ([0, 1], [0.1, 0.5], [0, 2], U, ()),  # at 1/2 nothing is proved
        ([0, 1], [0.1, nan], [0, 2], U, ()),
        ([0, 1], [0.1, nan], [1, 2], R, ((0, 0, 1),)),
    ],
)
def test_the_run(
    labels: list[int],
    off: list[float],
    run: list[int],
    outcome: Outcome,
    witnesses: tuple[tuple[int, int, int], ...],
) -> None:
    """Only a label that is proved can be another one; unless all are, nothing is known of the
    distance."""
    distance = 0.25 if all(x < 0.5 for x in off) else inf
    found = judge_run(readings(labels, off, run), HEAD)
    assert found == RunClaim(outcome, distance, witnesses)
    assert judge_run(readings(labels, off, run), NONE) == RunClaim(None, distance)


def test_labels_that_are_wrong_without_need() -> None:
    """Tokens 0 to 2 are one context, labelled 0, 0, 1: one error is enough there."""
    contexts, gold = np.array([0, 0, 0, 3]), np.array([0, 0, 1, 2])
    right = judge_labels(
        readings([0, 0, 0, 2], [0.1, 0.1, 0.1, 0.2], [0] * 4), gold, contexts, HEAD
    )
    assert (right.outcome, right.wrong, right.unavoidable, right.worst) == (C, 1, 1, 3)
    assert right.margin is not None
    assert 0.3 - 1e-15 <= float(right.margin) <= 0.3
    assert right.witnesses == ()
    worse = judge_labels(readings([1, 1, 1, 2], [0.1] * 4, [0] * 4), gold, contexts, HEAD)
    assert (worse.outcome, worse.wrong, worse.unavoidable) == (R, 2, 1)
    assert worse.witnesses == ((0, 1), (1, 1))
    other = judge_labels(readings([0, 0, 0, 0], [0.1] * 4, [0] * 4), gold, contexts, HEAD)
    assert (other.outcome, other.wrong, other.witnesses) == (R, 2, ((3, 0),))
    some = judge_labels(readings([1, 1, 1, 2], [0.1, 0.5, 0.1, nan], [0] * 4), gold, contexts, HEAD)
    assert (some.outcome, some.wrong, some.margin, some.witnesses) == (U, 1, None, ())
    assert judge_labels(readings([0] * 4, [0.1] * 4, [0] * 4), gold, contexts, NONE) == LabelClaim()


@pytest.mark.parametrize(("size", "worst"), [(0.2, 7), (0.29, 7), (0.31, 1), (0.4, 1)])
def test_the_smaller_margin_counts(size: float, worst: int) -> None:
    """Of those that balls decided and those that the referee did."""
    found = readings([0, 0], [0.0, 0.2], [0, 0])
    found.margin, found.worst = arb(size), 7
    claim = judge_labels(found, np.zeros(2, np.int64), np.array([0, 1]), HEAD)
    assert claim.margin is not None
    assert float(claim.margin) == pytest.approx(min(size, 0.3))
    assert claim.worst == worst


def ids(place: list[int], mid: list[float], rad: list[float]) -> ContextIds:
    n = len(place)
    along = Balls(np.array(mid), np.array(rad))
    return ContextIds(
        np.arange(n) * 10,
        np.array(place),
        np.ones(1),
        along,
        np.zeros(n),
        np.zeros(n),
        np.ones(n),
        lambda at: (along[None, at], along[None, at]),
        straight=True,
    )


def test_pairs_that_are_left() -> None:
    """In clusters of `different` only pairs with different x count."""
    some = ids([0, 0, 0, 1, 1, 2], [0.0] * 6, [0.0] * 6)
    assert pairs_left(Gaps(), some) == 0
    assert pairs_left(Gaps(same=[[0, 10, 20], [30, 40]]), some) == 3 + 1
    assert pairs_left(Gaps(different=[[0, 30], [0, 10, 20, 30, 40, 50]]), some) == 1 + 15 - 3 - 1
    assert pairs_left(Gaps(same=[[0, 10]], different=[[40, 50]]), some) == 2


def test_context_ids_that_are_known_well_enough() -> None:
    """Their radius is small beside the largest of them, or beside nothing at all."""
    edge = 4.0 * LOOSE + NOTHING
    found = known(ids([0] * 4, [4.0, 0.0, -1.0, nan], [edge, edge * (1 + 1e-15), 0.0, 0.0]))
    assert found.tolist() == [True, False, True, False]
    assert known(ids([0, 0], [0.0, 0.0], [NOTHING, 2 * NOTHING])).tolist() == [True, False]
    for name in ("shade", "size"):
        lost = ids([0, 0], [1.0, 1.0], [0.0, 0.0])
        getattr(lost, name)[1] = inf
        assert known(lost).tolist() == [True, False]


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (Left(1, 1, 0, time=False), "the labels of 1 token in 1 sentence;"),
        (
            Left(1200, 3, 1, time=False),
            "1,200 tokens in 3 sentences and the distances of 1 pair",
        ),
        (Left(0, 0, 2, time=False), ": the distances of 2 pairs of contexts;"),
    ],
)
def test_what_is_left_in_words(left: Left, text: str) -> None:
    said = unfinished(left, 20_000, None)
    assert text in said
    assert said.startswith("undecided with 20,000 digits: ")
    assert said.endswith("; give a larger --cap")
    assert unfinished(left, 1, None).startswith("undecided with 1 digit: ")
    timed = unfinished(Left(left.tokens, left.sentences, left.pairs, time=True), 20, 2.5)
    assert text in timed
    assert timed.startswith("undecided after 2.5 s: ")
    assert timed.endswith("; give more time (--seconds)")


def test_a_context_alone_has_no_pairs() -> None:
    assert ": the size of 1 context id;" in unfinished(Left(0, 0, 0, time=False), 20, None)


@pytest.mark.parametrize(
    ("text", "choices", "fits"),
    [
        (None, [], True),
        ("line 1 a", [], False),
        (None, [["a"]], False),
        ("a", [["a"]], True),
        ("line 3 a", [["line 5 a"]], True),
        ("b", [["a", "b"]], True),
        ("c", [["a", "b"]], False),
        ("a; b", [["a"]], False),
        ("a; b", [["a"], ["b"]], True),
        ("a; c", [["a"], ["b", "c"]], True),
        ("ab", [["a"], ["b"]], False),
        ("b; a", [["a"], ["b"]], False),
        ("a", [["a"], ["b"]], False),
        ("a", [["a"], []], False),
        ("ab", [["a", "ab"]], True),
    ],
)
def test_reasons_made_of_witnesses(text: str | None, choices: list[list[str]], fits: bool) -> None:
    assert explained(text, choices) is fits  # type: ignore[arg-type]


def test_a_margin_of_one_half_has_its_token_too() -> None:
    """All outputs on their labels: the worst is one of them, though none is worse than others."""
    claim = judge_labels(
        readings([0, 0], [0.0, 0.0], [0, 0]), np.zeros(2, np.int64), np.array([0, 1]), HEAD
    )
    assert (claim.margin, claim.worst) == (0.5, 0)
