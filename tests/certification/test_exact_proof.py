"""Certificates of exact networks: every claim against the network written out, pair by pair."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

import corpora
import exact_truth
import networks
import tasks
from exact_truth import Column, random_network, real
from rankone import Corpus
from rankone.certification import (
    Certificate,
    Outcome,
    certify,
    check_certificate,
    exact_proof,
    read_certificate,
)
from rankone.certification.certificate import Left
from rankone.errors import CertificateError, CorpusError
from rankone.nn import Model, TokenClassifier
from rankone.nn.exact import (
    ExactAttention,
    ExactBlock,
    ExactFeedForward,
    ExactModel,
    ExactNetwork,
    Sparse,
)
from rankone.nn.exact.evaluate import Evaluation
from rankone.nn.exact.numbers import exact
from rankone.nn.layers import Head

F = Fraction
C, R, U = Outcome.CERTIFIED, Outcome.REFUTED, Outcome.UNDECIDED
WORDS, LABELS, DPS = tuple("abcd"), ("X", "Y", "Z"), 60
CAP = 40  # digits: much less than the truth is known to


@dataclass(frozen=True)
class Truth:
    """Per token of a corpus: context id, logits, what it sees, and its label (-1 for none)."""

    ids: list[Column]
    logits: list[Column]
    looks: list[Any]
    gold: list[int]

    @property
    def labels(self) -> list[int]:
        return [max(range(len(row)), key=lambda c: real(row[c])) for row in self.logits]

    @property
    def wrong(self) -> int:
        pairs = zip(self.labels, self.gold, strict=True)
        return sum(found != gold for found, gold in pairs if gold >= 0)

    @property
    def unavoidable(self) -> int:
        """Errors of the best function of what tokens see."""
        seen: dict[Any, list[int]] = {}
        for look, label in zip(self.looks, self.gold, strict=True):
            if label >= 0:
                seen.setdefault(look, []).append(label)
        return sum(len(row) - max(map(row.count, row)) for row in seen.values())

    @property
    def margin(self) -> mpf:
        """Half the least lead of a token that has a label, 1/2 at most."""
        leads = [mpf(1)]
        for row, label in zip(self.logits, self.gold, strict=True):
            ordered = sorted(map(real, row))
            if label >= 0 and len(row) > 1:
                leads.append(ordered[-1] - ordered[-2])
        return min(leads) / 2

    def distances(self) -> dict[tuple[int, int], mpf]:
        """Of all pairs of tokens that see different things."""
        return {
            (i, j): mpmath.norm([real(x) - real(y) for x, y in zip(a, b, strict=True)])
            for (i, a), (j, b) in combinations(enumerate(self.ids), 2)
            if self.looks[i] != self.looks[j]
        }


def look(network: ExactNetwork) -> corpora.Look:
    if network.positions is not None:
        return corpora.LOOKS["prefix" if network.causal else "sequence"]
    if network.causal:
        deep = network.count.attentions > 1
        return corpora.LOOKS["prefix" if deep else "prefix proportions"]
    return corpora.LOOKS["proportions"]


def truth(model: ExactModel, corpus: Corpus) -> Truth:
    network, see = model.network, look(model.network)
    ids, logits, looks = [], [], []
    for sentence in corpus.sentences:
        tokens = list(sentence.tokens)
        rows = [model.vocabulary.index(token) for token in tokens]
        ids += exact_truth.context_ids(network, rows, DPS)
        logits += exact_truth.logits(network, rows, DPS)
        looks += [see(tokens, k) for k in range(len(tokens))]
    names = [*corpus.label_names, None]
    gold = [-1 if names[i] is None else model.labels.index(names[i]) for i in corpus.label_ids]
    return Truth(ids, logits, looks, gold)


def decimal(text: str) -> mpf:
    return mpf(text)


def token(corpus: Corpus, spot: Any) -> int:
    return int(corpus.offsets[spot.sentence - 1]) + spot.position - 1


def agrees(found: Certificate, model: ExactModel, corpus: Corpus) -> None:
    """Whatever is claimed is true."""
    with mp.workdps(DPS):
        true = truth(model, corpus)
        distances = true.distances()
        assert all(mpmath.norm([*map(real, x)] or [0]) <= decimal(found.r) for x in true.ids)
        if found.mapping is C:
            assert all(decimal(found.delta) < x for x in distances.values())
        if found.mapping is R:
            assert found.closest is not None
            pair = tuple(sorted(token(corpus, spot) for spot in found.closest))
            assert distances[pair] < mpf(10) ** -50
        assert (found.dtype, found.float_labels, found.float_distance) == ("exact", None, "0")
        assert found.tokens == corpus.n_tokens
        assert found.contexts == len({*true.looks})
        labelled = any(map(any, exact_truth.dense(model.network.head))) or any(model.network.bias)
        if not labelled:
            assert found.labels is found.wrong is found.unavoidable is found.margin is None
            return
        assert found.unavoidable == true.unavoidable
        if found.labels is C:
            assert found.wrong == true.wrong == true.unavoidable
            assert found.margin is not None
            assert found.margin <= true.margin
        if found.labels is R:
            assert true.wrong > true.unavoidable


def corpus_of(texts: Sequence[str], seed: int, task: str = "tags") -> Corpus:
    """Sentences of one-letter words with labels from the seed."""
    numbers = iter(divmod(seed, 3 ** (i + 1))[0] % 3 for i in range(1000))
    return tasks.corpus_of([([*t], [LABELS[next(numbers)] for _ in t]) for t in texts], task)


texts = st.lists(st.text("abcd", min_size=1, max_size=4), min_size=1, max_size=4)
labels = st.integers(0, 3**16)
jobs = st.sampled_from(["tags", "tags", "toy-last"])


@given(exact_truth.shapes(kinds=("hardmax",), activations=("relu",)), texts, labels, jobs)
def test_fractions_are_always_decided(
    shape: dict[str, Any], texts: list[str], seed: int, task: str
) -> None:
    model = ExactModel(random_network(**shape), WORDS, LABELS)
    corpus = corpus_of(texts, seed, task)
    found = certify(model, corpus, cap=CAP)
    agrees(found, model, corpus)
    true = truth(model, corpus)
    assert found.outcome is not U
    assert found.left is None
    assert found.mapping is (C if all(true.distances().values()) else R)
    if found.labels is not None:
        assert found.wrong == true.wrong


@given(exact_truth.shapes(), texts, labels, jobs)
def test_balls_claim_nothing_wrong(
    shape: dict[str, Any], texts: list[str], seed: int, task: str
) -> None:
    model = ExactModel(random_network(**shape), WORDS, LABELS)
    corpus = corpus_of(texts, seed, task)
    found = certify(model, corpus, cap=CAP)
    agrees(found, model, corpus)
    assert (found.outcome is U) <= (found.left is not None)
    assert found.decided["undecided"] + found.decided["exact"] == corpus.n_tokens


@given(exact_truth.shapes(kinds=("softmax",), density=1.0, missing=0.0), texts, labels)
def test_a_clear_difference_is_certified(
    shape: dict[str, Any], texts: list[str], seed: int
) -> None:
    """What differs by more than the cap could hide is not left undecided, unless relu bends just
    there, and certified figures are not far from the best ones."""
    model = ExactModel(random_network(**shape), WORDS, LABELS)
    corpus = corpus_of(texts, seed)
    found = certify(model, corpus, cap=80)
    with mp.workdps(DPS):
        true = truth(model, corpus)
        closest = min(true.distances().values(), default=mpf(1))
        if closest > 1e-6 and max(mpmath.norm([*map(real, x)]) for x in true.ids) < 1e6:
            assert found.mapping in (C, U)
            if found.mapping is C and len({*true.looks}) > 1:
                assert decimal(found.delta) > closest * 1e-6


# Networks of one's own.


def plain(
    table: Sequence[Sequence[Any]],
    *blocks: ExactBlock,
    head: Sequence[Sequence[Any]] | None = None,
    bias: Sequence[Any] | None = None,
    **more: Any,
) -> ExactModel:
    """Words a, b, ...; by default coordinates 0, 1, ... are the logits of X, Y, ..."""
    dim = len(table[0])
    shown = [[int(i == j) for j in range(dim)] for i in range(dim)] if head is None else head
    network = ExactNetwork(
        Sparse.dense(table, dim),
        None,
        blocks,
        Sparse.dense(shown, dim),
        tuple(map(exact, bias or [0] * len(shown))),
        **more,
    )
    return ExactModel(network, tuple("abcdef"[: len(table)]), tuple("XYZUVW"[: len(shown)]))


def attend(key: Any, query: Any, value: Any, output: Any, kind: str = "softmax") -> ExactBlock:
    """One head of size 1: rows, and the column of W^O."""
    rows = [Sparse.dense([row], len(row)) for row in (key, query, value)]
    return ExactBlock(ExactAttention((Head(*rows, Sparse.dense([[x] for x in output], 1)),), kind))


def mean(dim: int, of: int, to: int) -> ExactBlock:
    """Coordinate `to` gets the mean of coordinate `of`."""
    value = [int(c == of) for c in range(dim)]
    return attend([0] * dim, [0] * dim, value, [int(c == to) for c in range(dim)])


def spelled(*pairs: str) -> Corpus:
    return Corpus.from_sentences(corpora.spelled(*pairs))


def test_certified_with_figures() -> None:
    """Ids (x, mean of x): of a and b in ab, a and a in a. Labels: a is X, b is Y."""
    model = plain([[0, 0], [1, 0]], mean(2, 0, 1), head=[[-4, F(1, 1 << 30)], [4, 0]], bias=[2, -2])
    corpus = spelled("ab XY", "a X", "a X", "a Y")
    found = certify(model, corpus)
    assert (found.outcome, found.mapping, found.labels, found.reason) == (C, C, C, None)
    assert (found.contexts, found.tokens, found.wrong, found.unavoidable) == (3, 5, 1, 1)
    assert 0.1 < Decimal(found.delta) < 0.5  # a in ab, and a alone: 1/2, less along a direction
    assert {(spot.sentence, spot.position) for spot in found.closest or ()} == {(1, 1), (2, 1)}
    assert 1.118 < Decimal(found.r) < 1.119
    assert 0.499 < (found.margin or 0) <= 0.5
    assert (found.layer, found.left, found.float_labels) == (1, None, None)
    assert found.decided == {"float": 0, "exact": 5, "undecided": 0}
    agrees(found, model, corpus)


def test_two_contexts_with_one_id_are_a_witness() -> None:
    """Nothing attends: a is a, wherever it is."""
    model = plain([[1, 0], [0, 1]], ExactBlock())
    found = certify(model, spelled("ab XY", "bb YY", "a X"))
    assert (found.outcome, found.mapping, found.labels) == (R, R, C)
    assert found.reason is not None
    assert "(sentence 1, position 2) and line" in found.reason
    assert "(sentence 2, position 1) must differ, but have the same context id" in found.reason
    agrees(found, model, spelled("ab XY", "bb YY", "a X"))


def test_a_wrong_label_is_a_witness() -> None:
    model = plain([[1, 0], [0, 1]], mean(2, 0, 0))
    corpus = spelled("ab XY", "a Y")
    found = certify(model, corpus)
    assert (found.outcome, found.mapping, found.labels) == (R, C, R)
    assert (found.wrong, found.unavoidable) == (1, 0)
    assert "(sentence 2, position 1) is labelled Y, but the network chooses X" in (
        found.reason or ""
    )


def test_no_head_claims_no_labels() -> None:
    model = plain([[0, 5], [1, 5]], ExactBlock(mean(2, 0, 1).attention, bent()), head=[[0, 0]] * 2)
    corpus = spelled("ab XY", "a X")
    found = certify(model, corpus)
    assert (found.outcome, found.labels, found.wrong, found.margin) == (C, None, None, None)
    agrees(found, model, corpus)


def bent() -> ExactFeedForward:
    """Reads both coordinates, and adds nothing that is seen."""
    return ExactFeedForward.of([({0: 1, 1: 1}, 0, {0: 1})], 2)


def test_ids_are_measured_where_they_are_read() -> None:
    """Contexts differ in a coordinate that nothing reads after attention: refuted."""
    model = plain([[1, 0, 0], [0, 1, 0]], mean(3, 0, 2), head=[[1, 0, 0], [0, 1, 0]])
    assert certify(model, spelled("ab XY", "a X")).mapping is R
    read = plain([[1, 0, 0], [0, 1, 0]], mean(3, 0, 2), head=[[1, 0, F(1, 9)], [0, 1, 0]])
    assert certify(read, spelled("ab XY", "a X")).mapping is C


def test_tokens_without_labels_are_not_asked() -> None:
    """Only the last token of a sentence is; the first would be wrong."""
    model = plain([[1, 0], [0, 1]], mean(2, 0, 0))
    corpus = tasks.corpus_of(corpora.spelled("ab YY", "b Y"), "toy-last")
    found = certify(model, corpus)
    assert (found.outcome, found.wrong, found.unavoidable, found.contexts) == (C, 0, 0, 3)
    agrees(found, model, corpus)


def test_a_label_that_is_not_asked_has_no_margin() -> None:
    """The logits of a are close together, those of b are not, and only b has a label."""
    model = plain([[F(51, 100), F(49, 100)], [0, 1]], mean(2, 0, 0))
    every = certify(model, spelled("ab XY"))
    asked = certify(model, tasks.corpus_of(corpora.spelled("ab XY"), "toy-last"))
    assert every.margin is not None
    assert asked.margin is not None
    assert every.margin < asked.margin
    assert every.worst is not None
    assert every.worst.position == 1


def test_a_label_that_is_not_asked_may_stay_open() -> None:
    """The logits of a are equal balls, but only b has a label."""
    corpus = tasks.corpus_of(corpora.spelled("ab YY"), "toy-last")
    found = certify(softly(F(0)), corpus, cap=50)
    assert (found.outcome, found.labels, found.left) == (C, C, None)
    assert certify(softly(F(0)), spelled("ab XY"), cap=50).labels is U


@pytest.mark.parametrize(("attentions", "contexts"), [(1, 5), (2, 6)])
def test_a_second_causal_layer_sees_the_order(attentions: int, contexts: int) -> None:
    """c after ab and after ba: one bag of words, two prefixes."""
    blocks = [attend([0, 0], [0, 0], [1, 0], [1, 1])] * attentions
    model = plain([[1, 0], [2, 0], [4, 0]], *blocks, causal=True)
    corpus = spelled("abc XXX", "bac XXX")
    found = certify(model, corpus)
    assert (found.mapping, found.contexts) == (C, contexts)
    agrees(found, model, corpus)


def test_one_context_has_nothing_to_differ_from() -> None:
    found = certify(plain([[1, 0]]), spelled("a X", "aa XX"))
    assert (found.outcome, found.contexts, found.delta, found.closest) == (C, 1, "inf", None)


@pytest.mark.parametrize("power", [0, 400, 700])
def test_r_bounds_the_longest_id(power: int) -> None:
    """Also where no float holds it: the first is not taken for the longest."""
    largest = 2 * 10**power
    model = plain([[F(largest, 10**100)], [largest], [1]])
    found = certify(model, spelled("a X", "b X", "c X"))
    assert largest < Decimal(found.r) < largest * Decimal("1.0001")


def near(x: Fraction) -> ExactBlock:
    """Adds tanh(1) to both logits, and x to the first."""
    unit = ExactFeedForward.of([({}, 1, {0: 1, 1: 1})], 2, {0: x}, activation="tanh")
    return ExactBlock(None, unit)


def test_the_margin_is_a_lower_bound_among_balls() -> None:
    """Leads that overlap at a low precision: the margin must be below the smallest."""
    logits = [arb(1), arb(0.5, 2.0**-10), arb(0.5, 2.0**-5)]
    found = exact_proof._margin(logits, 0)  # leads 1/2 +- 2^-10, and 1/2 +- 2^-5
    assert found <= (0.5 - 2.0**-5) / 2
    assert exact_proof._margin([arb(1, 0.25), exact(0)], 0) <= 0.375
    assert exact_proof._margin([exact(9), exact(0)], 0) == 0.5
    assert exact_proof._margin([exact(9)], 0) == 0.5


def test_the_gap_is_a_lower_bound_among_balls() -> None:
    """A fraction's gap of 1/3, and a ball's that may be less by what the precision hides."""
    with ctx.workprec(53):
        third = arb(1) / 3
        points: Any = [([exact(x)], i) for i, x in enumerate((0, F(1, 3), 2))]
        points.append(([2 + third], 3))
        found = exact_proof._gap(points, ((0, exact(1)),))
        assert found is not None
        assert found[0] <= (2 + third - 2).lower()
        assert found[0] <= F(1, 3).numerator / 3


def test_points_that_meet_on_every_axis_are_told_apart() -> None:
    """A square: no axis separates the corners, some other direction does."""
    table = [[x, y] for x in (0, 1) for y in (0, 1)]
    found = certify(plain(table), spelled("a X", "b Y", "c X", "d X"))
    assert found.mapping is C
    assert 0 < Decimal(found.delta) < 1


def test_many_points_of_a_grid_are_told_apart() -> None:
    """Fractions are never left undecided for want of a direction."""
    rows = [[x, y, z] for x in range(8) for y in range(8) for z in range(8)]
    ids: Any = [[exact(x) for x in row] for row in rows]
    found = Evaluation([], (0, 1, 2), ids, [])
    numbers = np.arange(len(rows))
    assert exact_proof._mapping(found, numbers, numbers, 1).outcome is C


# What cannot be decided.


def softly(gap: Fraction) -> ExactModel:
    """Word a is X by twice this, with logits that are balls."""
    return plain([[0, 0], [0, 1]], near(gap), head=[[1, 0], [0, 1]])


def test_a_cap_that_is_too_small_for_a_label() -> None:
    model, corpus = softly(F(1, 10**60)), spelled("a X", "b Y")
    short = certify(model, corpus, cap=50)
    assert (short.outcome, short.labels, short.margin) == (U, U, None)
    assert short.left == Left(tokens=1, sentences=1, pairs=0, time=False)
    assert short.reason == (
        "undecided with 50 digits: the labels of 1 token in 1 sentence; give a larger --cap"
    )
    assert short.digits <= 51
    found = certify(model, corpus, cap=200)
    assert (found.outcome, found.left) == (C, None)
    assert 4.9e-61 < (found.margin or 0) <= 5e-61


def nearly_saturated() -> ExactModel:
    """Contexts of a that differ by about e^-300 in what softmax adds."""
    table = [[300, 1, 0], [0, 1, 0], [-1, 1, 0]]
    return plain(table, attend([1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]), head=[[1, 0, 1]])


def test_a_cap_that_is_too_small_for_a_distance() -> None:
    model, corpus = nearly_saturated(), spelled("ab XX", "ac XX")
    short = certify(model, corpus, cap=60)
    assert (short.outcome, short.mapping, short.labels, short.delta) == (U, U, C, "0")
    assert short.left == Left(tokens=0, sentences=0, pairs=6, time=False)
    assert "the distances of 6 pairs of contexts; give a larger --cap" in (short.reason or "")
    found = certify(model, corpus, cap=300)
    assert (found.outcome, found.mapping) == (C, C)
    assert 100 < found.digits <= 301


def test_no_time_decides_nothing() -> None:
    model, corpus = nearly_saturated(), spelled("ab XX", "ac XX")
    found = certify(model, corpus, seconds=0)
    assert (found.outcome, found.mapping, found.labels, found.r) == (U, U, U, "inf")
    assert found.left == Left(tokens=4, sentences=2, pairs=6, time=True)
    assert found.reason is not None
    assert found.reason.startswith("undecided after 0 s: the labels of 4 tokens in 2 sentences and")
    assert found.decided == {"float": 0, "exact": 0, "undecided": 4}


def test_time_that_runs_out_later_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first evaluation proves the labels; there is no second."""
    model, corpus = nearly_saturated(), spelled("ab XX", "ac XX")
    calls: list[int] = []
    real_evaluate = exact_proof.evaluate

    def once(*given: Any) -> Evaluation:
        calls.append(ctx.prec)
        if len(calls) > 1:
            raise exact_proof.TimeIsUpError
        return real_evaluate(*given)

    monkeypatch.setattr(exact_proof, "evaluate", once)
    found = certify(model, corpus, seconds=1000)
    assert (found.outcome, found.mapping, found.labels) == (U, U, C)
    assert found.left == Left(tokens=0, sentences=0, pairs=6, time=True)
    assert Decimal(found.r) < 1000
    assert calls == sorted(calls)


