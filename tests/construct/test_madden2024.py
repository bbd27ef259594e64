"""Label distributions: logits are logs of frequencies, and the cross-entropy is the entropy."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

import rankone
from corpora import LOOKS, Sentences, sentences, spelled
from rankone import Corpus
from rankone.construct import madden2024
from rankone.construct.exact import asked_contexts, features
from rankone.construct.label_entropy import (
    conditional_entropy,
    cross_entropy,
    label_counts,
)
from rankone.construct.madden2024 import (
    FLOOR,
    bent,
    build_analytic,
    build_float64,
    build_piecewise,
)
from rankone.construct.problem import Problem, pose
from rankone.corpus.parts import numbered
from rankone.errors import PrecisionError, UnfitError
from rankone.nn import Model
from rankone.nn.exact import ExactModel, ExactNetwork, Sparse
from rankone.nn.exact.numbers import power

Build = Callable[[Problem, int], ExactNetwork]
BUILDS = pytest.mark.parametrize(
    "build", [build_piecewise, build_analytic], ids=["piecewise", "analytic"]
)
MODES = pytest.mark.parametrize(
    ("placed", "causal"), [(False, False), (True, False), (False, True), (True, True)]
)
CORPORA: dict[str, Sentences] = {
    "two": spelled("ab xy", "ac yx"),
    "one": spelled("a x"),
    "one label": spelled("ab xx", "ba xx"),
    "tie": spelled("ab xy", "ab yy", "ab xx", "ab yx"),
    "contradictions": spelled("abc xyz", "abc xyy", "abc xzy", "abc yyz", "ca xy", "ca yx", "a z"),
    "repeats": spelled("aab xyz", "aba zyx", "aa xy", "a y", "bbb xxy", "bbb xyx"),
}


def posed(corpus: Corpus, *, placed: bool, causal: bool = False) -> Problem:
    length = corpus.longest if placed else 1
    return pose([corpus], positions=placed, causal=causal, length=length)


def dense(matrix: Sparse) -> list[list[mpf]]:
    rows = []
    for row in matrix.rows:
        own = dict(row)
        zero = fmpq(0)
        rows.append([real(own.get(c, zero)) for c in range(matrix.columns)])
    return rows


def real(x: fmpq) -> mpf:
    return mpf(int(x.p)) / int(x.q)


def times(matrix: list[list[mpf]], z: list[mpf]) -> list[mpf]:
    return [mpmath.fdot(row, z) for row in matrix]


def literal(network: ExactNetwork, words: list[int]) -> list[list[mpf]]:
    """Logits by eq. 2 and 3, with all matrices written out."""
    (block,) = network.blocks
    assert block.attention is not None
    assert block.feedforward is not None
    (head,) = block.attention.heads
    Z = [dense(network.table)[word] for word in words]
    if network.positions is not None:
        E = dense(network.positions)
        Z = [[x + e for x, e in zip(z, E[k], strict=True)] for k, z in enumerate(Z)]
    keys, queries, values = (
        [times(dense(m), z) for z in Z] for m in (head.key, head.query, head.value)
    )
    layer = block.feedforward
    W1, W2, W = dense(layer.weight1), dense(layer.weight2), dense(network.head)
    psi = mpmath.tanh if layer.activation == "tanh" else lambda x: max(x, mpf(0))
    found = []
    for k, z in enumerate(Z):
        seen = range(k + 1) if network.causal else range(len(Z))
        weights = [mpmath.exp(mpmath.fdot(keys[i], queries[k])) for i in seen]
        sums = [
            mpmath.fsum(w * values[i][s] for w, i in zip(weights, seen, strict=True))
            for s in range(len(values[0]))
        ]
        average = [x / mpmath.fsum(weights) for x in sums]
        h = [x + y for x, y in zip(z, times(dense(head.output), average), strict=True)]
        hidden = [psi(x + real(b)) for x, b in zip(times(W1, h), layer.bias1, strict=True)]
        added = zip(h, times(W2, hidden), layer.bias2, strict=True)
        out = [x + y + real(b) for x, y, b in added]
        found.append([y + real(b) for y, b in zip(times(W, out), network.bias, strict=True)])
    return found


def look_of(placed: bool, causal: bool) -> str:
    names = {(True, False): "sequence", (True, True): "prefix", (False, False): "proportions"}
    return names.get((placed, causal), "prefix proportions")


def distributions(corpus: Sentences, look: str) -> Iterator[tuple[list[str], int, Counter[str]]]:
    """Every token with the labels of its context, counted by brute force."""
    seen: defaultdict[object, Counter[str]] = defaultdict(Counter)
    for tokens, labels in corpus:
        for k, label in enumerate(labels):
            seen[LOOKS[look](tokens, k)][label] += 1
    for tokens, labels in corpus:
        for k in range(len(labels)):
            yield tokens, k, seen[LOOKS[look](tokens, k)]


def check_distributions(network: ExactNetwork, given: Sentences, corpus: Corpus, look: str) -> None:
    """Every token's logits are the logs of the frequencies, evaluated by hand."""
    row = {word: i for i, word in enumerate(corpus.vocabulary)}
    logits: dict[tuple[str, ...], list[list[mpf]]] = {}
    with mp.workprec(64 + network.count.bits):
        for tokens, k, counts in distributions(given, look):
            if (*tokens,) not in logits:
                logits[*tokens] = literal(network, [row[word] for word in tokens])
            own = logits[*tokens][k]
            n, most = sum(counts.values()), max(counts.values())
            winner = corpus.label_names[max(range(len(own)), key=own.__getitem__)]
            assert counts[winner] == most
            for label, logit in zip(corpus.label_names, own, strict=True):
                if not counts[label]:
                    assert abs(logit - FLOOR) < 1e-12
                    continue
                off = logit - mpmath.log(mpf(counts[label]) / n)
                assert abs(off - (mpf(2) ** -40 if label == winner else 0)) < mpf(2) ** -43


