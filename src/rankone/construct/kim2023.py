"""Sorting by attention (Kim, Kim and Mozafari 2023): each round finds the next largest token.

Tokens have whole numbers z from 1 to K - 1, different in a sentence. Each of n rounds, n the length
of the longest sentence, is one softmax attention with key and value z and query beta, whose mean M
is nearly the largest z, and two feed-forward layers that set the largest z to 0::

    x += 2K w_l M                  both from the attention of round l
    h  = relu(4 (M - z) - 2)       0 for the largest z, more than 1 for all others
    z -= relu(z - K h)             0 for the largest z, unchanged for all others;  h = M = 0

In the end, x = 2 (z0 + K sum_l w_l M_l), where z0 is the token's own number and M_1 > M_2 > ... are
those of its sentence, followed by zeros if that is short. Whole numbers w (see `whole_weights`)
tell the lists M of the N sentences apart, so the contexts have x at least 2 apart, and a deep
readout (`vardi2022`) turns x into labels. That is O(n) parameters for the rounds and about
sqrt(nN) for the readout. The paper has 2n attention layers, this has n.

How large is beta? A number t below the largest gets at most e^(-beta t) of the attention, so

    0 <= max z - M <= sum_k t_k e^(-beta t_k) <= (n - 1) e^(-beta),

since t >= 1 for all others and t e^(-beta t) falls from t = 1 on if beta >= 1. With
2^beta >= 16 n K (w_1 + ... + w_n), that is below 1/8; hence M - z is at most 0 for the largest z
and above 7/8 for the others, which makes h what it should be, and z a whole number after every
round: errors do not add up. All that x loses is 2K sum_l w_l (n - 1) e^(-beta) <= 1/8.

Without positions, sentences must not repeat a token: equal tokens would vanish in one round.
With positions, a token is a pair of word and position, with a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpq

from rankone.construct.exact import (
    all_sentences,
    asked_contexts,
    label_head,
    refuse_causal,
    refuse_repeats,
    whole_weights,
)
from rankone.construct.problem import Problem
from rankone.construct.vardi2022 import SCRATCH, deep_readout
from rankone.nn.exact import ExactAttention, ExactBlock, ExactFeedForward, ExactNetwork, Sparse
from rankone.nn.exact.evaluate import Sentence
from rankone.nn.exact.numbers import exact
from rankone.nn.layers import Head

THEOREM = "the theorem of Kim, Kim and Mozafari"

Z, X, CONSTANT, M, H, Y, *REST = range(6 + SCRATCH)
DIM = 6 + SCRATCH


def build(problem: Problem, seed: int) -> ExactNetwork:
    """The network for a corpus."""
    refuse_causal(problem, THEOREM)
    refuse_repeats(problem, THEOREM)
    words = len(problem.corpus.vocabulary)
    step = words if problem.placed else 0  # z0 = word + 1 + step * position
    k = words * problem.length + 1
    lists = {sentence: _sorted(sentence, step) for sentence in all_sentences(problem)}
    different = list(dict.fromkeys(lists.values()))
    vectors = [dict(enumerate(numbers)) for numbers in different]
    weights, sums = whole_weights(vectors, range(problem.longest), seed)
    sum_of = dict(zip(different, sums, strict=True))
    points = []
    for context in asked_contexts(problem):
        z0 = _number(context.sentence, context.place, step)
        x = 2 * (z0 + k * sum_of[lists[context.sentence]])
        points.append((int(x.p), context.label + 1))
    readout = deep_readout(points, X, Y, REST, DIM)
    head, bias = label_head(len(problem.corpus.label_names), Y, DIM)
    rows = [{Z: word + 1, X: 2 * (word + 1), CONSTANT: 1} for word in range(words)]
    places = [{Z: step * i, X: 2 * step * i} for i in range(problem.length)]
    return ExactNetwork(
        Sparse.of(rows, DIM),
        Sparse.of(places, DIM) if problem.placed else None,
        (
            *_rounds(list(weights.values()), k),
            *(ExactBlock(feedforward=layer) for layer in readout),
        ),
        head,
        bias,
    )


def _number(sentence: Sentence, place: int, step: int) -> int:
    """z0 of a token."""
    return sentence[place] + 1 + step * place


def _sorted(sentence: Sentence, step: int) -> tuple[fmpq, ...]:
    """The numbers of a sentence, the largest first."""
    numbers = [_number(sentence, i, step) for i in range(len(sentence))]
    return tuple(map(exact, sorted(numbers, reverse=True)))


def _rounds(weights: Sequence[int], k: int) -> list[ExactBlock]:
    """One block that attends and one that does not for every round; the last only attends."""
    beta = (16 * len(weights) * k * sum(weights)).bit_length()
    z = Sparse.of([{Z: 1}], DIM)
    query = Sparse.of([{CONSTANT: beta}], DIM)
    compare = ExactFeedForward.of([({M: 4, Z: -4}, -2, {H: 1})], DIM)
    remove = ExactFeedForward.of(
        [({Z: 1, H: -k}, 0, {Z: -1}), ({H: 1}, 0, {H: -1}), ({M: 1}, 0, {M: -1})], DIM
    )
    blocks = []
    for number, w in enumerate(weights, 1):
        last = number == len(weights)
        writes = {X: {0: 2 * k * w}, M: {} if last else {0: 1}}
        output = Sparse.of((writes.get(c, {}) for c in range(DIM)), 1)
        attention = ExactAttention((Head(z, query, z, output),))
        if last:
            blocks.append(ExactBlock(attention))
        else:
            blocks += [ExactBlock(attention, compare), ExactBlock(feedforward=remove)]
    return blocks
