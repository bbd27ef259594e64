"""Certificates from end to end, judged by the network in mpmath: no claim that is not so."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flint import fmpz_mat
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import corpora
import rankone
from certification import judge
from rankone import Corpus
from rankone.certification import (
    Certificate,
    Outcome,
    attention_balls,
    certify,
    check_certificate,
    float_evaluation,
)
from rankone.certification.certificate import Spot
from rankone.errors import CorpusError, SettingError
from rankone.nn import Model, evaluate
from rankone.spans import spans

C, R, U = Outcome.CERTIFIED, Outcome.REFUTED, Outcome.UNDECIDED


def token(corpus: Corpus, spot: Spot) -> int:
    return int(corpus.offsets[spot.sentence - 1]) + spot.position - 1


def values(model: Model, logits: list[mpf], z: list[mpf], *, numbers: bool) -> list[mpf]:
    """What the head reads: y = p . z with 2p the first row, or the logits."""
    if not numbers:
        return logits
    return [judge.dot([mpf(w) / 2 for w in model.network.head.weight[0].tolist()], z)]


def assert_true(
    found: Certificate, model: Model, sentences: corpora.Sentences, *, numbers: bool = False
) -> judge.Truth:
    """Every figure of the certificate against the judge's."""
    corpus = Corpus.from_sentences(sentences)
    with judge.digits():
        truth = judge.truth(model, sentences)
        assert_mapping(found, truth, corpus)
        assert_labels(found, truth, corpus, sentences, model)
        margins(found, truth, model, numbers=numbers)
        run = judge.float_run(model, corpus)
        for row, z, logits in zip(run.tolist(), truth.features, truth.logits, strict=True):
            z_run = [mpf(x) for x in row]
            exact = values(model, logits, z, numbers=numbers)
            weight, bias = (judge.numbers(p.tolist()) for p in head(model))
            read = [judge.dot(w, z_run) + b for w, b in zip(weight, bias, strict=True)]
            read = values(model, read, z_run, numbers=numbers)
            sizes = (
                judge.dot([abs(x) for x in w], [abs(x) for x in z_run]) + abs(b)
                for w, b in zip(weight, bias, strict=True)
            )
            rounding = (len(row) + 2) * mpf(torch.finfo(model.network.dtype).eps) * max(sizes)
            for a, b in zip(exact, read, strict=True):
                assert abs(a - b) <= mpf(found.float_distance) + rounding
    assert sum(found.decided.values()) == found.tokens == corpus.n_tokens
    assert found.outcome is Outcome.of(found.mapping, found.labels, C if found.float_labels else R)
    assert (found.reason is None) is found.ok
    return truth


def head(model: Model) -> tuple[torch.Tensor, torch.Tensor]:
    layer = model.network.head
    return layer.weight.detach().double(), layer.bias.detach().double()


def assert_mapping(
    found: Certificate, truth: judge.Truth, corpus: Corpus, *, tight: bool = True
) -> None:
    longest = max(judge.mpmath.norm(q) for q in truth.context_ids)
    assert longest < mpf(found.r)
    assert not tight or mpf(found.r) <= longest * mpf("1.00003")
    assert found.contexts == len(set(truth.looks))
    distances = truth.distances()
    if not distances:
        assert found.mapping is C
        assert found.closest is None
        return
    nearest = min(distances.values())
    if nearest < longest * mpf(10) ** -130:
        assert found.mapping is not C
    else:
        assert found.mapping is C
        assert mpf(found.delta) < nearest
        assert mpf(found.delta) > nearest / 10**5
    if found.closest is not None:
        i, j = sorted(token(corpus, spot) for spot in found.closest)
        assert truth.looks[i] != truth.looks[j]


def assert_labels(
    found: Certificate,
    truth: judge.Truth,
    corpus: Corpus,
    sentences: corpora.Sentences,
    model: Model,
) -> None:
    unavoidable = corpora.errors(sentences, judge.look(model.network.shape))
    assert found.unavoidable == unavoidable
    assert found.labels is not U
    assert found.wrong == len(truth.wrong) >= unavoidable
    assert found.labels is (C if found.wrong == unavoidable else R)
    if found.labels is R:
        assert found.reason is not None
        lines = [Spot.of(corpus, i) for i in truth.wrong]
        assert found.reason.startswith(tuple(map(str, lines)))
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    run = model.label_ids(rows, corpus.offsets).tolist()
    assert found.float_labels is (run == truth.labels)


