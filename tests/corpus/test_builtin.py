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


def test_same_seed_same_corpus() -> None:
    one, two, other = (rankone.builtin_corpus(50, seed) for seed in (1, 1, 2))
    assert one.sentences == two.sentences
    assert one.sentences != other.sentences


def test_sequence_determines_labels_for_other_seeds_too() -> None:
    for seed in range(1, 6):
        corpus = rankone.builtin_corpus(500, seed)
        assert rankone.inspect(corpus).ok
        assert np.all(corpus.lengths > 1)