@BUILDS
@MODES
@pytest.mark.parametrize("name", CORPORA)
def test_corpora_are_certified(name: str, placed: bool, causal: bool, build: Build) -> None:
    corpus = Corpus.from_sentences(CORPORA[name])
    problem = posed(corpus, placed=placed and corpus.longest > 1, causal=causal)
    network = build(problem, 1)
    model = ExactModel(network, corpus.vocabulary, corpus.label_names, corpus.reading)
    certificate = rankone.certify(model, corpus)
    assert certificate.outcome.value == "certified", certificate.reason
    assert certificate.wrong == certificate.unavoidable == problem.targets.unavoidable
    (block,) = network.blocks
    assert block.feedforward is not None
    assert block.feedforward.hidden == len(problem.contexts)  # one unit per context
    assert block.feedforward.activation == ("tanh" if build is build_analytic else "relu")
    look = look_of(problem.placed, causal)
    check_distributions(network, CORPORA[name], corpus, look)


@given(sentences(max_sentences=6, max_length=4), st.booleans(), st.booleans())
def test_any_corpus(given: Sentences, placed: bool, causal: bool) -> None:
    corpus = Corpus.from_sentences(given)
    problem = posed(corpus, placed=placed and corpus.longest > 1, causal=causal)
    network = build_piecewise(problem, 0)
    check_distributions(network, given, corpus, look_of(problem.placed, causal))
    model = ExactModel(network, corpus.vocabulary, corpus.label_names, corpus.reading)
    assert rankone.certify(model, corpus).outcome.value == "certified"


@BUILDS
@MODES
@pytest.mark.parametrize("name", ["two", "tie", "contradictions", "repeats"])
def test_the_cross_entropy_is_the_entropy(
    name: str, placed: bool, causal: bool, build: Build
) -> None:
    corpus = Corpus.from_sentences(CORPORA[name])
    problem = posed(corpus, placed=placed, causal=causal)
    network, asked = build(problem, 0), asked_contexts(problem)
    of = label_counts(problem)
    counts = [of[context.token] for context in asked]
    found = cross_entropy(features(network, asked, 64 + network.count.bits), counts)
    least = conditional_entropy(counts)
    terms = [
        -math.log(c[label] / sum(c.values()))
        for (tokens, k, c), label in zip(
            distributions(CORPORA[name], look_of(placed, causal)),
            [label for _, labels in CORPORA[name] for label in labels],
            strict=True,
        )
    ]
    assert float(least) == pytest.approx(sum(terms) / len(terms), abs=1e-12)
    assert abs(found - least) < arb("1e-20")
    assert not found < least