def margins(found: Certificate, truth: judge.Truth, model: Model, *, numbers: bool) -> None:
    """1/2 less the distance of y from its label, beyond the first and the last none; or half the
    lead of the largest logit, at most 1/2."""
    exact = truth.lead / 2
    if numbers:
        pairs = zip(truth.logits, truth.features, strict=True)
        y = [values(model, logits, z, numbers=True)[0] for logits, z in pairs]
        within = [min(max(v, mpf(1)), mpf(len(model.labels))) for v in y]
        off = [abs(v - (c + 1)) for v, c in zip(within, truth.labels, strict=True)]
        exact = mpf(1) / 2 - max(off)
    assert found.margin is not None
    assert mpf(found.margin) <= exact
    assert mpf(found.margin) >= min(exact, mpf(1) / 2) * mpf("0.99997") - mpf(10) ** -9


def judged(model: Model, sentences: corpora.Sentences, cap: int = 120) -> Certificate:
    return certify(model, Corpus.from_sentences(sentences), cap=cap)


def decided(model: Model, texts: list[str]) -> list[int]:
    """The labels that the network decides for, so that a corpus can be right."""
    with judge.digits():
        return judge.truth(model, judge.labelled(texts, [0] * 999)).labels


@given(judge.shapes(), judge.sentences())
def test_random_networks(shape: dict[str, Any], texts: list[str]) -> None:
    """Labelled as the network decides: nothing is wrong. One label changed: that one is."""
    model = judge.random_model(**shape)
    labels = decided(model, texts)
    sentences = judge.labelled(texts, labels)
    found = judged(model, sentences)
    truth = assert_true(found, model, sentences)
    assert found.wrong == 0
    assert found.labels is C

    i = shape["seed"] % len(labels)
    labels[i] = (labels[i] + 1) % len(judge.LABELS)
    sentences = judge.labelled(texts, labels)
    found = judged(model, sentences)
    assert_true(found, model, sentences)
    assert found.wrong == 1
    twins = sum(look == truth.looks[i] for look in truth.looks)
    if twins == 1:
        assert found.labels is R
        assert found.reason is not None
        assert found.reason.startswith(str(Spot.of(Corpus.from_sentences(sentences), i)))


@given(judge.shapes(kinds=["hardmax"]), judge.sentences(max_length=4))
def test_random_networks_of_hardmax(shape: dict[str, Any], texts: list[str]) -> None:
    """Ties among equal words are exact in the first layer; then words have places and differ."""
    deep = {"positions": judge.LONGEST, "depth": min(2, shape["depth"])}
    model = judge.random_model(**shape | (deep if shape["depth"] > 1 else {}))
    sentences = judge.labelled(texts, decided(model, texts))
    found = judged(model, sentences, cap=1000)
    assert_true(found, model, sentences)
    assert found.wrong == 0


@given(corpora.sentences(max_sentences=5, max_length=5), st.integers(0, 99))
def test_labels_at_random(sentences: corpora.Sentences, seed: int) -> None:
    """Conflicts and copies are common here: wrong counts more than is unavoidable, or as much."""
    words = sorted({word for tokens, _ in sentences for word in tokens})
    names = sorted({label for _, labels in sentences for label in labels})
    shape = {"attention": "softmax", "positions": (0, 7)[seed % 2], "causal": seed % 3 == 0}
    model = judge.random_model(seed, labels=max(2, len(names)), **shape)
    padded = tuple([*names, "other"][: max(2, len(names))])
    model = Model(model.network, tuple(words + list("abcdef"))[:6], padded)
    assert_true(judged(model, sentences), model, sentences)


MEMORIZED = [
    {},
    {"positions": False},
    {"causal": True},
    {"positions": False, "causal": True},
    {"head_size": 2},
    {"head_size": 3, "positions": False},
    {"readout": "paper"},
    {"vectors": np.random.default_rng(0).normal(size=(5, 3))},
]


@pytest.mark.parametrize("how", MEMORIZED, ids=lambda how: ", ".join(how) or "as it comes")
@given(sentences=corpora.sentences(max_sentences=6, max_length=5))
def test_memorized_corpora(how: dict[str, Any], sentences: corpora.Sentences) -> None:
    corpus = Corpus.from_sentences(sentences)
    settings = dict(how)
    if "vectors" in settings:
        settings["vectors"] = settings["vectors"][: len(corpus.vocabulary)]
    model = rankone.memorize(corpus, **settings).model
    found = judged(model, sentences)
    assert found.ok
    assert found.wrong == found.unavoidable
    assert_true(found, model, sentences, numbers=True)


