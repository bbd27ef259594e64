"""Corollary 1, Corollary 2 and Appendix C from end to end, with as many digits as they need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.construct.theorem2.embedded import embed_corpus
from rankone.construct.theorem2.projection import Query
from rankone.construct.theorem2.weights import Grade, GradedMapping, contextual_mapping
from rankone.corpus import Corpus
from rankone.corpus.targets import choose_targets
from rankone.decimals import ceiled
from rankone.documents import figures
from rankone.errors import PrecisionError
from rankone.nn.arb_network import Attention, ExactNetwork, FeedForward, Vector, dot
from rankone.nn.layers import Head
from rankone.theory import ParameterCounts, parameter_counts

GUARD = 128  # bits beyond those that tell context ids apart
EQUAL = 2.0**-64  # outputs no further from their labels than this count as equal
NOTHING = FeedForward([], [], [], [])


@dataclass(frozen=True)
class ExactMemorized:
    """F^(FF)(F^(SA)(X)) = Y (eq. 17, or eq. 18 for X + E), evaluated for every context.

    The labels Y are whole numbers from 1, the same in all d coordinates. The weights of
    ``network`` are exact binary numbers of ``digits`` decimal digits; ``max_error`` bounds the
    distance of every output from its label, for the exact-real network.
    """

    network: ExactNetwork
    graded: GradedMapping
    tokens: int
    contexts: int
    max_error: str
    digits: int
    parameters: ParameterCounts

    @property
    def ok(self) -> bool:
        return float(self.max_error) <= EQUAL

    def to_json(self) -> dict[str, Any]:
        """The figures, without the network."""
        return figures(self, "network")


def memorize_exactly(
    corpus: Corpus,
    vectors: ArrayLike | None = None,
    *,
    grade: Grade = "paper",
    query: Query = "shared",
    positions: bool | None = None,
    causal: bool = False,
    dim: int = 2,
    seed: int = 0,
) -> ExactMemorized:
    """The one-layer Transformer of the proof, for a small corpus with consistent labels.

    Attention is Theorem 2's, in the grade asked for. The readout is Zhang et al.'s: context ids
    are projected on v and sorted, s_1 < s_2 < ...; unit i bends at s_(i-1) and takes the output on
    to the label of context i, from which the skip connection (eq. 3) has to be subtracted first:

        w_i = (Y_i - h_i - sum_(j<i) w_j (s_i - b_j)) / (s_i - b_i)

    >>> import rankone
    >>> pairs = [("ab", "xy"), ("ac", "yx"), ("bc", "yy")]
    >>> corpus = rankone.Corpus.from_sentences((list(words), list(tags)) for words, tags in pairs)
    >>> memorize_exactly(corpus).ok
    True
    """
    where = embed_corpus(corpus, vectors, positions=positions, causal=causal, dim=dim, seed=seed)
    graded = contextual_mapping(
        where.columns, where.n, grade=grade, query=query, masked=where.masked, seed=seed
    )
    placed = where.positions is not None
    (targets,) = choose_targets([corpus], positions=placed, causal=causal, strict=True).parts
    contexts = np.flatnonzero(targets.contexts == np.arange(corpus.n_tokens)).tolist()
    with ctx.workprec(ceil(graded.digits * log2(10)) + GUARD):
        attention = _attention(graded)
        rows = None if where.positions is None else _rows(where.positions)
        network = ExactNetwork(_rows(where.table), rows, [(attention, NOTHING)], causal)
        places = [_place(corpus, token) for token in contexts]
        ids = [network.context_id(*place) for place in places]
        labels = [int(targets.labels[token]) + 1 for token in contexts]
        readout = zhang(ids, labels, [arb(x) for x in graded.mapping.direction.tolist()])
        network = replace(network, blocks=[(attention, readout)])
        error = arb(0)
        for place, label in zip(places, labels, strict=True):
            for y in network.features(*place):
                error = error.max(abs(y - label))
        if not error <= EQUAL:
            raise PrecisionError(
                f"outputs are up to {error.str(3)} away from their labels",
                where=corpus.source,
                remedy="this should not happen: the digits were counted too low",
            )
        return ExactMemorized(
            network=network,
            graded=graded,
            tokens=corpus.n_tokens,
            contexts=len(contexts),
            max_error=ceiled(error),
            digits=ceil(ctx.prec / log2(10)),
            parameters=parameter_counts(corpus.longest, corpus.n_sentences, where.table.shape[1]),
        )


def zhang(ids: list[Vector], labels: list[int], direction: Vector) -> FeedForward:
    """One unit per context id (Zhang et al. 2016), in numbers of `ctx.prec` bits.

    Thresholds b_i = s_(i-1) and weights w_i are midpoints of balls, so exact numbers; each w_i is
    aimed from where the ones before really lead.
    """
    line = sorted(
        ((dot(direction, h).mid(), h, label) for h, label in zip(ids, labels, strict=True)),
        key=lambda item: item[0],
    )
    bends = [(line[0][0] - 1).mid(), *(s for s, _, _ in line[:-1])]
    out: list[Vector] = []
    slope = f = [arb(0)] * len(direction)
    for (s, h, label), bend in zip(line, bends, strict=True):
        aims = [(label - x - y) / (s - bend) for x, y in zip(h, f, strict=True)]
        out.append([(aim - before).mid() for aim, before in zip(aims, slope, strict=True)])
        slope = [before + w for before, w in zip(slope, out[-1], strict=True)]
        f = [y + rise * (s - bend) for y, rise in zip(f, slope, strict=True)]
    bias = [-bend for bend in bends]
    return FeedForward([direction], bias, out, [arb(0)] * len(direction), [arb(1)] * len(bias))


def _attention(graded: GradedMapping) -> Attention:
    mapping = graded.mapping
    v1, v2 = ([[arb(x) for x in v.tolist()]] for v in (mapping.v1, mapping.v2))
    return Attention([Head(v1, v2, v1, [[arb(w)] for w in mapping.output.tolist()])], "softmax")


def _place(corpus: Corpus, token: int) -> tuple[list[int], int]:
    start, end = corpus.offsets[corpus.sentence_of[token] : corpus.sentence_of[token] + 2].tolist()
    return corpus.token_ids[start:end].tolist(), token - start


def _rows(table: Floats) -> list[Vector]:
    return [[arb(x) for x in row] for row in table.tolist()]