# Certificates in files.


@pytest.fixture
def certified(tmp_path: Path) -> tuple[ExactModel, Corpus, Path]:
    model = plain([[0, 0], [1, 0]], mean(2, 0, 1), head=[[-4, F(1, 1 << 30)], [4, 0]], bias=[2, -2])
    corpus = spelled("ab XY", "a X", "a X", "a Y")
    return model, corpus, certify(model, corpus).save(tmp_path / "certificate.json")


def test_a_certificate_is_read_back_and_checked(
    certified: tuple[ExactModel, Corpus, Path],
) -> None:
    model, corpus, path = certified
    found = check_certificate(read_certificate(path), model, corpus)
    assert (found.outcome, found.reasons) == ("certified", ())
    assert json.loads(path.read_text())["dtype"] == "exact"
    assert read_certificate(path).is_of(model)


@pytest.mark.parametrize(
    "case", [(nearly_saturated(), spelled("ab XX", "ac XX")), (softly(F(0)), spelled("a Y"))],
    ids=["distance", "label"],
)  # fmt: skip
def test_what_is_undecided_stands_as_such(case: tuple[ExactModel, Corpus]) -> None:
    made = certify(*case, cap=50)
    assert made.outcome is U
    assert check_certificate(made, *case).ok


def test_what_is_refuted_stands_as_such() -> None:
    model, corpus = plain([[1, 0], [0, 1]]), spelled("ab XX", "bb YY")
    made = certify(model, corpus)
    assert (made.mapping, made.labels) == (R, R)
    assert check_certificate(made, model, corpus).ok
    forged = replace(made, outcome=C, mapping=C, labels=C, reason=None)
    assert len(check_certificate(forged, model, corpus).reasons) >= 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dtype", "float64"),
        ("outcome", "refuted"),
        ("labels", "undecided"),
        ("ok", False),
        ("layer", 0),
        ("version", 1),
    ],
)
def test_files_that_contradict_themselves_are_not_read(
    certified: tuple[ExactModel, Corpus, Path], field: str, value: Any
) -> None:
    path = certified[2]
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(CertificateError):
        read_certificate(path)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("layer", 2, "layer: the certificate says 2, the proof 1"),
        ("delta", "6.0e-01", "delta: "),
        ("r", "1.0e+00", "r: "),
        ("margin", 0.75, "margin: "),
        ("contexts", 2, "contexts: "),
        ("wrong", 0, "wrong: "),
        ("unavoidable", 0, "unavoidable: "),
        ("tokens", 4, "tokens: "),
        ("closest", None, "closest: "),
        ("reason", "none", "reason: "),
    ],
)
def test_edited_certificates_do_not_stand(
    certified: tuple[ExactModel, Corpus, Path], field: str, value: Any, reason: str
) -> None:
    model, corpus, path = certified
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    found = check_certificate(read_certificate(path), model, corpus)
    assert any(text.startswith(reason) for text in found.reasons), found.reasons