def test_a_corpus_of_hundreds_of_tokens() -> None:
    corpus = rankone.builtin_corpus(150)
    model = rankone.memorize(corpus).model
    found = certify(model, corpus)
    assert found.ok
    assert found.decided == {"float": corpus.n_tokens, "exact": 0, "undecided": 0}
    assert (found.digits, found.cap, found.limit) == (16, 200_000, None)  # unless one says so
    assert check_certificate(found, model, corpus).ok  # with counts of hundreds as well
    spent = found.seconds
    assert min(spent.values()) > 0
    assert spent["total"] == pytest.approx(spent["float"] + spent["exact"])
    sentences = [(list(s.tokens), list(s.labels)) for s in corpus.sentences]
    k = 77
    j = int(corpus.sentence_of[k])
    labels = sentences[j][1]
    place = k - int(corpus.offsets[j])
    labels[place] = next(name for name in corpus.label_names if name != labels[place])
    flipped = certify(model, Corpus.from_sentences(sentences))
    assert (flipped.outcome, flipped.mapping, flipped.wrong) == (R, C, found.wrong + 1)
    assert flipped.reason is not None
    assert f"sentence {j + 1}, position {place + 1}" in flipped.reason


def test_contradicting_rows_are_unavoidable() -> None:
    sentences = corpora.spelled("ab XY", "ab XX", "ab XY", "c Z")
    model = rankone.memorize(Corpus.from_sentences(sentences)).model
    found = judged(model, sentences)
    assert found.ok
    assert (found.wrong, found.unavoidable) == (1, 1)