def test_entropies_by_hand() -> None:
    log2 = arb(2).log()
    assert conditional_entropy([{0: 1, 1: 1}, {2: 4}]).overlaps(log2 / 3)
    assert cross_entropy([[arb(0), fmpq(0)], [arb(5), arb(5)]], [{0: 3}, {1: 1}]).overlaps(log2)
    skewed = cross_entropy([[fmpq(1), fmpq(0)]], [{1: 1}])
    assert skewed.overlaps((1 + arb(1).exp()).log())


def test_labels_are_counted_over_all_parts() -> None:
    parts = numbered([Corpus.from_sentences(spelled(*some)) for some in (["ab xy"], ["ab xx"])])
    problem = pose(parts, positions=True, length=2)
    names = problem.corpus.label_names
    counts = [{names[c]: k for c, k in own.items()} for own in label_counts(problem).values()]
    assert counts == [{"x": 2}, {"y": 1, "x": 1}]


@BUILDS
def test_tokens_without_a_label(build: Build) -> None:
    corpus = Corpus.from_sentences(spelled("abc xyz", "cab zxy", "b x"))
    labels = corpus.label_ids.copy()
    labels[[1, 5]] = -1
    corpus = replace(corpus, label_ids=labels)
    problem = posed(corpus, placed=True)
    network = build(problem, 0)
    assert network.count.width == max(network.dim, 5)
    assert sum(sum(own.values()) for own in label_counts(problem).values()) == 5
    model = ExactModel(network, corpus.vocabulary, corpus.label_names, corpus.reading)
    assert rankone.certify(model, corpus).outcome.value == "certified"


def fractions(numbers: list[int], digits: int) -> list[fmpq]:
    return [fmpq(n, 1 << digits) for n in numbers]


@given(st.data(), st.integers(10, 60))
def test_lines_go_through_their_targets(data: st.DataObject, digits: int) -> None:
    places = data.draw(st.sets(st.integers(-(1 << 12), 1 << 12), min_size=1, max_size=8))
    knots = fractions(sorted(places), 10)
    logit = st.integers(-3 << 10, 0).map(lambda n: fmpq(n, 1 << 10))
    own = st.dictionaries(st.integers(0, 3), logit, min_size=1, max_size=3)
    targets = [data.draw(own) for _ in knots]
    units = bent(knots, targets, digits)
    assert len(units) == len(knots)
    reach = [
        {*a, *b, *c} for a, b, c in zip([{}, {}, *targets], [{}, *targets], targets, strict=False)
    ]
    for (reads, _, writes), labels in zip(units, reach, strict=True):
        assert reads == {1: 1}
        assert {c - 2 for c in writes} <= labels
        assert all((exact_weight(w) * (1 << digits)).denominator == 1 for w in writes.values())
    width = max([Fraction(1), *(fraction(b - a) for a, b in pairwise(knots))])
    for knot, wanted in zip(knots, targets, strict=True):
        for c in range(4):
            y = Fraction(FLOOR)
            for _, bias, writes in units:
                active = max(fraction(knot) + exact_weight(bias), Fraction(0))
                y += exact_weight(writes.get(c + 2, 0)) * active
            off = y - fraction(wanted[c]) if c in wanted else y - FLOOR
            assert abs(off) <= width / (1 << (digits + 1))


def fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def exact_weight(x: object) -> Fraction:
    return fraction(x) if isinstance(x, fmpq) else Fraction(x)  # type: ignore[arg-type]