def test_a_certificate_of_another_model_does_not_stand(
    certified: tuple[ExactModel, Corpus, Path],
) -> None:
    model, corpus, path = certified
    certificate = read_certificate(path)
    bias = (model.network.bias[0] + exact(F(1, 10**30)), *model.network.bias[1:])
    other = replace(model, network=replace(model.network, bias=bias))
    assert not certificate.is_of(other)
    found = check_certificate(certificate, other, corpus)
    assert found.reasons[0] == "the weights are not those that were certified"
    words = check_certificate(certificate, replace(model, vocabulary=("a", "c")), corpus)
    assert words.reasons == ("the model's vocabulary is not the one that was certified",)
    fewer = check_certificate(certificate, model, spelled("ab XY", "a X", "a Y"))
    assert len(fewer.reasons) == 1


def test_a_float64_certificate_cannot_pass_for_an_exact_one(
    certified: tuple[ExactModel, Corpus, Path],
) -> None:
    model, corpus, path = certified
    float64 = certify(model.to_float64(), corpus)
    assert float64.ok
    assert not check_certificate(float64, model, corpus).ok
    assert not check_certificate(read_certificate(path), model.to_float64(), corpus).ok


def test_what_the_model_does_not_know_is_refused() -> None:
    model = plain([[1, 0], [0, 1]])
    with pytest.raises(CorpusError, match="does not have the word 'z'"):
        certify(model, spelled("az XY"))
    with pytest.raises(CorpusError, match="does not have the label 'Q'"):
        certify(model, spelled("ab XQ"))
    short = replace(model, network=replace(model.network, positions=Sparse.of([{}], 2)))
    with pytest.raises(Exception, match=r"positions"):
        certify(short, spelled("ab XY"))


