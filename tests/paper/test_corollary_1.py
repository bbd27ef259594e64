"""Corollary 1 end to end: F^(FF)(F^(SA)(X)) = Y (eq. 17), in every grade, in exact arithmetic."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from paper.end_to_end import sets, worst
from rankone import Corpus, RankOneError
from rankone.construct.theorem2.corollaries import EQUAL, memorize_exactly
from rankone.corpus.builtin import toy_corpus

GRADES = [("paper", "shared"), ("tight", "shared"), ("tight", "separate")]


@pytest.mark.parametrize(("grade", "query"), GRADES[1:])
@given(corpus=sets())
def test_outputs_are_the_labels(grade: str, query: str, corpus: Corpus) -> None:
    found = memorize_exactly(corpus, grade=grade, query=query)
    assert found.ok
    assert worst(found, corpus) <= float(found.max_error)


def test_outputs_are_the_labels_with_literal_constants() -> None:
    corpus = toy_corpus(4, 2)
    found = memorize_exactly(corpus, grade="paper")
    assert found.digits > 5000
    assert found.contexts == 12
    assert worst(found, corpus) <= EQUAL


@pytest.mark.parametrize(("grade", "query"), GRADES)
def test_the_toy_in_every_grade(grade: str, query: str) -> None:
    found = memorize_exactly(toy_corpus(), grade=grade, query=query)
    assert found.ok
    assert found.contexts == found.tokens == 30
    assert found.digits - found.graded.digits in (39, 40)  # 128 bits more, rounded up twice
    assert found.parameters.paper == 4 * (1 + 2) + 2 * (2 * 3 * 10 + 2)
    assert replace(found, max_error="5.4e-20").ok  # 2^-64 is 5.42e-20
    assert not replace(found, max_error="5.5e-20").ok
    figures = found.to_json()
    json.dumps(figures, allow_nan=False)
    assert set(figures) == {"ok", *(set(vars(found)) - {"network"})}
    assert figures["graded"] == found.graded.to_json()
    kept = {name: getattr(found, name) for name in ("ok", "tokens", "contexts", "digits")}
    assert {name: figures[name] for name in kept} == kept
    assert figures["max_error"] == found.max_error


def test_repeated_tokens_and_contradictions_are_refused() -> None:
    with pytest.raises(RankOneError, match="repeats a token"):
        memorize_exactly(Corpus.from_sentences([(["a", "a"], ["x", "y"])]), positions=False)
    twice = [(["a", "b"], ["x", "y"]), (["b", "a"], ["x", "y"])]
    with pytest.raises(RankOneError, match="contradicting"):
        memorize_exactly(Corpus.from_sentences(twice))
