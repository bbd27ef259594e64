"""Kajitsuka and Sato 2024: one attention layer of rank 1, with a wide readout or a deep one.

The contextual mapping is Theorem 2's, s = v . F^(SA)(X + E)_k one number per context. The readout
of Corollary 1 has one hidden unit per context (Zhang et al. 2016): about d (2nN + d) parameters.
Remark 2 puts the deep readout of Vardi et al. 2022 in its place: about sqrt(nN) parameters, of
about sqrt(nN) bits each. For that, s is first brought to whole numbers that are 2 apart:

    x = relu(2^e s + b),   2^e >= 2 / (smallest gap of s),   b so that x >= 2
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import ceil, log2

import numpy as np
from flint import arb, ctx, fmpq

from rankone.arrays import Floats
from rankone.construct.exact import (
    Asked,
    Build,
    asked_contexts,
    check_cost,
    check_digits,
    features,
    label_head,
    refuse_repeats,
    single_part,
)
from rankone.construct.line.draw import draw_line
from rankone.construct.problem import Draft, Problem
from rankone.construct.theorem2.corollaries import (
    corollary,
    embedded_network,
    graded_mapping,
    rank1_attention,
)
from rankone.construct.theorem2.embedded import EmbeddedCorpus, draw_vectors, embed_corpus
from rankone.construct.theorem2.projection import Query, fewest_digits
from rankone.construct.theorem2.weights import Grade
from rankone.construct.vardi2022 import SCRATCH, deep_readout
from rankone.errors import PrecisionError
from rankone.nn.exact import ExactAttention, ExactBlock, ExactFeedForward, ExactNetwork, Sparse
from rankone.nn.exact.network import widened
from rankone.nn.exact.numbers import Exactly, ball, exact, power

DIM = 2  # of the token vectors in the grades of the proof
PRACTICAL_DIM = 8  # float64 has less room on a line through a plane
SPREAD = 6.0  # largest difference of two scores of one query: contexts are furthest apart near it
DRAWS = 1 << 20  # columns times directions tried
BITS, MOST = 128, 1 << 14  # of working precision, doubled until contexts are apart
COLUMNS = 1500  # for which directions are measured exactly


def build_grade(grade: Grade, query: Query) -> Build:
    """Corollary 1 or 2 in a grade of the proof, readout included."""

    def build(problem: Problem, seed: int) -> ExactNetwork:
        where = _embedded(problem, seed)
        if len(where.columns) > COLUMNS:
            raise PrecisionError(
                f"{len(where.columns):,} columns: too many for the constants of the proof",
                where=problem.corpus.source,
                remedy="give fewer words, or shorter sentences",
            )
        graded = graded_mapping(where, grade, query, seed)
        check_cost(problem, graded.digits)
        return corollary(problem, where, graded)

    return build


def draw_practical(problem: Problem, rng: np.random.Generator) -> Draft:
    """Float64, certified afterwards: small scores, random vectors, one unit per context."""
    words = len(problem.corpus.vocabulary)
    drawn = draw_vectors(words, PRACTICAL_DIM, int(rng.integers(1 << 31)))
    vectors = problem.vectors if problem.vectors is not None else drawn
    return draw_line(replace(problem, vectors=vectors, readout="paper"), rng)


def build_deep(problem: Problem, seed: int) -> ExactNetwork:
    """Remark 2: rank-1 attention with small scores, and the deep readout."""
    where = _embedded(problem, seed)
    attention, v = practical_attention(where.columns, seed)
    plain = embedded_network(problem, where, (ExactBlock(attention),))
    asked, d = asked_contexts(problem), plain.dim
    along = replace(plain, head=Sparse.dense([v.tolist()], d), bias=(exact(0),))
    scale, shift, points = whole_numbers(along, asked)
    dim = d + 2 + SCRATCH
    x, y, scratch = d, d + 1, range(d + 2, dim)
    reads: dict[int, Exactly] = {c: scale * exact(g) for c, g in enumerate(v.tolist())}
    onto = ExactFeedForward.of([(reads, shift, {x: 1})], dim)
    labelled = [(p, context.label + 1) for p, context in zip(points, asked, strict=True)]
    deep = deep_readout(labelled, x, y, scratch, dim)
    head, bias = label_head(len(problem.corpus.label_names), y, dim)
    return replace(
        plain,
        table=widened(plain.table, dim),
        positions=None if plain.positions is None else widened(plain.positions, dim),
        blocks=(
            ExactBlock(attention.widened(dim), onto),
            *(ExactBlock(feedforward=layer) for layer in deep),
        ),
        head=head,
        bias=bias,
    )


def practical_attention(columns: Floats, seed: int) -> tuple[ExactAttention, Floats]:
    """Weights of eq. 20 for scores of order 1, and the direction of the readout.

    Lemma 1 wants scores further apart than 2 log n + 3, so that averages are almost maxima, and
    needs thousands of digits to see the rest. Averages of small scores are as different, for almost
    all directions, without proof; whether they are is measured, and certified. Keys and readout
    share v; attention moves a token by a quarter of the smallest gap on v at most.
    """
    draws = min(1000, max(4, DRAWS // len(columns)))
    v, asked = fewest_digits(columns, columns, "separate", draws=draws, seed=seed)
    keys, queries = np.sort(columns @ v), np.abs(columns @ asked)
    spread, gap = float(keys[-1] - keys[0]), float(np.diff(keys).min(initial=np.inf))
    reach = float(np.abs(keys).max()) or 1.0
    size = (gap if np.isfinite(gap) else reach) / (4 * reach)
    v2 = asked * (SPREAD / (spread * float(queries.max())) if spread else 1.0)
    return rank1_attention(v, np.asarray(v2), np.asarray(size * v / (v @ v))), np.asarray(v)


def whole_numbers(along: ExactNetwork, asked: list[Asked]) -> tuple[fmpq, fmpq, list[int]]:
    """scale and shift such that scale s + shift are at least 2, and 2 apart, for all contexts that
    are asked, and their whole parts; s is the first logit of `along`.

    Precision is raised until the contexts are apart, and each is known to 1/64 of the gap.
    """
    bits = BITS
    while True:
        with ctx.workprec(bits):
            found = [ball(logits[0]) for logits in features(along, asked, bits)]
            line = sorted(found, key=lambda s: s.mid())
            least = _least([(b - a).lower() for a, b in pairwise(line)])
            if least > 0 and all(64 * s.rad() < least for s in line):
                exponent = _whole(((2 / least).log() / arb.const_log2()).upper()) + 1
                scale = power(exponent)
                shift = exact(3 - _whole(line[0] * arb(scale)))
                return scale, shift, [_whole(s * arb(scale) + arb(shift)) for s in found]
        bits *= 2
        check_digits(ceil(bits / log2(10)))
        if bits > MOST:
            raise PrecisionError(
                f"two contexts are not apart with {MOST:,} bits",
                remedy="give another seed: directions are drawn",
            )


def _embedded(problem: Problem, seed: int) -> EmbeddedCorpus:
    refuse_repeats(problem, "Corollary 1")
    corpus = single_part(problem)
    given = {"positions": problem.placed, "causal": problem.causal}
    return embed_corpus(corpus, problem.vectors, **given, dim=DIM, seed=seed)


def _least(gaps: list[arb]) -> arb:
    least = arb(1)
    for gap in gaps:
        least = gap if gap < least else least
    return least


def _whole(x: arb) -> int:
    """The whole part of the midpoint: balls are far smaller than the 1/4 that is allowed."""
    found = x.mid().floor().unique_fmpz()
    assert found is not None
    return int(found)
