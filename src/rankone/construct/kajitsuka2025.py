"""Averaging is enough (Kajitsuka and Sato 2025): deep feed-forward, uniform attention, deep again.

A sentence is seen as the share m_t of each of its tokens t, so tokens may repeat; with positions, a
token is a pair of word and position. N is the number of different vectors of shares::

    table                x = 3 (t + 1), the number of the token
    F1, deep readout     phi = f(t), a whole number, 0 for most tokens
    attention, key 0     x += B mean(phi)
    F2, deep readout     y = label of the context whose number is x

Lemma B.1: there is a set A of at most N - 1 tokens on which all N vectors differ. Take the vectors
in turn; where one equals an earlier one on A, add to A a token at which these two differ. (It can
equal no second one, since the earlier ones differ from each other.)

Lemma B.2: f on A such that the N means sum_t f(t) m_t differ. The paper rounds a unit vector to
whole numbers h, and makes them positive by f = h + floor(2 N^2 |A| sqrt(pi)). That shifts sums
by as much as a vector has on A, and can make different sums equal: shares on A need not add up to
the same. Here f is drawn from 1 to N^2 (`whole_weights`), so nothing need be shifted.

The means differ by some d > 0 at least. With T tokens, numbers differ by 3 (T - 1) at most; so for
B >= 3T / d, contexts with different means have x at least 3 apart, as have those with equal means
and different tokens. All means are fractions, and softmax with key 0 is their exact mean.

F1 and F2 are deep readouts (`vardi2022`) of |A| < N points and of the contexts that are asked: one
for each sentence if only its last token is labelled, and so about sqrt(N) parameters. In the paper,
the numbers of tokens are made from vectors by a projection, and the mean has its own coordinate;
here the table is free to hold numbers, and the attention adds the mean where F2 wants it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from flint import fmpq

from rankone.construct.exact import (
    all_sentences,
    asked_contexts,
    label_head,
    refuse_causal,
    whole_weights,
)
from rankone.construct.problem import Problem
from rankone.construct.vardi2022 import SCRATCH, deep_readout
from rankone.deadline import tick
from rankone.nn.exact import ExactAttention, ExactBlock, ExactNetwork, Sparse
from rankone.nn.exact.evaluate import Sentence
from rankone.nn.exact.numbers import ONE
from rankone.nn.layers import Head

X, PHI, Y, *REST = range(3 + SCRATCH)
DIM = 3 + SCRATCH
APART = 3  # between numbers of tokens: a readout is 0 at 2 or more from all [p, p + 1]

Shares = frozenset[tuple[int, fmpq]]  # the tokens of a sentence, each with its share


def build(problem: Problem, seed: int) -> ExactNetwork:
    """The network for a corpus."""
    refuse_causal(problem, "the theorem of Kajitsuka and Sato 2025")
    words = len(problem.corpus.vocabulary)
    step = words if problem.placed else 0  # t = word + step * position
    shares = {sentence: _shares(sentence, step) for sentence in all_sentences(problem)}
    values, mean_of = sequence_ids(list(dict.fromkeys(shares.values())), seed)
    means = sorted(mean_of.values())
    least = min((b - a for a, b in pairwise(means)), default=ONE)
    scale = _floor(APART * words * problem.length / least) + 1
    points = []
    for context in asked_contexts(problem):
        t = context.sentence[context.place] + step * context.place
        x = APART * (t + 1) + scale * mean_of[shares[context.sentence]]
        points.append((_floor(x), context.label + 1))
    known = [(APART * (t + 1), f) for t, f in values.items()]
    before = deep_readout(known, X, PHI, REST, DIM) if known else []
    after = deep_readout(points, X, Y, REST, DIM)
    head, bias = label_head(len(problem.corpus.label_names), Y, DIM)
    places = [{X: APART * step * i} for i in range(problem.length)]
    return ExactNetwork(
        Sparse.of(({X: APART * (word + 1)} for word in range(words)), DIM),
        Sparse.of(places, DIM) if problem.placed else None,
        (
            *(ExactBlock(feedforward=layer) for layer in before),
            ExactBlock(_average(scale)),
            *(ExactBlock(feedforward=layer) for layer in after),
        ),
        head,
        bias,
    )


def sequence_ids(vectors: Sequence[Shares], seed: int) -> tuple[dict[int, int], dict[Shares, fmpq]]:
    """f on A, and the mean of f for every vector of shares, different for each (Lemma B.2)."""
    shares = [dict(vector) for vector in vectors]
    chosen = distinguishing_tokens(shares)
    inside = set(chosen)
    on_chosen = [{t: x for t, x in vector.items() if t in inside} for vector in shares]
    f, means = whole_weights(on_chosen, chosen, seed)
    return f, dict(zip(vectors, means, strict=True))


def distinguishing_tokens(vectors: Sequence[Mapping[int, fmpq]]) -> list[int]:
    """A of Lemma B.1: fewer tokens than vectors, on which all of these differ.

    ``known`` has the earlier vectors by what they have on A. A new token of A changes that for the
    vectors that have it, which ``holders`` finds; a vector is moved as often as it has tokens.
    """
    chosen: list[int] = []
    inside: set[int] = set()
    known: dict[Shares, int] = {}
    on_chosen: list[Shares] = []
    holders: defaultdict[int, list[int]] = defaultdict(list)
    for i, vector in enumerate(vectors):
        tick()
        own = frozenset(item for item in vector.items() if item[0] in inside)
        if own in known:
            other = vectors[known[own]]
            tokens = sorted(vector.keys() | other.keys())
            new = next(t for t in tokens if vector.get(t) != other.get(t))
            chosen.append(new)
            inside.add(new)
            for j in holders[new]:
                del known[on_chosen[j]]
                on_chosen[j] |= {(new, vectors[j][new])}
                known[on_chosen[j]] = j
            own = frozenset(item for item in vector.items() if item[0] in inside)
        known[own] = i
        on_chosen.append(own)
        for t in vector:
            holders[t].append(i)
    return chosen


def _shares(sentence: Sentence, step: int) -> Shares:
    counts = Counter(word + step * i for i, word in enumerate(sentence))
    return frozenset((t, fmpq(count, len(sentence))) for t, count in counts.items())


def _average(scale: int) -> ExactAttention:
    """x += scale * mean(phi)."""
    nothing = Sparse.of([{}], DIM)
    output = Sparse.of(({0: scale} if c == X else {} for c in range(DIM)), 1)
    return ExactAttention((Head(nothing, nothing, Sparse.of([{PHI: 1}], DIM), output),))


def _floor(x: fmpq) -> int:
    return int(x.p) // int(x.q)
