"""Heads alone memorise: as many examples as the theorem says, not one more, and whole corpora."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import rankone
from corpora import sentences, spelled
from rankone import Corpus
from rankone.arrays import Floats
from rankone.certification import Certificate
from rankone.construct import mahdavi2023
from rankone.construct.exact import asked_contexts
from rankone.construct.mahdavi2023 import (
    Fit,
    averages,
    build,
    build_rank1,
    capacity,
    heads_for,
    memorize_examples,
)
from rankone.construct.problem import Problem, pose
from rankone.errors import PrecisionError, UnfitError
from rankone.nn import Model, TokenClassifier
from rankone.nn.classifier import has_label_numbers

RANKS = pytest.mark.parametrize("rank1", [False, True], ids=["full", "rank1"])
SEEDS = range(5)


def posed(corpus: Corpus, *, placed: bool, causal: bool = False) -> Problem:
    length = corpus.longest if placed else 1
    return pose([corpus], positions=placed, causal=causal, length=length)


def certified(network: TokenClassifier, corpus: Corpus) -> Certificate:
    return rankone.certify(
        Model(network, corpus.vocabulary, corpus.label_names, corpus.reading), corpus
    )


def shared_context(n: int, examples: int, seed: int = 0) -> tuple[list[Floats], Floats]:
    """One context of rank n for all, in n + 1 dimensions, and generic queries."""
    rng = np.random.default_rng([7, seed])
    context, queries = rng.standard_normal((n, n + 1)), rng.standard_normal((examples, n + 1))
    return [context] * examples, queries


def by_hand(fit: Fit, context: Floats, query: Floats) -> list[float]:
    """sum_h W_O W_V E^T softmax(E W_K^T W_Q e), number by number."""
    d, tokens = len(query), context.tolist()
    found = [0.0] * fit.output.shape[1]
    for key, ask, value, output in zip(fit.key, fit.query, fit.value, fit.output, strict=True):
        q = [sum(row[i] * query[i] for i in range(d)) for row in ask]
        keys = [[sum(row[i] * x[i] for i in range(d)) for row in key] for x in tokens]
        scores = [sum(a * b for a, b in zip(k, q, strict=True)) for k in keys]
        powers = [math.exp(score - max(scores)) for score in scores]
        average = [
            sum(w * x[i] for w, x in zip(powers, tokens, strict=True)) / sum(powers)
            for i in range(d)
        ]
        z = [sum(row[i] * average[i] for i in range(d)) for row in value]
        for c, row in enumerate(output):
            found[c] += sum(a * b for a, b in zip(row, z, strict=True))
    return found


def literal_logits(network: TokenClassifier, words: list[int], causal: bool) -> list[list[float]]:
    """Eq. 2 and the head, from the tensors of the network."""
    weights = {name: p.detach().numpy() for name, p in network.named_parameters()}
    z = np.array([weights["table"][word] for word in words])
    if "positions" in weights:
        z += weights["positions"][: len(words)]
    matrices = [weights[f"blocks.0.attention.{n}"] for n in ("key", "query", "value", "output")]
    found = []
    for k in range(len(words)):
        seen = z[: k + 1] if causal else z
        out = z[k].copy()
        for key, query, value, output in zip(*matrices, strict=True):
            scores = [float((key @ x) @ (query @ z[k])) for x in seen]
            powers = [math.exp(score - max(scores)) for score in scores]
            out += output @ sum(
                w / sum(powers) * (value @ x) for w, x in zip(powers, seen, strict=True)
            )
        found.append((weights["head.weight"] @ out + weights["head.bias"]).tolist())
    return found


@RANKS
@pytest.mark.parametrize(("n", "heads"), [(2, 1), (2, 4), (3, 5), (6, 5), (5, 12)])
def test_the_capacity_is_reached(n: int, heads: int, rank1: bool) -> None:
    T = capacity(heads, n)
    assert heads * (n - 1) + 1 == T
    contexts, queries = shared_context(n, T)
    labels = np.random.default_rng(1).standard_normal((T, 2))
    fit = memorize_examples(contexts, queries, labels, heads, n, rank1)
    assert fit.residual < 1e-7
    z = averages(contexts, queries, fit.key, fit.query, fit.value)
    condition = np.linalg.cond(z / np.linalg.norm(z, axis=0))
    if heads == 1:  # Z is square with n = 2; else its smallest singular values are 0
        assert fit.condition == pytest.approx(condition, rel=1e-6)
    assert fit.condition < 1e11
    found = np.array([by_hand(fit, contexts[0], query) for query in queries])
    assert np.abs(found - labels).max() < 1e-6
    ranks = {np.linalg.matrix_rank(m) for m in (*fit.key, *fit.query)}
    assert ranks == {1 if rank1 else n}
    assert {np.linalg.matrix_rank(value) for value in fit.value} == {n}


@RANKS
@pytest.mark.parametrize(("n", "heads"), [(1, 3), (2, 4), (6, 5)])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_more_example_is_too_many(n: int, heads: int, seed: int, rank1: bool) -> None:
    """Labels of size 1 that no output matrix comes near: the signs of a vector that is orthogonal
    to all columns of Z. Their distance from Z W is its 1-norm over its 2-norm, at least 1."""
    T = capacity(heads, n) + 1
    contexts, queries = shared_context(n, T, seed)
    drawn = memorize_examples(contexts, queries, np.zeros((T, 1)), heads, n, rank1, seed)
    z = averages(contexts, queries, drawn.key, drawn.query, drawn.value)
    u, sigma, _ = np.linalg.svd(z)
    assert len(sigma) < T or sigma[T - 1] < 1e-13 * sigma[0]
    labels = np.where(u[:, -1:] >= 0, 1.0, -1.0)
    fit = memorize_examples(contexts, queries, labels, heads, n, rank1, seed)
    assert fit.residual >= 0.99 / math.sqrt(T)
    assert fit.condition == math.inf


@RANKS
@pytest.mark.parametrize("seed", range(20))
def test_fixed_labels_that_no_head_fits(seed: int, rank1: bool) -> None:
    """Three queries on a line: the weight of a token is monotone along it, so the output of one
    head for the middle one lies between the others, and 0, 1, 0 is off by 1/2 for all weights."""
    contexts, queries = shared_context(2, 3, seed)
    queries[1] = (queries[0] + queries[2]) / 2
    labels = np.array([[0.0], [1.0], [0.0]])
    assert memorize_examples(contexts, queries, labels, 1, 2, rank1, seed).residual >= 0.4999


def test_contexts_of_different_lengths() -> None:
    rng = np.random.default_rng(0)
    contexts = [rng.standard_normal((n, 8)) for n in (3, 7, 4, 3, 5, 6, 7)]
    queries, labels = rng.standard_normal((7, 8)), rng.standard_normal((7, 1))
    fit = memorize_examples(contexts, queries, labels, heads_for(7, 3), 3)
    for context, query, label in zip(contexts, queries, labels, strict=True):
        assert by_hand(fit, context, query) == pytest.approx(label.tolist(), abs=1e-9)


def test_heads_for_the_capacity() -> None:
    for r in (2, 3, 7):
        for T in range(1, 40):
            H = heads_for(T, r)
            assert capacity(H, r) >= T
            assert H == 1 or capacity(H - 1, r) < T


CORPORA = {
    "two": spelled("ab xy", "ac yx"),
    "singles": spelled("a x", "b y", "c y", "ab yx", "ac yx"),
    "only singles": spelled("a x", "b y", "c y", "d z"),
    "one": spelled("a x"),
    "one label": spelled("ab xx", "ba xx", "c x"),
    "contradiction": spelled("ab xy", "ab xx", "ab xy", "abc zzz"),
    "lengths": spelled("abcdef xyzxyz", "fed xyy", "ac zz", "bdf zyx", "e z"),
}


@pytest.mark.parametrize("make", [build, build_rank1], ids=["full", "rank1"])
@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize(
    ("placed", "causal"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_corpora_are_certified(
    name: str, placed: bool, causal: bool, make: Callable[[Problem, int], TokenClassifier]
) -> None:
    corpus = Corpus.from_sentences(CORPORA[name])
    problem = posed(corpus, placed=placed and corpus.longest > 1, causal=causal)
    network = make(problem, 3)
    certificate = certified(network, corpus)
    assert certificate.outcome.value == "certified", certificate.reason
    assert certificate.wrong == certificate.unavoidable == problem.targets.unavoidable
    contexts = len(problem.contexts)
    assert contexts == 1 or float(certificate.delta) > 0.9 / contexts  # not by rounding
    shape, heads = network.shape, network.blocks[0].attention.heads
    assert (shape.depth, shape.hidden, shape.attention) == (1, 0, "softmax")
    assert has_label_numbers(network.head)
    lengths = [a.place + 1 if causal else len(a.sentence) for a in asked_contexts(problem)]
    shortest = min((n for n in lengths if n > 1), default=2)
    assert (shape.heads, shape.head_size) == (heads_for(contexts, shortest), shortest)
    ranks = {np.linalg.matrix_rank(m) for head in heads for m in (head.key, head.query)}
    assert ranks == ({1} if make is build_rank1 else {shape.head_size})


@given(sentences(max_sentences=5, max_length=5).map(Corpus.from_sentences))
def test_any_corpus_with_positions(corpus: Corpus) -> None:
    for causal in (False, True):
        problem = posed(corpus, placed=corpus.longest > 1, causal=causal)
        network = build(problem, 0)
        wanted = problem.targets.parts[0].labels
        for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
            logits = literal_logits(network, corpus.token_ids[a:b].tolist(), causal)
            assert [int(np.argmax(row)) for row in logits] == wanted[a:b].tolist()


def test_tokens_without_a_label() -> None:
    corpus = Corpus.from_sentences(spelled("abc xyz", "cab zxy", "b x"))
    labels = corpus.label_ids.copy()
    labels[[1, 5]] = -1
    corpus = replace(corpus, label_ids=labels)
    network = build(posed(corpus, placed=True), 0)
    assert network.shape.heads == heads_for(5, 3)
    assert certified(network, corpus).outcome.value == "certified"


def test_the_draw_is_the_seeds() -> None:
    problem = posed(Corpus.from_sentences(CORPORA["lengths"]), placed=True)
    one, same, other = (build(problem, seed).table for seed in (1, 1, 2))
    assert one.equal(same)
    assert not one.equal(other)


def test_repeats_without_positions_are_refused() -> None:
    corpus = Corpus.from_sentences(spelled("aab xyz"))
    with pytest.raises(UnfitError, match="repeats a token"):
        build(posed(corpus, placed=False), 0)
    build(posed(corpus, placed=True), 0)


def test_too_many_contexts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = posed(Corpus.from_sentences(CORPORA["lengths"]), placed=True)
    monkeypatch.setattr(mahdavi2023, "MOST", 14)
    with pytest.raises(UnfitError, match="15 contexts"):
        build(problem, 0)
    monkeypatch.setattr(mahdavi2023, "MOST", 15)
    build(problem, 0)


def test_the_margin_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mahdavi2023, "RESERVE", 0.51)
    with pytest.raises(PrecisionError, match="do not fit 4 contexts"):
        build(posed(Corpus.from_sentences(CORPORA["two"]), placed=False), 0)


def test_what_float64_cannot_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that are nearly equal: all tokens of a sentence get the same average."""
    monkeypatch.setattr(mahdavi2023, "SPREADS", (1e-18,))
    with pytest.raises(PrecisionError, match=r"off by .*condition number is inf"):
        build(posed(Corpus.from_sentences(CORPORA["two"]), placed=False), 0)
