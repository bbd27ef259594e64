"""The built-in corpus: what the README and the demo rely on."""

from __future__ import annotations

import numpy as np

import rankone


def test_context_decides_and_the_sequence_determines_all() -> None:
    audit = rankone.inspect(rankone.builtin_corpus())
    assert audit.sentences == 2000
    assert audit.ceilings["token"].accuracy < 0.85
    assert audit.ceilings["sequence"].errors == 0
    assert audit.ok
    assert audit.scheme == "IOB2"


def test_the_toy_meets_the_conditions_of_the_theorem() -> None:
    toy = rankone.read_corpus("toy")
    audit = rankone.inspect(toy)
    assert (audit.sentences, audit.vocabulary, {*toy.lengths.tolist()}) == (10, 5, {3})
    assert (audit.sentences_with_repeated_token, audit.distinct_sentences) == (0, 10)
    assert audit.ceilings["token"].errors > audit.ceilings["set"].errors == 0
    assert (toy.sentences[1].tokens, toy.sentences[1].labels) == (
        ["a", "b", "d"],  # 0 + 1 + 3, and its own
        ["even", "odd", "odd"],
    )


def test_same_seed_same_corpus() -> None:
    one, two, other = (rankone.builtin_corpus(50, seed) for seed in (1, 1, 2))
    assert one.sentences == two.sentences
    assert one.sentences != other.sentences


def test_sequence_determines_labels_for_other_seeds_too() -> None:
    for seed in range(1, 6):
        corpus = rankone.builtin_corpus(500, seed)
        assert rankone.inspect(corpus).ok
        assert np.all(corpus.lengths > 1)
