"""Remark 2: rank-1 attention with small scores, whole numbers, and the deep readout."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import exact_truth
import rankone
from rankone import Corpus
from rankone.construct import kajitsuka2024
from rankone.construct.exact import asked_contexts, digit_limit
from rankone.construct.kajitsuka2024 import build_deep, build_grade, practical_attention
from rankone.construct.problem import Problem, pose
from rankone.corpus.builtin import toy_corpus
from rankone.errors import PrecisionError, UnfitError
from rankone.nn.exact import ExactModel, ExactNetwork


def posed(corpus: Corpus, positions: bool = False, causal: bool = False) -> Problem:
    length = corpus.longest if positions else 1
    return pose([corpus], positions=positions, causal=causal, length=length)


def certified(network: ExactNetwork, corpus: Corpus) -> bool:
    model = ExactModel(network, corpus.vocabulary, corpus.label_names, corpus.reading)
    return rankone.certify(model, corpus).ok


@given(corpora.sentences(), st.booleans(), st.integers(0, 99))
def test_any_corpus_with_positions(sentences: corpora.Sentences, causal: bool, seed: int) -> None:
    corpus = Corpus.from_sentences(sentences)
    network = build_deep(posed(corpus, positions=True, causal=causal), seed)
    assert network.causal is causal
    assert certified(network, corpus)


@given(corpora.sentences(max_sentences=6, max_length=4))
def test_equations_written_out(sentences: corpora.Sentences) -> None:
    corpus = Corpus.from_sentences(sentences)
    problem = posed(corpus, positions=True)
    network = build_deep(problem, 0)
    for asked in asked_contexts(problem):
        found = exact_truth.labels(network, asked.sentence)
        assert found[asked.place] == asked.label


def test_contexts_become_whole_numbers_that_are_apart() -> None:
    """x of eq. 3 after the first block, from the equations written out."""
    corpus = toy_corpus()
    network = build_deep(posed(corpus), 3)
    x = 2  # the coordinate after the two of the vectors
    found = []
    for sentence in corpus.sentences:
        ids = [corpus.vocabulary.index(word) for word in sentence.tokens]
        found += [z[x] for z in exact_truth.states(network, ids)[2]]
    found = sorted(map(exact_truth.real, found))
    assert found[0] >= 2
    assert min(b - a for a, b in pairwise(found)) >= 2
    assert min(b - a for a, b in pairwise(found)) < 8  # not more bits than are needed
    assert network.blocks[0].feedforward is not None
    assert network.blocks[0].feedforward.hidden == 1


@pytest.mark.parametrize("seed", range(5))
def test_attention_moves_a_token_by_a_quarter_of_a_gap(seed: int) -> None:
    columns = np.random.default_rng(seed).normal(size=(9, 2))
    attention, v = practical_attention(columns, seed)
    (head,) = attention.heads
    key, query, value = (exact_truth.dense(m)[0] for m in (head.key, head.query, head.value))
    output = [row[0] for row in exact_truth.dense(head.output)]
    assert key == value == [Fraction(x) for x in v.tolist()]
    keys, queries = columns @ v, columns @ np.array([float(q) for q in query])
    spread = np.abs(queries).max() * np.ptp(keys)
    assert spread == pytest.approx(kajitsuka2024.SPREAD)
    gap = np.diff(np.sort(keys)).min()
    moved = np.abs(keys).max() * float(np.array([float(w) for w in output]) @ v)
    assert moved == pytest.approx(gap / 4)


def test_small_cases() -> None:
    for sentences in (
        corpora.spelled("a x"),
        corpora.spelled("ab xx"),
        corpora.spelled("a x", "b y"),
    ):
        corpus = Corpus.from_sentences(sentences)
        assert certified(build_deep(posed(corpus), 0), corpus)


def test_the_same_seed_gives_the_same_network() -> None:
    problem = posed(toy_corpus())
    assert build_deep(problem, 1) == build_deep(problem, 1)
    assert build_deep(problem, 1) != build_deep(problem, 2)


def test_contexts_that_coincide_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention that writes nothing leaves contexts of one word at one place where they were."""
    problem = posed(
        Corpus.from_sentences(corpora.spelled("aad xyx", "a y", "ad yx")), positions=True
    )

    def still(columns: object, seed: int) -> object:
        attention, v = practical_attention(columns, seed)  # type: ignore[arg-type]
        (head,) = attention.heads
        nothing = replace(head.output, rows=((),) * len(head.output.rows))
        return replace(attention, heads=(replace(head, output=nothing),)), v

    monkeypatch.setattr(kajitsuka2024, "practical_attention", still)
    with pytest.raises(PrecisionError, match="not apart with 16,384 bits"):
        build_deep(problem, 0)
    with digit_limit(100), pytest.raises(PrecisionError, match="more than the cap of 100"):
        build_deep(problem, 0)


def test_what_does_not_fit() -> None:
    repeats = Corpus.from_sentences(corpora.spelled("aab xyx", "ab xy"))
    for build in (build_deep, build_grade("tight", "separate")):
        with pytest.raises(UnfitError, match="1 sentence repeats a token, which Corollary 1"):
            build(posed(repeats), 0)
    parts = [toy_corpus(), toy_corpus()]
    with pytest.raises(UnfitError, match="one part"):
        build_deep(pose(parts, positions=False), 0)


def test_too_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kajitsuka2024, "COLUMNS", 4)
    with pytest.raises(PrecisionError, match="5 columns: too many"):
        build_grade("tight", "shared")(posed(toy_corpus()), 0)
