"""What Theorem 2 is applied to: the columns X + E of a corpus, and how many of them are seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankone.construct.mapping import Floats
from rankone.construct.vectors import check_vectors
from rankone.corpus import Corpus
from rankone.corpus.audit import sentences_with_repeats
from rankone.errors import CorpusError
from rankone.plural import plural
from rankone.theory.separation import Separation, separation

GRID = 2.0**-20  # drawn vectors are multiples of it, so that adding positions rounds nothing


@dataclass(frozen=True)
class Setting:
    """Token vectors X, positions E, and the theorem's vocabulary: the different columns of X + E.

    ``n`` is the largest number of tokens that a query sees. Where not all see as many (sentences
    of different lengths, a causal mask) the bound is that of Appendix C: ``masked``.
    """

    table: Floats  # (words, d)
    positions: Floats | None  # (length, d)
    columns: Floats  # (|V|, d)
    n: int
    masked: bool


def setting(
    corpus: Corpus,
    vectors: ArrayLike | None = None,
    *,
    positions: bool | None = None,
    causal: bool = False,
    dim: int = 2,
    seed: int = 0,
) -> Setting:
    """The corpus as the theorem sees it: Corollary 1 without positions, Corollary 2 with them.

    `positions` None takes them where Corollary 1 does not apply, that is where some sentence
    repeats a token. Without `vectors` they are drawn, `dim` numbers each.
    """
    repeats = sentences_with_repeats(corpus)
    if positions is None:
        positions = repeats > 0
    if repeats and not positions:
        raise CorpusError(
            f"{plural(repeats, 'sentence repeats', 'sentences repeat')} a token, which Corollary 1 "
            "excludes",
            where=corpus.source,
            remedy="turn positions on (Corollary 2)",
        )
    words = corpus.vocabulary
    given = draw_vectors(len(words), dim, seed) if vectors is None else vectors
    table = check_vectors(given, words)
    masked = causal or int(corpus.lengths.min()) < corpus.longest
    if not positions:
        return Setting(table, None, table, corpus.longest, masked)
    places = position_table(separation(table), corpus.longest)
    pairs = np.unique(corpus.token_ids * corpus.longest + corpus.positions)
    columns = table[pairs // corpus.longest] + places[pairs % corpus.longest]
    return Setting(table, places, columns, corpus.longest, masked)


def draw_vectors(count: int, dim: int, seed: int) -> Floats:
    """Different vectors with norms between 1 and 2, drawn evenly over directions."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(count, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    drawn = directions * rng.uniform(1.0, 2.0, (count, 1))
    return np.asarray(np.round(drawn / GRID) * GRID)


def position_table(apart: Separation, length: int) -> Floats:
    """E_{:,k} = k (2 r_max + epsilon) / sqrt(d) (1, ..., 1)   (eq. 48, repaired), k = 1, 2, ...

    The step is rounded up to the grid of drawn vectors: a little more distance does no harm.
    """
    step = (2 * apart.r_max + apart.epsilon) / np.sqrt(apart.dim)
    step = np.ceil(step / GRID) * GRID
    return np.outer(step * np.arange(1, length + 1), np.ones(apart.dim))
