"""What Theorem 2 is applied to: the columns X + E of a corpus, and how many of them are seen; and
the weights of a grade as a model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.construct.theorem2.weights import GradedMapping
from rankone.construct.vectors import check_vectors
from rankone.corpus import Corpus
from rankone.corpus.contexts import sentences_with_repeats
from rankone.errors import CorpusError
from rankone.nn import Model, Rank1FeedForward
from rankone.nn.layers import module_of
from rankone.plural import plural
from rankone.theory.separation import Separation, separation

GRID = 2.0**-20  # drawn vectors are multiples of it, so that adding positions rounds nothing


@dataclass(frozen=True)
class EmbeddedCorpus:
    """Token vectors X, positions E, and the theorem's vocabulary: the different columns of X + E.

    ``n`` is the largest number of tokens that a query sees. Where not all see as many (sentences
    of different lengths, a causal mask) the bound is that of Appendix C: ``masked``.
    """

    table: Floats  # (words, d)
    positions: Floats | None  # (length, d)
    columns: Floats  # (|V|, d)
    n: int
    masked: bool


def embed_corpus(
    corpus: Corpus,
    vectors: ArrayLike | None = None,
    *,
    positions: bool | None = None,
    causal: bool = False,
    dim: int = 2,
    seed: int = 0,
) -> EmbeddedCorpus:
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
        return EmbeddedCorpus(table, None, table, corpus.longest, masked)
    places = position_table(separation(table), corpus.longest)
    pairs = np.unique(corpus.token_ids * corpus.longest + corpus.positions)
    columns = table[pairs // corpus.longest] + places[pairs % corpus.longest]
    return EmbeddedCorpus(table, places, columns, corpus.longest, masked)


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


def graded_model(
    corpus: Corpus,
    where: EmbeddedCorpus,
    graded: GradedMapping,
    *,
    head_size: int = 1,
    causal: bool = False,
) -> Model:
    """X, E and attention in float64, no hidden unit and a head of zeros, to be saved and certified.

    float64 holds the weights of attention, for eq. 29 and 32 are ordinary numbers; it is what they
    compute that takes thousands of digits. A readout would need weights of that size, so there is
    none: the features of this model are the context ids. Unknown words get the mean.
    """
    table = np.vstack([where.table, where.table.mean(0)])
    mapping = replace(graded.mapping, table=table, positions=where.positions)
    labels, dim = len(corpus.label_names), table.shape[1]
    sizes = Rank1FeedForward.sizes(dim, hidden=0)
    zeros = {name: torch.zeros(size, dtype=torch.float64) for name, size in sizes.items()}
    network = mapping.network(
        module_of(Rank1FeedForward, zeros),
        np.zeros((labels, dim)),
        np.zeros(labels),
        head_size=head_size,
        causal=causal,
    )
    return Model(network, corpus.vocabulary, corpus.label_names, corpus.reading)
