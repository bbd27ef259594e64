"""Limits of certificates: digits that just suffice, and time that runs out at any moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from math import e, log10
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flint import ctx

import corpora
from certification import judge
from rankone import Corpus, deadline
from rankone.certification import (
    Certificate,
    Outcome,
    certify,
    check,
    check_certificate,
    float_evaluation,
)
from rankone.certification import read_certificate as read
from rankone.certification.certificate import Left
from rankone.errors import SettingError
from rankone.nn import Model

C, R, U = Outcome.CERTIFIED, Outcome.REFUTED, Outcome.UNDECIDED
Case = tuple[Model, Corpus]


def nearly_saturated(score: float) -> Case:
    """Contexts of a that differ by about e^-score in what attention adds to them."""
    table = [[score, 1.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 1.0, 0.0]]
    model = judge.plain_model(table, v1=[1.0, 0, 0], v2=[0.0, 1.0, 0.0], output=[0.0, 0.0, 1.0])
    return model, Corpus.from_sentences(corpora.spelled("ab XX", "ac XX"))


def least(case: Case, low: int, high: int) -> int:
    """The smallest cap that certifies."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if certify(*case, cap=middle).ok else (middle, high)
    return high


@pytest.mark.parametrize("score", [100.0, 700.0, 7000.0])
def test_a_cap_that_just_suffices(score: float) -> None:
    """About score / ln 10 digits see a difference of e^-score; one less than needed does not."""
    case = nearly_saturated(score)
    digits = score * log10(e)
    cap = least(case, 20, int(digits) + 100)
    assert digits - 10 < cap < digits + 10
    found = certify(*case, cap=cap)
    assert (found.outcome, found.left, found.reason) == (C, None, None)
    assert found.digits <= cap + 1
    assert Decimal(found.delta) > 0
    short = certify(*case, cap=cap - 1)
    assert (short.outcome, short.mapping, short.delta) == (U, U, "0")
    assert short.left == Left(tokens=0, sentences=0, pairs=1, time=False)
    assert short.decided["undecided"] == 2
    assert short.reason == (
        f"undecided with {cap - 1:,} digits: the distances of 1 pair of contexts; "
        "give a larger --cap"
    )


def test_a_cap_that_just_suffices_for_a_label() -> None:
    """y of a lies about 10^-30 above the border of two labels."""
    table = [[2.0**-20, 1.5, 2.0**-100], [0.0, 2.0, 0.0]]
    model = judge.plain_model(table, v1=[1.0, 0, 0], v2=[0.0, 0, 0], output=[0.0] * 3, p=[0, 1, 1])
    case = model, Corpus.from_sentences(corpora.spelled("a Y", "b Y"))
    cap = next(digits for digits in range(10, 60) if certify(*case, cap=digits).labels is C)
    assert 28 <= cap <= 33
    short = certify(*case, cap=cap - 1)
    assert (short.labels, short.mapping, short.wrong, short.margin) == (U, C, 0, None)
    assert (short.float_labels, short.float_distance) == (None, "inf")
    assert short.left == Left(tokens=1, sentences=1, pairs=0, time=False)
    assert short.decided == {"float": 1, "exact": 0, "undecided": 1}
    assert short.reason is not None
    assert "the labels of 1 token in 1 sentence;" in short.reason


@pytest.mark.parametrize("cap", [0, -1, 10**9 + 1, 10**400, 2.5, True, "20", None])
def test_caps_that_are_none(cap: Any) -> None:
    with pytest.raises(SettingError, match="decimal digits"):
        certify(*nearly_saturated(1.0), cap=cap)


@pytest.mark.parametrize("seconds", [-1, -1e-9, float("inf"), float("nan"), "1"])
def test_time_limits_that_are_none(seconds: Any) -> None:
    with pytest.raises(SettingError, match="time limit"):
        certify(*nearly_saturated(1.0), seconds=seconds)


def test_limits_at_their_ends() -> None:
    """Without a head there are no labels to be left open."""
    case = nearly_saturated(1.0)
    assert certify(*case, cap=1, seconds=1e9).ok
    assert certify(*case, cap=10**9).ok
    nothing = certify(*case, seconds=0)
    assert nothing.outcome is U
    assert nothing.left == Left(tokens=0, sentences=0, pairs=6, time=True)
    assert nothing.decided == {"float": 0, "exact": 0, "undecided": 4}


