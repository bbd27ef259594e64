"""Digits and bound of a grade that has too many columns to build its weights."""

from __future__ import annotations

import math

import numpy as np

from rankone.construct.theorem2.embedded import EmbeddedCorpus
from rankone.construct.theorem2.projection import Query, fewest_digits
from rankone.construct.theorem2.weights import Grade
from rankone.corpus import Corpus
from rankone.theory import bounds
from rankone.theory.separation import separation

DRAWS = 1 << 20  # columns times directions tried


def promise(
    corpus: Corpus, where: EmbeddedCorpus, grade: Grade, query: Query, seed: int
) -> tuple[float, float]:
    """Digits, and the logarithm (base 10) of the separation; nothing goes through all pairs."""
    return _paper(corpus, where) if grade == "paper" else _tight(where, query, seed)


def _paper(corpus: Corpus, where: EmbeddedCorpus) -> tuple[float, float]:
    """Eq. 8, with the separation of X + E that eq. 48 (repaired) guarantees."""
    table = separation(where.table)
    size, dim = where.columns.shape
    if where.positions is None:
        given = bounds.masked if where.masked else bounds.theorem2
        bound = given(table.r_min, table.r_max, table.epsilon, vocabulary=size, n=where.n, dim=dim)
    else:
        bound = bounds.corollary2(
            table.r_max,
            table.epsilon,
            n=where.n,
            dim=dim,
            sentences=corpus.n_sentences,
            vocabulary=size,
            masked=where.masked,
        )
    return float(bound.digits), bound.log10_delta


def _tight(where: EmbeddedCorpus, query: Query, seed: int) -> tuple[float, float]:
    """The spread of the scores at the smallest scale, for the best of a few directions."""
    x = where.columns
    points = x if query == "separate" else np.vstack([x, np.zeros((1, x.shape[1]))])
    v, asked = fewest_digits(x, points, query, draws=max(4, DRAWS // len(x)), seed=seed)
    keys, queries = np.sort(x @ v), np.abs(x @ asked)
    apart = (keys[-1] - keys[0]) / np.diff(keys).min() * queries.max() / queries.min()
    log10_bound = -(2 * math.log(where.n) + 3) * float(apart) / math.log(10)
    return bounds.GUARD - log10_bound, log10_bound
