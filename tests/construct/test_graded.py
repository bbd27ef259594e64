"""The weights of a grade as a model: certified, and within what the theorem promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankone import Corpus, RankOneError, certify, load
from rankone.certification import Outcome
from rankone.construct.theorem2.embedded import embed_corpus, graded_model
from rankone.construct.theorem2.weights import contextual_mapping
from rankone.corpus.builtin import toy_corpus
from rankone.decimals import log10

GRADES = [("paper", "shared"), ("tight", "shared"), ("tight", "separate")]
REPEATS = [("aab", "xyx"), ("ba", "yx"), ("a", "x")]


def check(corpus: Corpus, grade: str, query: str, head_size: int, causal: bool) -> None:
    where = embed_corpus(corpus, causal=causal, dim=1)
    graded = contextual_mapping(
        where.columns, where.n, grade=grade, query=query, masked=where.masked
    )
    model = graded_model(corpus, where, graded, head_size=head_size, causal=causal)
    found = certify(model, corpus)
    assert (found.outcome, found.labels) == (Outcome.CERTIFIED, None)
    assert log10(found.delta) > graded.log10_bound
    assert float(found.r) <= graded.r * (1 + 1e-5)  # six digits are written down, rounded up
    assert found.decided["undecided"] == 0


@pytest.mark.parametrize("head_size", [1, 2, 3])
@pytest.mark.parametrize(("grade", "query"), GRADES)
def test_theorem_2_holds_for_saved_weights(grade: str, query: str, head_size: int) -> None:
    check(toy_corpus(4, 2), grade, query, head_size, causal=False)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("grade", "query"), GRADES)
def test_and_with_positions_and_masks(grade: str, query: str, causal: bool) -> None:
    corpus = Corpus.from_sentences((list(words), list(labels)) for words, labels in REPEATS)
    check(corpus, grade, query, 1, causal)


def test_it_is_a_model_without_labels(tmp_path: Path) -> None:
    corpus = toy_corpus(3, 2)
    where = embed_corpus(corpus)
    model = graded_model(corpus, where, contextual_mapping(where.columns, 2, grade="tight"))
    assert model.network.shape.hidden == 0
    model.save(tmp_path / "model")
    with pytest.raises(RankOneError, match="without a readout"):
        load(tmp_path / "model").predict([["a", "b"]])
