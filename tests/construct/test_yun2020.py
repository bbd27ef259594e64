"""The selective shift: ids by exhaustion and by eq. 2 and 3 written out; softmax and its bound."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import comb
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import corpora
import rankone
from rankone import Corpus
from rankone.certification.certificate import Certificate
from rankone.construct import yun2020
from rankone.construct.problem import Problem, pose
from rankone.construct.yun2020 import build_hardmax, build_softmax
from rankone.construct.yun2020.shift import Grid, Kind, Shift, grid
from rankone.construct.yun2020.softmax import softmax_factor
from rankone.deadline import TimeIsUpError, time_limit
from rankone.errors import UnfitError
from rankone.nn import Model
from rankone.nn.exact import ExactModel, ExactNetwork, Sparse
from rankone.nn.exact.evaluate import evaluate
from rankone.nn.exact.floats import to_float64
from rankone.nn.exact.network import ExactAttention

Build = Callable[[Problem, int], ExactNetwork]
BUILDS: dict[Kind, Build] = {"hardmax": build_hardmax, "softmax": build_softmax}
KINDS = pytest.mark.parametrize("kind", BUILDS)
PLACED = pytest.mark.parametrize("placed", [False, True], ids=["sets", "sequences"])
# 1/delta, d, n, as in the notes on the paper
SMALL = [(2, 1, 2), (3, 1, 2), (3, 1, 3), (4, 1, 3), (2, 2, 2), (2, 2, 3)]
CASES = {
    "two sentences": corpora.spelled("ab xy", "ac yx"),
    "one token": corpora.spelled("a x"),
    "id 0": corpora.spelled("a y", "ba yx"),  # alone, a stays at 0
    "one label": corpora.spelled("ab xx", "b x"),
    "order": corpora.spelled("abc xyz", "cba zzy", "ab yx", "c z"),  # conflicts without positions
    "lengths": corpora.spelled("a x", "ab yx", "abc xyx", "abcd yyxz", "e y"),
}


def posed(corpus: Corpus, placed: bool) -> Problem:
    return pose([corpus], positions=placed, length=corpus.longest if placed else 1)


def certified(corpus: Corpus, network: ExactNetwork) -> Certificate:
    model = ExactModel(network, corpus.vocabulary, corpus.label_names, corpus.reading)
    certificate = rankone.certify(model, corpus)
    assert certificate.ok, certificate.reason
    assert certificate.wrong == certificate.unavoidable
    return certificate


def shifting(shift: Shift, kind: Kind = "hardmax", factor: int = 1) -> ExactNetwork:
    """The attention layers alone; the head shows u.X / delta."""
    own, d, placed = shift.grid, shift.grid.d, shift.places > 1
    table = Sparse.of(({**own.point(word), d: 1} for word in range(own.size)), d + 1)
    e = Sparse.of((dict.fromkeys(range(d), k) for k in range(shift.n)), d + 1) if placed else None
    shown = Sparse.of([{i: own.inverse ** (i + 1) for i in range(d)}], d + 1)
    blocks = tuple(shift.blocks(d + 1, d, kind, factor))
    return ExactNetwork(table, e, blocks, shown, (fmpq(0),))


def shift_of(inverse: int, d: int, n: int, placed: bool) -> Shift:
    return Shift(Grid(inverse, d), n, n if placed else 1)


def inputs(size: int, lengths: Iterable[int], placed: bool) -> list[tuple[int, ...]]:
    """All sentences; without positions, all that do not repeat a word."""
    if placed:
        return [words for m in lengths for words in product(range(size), repeat=m)]
    return [words for m in lengths for words in permutations(range(size), m)]


@cache
def all_ids(shift: Shift) -> dict[tuple[int, ...], list[Any]]:
    """Of all sentences of up to n words, through the network."""
    sentences = inputs(shift.grid.size, range(1, shift.n + 1), shift.places > 1)
    return dict(zip(sentences, network_ids(shifting(shift), sentences), strict=True))


def network_ids(network: ExactNetwork, sentences: Sequence[tuple[int, ...]]) -> list[list[Any]]:
    found = evaluate(network, sentences)
    return [[found.logits[i][0] for i in columns] for columns in found.where]


# Eq. 2 and 3, written out, with fractions or, for softmax, decimals of many digits.

Lift = Callable[[fmpq], Any]


def fraction(x: fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def decimal(x: fmpq) -> mpf:
    return mpf(int(x.p)) / int(x.q)


def dense(matrix: Sparse, lift: Lift) -> list[list[Any]]:
    rows = [[0] * matrix.columns for _ in matrix.rows]
    for i, row in enumerate(matrix.rows):
        for j, x in row:
            rows[i][j] = lift(x)
    return rows


def times(matrix: list[list[Any]], z: Sequence[Any]) -> list[Any]:
    return [sum(a * x for a, x in zip(row, z, strict=True) if a) for row in matrix]


def plus(*vectors: Sequence[Any]) -> list[Any]:
    return [sum(entries) for entries in zip(*vectors, strict=True)]


def hardmax(scores: list[Any]) -> list[Any]:
    best = [score == max(scores) for score in scores]
    return [Fraction(x, sum(best)) for x in best]


def softmax(scores: list[Any]) -> list[Any]:
    powers = [mpmath.exp(score - max(scores)) for score in scores]
    return [p / sum(powers) for p in powers]


def literal(network: ExactNetwork, words: Sequence[int], lift: Lift) -> list[list[Any]]:
    """The logits of every word of a sentence."""
    table, head = dense(network.table, lift), dense(network.head, lift)
    Z = [table[word] for word in words]
    if network.positions is not None:
        E = dense(network.positions, lift)
        Z = [plus(z, E[k]) for k, z in enumerate(Z)]
    for layer in network.layers:
        if isinstance(layer, ExactAttention):
            sigma = hardmax if layer.kind == "hardmax" else softmax
            out = Z
            for h in layer.heads:
                K, Q, V, W = (dense(m, lift) for m in (h.key, h.query, h.value, h.output))
                scores = [[times([times(K, other)], times(Q, z))[0] for other in Z] for z in Z]
                VZ = [list(row) for row in zip(*(times(V, z) for z in Z), strict=True)]
                means = [times(VZ, sigma(row)) for row in scores]
                out = [plus(z, times(W, mean)) for z, mean in zip(out, means, strict=True)]
            Z = out
        else:
            W1, W2 = dense(layer.weight1, lift), dense(layer.weight2, lift)
            b1, b2 = ([lift(x) for x in b] for b in (layer.bias1, layer.bias2))
            hidden = [[max(x, 0) for x in plus(times(W1, z), b1)] for z in Z]
            Z = [plus(z, times(W2, x), b2) for z, x in zip(Z, hidden, strict=True)]
    return [plus(times(head, z), [lift(x) for x in network.bias]) for z in Z]


def assert_labels(corpus: Corpus, problem: Problem, network: ExactNetwork, lift: Lift) -> None:
    """The label that is wanted of every token leads all others by 1/2 or more."""
    for a, b in zip(corpus.offsets[:-1].tolist(), corpus.offsets[1:].tolist(), strict=True):
        rows = literal(network, corpus.token_ids[a:b].tolist(), lift)
        for row, wanted in zip(rows, problem.labels[a:b].tolist(), strict=True):
            others = [x for c, x in enumerate(row) if c != wanted]
            assert wanted < 0 or all(row[wanted] - x > 0.5 for x in others)


@KINDS
@PLACED
@pytest.mark.parametrize("case", CASES)
def test_a_corpus_is_memorised(kind: Kind, placed: bool, case: str) -> None:
    corpus = Corpus.from_sentences(CASES[case])
    problem = posed(corpus, placed)
    network = BUILDS[kind](problem, 0)
    certified(corpus, network)
    with mpmath.workdps(120):
        assert_labels(corpus, problem, network, fraction if kind == "hardmax" else decimal)


@given(corpora.sentences(max_sentences=4, max_length=3), st.sampled_from(["hardmax", "softmax"]))
def test_any_corpus_is_memorised_with_positions(sentences: corpora.Sentences, kind: Kind) -> None:
    corpus = Corpus.from_sentences(sentences)
    problem = posed(corpus, placed=True)
    network = BUILDS[kind](problem, 0)
    certified(corpus, network)
    if kind == "hardmax":
        assert_labels(corpus, problem, network, fraction)


@given(corpora.sentences(max_sentences=5), st.sampled_from(["hardmax", "softmax"]))
def test_any_corpus_of_sets_is_memorised(sentences: corpora.Sentences, kind: Kind) -> None:
    once = [tuple(zip(*dict(zip(*pair, strict=True)).items(), strict=True)) for pair in sentences]
    corpus = Corpus.from_sentences([(list(words), list(labels)) for words, labels in once])
    problem = posed(corpus, placed=False)
    network = BUILDS[kind](problem, 0)
    certified(corpus, network)
    if kind == "hardmax":
        assert_labels(corpus, problem, network, fraction)


@KINDS
def test_tokens_without_a_label_have_contexts_of_their_own(kind: Kind) -> None:
    corpus = Corpus.from_sentences(CASES["lengths"])
    some = np.where(np.arange(corpus.n_tokens) % 3, corpus.label_ids, -1)
    corpus = replace(corpus, label_ids=some)
    network = BUILDS[kind](posed(corpus, placed=True), 0)
    assert certified(corpus, network).contexts == corpus.n_tokens
    assert sum(b.feedforward is not None for b in network.blocks) == 1 + (some >= 0).sum()


@KINDS
@PLACED
def test_layers_are_those_of_the_paper(kind: Kind, placed: bool) -> None:
    corpus = Corpus.from_sentences(CASES["lengths"])
    network = BUILDS[kind](posed(corpus, placed), 0)
    count, layers = network.count, [x for x in network.layers if isinstance(x, ExactAttention)]
    assert (count.attentions, count.heads) == ((4 if placed else 1) * 8 + 1, 2)  # M = 8, n = 4
    assert [len(layer.heads) for layer in layers] == [2] * (len(layers) - 1) + [1]
    assert {len(h.key.rows) for layer in layers for h in layer.heads} == {1}
    assert count.layers == count.attentions + 1 + 11  # contexts
    for layer in layers[:-1]:
        one, other = (dense(h.output, fraction) for h in layer.heads)
        assert one == [[-x for x in row] for row in other]
        assert one[0] == [8]


@PLACED
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_ids_are_distinct_and_equivariant(case: tuple[int, int, int], placed: bool) -> None:
    """Exhaustively, for sentences of n words: of a set in all orders, ids are the same."""
    shift, n = shift_of(*case, placed), case[-1]
    owners: dict[Any, object] = {}
    for words, ids in all_ids(shift).items():
        for k, x in enumerate(ids if len(words) == n else []):
            context = (words, k) if placed else (frozenset(words), words[k])
            assert owners.setdefault(x, context) == context
    size = shift.grid.size
    assert len(owners) == n * (size**n if placed else comb(size, n))


@PLACED
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_ids_are_those_of_eq_2(case: tuple[int, int, int], placed: bool) -> None:
    """Hit by hit, in the network, and written out, for sentences of all lengths."""
    shift = shift_of(*case, placed)
    found = all_ids(shift)
    assert found == {words: shift.ids(words) for words in found}
    for words in random.Random(0).sample([*found], min(8, len(found))):
        assert literal(shifting(shift), words, fraction) == [[x] for x in shift.ids(words)]


@pytest.mark.parametrize("case", [(2, 1, 2), (2, 2, 4), (5, 1, 5), (3, 2, 3)], ids=str)
def test_sets_of_different_sizes_are_apart(case: tuple[int, int, int]) -> None:
    """Which is proved in the docstring of the module."""
    shift = shift_of(*case, placed=False)
    owners: dict[int, object] = {}
    for words in inputs(shift.grid.size, range(1, case[-1] + 1), placed=False):
        for word, x in zip(words, shift.ids(words), strict=True):
            assert owners.setdefault(x, (frozenset(words), word)) == (frozenset(words), word)


def smallest_id(inverse: int, d: int, n: int) -> Any:
    """Of sentences of n words, with positions."""
    found = all_ids(shift_of(inverse, d, n, placed=True))
    return min(x for words, ids in found.items() if len(words) == n for x in ids) / inverse


def test_the_lower_bound_of_the_positional_version_is_misprinted() -> None:
    """t_l = n delta^(-2(n+1)d) (delta^-d - 1) is above the smallest id; with 2nd it is not."""
    inverse, d, n = 2, 1, 2
    printed = n * inverse ** (2 * (n + 1) * d) * (inverse**d - 1)
    derived = n * inverse ** (2 * n * d) * (inverse**d - 1)
    assert (printed, smallest_id(inverse, d, n), derived) == (128, 82, 32)


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_the_lower_bound_that_is_derived_holds(case: tuple[int, int, int]) -> None:
    inverse, d, n = case
    assert smallest_id(*case) >= n * inverse ** (2 * n * d) * (inverse**d - 1)


def test_two_grid_points_are_too_few_for_sentences_of_different_lengths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = shift_of(2, 1, 3, placed=True)
    assert few.ids((0, 1))[1] == few.ids((1, 1))[0]
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "bb yx", "aaa xyx"), source="here")
    problem = posed(corpus, placed=True)
    certified(corpus, build_hardmax(problem, 0))
    monkeypatch.setattr(yun2020, "grid", lambda *_: Grid(2, 1))
    with pytest.raises(UnfitError, match="'b', word 2 of 'a b' and to 'b', word 1 of 'b b'") as no:
        build_hardmax(problem, 0)
    assert (no.value.where, "max_length" in (no.value.remedy or "")) == ("here", True)


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5, 64, 65])
@PLACED
def test_the_grid_has_a_point_for_every_word(words: int, placed: bool) -> None:
    inverse, d = found = grid(words, placed)
    assert words <= inverse**d < max(2 * words, 5 if placed else 3)
    points = [found.point(word) for word in range(words)]
    assert all(0 <= x < 1 for point in points for x in point.values())
    for word, point in enumerate(points):
        assert sum(found.u[i] * x for i, x in point.items()) * inverse == word


def deviation(shift: Shift, factor: int) -> arb:
    """How far softmax takes an id from that of hardmax, in units of delta, over all sentences."""
    placed = shift.places > 1
    sentences = inputs(shift.grid.size, range(1, shift.n + 1), placed)
    with ctx.workprec(2048):
        ids = network_ids(shifting(shift, "softmax", factor), sentences)
        off = [
            arb(x - y).abs_upper()
            for words, row in zip(sentences, ids, strict=True)
            for x, y in zip(row, shift.ids(words), strict=True)
        ]
        return max(off, key=float)


@PLACED
@pytest.mark.parametrize("case", [(2, 1, 2), (3, 1, 2), (2, 2, 2)], ids=str)
def test_softmax_stays_within_an_eighth_of_delta(case: tuple[int, int, int], placed: bool) -> None:
    """With the factor that is proved; with a twentieth of it, it does not."""
    shift = shift_of(*case, placed)
    factor = softmax_factor(shift)
    assert deviation(shift, factor) <= 0.125
    assert deviation(shift, factor // 20) > 0.125


def test_softmax_with_a_small_factor_fails() -> None:
    """A thousandth of the factor gets labels wrong, by eq. 2 and 3 written out."""
    corpus = Corpus.from_sentences(CASES["two sentences"])
    problem = posed(corpus, placed=True)
    network = build_softmax(problem, 0)
    factor = softmax_factor(Shift(grid(3, True), 2, 2))
    weak = [
        block if block.attention is None else replace(block, attention=_weaker(block.attention))
        for block in network.blocks
    ]
    with mpmath.workdps(120):
        assert_labels(corpus, problem, network, decimal)
        assert factor < 1000
        with pytest.raises(AssertionError):
            assert_labels(corpus, problem, replace(network, blocks=tuple(weak)), decimal)


def _weaker(layer: ExactAttention) -> ExactAttention:
    def less(m: Sparse) -> Sparse:
        return Sparse(tuple(tuple((c, x / 1000) for c, x in row) for row in m.rows), m.columns)

    return replace(layer, heads=tuple(replace(h, query=less(h.query)) for h in layer.heads))


@pytest.mark.parametrize("case", [(2, 1, 6), (3, 1, 4), (2, 2, 4)], ids=str)
def test_hits_and_ids_are_bounded_as_in_the_proof(case: tuple[int, int, int]) -> None:
    """At most K = n + 2P hits, each M - 1 above all ids, which stay below R."""
    shift = shift_of(*case, placed=True)
    size, step, n = shift.grid.size, shift.grid.step, shift.n
    most = 0
    for words in inputs(size, range(2, n + 1), placed=True):
        ids, hits = [word + k * step for k, word in enumerate(words)], 0
        for g in shift.values:
            if g in ids:
                before = max(ids)
                ids[ids.index(g)] += size * (before - min(ids))
                hits += 1
                assert max(ids) >= before + size - 1
        most = max(most, hits)
        assert min(ids) > 0
        assert len({*ids}) == len(words)
        assert max(ids) < n * step * (size + 1) ** (3 * n)
    assert most <= 3 * n
    assert most > n or case != (2, 1, 6)  # so hits are not one for each column


@PLACED
@pytest.mark.parametrize("case", CASES)
def test_float64_runs_small_hardmax_networks(case: str, placed: bool) -> None:
    corpus = Corpus.from_sentences(CASES[case])
    problem = posed(corpus, placed)
    network = to_float64(build_hardmax(problem, 0))
    model = Model(network, corpus.vocabulary, corpus.label_names, corpus.reading)
    sentences = [words for words, _ in CASES[case]]
    wanted = [corpus.label_names[c] for c in problem.labels.tolist()]
    assert [x for row in model.predict(sentences) for x in row] == wanted
    certificate = rankone.certify(model, corpus)
    assert certificate.ok, certificate.reason


def test_what_it_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.from_sentences(corpora.spelled("aab xyx"))
    with pytest.raises(UnfitError, match="repeats a token"):
        build_hardmax(posed(corpus, placed=False), 0)
    with pytest.raises(UnfitError, match="causal"):
        build_softmax(pose([corpus], positions=True, length=3, causal=True), 0)
    monkeypatch.setattr(yun2020, "MOST", 16)  # 13 attend, one copies, 3 have labels
    with pytest.raises(UnfitError, match="would have 17 layers"):
        build_hardmax(posed(corpus, placed=True), 0)


@KINDS
def test_a_time_limit_ends_it(kind: Kind) -> None:
    problem = posed(Corpus.from_sentences(CASES["lengths"]), placed=True)
    with time_limit(0), pytest.raises(TimeIsUpError):
        BUILDS[kind](problem, 0)
