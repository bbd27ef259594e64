"""What floats cannot decide: coincidences are refuted, tiny gaps separated, the cap is kept."""

from __future__ import annotations

from math import ceil, exp, log, log10
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, ctx
from mpmath import mpf

from certification import judge
from rankone import Corpus
from rankone.certification import Certificate, Outcome, certify
from rankone.certification.float_evaluation import evaluate
from rankone.certification.label_heads import head_of
from rankone.certification.referee import Referee, _floats, neighbours
from rankone.decimals import log10 as log10_of
from rankone.nn import Model


def judged(model: Model, *texts: str, cap: int = 400) -> Certificate:
    """Without labels that matter: the model has no head."""
    return certify(model, Corpus.from_sentences(judge.labelled(texts, [0] * 999)), cap=cap)


def plain(table: list[list[float]], **settings: Any) -> Model:
    """x = (key, query, where attention writes)."""
    given = {"v1": [1.0, 0.0, 0.0], "v2": [0.0, 1.0, 0.0], "output": [0.0, 0.0, 1.0]}
    return judge.plain_model(table, **{**given, **settings})


ONE = [1.0, 1.0, 0.0]

COINCIDING = {
    "two words with one vector": (plain([ONE, ONE, [2.0, 1.0, 0.0]]), ["ac", "bc"]),
    "no key": (plain([ONE, [2.0, 1.0, 0.0]], v1=[0.0, 0.0, 0.0]), ["ab", "abb"]),
    "no query, equal means": (
        plain([[float(i), 0.0, 0.0] for i in (1, 2, 3, 4)], v2=[0.0, 0.0, 0.0]),
        ["abcd", "ad"],
    ),
    "nothing is written": (plain([ONE, [2.0, 1.0, 1.0]], output=[0.0, 0.0, 0.0]), ["ab", "abb"]),
    "one word is moved onto another": (
        plain([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [2.0, 0.0, 0.0]]),
        ["ac", "b"],
    ),
}


@pytest.mark.parametrize("name", COINCIDING)
def test_one_context_id_for_two_contexts_is_refuted(name: str) -> None:
    model, texts = COINCIDING[name]
    found = judged(model, *texts)
    assert found.mapping is Outcome.REFUTED is found.outcome
    assert found.delta == "0"
    assert found.reason is not None
    assert found.reason.endswith("must differ, but have the same context id")
    assert found.closest is not None
    sentences = judge.labelled(texts, [0] * 99)
    with judge.digits():
        truth = judge.truth(model, sentences)
        starts = [sum(map(len, texts[: spot.sentence - 1])) for spot in found.closest]
        i, j = sorted(s + spot.position - 1 for s, spot in zip(starts, found.closest, strict=True))
        assert truth.looks[i] != truth.looks[j]
        assert truth.distances()[i, j] < 1e-100


def test_proportional_sentences_are_one_context() -> None:
    found = judged(plain([ONE, [2.0, 1.0, 0.0]]), "ab", "abab", "ba")
    assert found.outcome is Outcome.CERTIFIED
    assert found.contexts == 2


@pytest.mark.parametrize("output", [[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, -0.25, 3.0]])
@pytest.mark.parametrize("top", [40.0, 140.0, 1000.0, 7000.0])
def test_gaps_that_no_float_shows(top: float, output: list[float]) -> None:
    """Keys top, 0 and -1: the averages of {top, 0} and {top, -1} differ by about top e^-top."""
    model = plain([[top, 1.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 1.0, 0.0]], output=output)
    found = judged(model, "ab", "ac", cap=4000)
    assert found.outcome is Outcome.CERTIFIED
    with ctx.workprec(30_000):
        weights = [(arb(low) - top).exp() for low in (0, -1)]
        a, b = (top / (1 + weights[0]), (top - weights[1]) / (1 + weights[1]))
        gap = abs(a - b) * sum((arb(w) ** 2 for w in output), arb(0)).sqrt()
        assert arb(found.delta) < gap
        assert log10_of(found.delta) == pytest.approx(float(gap.log() / arb(10).log()), abs=2e-5)
    assert found.decided["exact"] == 2
    assert found.digits > top / 2.4