@pytest.mark.parametrize(("cap", "outcome"), [(1, U), (18, U), (19, C)])
def test_a_cap_that_just_suffices_for_what_attention_adds(cap: int, outcome: Outcome) -> None:
    """Scores of 2^60 and 0 are nothing to floats; 60 bits, which are 19 digits, must be right."""
    model = judge.plain_model(
        [[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [3.0, 1.0, 0.0]],
        v1=[1.0, 0.0, 0.0],
        v2=[0.0, 2.0**60, 0.0],
        output=[0.0, 0.0, 1.0],
    )
    found = certify(model, Corpus.from_sentences(corpora.spelled("ab XX", "cc XX")), cap=cap)
    assert (found.outcome, found.mapping) == (outcome, outcome)
    assert float(found.r) == pytest.approx(19**0.5, rel=1e-5)  # c, which floats know
    if outcome is C:
        assert found.decided == {"float": 2, "exact": 2, "undecided": 0}
        assert found.digits == 20  # of 64 bits
        assert float(found.delta) == pytest.approx(1.0, rel=1e-5)
    else:
        assert found.decided == {"float": 2, "exact": 0, "undecided": 2}
        assert found.left == Left(tokens=0, sentences=0, pairs=3, time=False)
        assert (found.closest, found.delta) == (None, "0")


# Time: a clock that moves by 1 whenever somebody looks at it stops the work at any of its ticks.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    moments = count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(moments)))
    monkeypatch.setattr(deadline, "time", clock)
    monkeypatch.setattr(float_evaluation, "PIECE", 3)
    return moments


def deep() -> Case:
    """Two layers, head size 2, and labels that are wrong."""
    model = judge.random_model(3, attention="softmax", head_size=2, depth=2)
    return model, Corpus.from_sentences(judge.labelled(["abcab", "bca", "cabb"], [0, 1, 2] * 4))


def near_tie() -> Case:
    """Rank 1 and one layer, as memorized: labels and distances both need Arb."""
    a, b, c = ([key, 1.0, 0.0, 0.0] for key in (200.0, 0.0, -1.0))
    model = judge.plain_model(
        [a, b, c, [2.0**-20, 1.5, 0.0, 2.0**-100]],
        v1=[1.0, 0.0, 0.0, 0.0],
        v2=[0.0, 1.0, 0.0, 0.0],
        output=[0.0, 0.0, 1.0, 0.0],
        p=[0.0, 1.0, 0.0, 1.0],
    )
    return model, Corpus.from_sentences(corpora.spelled("ab XX", "ac XX", "d Y", "db YX"))


def saturated() -> Case:
    return nearly_saturated(200.0)


CASES = [deep, near_tie, saturated]


def weaker(found: Certificate, full: Certificate) -> bool:
    """Whether what is said in less time is true, and what is left is said."""
    claims = zip(found.claims.values(), full.claims.values(), strict=True)
    return all(a is b or a is U for a, b in claims) and (found.wrong or 0) <= (full.wrong or 0)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("case", CASES)
def test_time_that_runs_out_anywhere(case: Any, tmp_path: Path) -> None:
    """No claim that is not so, counts that never grow, and in the end all of it."""
    model, corpus = case()
    full = certify(model, corpus)
    before, seen, precision = None, set(), ctx.prec
    for seconds in count():
        found = certify(model, corpus, seconds=seconds)
        assert ctx.prec == precision
        assert weaker(found, full)
        assert sum(found.decided.values()) == corpus.n_tokens
        assert (found.left is None) is (found.decided["undecided"] == 0)
        if seconds % 5 == 0:
            assert check_certificate(read(found.save(tmp_path / "c.json")), model, corpus).ok
        if found.left is None:
            break
        left = (found.left.tokens, found.left.sentences, found.left.pairs)
        seen.add(left)
        assert found.left.time
        assert before is None or all(a <= b for a, b in zip(left, before, strict=True))
        before = left
    assert len(seen) > 1
    assert {**found.to_json(), "seconds": 0, "limit": 0, "digits": 0} == {
        **full.to_json(),
        "seconds": 0,
        "limit": 0,
        "digits": 0,
    }


def test_labels_leave_half_of_the_time_to_distances(clock: Iterator[int]) -> None:
    """A tie that no digits decide, beside distances that take no time."""
    table = [[1.0, 1.5, 0.0], [0.0, 2.0, 0.0]]
    model = judge.plain_model(table, v1=[0.0] * 3, v2=[0.0] * 3, output=[0.0] * 3, p=[0, 1, 0])
    corpus = Corpus.from_sentences(corpora.spelled("a X", "b Y"))
    for seconds in (40, 80):
        start = next(clock)
        found = certify(model, corpus, seconds=seconds, cap=10**6)
        assert seconds < next(clock) - start < seconds + 10
        assert (found.labels, found.mapping) == (U, C)
        assert found.left == Left(tokens=1, sentences=1, pairs=0, time=True)


def test_labels_get_what_distances_leave(clock: Iterator[int]) -> None:
    """Six labels that take digits, and hardly anything else to do: little more time is enough."""
    table = [[0.0, 2.0, 0.0], [0.0, 1.5, 2.0**-100]]
    model = judge.plain_model(table, v1=[0.0] * 3, v2=[0.0] * 3, output=[0.0] * 3, p=[0, 1, 1])
    corpus = Corpus.from_sentences(corpora.spelled("bbb YYY", "bbb YYY", "a Y"))
    start = next(clock)
    assert certify(model, corpus).labels is C
    took = next(clock) - start
    assert certify(model, corpus, seconds=1.4 * took).labels is C


def test_all_that_is_done_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is looked at before and after the corpus is numbered, then after each stage."""
    moments = count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(moments)))
    monkeypatch.setattr(sys.modules["rankone.certification.certify"], "time", clock)
    found = certify(*nearly_saturated(1.0), seconds=1)
    assert found.left is not None
    assert found.left.time
    assert found.seconds == {"float": 2.0, "exact": 1.0, "total": 3.0}
    assert certify(*nearly_saturated(1.0), seconds=1e9).ok


def test_the_time_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """None, that which was given, or that which left the certificate itself undecided."""
    case, given = nearly_saturated(1.0), []
    prove = check.prove

    def watched(*args: Any, **options: Any) -> Any:
        given.append(options["seconds"])
        return prove(*args, **options)

    monkeypatch.setattr(check, "prove", watched)
    done, late = (certify(*case, seconds=seconds) for seconds in (1e9, 0))
    short = certify(*nearly_saturated(1e3), cap=20, seconds=1e9)
    assert check_certificate(done, *case).ok
    assert check_certificate(late, *case).ok
    assert check_certificate(late, *case, seconds=1e8).ok
    assert check_certificate(short, *nearly_saturated(1e3)).ok
    assert given == [None, 0, 1e8, None]
    found = check_certificate(done, *case, seconds=0)
    assert "mapping: the certificate says certified, the proof undecided" in found.reasons
    assert found.reasons[-1] == "the time limit of 0 s was hit: give more time (--seconds)"


def test_what_is_left_is_counted() -> None:
    found = certify(*near_tie(), seconds=0)
    assert found.left == Left(tokens=7, sentences=4, pairs=21, time=True)
    assert found.decided == {"float": 0, "exact": 0, "undecided": 7}
    assert (found.r, found.delta, found.float_distance) == ("inf", "0", "inf")
    assert (found.wrong, found.margin, found.float_labels, found.closest) == (0, None, None, None)
    assert found.reason == (
        "undecided after 0 s: the labels of 7 tokens in 4 sentences and the distances of 21 pairs "
        "of contexts; give more time (--seconds)"
    )


def test_time_is_kept() -> None:
    """Contexts that differ by e^-(10^7) take minutes; half a second is half a second."""
    start = time.perf_counter()
    found = certify(*nearly_saturated(1e7), cap=10**7, seconds=0.5)
    assert time.perf_counter() - start < 2.5
    assert (found.outcome, found.limit) == (U, 0.5)
    assert found.left == Left(tokens=0, sentences=0, pairs=1, time=True)


@pytest.mark.parametrize("shape", [{"depth": 3}, {"head_size": 2}, {"attention": "hardmax"}])
def test_time_is_kept_by_large_networks(shape: dict[str, Any]) -> None:
    sizes = {"attention": "softmax", "dim": 128, "hidden": 512, "heads": 4, "head_size": 16}
    model = judge.random_model(0, **{**sizes, "positions": 40, **shape})
    text = ["abcdef" * 6] * 400
    corpus = Corpus.from_sentences(judge.labelled(text, [0] * 36 * 400))
    start = time.perf_counter()
    found = certify(model, corpus, seconds=0.3)
    assert time.perf_counter() - start < 2.3
    assert found.left is not None
    assert found.left.time


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        float_evaluation, "PIECE", 1
    )  # a network as memorize makes it takes no pieces
    told: list[tuple[str, float]] = []
    certify(*near_tie(), progress=lambda *at: told.append(at))
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages[:2] == ["float64", "exact, 128 bits"]
    assert all(0 <= share <= 1 for _, share in told)
    assert [at for at in told if at[0] == "float64"] == [("float64", 1.0)]
    monkeypatch.setattr(float_evaluation, "PIECE", 5)
    told.clear()
    certify(*deep(), progress=lambda *at: told.append(at))
    assert told == [("float64", 5 / 12), ("float64", 8 / 12), ("float64", 1.0)]