# The last attention of a float network.


@torch.no_grad()
def two_blocks(*, first: bool, between: bool, depth: int = 2) -> Model:
    """Words a and b are 0 and 1. Only the attention of the last block averages them into the last
    coordinate; the `first` averages zeros, if it is there, and `between` is a layer after it."""
    shape = networks.architecture("softmax", "dense", depth=depth)
    shape = replace(shape, vocabulary=3, dim=3, heads=1, head_size=1, hidden=1, labels=2)
    network = TokenClassifier(shape, dtype=torch.float64)
    for parameter in network.parameters():
        parameter.zero_()
    network.table[1, 0] = 1.0
    last = network.blocks[-1].attention
    last.value[0, 0, 0] = last.output[0, 2, 0] = 1.0
    if first:
        network.blocks[0].attention.value[0, 0, 1] = 1.0
        network.blocks[0].attention.output[0, 2, 0] = 1.0
    if between:
        network.blocks[0].feedforward.bias2[1] = 1.0
    network.head.weight[:] = torch.tensor([[-4.0, 0, 1e-9], [4.0, 0, 0]])
    network.head.bias[:] = torch.tensor([2.0, -2.0])
    return Model(network, ("a", "b"), ("X", "Y"))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("between", [True, False])
@pytest.mark.parametrize("depth", [2, 3])
def test_the_layer_is_the_last_that_attends(first: bool, between: bool, depth: int) -> None:
    model = two_blocks(first=first, between=between, depth=depth)
    corpus = spelled("ab XY", "a X")
    found = certify(model, corpus)
    assert (found.outcome, found.mapping, found.layer) == (C, C, depth)
    assert 0.1 < Decimal(found.delta) < 0.5
    assert check_certificate(found, model, corpus).ok
    assert not check_certificate(replace(found, layer=1), model, corpus).ok


def test_where_no_layer_tells_apart_the_first_is_named() -> None:
    model = two_blocks(first=True, between=True)
    with torch.no_grad():
        model.network.blocks[-1].attention.output.zero_()
    found = certify(model, spelled("ab XY", "a X"))
    assert (found.mapping, found.layer) == (R, 1)


def test_the_layer_of_an_exact_network() -> None:
    nothing, attends = ExactBlock(), mean(2, 0, 1)
    for blocks, layer in (((nothing, attends), 2), ((attends, attends, nothing), 2), ((), 1)):
        assert certify(plain([[1, 0], [0, 1]], *blocks), spelled("a X")).layer == layer