def test_a_gap_that_no_float_shows_across_the_diagonal() -> None:
    """No float sees attention move anything apart, so the direction is that of (1, 1, 1)."""
    model = plain([[140.0, 1.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 1.0, 0.0]], output=[1.0, 0.0, -1.0])
    assert judged(model, "ab", "ac").outcome is Outcome.CERTIFIED


def test_contexts_that_differ_across_the_main_direction() -> None:
    """Means (0, 0), (4, 0), (0, 1/2), (0, -1/2): the last two differ where the first two agree."""
    model = judge.random_model(0, attention="softmax", head_size=2, hidden=0, feedforward="rank1")
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.zero_()
        table = [[0.0, 0.0, 1.0], [8.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]
        model.network.table[:4] = torch.tensor(table)
        layer = model.network.blocks[0].attention
        layer.value[0, 0, 0] = layer.value[0, 1, 1] = 1.0
        layer.output[0, 0, 0] = layer.output[0, 1, 1] = 1.0
    assert judged(model, "a", "ab", "ac", "ad").outcome is Outcome.CERTIFIED


@pytest.mark.parametrize("cap", [20, 100, 900])
def test_the_cap_is_kept_and_said(cap: int) -> None:
    model = plain([[7000.0, 1.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
    found = judged(model, "ab", "ac", "b", cap=cap)
    assert found.mapping is Outcome.UNDECIDED is found.outcome
    assert found.delta == "0"
    assert found.reason is not None
    assert f"{cap:,} digits" in found.reason
    assert "--cap" in found.reason
    assert found.digits <= cap + 1
    assert found.cap == cap
    assert found.decided["undecided"] == 2
    assert sum(found.decided.values()) == found.tokens


@pytest.mark.parametrize("score", [300.0, 3000.0])
def test_no_digit_more_than_needed(score: float) -> None:
    """Weights of 1 and e^-score take score / ln 2 bits to add up, and some more: at once.

    For contexts of a and for those of d.
    """
    model = plain([[score, 1.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [score - 1, 1.0, 9.0]])
    corpus = Corpus.from_sentences(judge.labelled(["ab", "ac", "db", "dc"], [0] * 8))
    stages: dict[str, None] = {}
    found = certify(model, corpus, progress=lambda stage, _: stages.setdefault(stage))
    assert found.outcome is Outcome.CERTIFIED
    bits = [int(stage.split()[1].replace(",", "")) for stage in stages if "exact" in stage]
    assert bits == [128, pytest.approx(128 + (score + 1) / log(2), abs=1.5)]
    assert found.digits == ceil(bits[-1] * log10(2))


def test_several_heads() -> None:
    """Equal words are refuted, tiny gaps separated; the averages of both heads count."""
    model = judge.random_model(3, attention="softmax", heads=2, head_size=2)
    with torch.no_grad():
        model.network.head.weight.zero_()
        model.network.head.bias.zero_()
        layer = model.network.blocks[0].attention
        layer.key *= 30
        layer.query *= 30
    assert judged(model, "abc", "abd", "ab", cap=4000).outcome is Outcome.CERTIFIED
    with torch.no_grad():
        model.network.table[1] = model.network.table[0]
    found = judged(model, "ac", "bc", cap=200)
    assert found.outcome is Outcome.REFUTED


def test_context_ids_are_those_of_the_first_block() -> None:
    """Whatever the last one writes, here nothing. They are too close for balls of floats."""
    model = judge.random_model(3, attention="softmax", heads=2, head_size=2, depth=2)
    with torch.no_grad():
        model.network.head.weight.zero_()
        model.network.head.bias.zero_()
        first, last = (block.attention for block in model.network.blocks)
        first.key *= 30
        first.query *= 30
        last.output.zero_()
    found = judged(model, "abc", "abd", "ab", cap=4000)
    assert found.decided["exact"] > 0
    assert found.mapping is Outcome.CERTIFIED


def test_hardmax_that_tells_contexts_apart_or_not() -> None:
    model = judge.random_model(0, attention="hardmax", dim=2)
    with torch.no_grad():
        model.network.head.weight.zero_()
        model.network.head.bias.zero_()
        table = [[1.0, 1.0], [1.0, 3.0], [1.0, 2.0], [0.0, 9.0]]
        model.network.table[:4] = torch.tensor(table)
        layer = model.network.blocks[0].attention
        layer.key[0], layer.query[0] = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
        layer.value[0], layer.output[0] = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0], [0.5]])
    assert judged(model, "ca", "c", "cb").outcome is Outcome.CERTIFIED
    assert judged(model, "cab", "c").outcome is Outcome.REFUTED
    assert judged(model, "ac", "acd").outcome is Outcome.REFUTED


def test_hardmax_that_merges_dozens_of_contexts() -> None:
    """The repeated word wins, whatever stands beside it."""
    rng = np.random.default_rng(0)
    rest = ("".join(rng.choice(list("bcdef"), rng.integers(1, 6))) for _ in range(60))
    texts = sorted({"a" * int(rng.integers(1, 9)) + text for text in rest})
    model = judge.random_model(0, attention="hardmax")
    corpus = Corpus.from_sentences(judge.labelled(texts, [0] * 9999))
    assert certify(model, corpus, cap=200).mapping is Outcome.REFUTED


def test_gaps_of_neighbours_on_a_line() -> None:
    """In order, divided by the length, from below; the third is known well enough, or the last."""
    line = [(arb(3), 7), (arb(1), 5), (arb(1.5), 6)]
    found, tight = neighbours(line, arb(2), final=False)
    assert tight is None
    assert [pair for _, pair in found] == [(5, 6), (6, 7)]
    assert [float(lower) for lower, _ in found] == [0.25, 0.75]
    for final in (False, True):
        meeting = [(arb(1, 0.25), 1), (arb(1.5, 0.25), 2), (arb(9), 3)]
        assert neighbours(meeting, arb(1), final=final) == ([], (1, 2))
    rough = [(arb(0, 2.0**-9), 1), (arb(1, 2.0**-9), 2)]
    assert neighbours(rough, arb(1), final=False) == ([], (1, 2))
    found, tight = neighbours(rough, arb(1), final=True)
    assert (float(found[0][0]), tight) == (pytest.approx(1 - 2.0**-8, rel=1e-9), None)
    good = [(arb(0, 2.0**-13), 1), (arb(1, 2.0**-13), 2)]
    assert neighbours(good, arb(1), final=False)[1] is None


def test_balls_as_floats() -> None:
    """Off by what the midpoint is rounded and by the radius; rounded up."""
    with ctx.workprec(200):
        third = arb(1) / 3
        wide = third + arb(0, 2.0**-60)
        mid, rad = _floats([third, wide, arb(0.5)])
        assert mid.tolist() == [1 / 3, 1 / 3, 0.5]
        lost = float(abs(third - 1 / 3))
        assert rad == pytest.approx([lost, lost + 2.0**-60, 5e-324], rel=1e-9, abs=0)
        for x, m, r in zip((third, wide), mid.tolist(), rad.tolist(), strict=False):
            assert (x - m).abs_upper() <= arb(r)


def test_precision_rises_to_the_cap() -> None:
    model = plain([ONE, [2.0, 1.0, 0.0]])
    rows, offsets = np.array([0, 1, 1, 0, 1]), np.array([0, 2, 3, 5])

    def bits(cap: int, needed: int = 0) -> list[int]:
        referee, used = Referee(model.network, rows, offsets, cap, lambda *_: None), []
        for _ in referee._rising(True):
            used.append(ctx.prec)
            referee.needed = needed
        assert referee.bits == used[-1]
        return used

    before = ctx.prec
    assert bits(1000) == [128, 256, 512, 1000]
    assert bits(1000, needed=700) == [128, 700, 1000]
    assert bits(100) == [100]
    assert bits(128) == [128]
    assert ctx.prec == before
    referee = Referee(model.network, rows, offsets, 100, lambda *_: None)
    assert [referee.place(k) for k in (0, 1, 2, 4)] == [
        ([0, 1], 0),
        ([0, 1], 1),
        ([1], 0),
        ([0, 1], 1),
    ]
    assert not list(referee._rising(False))
    assert referee.bits == 0


def near_half(side: float) -> Model:
    """y of word a is 3/2 + side (30 - average of keys 30 and 0) = 3/2 + side 30 / (1 + e^30).

    Coordinates are key, query, 3/2 (2 for word b), where attention writes, and the number 30.
    """
    return judge.plain_model(
        [[30.0, 1.0, 1.5, 0.0, 30.0], [0.0, 1.0, 2.0, 0.0, 30.0]],
        v1=[1.0, 0.0, 0.0, 0.0, 0.0],
        v2=[0.0, 1.0, 0.0, 0.0, 0.0],
        output=[0.0, 0.0, 0.0, 1.0, 0.0],
        p=[0.0, 0.0, 1.0, -side, side],
    )


@pytest.mark.parametrize("size", [2.0**-8, 2.0**-20, 2.0**-100])
@pytest.mark.parametrize("side", [1, -1])
def test_labels_that_no_float_decides(side: int, size: float) -> None:
    """y is off 3/2 by 10^-14 to 10^-42, to either side: digits decide, and decide rightly."""
    model = near_half(side * size)
    right, other = ("Y", "X") if side > 0 else ("X", "Y")
    sentences = [(["a", "b"], [right, "Y"])]
    with judge.digits():
        assert judge.truth(model, sentences).wrong == []
    found = certify(model, Corpus.from_sentences(sentences), cap=100)
    assert found.labels is Outcome.CERTIFIED
    assert found.decided == {"float": 1, "exact": 1, "undecided": 0}
    found = certify(model, Corpus.from_sentences([(["a", "b"], [other, "Y"])]), cap=100)
    assert found.outcome is Outcome.REFUTED
    assert found.wrong == 1
    assert found.reason is not None
    assert found.reason.startswith("line 1 (sentence 1, position 1)")


def test_the_worst_token_is_the_one_with_the_margin() -> None:
    model = near_half(-(2.0**-8))
    found = certify(model, Corpus.from_sentences([(["b", "a"], ["Y", "X"])]))
    assert found.margin == pytest.approx(30 / (1 + exp(30)) / 2**8, rel=1e-5)
    assert found.worst is not None
    assert found.worst.position == 2


@pytest.mark.parametrize("words", ["ab", "ba"])
def test_the_smallest_margin_of_several(words: str) -> None:
    """Outputs of 3/2 + 2^-100 and + 2^-60, in either order: no float decides any of them."""
    table, zeros = [[0.0, 1.5, 2.0**-100], [1.0, 1.5, 2.0**-60]], [0.0] * 3
    model = judge.plain_model(table, v1=zeros, v2=zeros, output=zeros, p=[0.0, 1.0, 1.0])
    found = certify(model, Corpus.from_sentences([(list(words), ["Y", "Y"])]), cap=50)
    assert found.decided == {"float": 0, "exact": 2, "undecided": 0}
    assert found.digits == 39  # 128 bits, which are enough
    assert found.margin == pytest.approx(2.0**-100, rel=1e-5, abs=0)
    assert found.worst is not None
    assert found.worst.position == words.index("a") + 1


def test_a_tie_is_left_undecided() -> None:
    corpus = Corpus.from_sentences([(["a", "b"], ["X", "Y"])])
    found = certify(near_half(0.0), corpus, cap=50)
    assert found.labels is Outcome.UNDECIDED
    assert found.decided["undecided"] == 1
    assert found.margin is None


def test_labels_after_a_tie_are_decided() -> None:
    """Outputs 3/2 and 3/2 + 2^-100, one after the other: the first waits for more digits."""
    table, zeros = [[0.0, 1.5, 0.0], [1.0, 1.5, 2.0**-100]], [0.0] * 3
    model = judge.plain_model(table, v1=zeros, v2=zeros, output=zeros, p=[0.0, 1.0, 1.0])
    found = certify(model, Corpus.from_sentences([(["a", "b"], ["X", "Y"])]), cap=50)
    assert found.labels is Outcome.UNDECIDED
    assert found.decided == {"float": 0, "exact": 1, "undecided": 1}
    wrong = certify(model, Corpus.from_sentences([(["a", "b"], ["X", "X"])]), cap=50)
    assert (wrong.labels, wrong.wrong) == (Outcome.REFUTED, 1)


@pytest.mark.parametrize("at", [[0], [1, 4], [0, 1, 2, 3, 4]])
def test_context_ids_once_more(at: list[int]) -> None:
    """Those asked for are known to the last bit, along the direction too; the others stay."""
    model = judge.random_model(5, attention="softmax", head_size=2, positions=3)
    texts = ["abc", "ba"]
    rows = np.array([judge.WORDS.index(c) for text in texts for c in text])
    contexts, head = np.arange(5), head_of(model.network.head)
    offsets = np.array([0, 3, 5])
    old, _ = evaluate(model.network, rows, offsets, contexts, head, lambda *_: None)
    assert old is not None
    referee = Referee(model.network, rows, offsets, 1000, lambda *_: None)
    new = referee.refine(old, np.array(at))
    moved, q = new.locate(np.arange(5))
    assert (referee.undecided, referee.tokens, referee.bits) == (set(), set(at), 128)
    with judge.digits():
        literal = judge.Literal(model.network)
        exact = [point for ids in (rows[:3], rows[3:]) for point in literal(ids.tolist())[0]]
        for k, (c, place) in enumerate((c, i) for text in texts for i, c in enumerate(text)):
            word = literal.p["table"][judge.WORDS.index(c)]
            x = [a + b for a, b in zip(word, literal.p["positions"][place], strict=True)]
            added = [a - b for a, b in zip(exact[k], x, strict=True)]
            along = judge.dot(judge.numbers(old.direction.tolist()), added)
            points = [*zip(added, moved[:, k].mid, moved[:, k].rad, strict=True)]
            points += zip(exact[k], q[:, k].mid, q[:, k].rad, strict=True)
            points.append((along, new.along.mid[k], new.along.rad[k]))
            for number, mid, rad in points:
                assert abs(number - mpf(float(mid))) <= mpf(float(rad))
                assert k not in at or rad <= 2.0**-53 * abs(mid) * 1.001
            if k not in at:
                assert new.along.rad[k] == old.along.rad[k]


def test_a_tie_of_logits_is_left_undecided() -> None:
    """Two labels with one row and one bias: no digits decide between them."""
    model = judge.random_model(0)
    with torch.no_grad():
        model.network.head.weight[:] = 0.0
        model.network.head.bias[:] = torch.tensor([1.0, 1.0, 0.0])
        model.network.head.weight[:2] = 1e-3
    found = certify(model, Corpus.from_sentences([(["a", "b"], ["X", "X"])]), cap=50)
    assert (found.labels, found.wrong, found.margin) == (Outcome.UNDECIDED, 0, None)
    assert found.decided["undecided"] == 2


@pytest.mark.parametrize("straight", [True, False])
def test_several_contexts_that_no_float_tells_apart(straight: bool) -> None:
    """Keys 200 and 0, -1, -2: three averages of a, the closest of which are those of -1 and -2.

    A sentence without a shows floats in which direction attention moves tokens.
    """
    keys = (200.0, 0.0, -1.0, -2.0)
    model = plain([[key, 1.0, 0.0] for key in keys])
    if not straight:  # the same layer as a head of size 1
        general = judge.random_model(0, attention="softmax", hidden=0, feedforward="rank1")
        layer, old = general.network.blocks[0].attention, model.network.blocks[0].attention
        with torch.no_grad():
            for parameter in general.network.parameters():
                parameter.zero_()
            general.network.table[:4] = model.network.table[:4]
            layer.key[0, 0], layer.value[0, 0] = old.v1, old.v1
            layer.query[0, 0], layer.output[0, :, 0] = old.v2, old.output
        model = general
    found = judged(model, "ab", "ac", "ad", "b")
    assert found.outcome is Outcome.CERTIFIED
    assert found.decided["exact"] == 3
    with ctx.workprec(2000):
        weights = [(low, (arb(low) - 200).exp()) for low in keys[2:]]
        one, other = ((200 + low * weight) / (1 + weight) for low, weight in weights)
        assert arb(found.delta) < abs(one - other) < arb(found.delta) * 1.00003
