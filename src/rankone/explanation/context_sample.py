"""A few contexts of a corpus on the line of one projection, for the plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from flint import arb, ctx

from rankone.arrays import Floats
from rankone.construct.theorem2.embedded import EmbeddedCorpus
from rankone.construct.theorem2.projection import find_projection
from rankone.corpus import Corpus
from rankone.corpus.contexts import visible_contexts

# Shown at most: tokens, contexts of each, tokens of a sentence.
TOKENS, CONTEXTS, LONGEST = 6, 12, 60


@dataclass(frozen=True)
class ContextSample:
    """Token number i has the contexts contexts[i]: the keys of each sentence as an array.

    Everything is seen through one unit vector v: a key is v^T x, the query of the token
    ``queries[i]`` = v^T t, and scores are products of the two, times a scale.
    """

    names: list[str]
    queries: list[float]
    contexts: list[list[Floats]]

    @property
    def spread(self) -> float:
        """The largest difference of two scores of one query at scale 1."""
        each = zip(self.queries, self.contexts, strict=True)
        return max(abs(q) * float(np.ptp(keys)) for q, group in each for keys in group)

    @property
    def least_gap(self) -> float:
        """The smallest difference of two scores of one query at scale 1."""
        keys = np.unique(np.concatenate([k for group in self.contexts for k in group]))
        return float(np.diff(keys).min()) * min(map(abs, self.queries))

    @property
    def longest(self) -> int:
        return max(len(keys) for group in self.contexts for keys in group)


def context_sample(corpus: Corpus, where: EmbeddedCorpus, *, seed: int = 0) -> ContextSample | None:
    """The tokens (at one position, if there are positions) with most contexts, or None."""
    contexts = visible_contexts(corpus, positions=where.positions is not None, causal=False)
    first = np.flatnonzero(contexts == np.arange(corpus.n_tokens))
    first = first[corpus.lengths[corpus.sentence_of[first]] <= LONGEST]
    place = corpus.token_ids[first] * corpus.longest
    if where.positions is not None:
        place = place + corpus.positions[first]
    names, groups, counts = np.unique(place, return_inverse=True, return_counts=True)
    chosen = np.argsort(-counts, kind="stable")[:TOKENS]
    chosen = chosen[counts[chosen] > 1]
    if not len(chosen):
        return None
    tokens = [first[groups == group][:CONTEXTS].tolist() for group in np.sort(chosen)]
    columns = {t: _columns(corpus, where, t) for group in tokens for t in group}
    every = np.unique(np.concatenate(list(columns.values())), axis=0)
    v = find_projection(np.vstack([every, 0 * every[:1]]), draws=200, seed=seed).v
    return ContextSample(
        [_name(corpus, where, int(names[group])) for group in np.sort(chosen)],
        [float(columns[t][corpus.positions[t]] @ v) for t, *_ in tokens],
        [[columns[t] @ v for t in group] for group in tokens],
    )


def softmax_average(keys: Floats, query: float) -> float:
    """sum_l x_l e^(q x_l) / sum_l e^(q x_l) in float64."""
    weights = np.exp(query * (keys - (keys.max() if query >= 0 else keys.min())))
    return float(weights @ keys / weights.sum())


def hardmax_average(keys: Floats, query: float) -> float:
    """The mean of the keys with the largest score."""
    scores = query * keys
    return float(keys[scores == scores.max()].mean())


def exact_average(keys: Sequence[float], query: float) -> arb:
    """The softmax average as a ball of `ctx.prec` bits."""
    weights = [(arb(query) * x).exp() for x in keys]
    total = sum((w * x for w, x in zip(weights, keys, strict=True)), arb(0))
    return total / sum(weights, arb(0))


def float_gap(found: ContextSample, scale: float) -> float:
    """The smallest distance of two contexts of one token at this scale, as float64 computes it."""
    gaps = []
    for query, group in zip(found.queries, found.contexts, strict=True):
        line = sorted(softmax_average(keys, scale * query) for keys in group)
        gaps.append(float(np.diff(line).min()))
    return min(gaps)


def exact_log10_gap(found: ContextSample, scale: float) -> float:
    """Its logarithm in exact arithmetic."""
    bits = int(found.spread * scale / math.log(2)) + 64
    least = math.inf
    with ctx.workprec(bits):
        for query, group in zip(found.queries, found.contexts, strict=True):
            line = sorted(
                (exact_average(keys.tolist(), scale * query) for keys in group),
                key=lambda ball: ball.mid(),
            )
            for a, b in pairwise(line):
                if b > a:
                    least = min(least, float((b - a).log()) / math.log(10))
    return least


def _columns(corpus: Corpus, where: EmbeddedCorpus, token: int) -> Floats:
    start, end = corpus.offsets[corpus.sentence_of[token] : corpus.sentence_of[token] + 2]
    x = where.table[corpus.token_ids[start:end]]
    return x if where.positions is None else np.asarray(x + where.positions[: end - start])


def _name(corpus: Corpus, where: EmbeddedCorpus, place: int) -> str:
    word = corpus.vocabulary[place // corpus.longest]
    return word if where.positions is None else f"{word} at {place % corpus.longest + 1}"
