"""Corollary 2 and Appendix C end to end: F(X + E) = Y (eq. 18), with masks too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from paper.end_to_end import prefixes, sequences, worst
from rankone import Corpus
from rankone.construct.theorem2.corollaries import memorize_exactly
from rankone.construct.theorem2.embedded import draw_vectors, embed_corpus, position_table
from rankone.theory.separation import separation

SEPARATE = {"grade": "tight", "query": "separate"}


@given(corpus=sequences(equal=True))
def test_any_sequences_of_one_length(corpus: Corpus) -> None:
    found = memorize_exactly(corpus, positions=True, **SEPARATE)
    assert not found.graded.masked
    assert worst(found, corpus) <= float(found.max_error)


@given(corpus=sequences(equal=False))
def test_sequences_of_several_lengths(corpus: Corpus) -> None:
    found = memorize_exactly(corpus, positions=True, **SEPARATE)
    assert found.graded.masked is (len(set(corpus.lengths.tolist())) > 1)
    assert worst(found, corpus) <= float(found.max_error)


@given(corpus=prefixes())
def test_a_causal_mask(corpus: Corpus) -> None:
    found = memorize_exactly(corpus, positions=True, causal=True, **SEPARATE)
    assert found.graded.masked
    assert worst(found, corpus) <= float(found.max_error)


def test_literal_constants() -> None:
    corpus = Corpus.from_sentences([(["a", "a"], ["x", "y"]), (["a", "b"], ["y", "x"])])
    found = memorize_exactly(corpus, grade="paper", dim=1)
    assert found.ok
    assert found.digits > 3000


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_the_repaired_positions_separate(dim: int) -> None:
    """X + E is (r_max + eps, r_max + n (2 r_max + eps), eps)-separated: eq. 48, repaired."""
    rng = np.random.default_rng(dim)
    table = rng.normal(size=(6, dim))
    apart = separation(table)
    places = position_table(apart, 4)
    every = (table[:, None] + places).reshape(-1, dim)
    found = separation(every)
    assert found.r_min >= apart.r_max + apart.epsilon * 0.999
    assert found.epsilon >= apart.epsilon * 0.999
    step = 2 * apart.r_max + apart.epsilon
    assert found.r_max <= apart.r_max + 4 * step * 1.001


def test_columns_are_exact_for_drawn_vectors() -> None:
    corpus = Corpus.from_sentences([(["a", "a", "b"], ["x", "y", "x"])])
    where = embed_corpus(corpus, seed=3)
    assert where.positions is not None
    assert (where.columns - where.positions[:3] == where.table[[0, 0, 1]]).all()
    drawn = draw_vectors(50, 3, seed=0)
    norms = np.linalg.norm(drawn, axis=1)
    assert (drawn * 2**20 == np.rint(drawn * 2**20)).all()
    assert 1 - 1e-5 < norms.min() < 1.1
    assert 1.9 < norms.max() < 2 + 1e-5