@pytest.mark.parametrize("bits", [40, 200])
def test_contexts_that_are_close_take_more_digits(
    monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    """Words whose numbers differ by 2^-bits only: the proof holds, and the weights grow."""
    monkeypatch.setattr(madden2024, "_drawn", lambda _, n: [1 + k * power(-bits) for k in range(n)])
    given = spelled("ab xy", "ac yx", "bc xx", "a y", "b x")
    corpus = Corpus.from_sentences(given)
    problem = posed(corpus, placed=False)
    network = build_piecewise(problem, 0)
    check_distributions(network, given, corpus, "proportions")
    assert network.count.bits > 2 * bits
    with pytest.raises(PrecisionError, match="apart"):
        build_float64(problem, 0)


@BUILDS
def test_contexts_that_are_equal_are_refused(monkeypatch: pytest.MonkeyPatch, build: Build) -> None:
    monkeypatch.setattr(madden2024, "LAST", 256)
    monkeypatch.setattr(madden2024, "_drawn", lambda _, n: [fmpq(1, 3)] * n)
    with pytest.raises(PrecisionError, match="do not tell the contexts apart"):
        build(posed(Corpus.from_sentences(spelled("ab xy")), placed=False), 0)


def test_analytic_takes_the_digits_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(madden2024, "FIRST", 0)
    given = CORPORA["contradictions"]
    corpus = Corpus.from_sentences(given)
    network = build_analytic(posed(corpus, placed=True), 0)
    check_distributions(network, given, corpus, "sequence")


def test_analytic_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = posed(Corpus.from_sentences(CORPORA["two"]), placed=False)
    monkeypatch.setattr(madden2024, "MOST", 3)
    with pytest.raises(UnfitError, match="4 contexts"):
        build_analytic(problem, 0)
    monkeypatch.setattr(madden2024, "MOST", 4)
    build_analytic(problem, 0)


@MODES
def test_float64(placed: bool, causal: bool) -> None:
    given = spelled("abc xyz", "abc xyz", "abc xyy", "ca xy", "a z", "bab zyz", "c x")
    corpus = Corpus.from_sentences(given)
    problem = posed(corpus, placed=placed, causal=causal)
    network = build_float64(problem, 0)
    certificate = rankone.certify(
        Model(network, corpus.vocabulary, corpus.label_names, corpus.reading), corpus
    )
    assert certificate.outcome.value == "certified"
    assert certificate.margin is not None
    assert certificate.margin > 0.25
    assert certificate.wrong == problem.targets.unavoidable
    look, at = look_of(placed, causal), 0
    row = {word: i for i, word in enumerate(corpus.vocabulary)}
    for tokens, k, counts in distributions(given, look):
        logits = by_loops(network, [row[word] for word in tokens], k)
        for label, logit in zip(corpus.label_names, logits, strict=True):
            log = math.log(counts[label] / sum(counts.values())) if counts[label] else FLOOR
            assert logit == pytest.approx(log, abs=1e-6)
        at += 1
    assert at == corpus.n_tokens


def by_loops(network: rankone.nn.TokenClassifier, words: list[int], k: int) -> list[float]:
    """Eq. 2 and 3 for token k in float64."""
    p = {name: x.detach().numpy() for name, x in network.named_parameters()}
    z = np.array([p["table"][word] for word in words])
    if "positions" in p:
        z = z + p["positions"][: len(words)]
    seen = z[: k + 1] if network.shape.causal else z
    key, query, value, output = (
        p[f"blocks.0.attention.{name}"][0] for name in ("key", "query", "value", "output")
    )
    powers = [math.exp(float((key @ x) @ (query @ z[k]))) for x in seen]
    average = sum(w * (value @ x) for w, x in zip(powers, seen, strict=True)) / sum(powers)
    h = z[k] + output @ average
    w1, b1, w2, b2 = (
        p[f"blocks.0.feedforward.{name}"] for name in ("weight1", "bias1", "weight2", "bias2")
    )
    h = h + w2 @ np.maximum(w1 @ h + b1, 0.0) + b2
    return (p["head.weight"] @ h + p["head.bias"]).tolist()


@pytest.mark.parametrize("labels", ["xy", "xxyy", "xxxyy"])
def test_float64_refuses_close_frequencies(labels: str) -> None:
    corpus = Corpus.from_sentences(spelled(*(f"a {label}" for label in labels), "b x"))
    with pytest.raises(PrecisionError, match="close in frequency") as refused:
        build_float64(posed(corpus, placed=False), 0)
    assert refused.value.where is not None
    assert "sentence 1" in refused.value.where


def test_float64_takes_frequencies_that_lead() -> None:
    corpus = Corpus.from_sentences(spelled(*(f"a {label}" for label in "xxxxxyyy"), "b x"))
    build_float64(posed(corpus, placed=False), 0)  # log(5/3) = 0.51
