"""Corollary 1, Corollary 2 and Appendix C from end to end, with as many digits as they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

from flint import arb, ctx
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.construct.exact import Asked, asked_contexts, features, label_head
from rankone.construct.problem import Problem, pose
from rankone.construct.theorem2.embedded import EmbeddedCorpus, embed_corpus
from rankone.construct.theorem2.projection import Query
from rankone.construct.theorem2.weights import Grade, GradedMapping, contextual_mapping
from rankone.corpus import Corpus
from rankone.decimals import ceiled
from rankone.documents import figures
from rankone.errors import PrecisionError
from rankone.nn.exact import ExactAttention, ExactBlock, ExactFeedForward, ExactNetwork, Sparse
from rankone.nn.exact.numbers import Exactly, Vector, ball, exact, middle
from rankone.nn.layers import Head
from rankone.theory import ParameterCounts, parameter_counts

GUARD = 128  # bits beyond those that tell context ids apart
EQUAL = 2.0**-64  # outputs no further from their labels than this count as equal


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

    Attention is Theorem 2's, in the grade asked for; the readout is that of `zhang`.

    >>> import rankone
    >>> pairs = [("ab", "xy"), ("ac", "yx"), ("bc", "yy")]
    >>> corpus = rankone.Corpus.from_sentences((list(words), list(tags)) for words, tags in pairs)
    >>> memorize_exactly(corpus).ok
    True
    """
    where = embed_corpus(corpus, vectors, positions=positions, causal=causal, dim=dim, seed=seed)
    placed = where.positions is not None
    length = len(where.positions) if where.positions is not None else 1
    problem = pose([corpus], positions=placed, causal=causal, strict=True, length=length)
    graded = graded_mapping(where, grade, query, seed)
    network = corollary(problem, where, graded)
    asked, bits = asked_contexts(problem), working_bits(graded)
    error = arb(0)
    with ctx.workprec(bits):
        for context, outputs in zip(asked, outputs_of(network, asked, bits), strict=True):
            for y in outputs:
                error = error.max(abs(ball(y) - (context.label + 1)))
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
        contexts=len(asked),
        max_error=ceiled(error),
        digits=ceil(bits / log2(10)),
        parameters=parameter_counts(corpus.longest, corpus.n_sentences, where.table.shape[1]),
    )


def graded_mapping(where: EmbeddedCorpus, grade: Grade, query: Query, seed: int) -> GradedMapping:
    """Theorem 2 for the columns of a corpus."""
    return contextual_mapping(
        where.columns, where.n, grade=grade, query=query, masked=where.masked, seed=seed
    )


def working_bits(graded: GradedMapping) -> int:
    """What it takes to tell context ids apart, and some more."""
    return ceil(graded.digits * log2(10)) + GUARD


def corollary(problem: Problem, where: EmbeddedCorpus, graded: GradedMapping) -> ExactNetwork:
    """Attention of Theorem 2 and a unit per context id, in numbers of `working_bits`."""
    attention = rank1_attention(graded.mapping.v1, graded.mapping.v2, graded.mapping.output)
    bare = embedded_network(problem, where, (ExactBlock(attention),))
    asked, bits = asked_contexts(problem), working_bits(graded)
    ids = outputs_of(bare, asked, bits)
    with ctx.workprec(bits):
        readout = zhang(ids, [context.label + 1 for context in asked], graded.mapping.direction)
    return embedded_network(problem, where, (ExactBlock(attention, readout),))


def embedded_network(
    problem: Problem, where: EmbeddedCorpus, blocks: tuple[ExactBlock, ...]
) -> ExactNetwork:
    """X + E and these blocks; labels are the numbers nearest to the first coordinate."""
    dim = where.table.shape[1]
    places = None if where.positions is None else Sparse.dense(where.positions.tolist(), dim)
    head, bias = label_head(len(problem.corpus.label_names), 0, dim)
    table = Sparse.dense(where.table.tolist(), dim)
    return ExactNetwork(table, places, blocks, head, bias, problem.causal)


def outputs_of(network: ExactNetwork, asked: Sequence[Asked], bits: int) -> list[Vector]:
    """All coordinates that the last block puts out, for every asked context."""
    show = Sparse.of(({c: 1} for c in range(network.dim)), network.dim)
    shown = ExactNetwork(
        network.table,
        network.positions,
        network.blocks,
        show,
        (exact(0),) * network.dim,
        network.causal,
    )
    return features(shown, asked, bits)


def rank1_attention(v1: Floats, v2: Floats, output: Floats) -> ExactAttention:
    """Eq. 20: key and value are v1, the query is v2."""
    dim = len(v1)
    key, query = (Sparse.dense([v.tolist()], dim) for v in (v1, v2))
    return ExactAttention((Head(key, query, key, Sparse.dense([[w] for w in output], 1)),))


def zhang(ids: Sequence[Vector], labels: Sequence[int], direction: Floats) -> ExactFeedForward:
    """One unit per context id (Zhang et al. 2016), in numbers of `ctx.prec` bits.

    Context ids h are projected on the direction and sorted, s_1 < s_2 < ...; unit i bends at
    b_i = s_(i-1) and takes the output on to the label Y_i, from which the skip connection (eq. 3)
    has to be subtracted first:

        w_i = (Y_i - h_i - sum_(j<i) w_j (s_i - b_j)) / (s_i - b_i)

    Thresholds and weights are midpoints of balls, so exact numbers; each w_i is aimed from where
    the ones before really lead.
    """
    row: dict[int, Exactly] = dict(enumerate(direction.tolist()))
    along = [exact(g) for g in direction.tolist()]
    line = []
    for h, label in zip(ids, labels, strict=True):
        s = ball(sum((g * ball(x) for g, x in zip(along, h, strict=True)), arb(0)))
        line.append((s.mid(), [ball(x) for x in h], label))
    line.sort(key=lambda item: item[0])
    bends = [(line[0][0] - 1).mid(), *(s for s, _, _ in line[:-1])]
    units = []
    slope = f = [arb(0)] * len(along)
    for (s, own, label), bend in zip(line, bends, strict=True):
        aims = [(label - x - y) / (s - bend) for x, y in zip(own, f, strict=True)]
        out = [(aim - before).mid() for aim, before in zip(aims, slope, strict=True)]
        slope = [before + w for before, w in zip(slope, out, strict=True)]
        f = [y + rise * (s - bend) for y, rise in zip(f, slope, strict=True)]
        writes: dict[int, Exactly] = {c: middle(w)[0] for c, w in enumerate(out)}
        units.append((row, -middle(bend)[0], writes))
    return ExactFeedForward.of(units, len(along))