def test_the_same_certificate_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of few tokens and tables of few cells: the same claims, if not as sharp."""
    corpus = rankone.builtin_corpus(20)
    model = rankone.memorize(corpus, head_size=2).model
    whole = certify(model, corpus)
    monkeypatch.setattr(evaluate, "spans", partial(spans, size=21))
    monkeypatch.setattr(float_evaluation, "SPAN", 7)
    monkeypatch.setattr(attention_balls, "SCORES_AT_ONCE", 10)
    pieces = certify(model, corpus)
    assert pieces.outcome is whole.outcome is C
    assert pieces.contexts == whole.contexts
    assert 0 < float(pieces.delta) < float(whole.delta) * 1.001
    assert float(pieces.r) == pytest.approx(float(whole.r))


@pytest.mark.parametrize("positions", [0, judge.LONGEST])
@pytest.mark.parametrize("kind", ["rank1", "softmax"])
@pytest.mark.parametrize("seed", range(3))
def test_outputs_within_rounding_of_a_tie(seed: int, kind: str, positions: int) -> None:
    """The bias of one label is chosen so that two logits of a token differ by next to nothing."""
    model = judge.random_model(seed, attention=kind, positions=positions, labels=2)
    texts = ["abcab", "bca"]
    with judge.digits():
        literal = judge.Literal(model.network)
        _, features = literal([judge.WORDS.index(c) for c in texts[0]])
        first, second = literal.logits(features[2])
        tie = mpf(model.network.head.bias.tolist()[1]) + first - second
    bias = float(tie)
    for nearby in (bias, np.nextafter(bias, 9), np.nextafter(bias, -9), bias + 1e-12, bias - 1e-12):
        with torch.no_grad():
            model.network.head.bias[1] = nearby
        sentences = judge.labelled(texts, decided(model, texts))
        assert_true(judged(model, sentences), model, sentences)
        labels = decided(model, texts)
        labels[2] = 1 - labels[2]
        assert judged(model, judge.labelled(texts, labels)).labels is R


def bag(counts: list[int], words: list[str]) -> list[str]:
    return [word for word, count in zip(words, counts, strict=True) for _ in range(count)]


def test_prefixes_that_were_made_to_be_mistaken_for_each_other() -> None:
    """A short lattice vector gives two bags of words whose numbers have the same sum."""
    drawn, words = random.Random(0), [f"w{i}" for i in range(60)]
    numbers = [drawn.getrandbits(128) for _ in words]
    rows = [[int(i == j) for j in range(60)] + [10**6 * numbers[i]] for i in range(60)]
    short = fmpz_mat(rows).lll()
    counts = [int(short[0, j]) for j in range(60)]
    assert any(counts)
    assert sum(a * b for a, b in zip(counts, numbers, strict=True)) == 0
    one, other = ([max(side * c, 0) for c in counts] for side in (1, -1))
    texts = [words, [*bag(one, words), "w0"], [*bag(other, words), "w0"]]
    sentences = [(text, ["X"] * len(text)) for text in texts]
    sentences[2][1][-1] = "Y"
    assert corpora.errors(sentences, corpora.LOOKS["prefix proportions"]) == 0
    corpus = Corpus.from_sentences(sentences)
    model = rankone.memorize(corpus, positions=False, causal=True).model
    found = certify(model, corpus)
    assert found.unavoidable == 0
    assert found.contexts == len(set(looks(sentences)))


def looks(sentences: corpora.Sentences) -> list[object]:
    see = corpora.LOOKS["prefix proportions"]
    return [see(tokens, k) for tokens, _ in sentences for k in range(len(tokens))]


@pytest.mark.parametrize("scale", [1e-170, 1e-140, 1e-30, 1.0, 1e30, 1e140, 1e160])
@pytest.mark.parametrize("texts", [["ab"], ["ab", "b", "a"]], ids=" ".join)
def test_context_ids_of_any_size(scale: float, texts: list[str]) -> None:
    """Words a and b at (+-scale, 0), keys of size 1, and attention that adds scale / 100."""
    model = judge.plain_model(
        [[scale, 0.0], [-scale, 0.0]],
        v1=[1 / scale, 0.0],
        v2=[1 / scale, 0.0],
        output=[0.0, scale / 100],
    )
    sentences = judge.labelled(texts, [0] * 99)
    with judge.digits(), np.errstate(over="ignore", invalid="ignore"):
        found, truth = judged(model, sentences), judge.truth(model, sentences)
        corpus = Corpus.from_sentences(sentences)
        assert_mapping(found, truth, corpus, tight=1e-35 < scale < 1e35)


@pytest.mark.parametrize("scale", [1.0, 1e154, 1.5e294, 1e300])
def test_a_pair_at_the_end_of_all_floats(scale: float) -> None:
    """Contexts of c with averages 0.9 and 0.7 (times the scale), all others further apart."""
    model = judge.plain_model(
        [[0.0, 0.0, 0.0, scale], [0.5, 0.0, 0.0, scale / 2], [0.9, 0.0, 0.0, 0.0]],
        v1=[1.0, 0.0, 0.0, 0.0],
        v2=[0.0, 0.0, 0.0, 0.0],
        output=[0.0, 0.0, scale, 0.0],
    )
    with np.errstate(over="ignore", invalid="ignore"):
        found = judged(model, judge.labelled(["c", "cb", "a"], [0] * 9))
    assert found.mapping is C
    assert 0.199 * scale < float(found.delta) < 0.2 * scale


def test_order_is_not_asked_of_a_first_layer_that_cannot_see_it() -> None:
    """Causal, two layers, no positions: c of abc and of bac has one context id by construction."""
    model = judge.random_model(0, attention="softmax", depth=2, causal=True)
    texts = ["abc", "bac"]
    found = judged(model, judge.labelled(texts, decided(model, texts)))
    assert found.labels is C
    assert found.mapping is C


@pytest.mark.parametrize("kind", ["rank1", "softmax"])
def test_the_closest_pair_is_the_closest(kind: str) -> None:
    """Where attention writes along one direction, delta is tight."""
    check_closest(judge.random_model(12, attention=kind, positions=6))


def test_the_closest_pair_is_the_closest_for_larger_heads_too() -> None:
    check_closest(judge.random_model(12, attention="softmax", head_size=2, positions=6))


def check_closest(model: Model) -> None:
    rng = np.random.default_rng(12)
    texts = ["".join(judge.WORDS[i] for i in rng.integers(0, 5, 4)) for _ in range(12)]
    sentences = judge.labelled(texts, [0] * 99)
    found = judged(model, sentences)
    with judge.digits():
        distances = judge.truth(model, sentences).distances()
    assert found.closest is not None
    i, j = sorted(token(Corpus.from_sentences(sentences), spot) for spot in found.closest)
    assert float(distances[i, j]) <= 1.01 * float(min(distances.values()))
    assert float(found.delta) >= 0.7 * float(min(distances.values()))


def test_a_damaged_readout_is_refuted() -> None:
    """Biases off by a thousandth send y far beyond all labels: decided, and wrong."""
    corpus = rankone.builtin_corpus(20)
    model = rankone.memorize(corpus).model
    bias = model.network.blocks[0].feedforward.bias1
    with torch.no_grad():
        bias *= 1 + 1e-3 * torch.randn(
            bias.shape, generator=torch.Generator().manual_seed(0), dtype=bias.dtype
        )
    found = certify(model, corpus, cap=50)
    assert found.labels is R
    assert found.decided["undecided"] == 0


def test_a_corpus_without_labels() -> None:
    corpus = Corpus.from_sentences(corpora.spelled("ab XY"))
    bare = replace(corpus, label_names=(), label_ids=np.full(2, -1))
    with pytest.raises(rankone.RankOneError):
        certify(judge.random_model(0), bare)


@pytest.mark.parametrize("parts", list(product([C, R, U, None], repeat=3)))
def test_the_joint_outcome(parts: tuple[Outcome | None, ...]) -> None:
    """One claim that is refuted refutes all; else one that is undecided leaves all so."""
    expected = R if R in parts else U if U in parts else C
    assert Outcome.of(*parts) is expected


@pytest.mark.parametrize("which", [0, 1])
def test_order_alone_decides_in_two_causal_layers(which: int) -> None:
    """c of abc and of bac: the second layer sees the order, so one wrong label is one too many."""
    model = judge.random_model(0, attention="softmax", depth=2, causal=True)
    texts = ["abc", "bac"]
    labels = decided(model, texts)
    last = (2, 5)[which]
    labels[last] = (labels[last] + 1) % len(judge.LABELS)
    found = judged(model, judge.labelled(texts, labels))
    assert (found.wrong, found.unavoidable) == (1, 0)
    assert (found.outcome, found.mapping, found.labels, found.float_labels) == (R, C, R, True)
    assert found.reason is not None
    assert f"(sentence {which + 1}, position 3) is labelled" in found.reason


def test_float64_that_decides_for_another_label() -> None:
    """1e16 swallows what attention adds: right in real numbers, wrong in predict, not certified."""
    model, sentences = judge.swallowed_by_rounding(), corpora.spelled("a X", "b Z")
    assert model.predict([["a"], ["b"]]) != [("X",), ("Z",)]
    with judge.digits():
        assert judge.truth(model, sentences).wrong == []
    found = judged(model, sentences)
    assert (found.mapping, found.labels, found.wrong, found.margin) == (C, C, 0, 0.499999)
    assert found.worst == Spot(1, 1, 1)  # one of those that lie on their label exactly
    assert (found.float_labels, found.outcome, found.ok) == (False, R, False)
    assert 1 <= float(found.float_distance) < 1.001
    assert found.reason == (
        "line 2 (sentence 2, position 1) gets the label Z in exact arithmetic, but U in float64"
    )
    assert found.left is None
    wrong = judged(model, corpora.spelled("a X", "b U"))
    assert (wrong.labels, wrong.float_labels, wrong.outcome) == (R, False, R)
    assert wrong.reason is not None
    assert wrong.reason.count("line 2 (sentence 2, position 1)") == 2


@pytest.mark.parametrize("attention", ["rank1", "softmax"])
@pytest.mark.parametrize(
    "part", ["table", "blocks.0.attention", "blocks.0.feedforward", "head", ""]
)
def test_weights_of_several_precisions(attention: str, part: str) -> None:
    """They are exact numbers, and the run is in the widest type that one of them has."""
    model = judge.random_model(1, attention=attention, labels=2)
    for name, parameter in model.network.named_parameters():
        if name.startswith(part):
            parameter.data = parameter.data.float()
    sentences = judge.labelled(["abc", "ba"], decided(model, ["abc", "ba"]))
    found = judged(model, sentences)
    assert_true(found, model, sentences)
    assert found.dtype == ("float64" if part else "float32")
    assert judged(judge.random_model(1), sentences).dtype == "float64"


def test_a_corpus_may_be_whatever_memorize_takes(tmp_path: Path) -> None:
    (path := tmp_path / "c.conll").write_text("A X 1\na Y 2\n\na X 3\n")
    corpus = rankone.read_corpus(path, label_column=2)
    model = rankone.memorize(corpus).model
    expected = certify(model, corpus)
    for known in (path, str(path), [(s.tokens, s.labels) for s in corpus.sentences]):
        found = certify(model, known)
        assert (found.ok, found.hashes) == (True, expected.hashes)
        assert check_certificate(expected, model, known).ok
    with pytest.raises(CorpusError, match="no sentences in None"):
        certify(model, None)  # type: ignore[arg-type]
    for call in (certify, partial(check_certificate, expected)):
        with pytest.raises(SettingError, match="a model cannot be 'm'") as caught:
            call("m", corpus)
        assert caught.value.remedy
