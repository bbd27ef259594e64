"""Averaging is enough: both lemmas, their slips, and the network written out in fractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, cos, floor, hypot, isqrt, pi, sin, sqrt

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

import corpora
import exact_truth
from corpora import Sentences, shares, spelled
from exact_models import certify, posed
from rankone import Corpus
from rankone.construct import kajitsuka2025
from rankone.construct.exact import all_sentences, asked_contexts
from rankone.construct.kajitsuka2025 import (
    PHI,
    REST,
    X,
    Y,
    distinguishing_tokens,
    sequence_ids,
)
from rankone.construct.problem import pose
from rankone.construct.vardi2022 import deep_readout
from rankone.errors import UnfitError

REPEATS = spelled("aab xyx", "aba xyy", "ab xx", "b y", "bbbb xyxy", "cab zxx", "caab zyxz")
PROPORTIONS = spelled("ab xy", "aabb xxyy", "aab yyx", "abc zyx", "acc xyy")
Bag = dict[int, int]
Bags = list[Bag]
Vectors = Sequence[tuple[int, ...]]


@given(corpora.sentences(), st.booleans(), st.integers(0, 3))
def test_any_corpus(sentences: Sentences, positions: bool, seed: int) -> None:
    """Repeats, copies, conflicts, one label, one word, one token, all lengths."""
    problem = posed(sentences, positions)
    network = kajitsuka2025.build(problem, seed)
    certify(problem, network)
    assert network.count.attentions == network.count.heads == 1


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("sentences", [REPEATS, PROPORTIONS], ids=["repeats", "proportions"])
def test_equations_written_out(sentences: Sentences, positions: bool) -> None:
    """All numbers are fractions: phi is 0 off A, context ids are 3 apart, scratch is left clean."""
    problem = posed(sentences, positions)
    network = kajitsuka2025.build(problem, 1)
    values: dict[object, exact_truth.Real] = {}
    ids: dict[object, exact_truth.Real] = {}
    asked = asked_contexts(problem)
    for sentence in all_sentences(problem):
        states = exact_truth.states(network, sentence)
        labels = exact_truth.labels(network, sentence)
        before, after = states[network.last_attention], states[network.last_attention + 1]
        own = sentence if positions else shares(list(map(str, sentence)))
        for place, word in enumerate(sentence):
            token = (word, place if positions else 0)
            assert values.setdefault(token, before[place][PHI]) == before[place][PHI]
            assert ids.setdefault((token, own), after[place][X]) == after[place][X]
            for state in (before[place], states[-1][place]):
                assert all(state[c] == 0 for c in REST)
            for context in asked:
                if (context.sentence, context.place) == (sentence, place):
                    assert labels[place] == context.label
                    assert states[-1][place][Y] == context.label + 1
    numbers = sorted(ids.values())
    assert all(isinstance(x, Fraction) for x in numbers)
    assert min(b - a for a, b in pairwise(numbers)) >= 3
    assert len(values) > len([phi for phi in values.values() if phi]) > 0
    assert all(phi == floor(phi) >= 0 for phi in values.values())


def test_equal_shares_are_one_context() -> None:
    """ab and aabb, but not aab."""
    problem = posed(spelled("ab xy", "aabb yyyy", "aab xxx"))
    found = certify(problem, kajitsuka2025.build(problem, 0))
    assert (found.contexts, found.unavoidable) == (4, 1)


def test_causal_is_refused() -> None:
    corpus = Corpus.from_sentences(REPEATS)
    with pytest.raises(UnfitError, match="causal"):
        kajitsuka2025.build(pose([corpus], positions=True, length=4, causal=True), 0)


# Lemma B.1.

bags = st.lists(st.dictionaries(st.integers(0, 5), st.integers(1, 3), min_size=1), min_size=1)


def different(some: Bags) -> Bags:
    return [dict(bag) for bag in dict.fromkeys(tuple(sorted(bag.items())) for bag in some)]


def on(chosen: list[int], bag: Bag) -> tuple[int, ...]:
    return tuple(bag.get(t, 0) for t in chosen)


@given(bags)
def test_few_tokens_distinguish(some: Bags) -> None:
    some = different(some)
    chosen = distinguishing_tokens([{t: fmpq(x) for t, x in bag.items()} for bag in some])
    assert len(chosen) == len(set(chosen)) < len(some)
    assert len({on(chosen, bag) for bag in some}) == len(some)


def test_one_token_can_be_enough_and_all_but_one_needed() -> None:
    line = [{0: fmpq(1, i + 2), 1: fmpq(i + 1, i + 2)} for i in range(50)]
    assert len(distinguishing_tokens(line)) == 1
    units = [{i: fmpq(1)} for i in range(50)]
    assert len(distinguishing_tokens(units)) == 49


@given(bags, st.integers(0, 9))
def test_sequence_ids_differ(some: Bags, seed: int) -> None:
    """Of different shares, whatever they add up to on A; f is whole and positive."""
    found = {shares([str(t) for t in Counter(bag).elements()]) for bag in some}
    vectors = [frozenset((int(t), fmpq(x.numerator, x.denominator)) for t, x in v) for v in found]
    f, means = sequence_ids(vectors, seed)
    assert len(set(means.values())) == len(vectors)
    for vector in vectors:
        assert means[vector] == sum((f[t] * x for t, x in vector if t in f), fmpq(0))
    assert all(1 <= x <= len(vectors) ** 2 for x in f.values())


# Lemma B.2 as printed: h = ceil(N^2 |S| sqrt(pi) v) for a unit vector v of Lemma 13 of Park et al.,
# then f = h + floor(2 N^2 |S| sqrt(pi)), whose sums are said to be sqrt(|S|) apart.


def rounded(v: tuple[float, ...], n: int) -> list[int]:
    return [ceil(n * n * len(v) * sqrt(pi) * x) for x in v]


def printed(v: tuple[float, ...], n: int) -> list[int]:
    return [x + floor(2 * n * n * len(v) * sqrt(pi)) for x in rounded(v, n)]


def repaired(v: tuple[float, ...], vectors: Vectors) -> list[int]:
    """A shift so large that sums with more tokens are larger, and that all of f is positive."""
    h = rounded(v, len(vectors))
    most = max(abs(total(h, m)) for m in vectors)
    shift = max(2 * most + isqrt(len(v)) + 1, 1 - min(h))
    return [x + shift for x in h]


def total(f: list[int], m: tuple[int, ...]) -> int:
    return sum(a * b for a, b in zip(f, m, strict=True))


def least_gap(f: list[int], vectors: Vectors) -> int:
    return min(b - a for a, b in pairwise(sorted(total(f, m) for m in vectors)))


def lemma13(v: tuple[float, ...], vectors: Vectors) -> bool:
    """|v.(m - m')| >= sqrt(8 / (pi d)) / N^2 ||m - m'|| for all pairs."""
    factor = sqrt(8 / (pi * len(v))) / len(vectors) ** 2
    differences = [
        [a - b for a, b in zip(m, other, strict=True)]
        for i, m in enumerate(vectors)
        for other in vectors[:i]
    ]
    return all(
        abs(sum(x * y for x, y in zip(v, d, strict=True))) >= factor * hypot(*d)
        for d in differences
    )


SMALL = (cos(2.09), sin(2.09))


def test_printed_shift_collides() -> None:
    """28 of one token and 43 of the other: both sums are 1204."""
    v, vectors = (1.0, 0.0), [(28, 0), (0, 43)]
    assert lemma13(v, vectors)
    assert printed(v, 2) == [43, 28]
    assert [total(printed(v, 2), m) for m in vectors] == [1204, 1204]
    assert least_gap(repaired(v, vectors), vectors) >= sqrt(2)


def test_printed_shift_comes_too_close() -> None:
    """41 and 42 are less than sqrt(2) apart."""
    vectors = [(0, 1), (2, 0)]
    assert lemma13(SMALL, vectors)
    assert rounded(SMALL, 2) == [-7, 13]
    assert [total(printed(SMALL, 2), m) for m in vectors] == [41, 42]
    assert least_gap(rounded(SMALL, 2), vectors) >= sqrt(2)
    assert least_gap(repaired(SMALL, vectors), vectors) >= sqrt(2)


def test_twice_the_largest_sum_is_not_enough_of_a_shift() -> None:
    """Sums of h can be small where h is not: f must still be positive to be a label."""
    v, vectors = (cos(2.293362637), sin(2.293362637)), [(0, 0), (1, 1), (2, 2), (3, 3), (5, 4)]
    h = rounded(v, 5)
    most = max(abs(total(h, m)) for m in vectors)
    assert lemma13(v, vectors)
    assert h == [-58, 67]
    assert min(h) + 2 * most + 1 == -3
    assert min(repaired(v, vectors)) >= 1


counts = st.sets(st.tuples(*[st.integers(0, 9)] * 3), min_size=2, max_size=6).map(sorted)


@given(counts, st.integers(0, 1 << 20))
def test_repaired_shift_keeps_sums_apart(vectors: Vectors, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = (tuple((x / np.linalg.norm(x)).tolist()) for x in rng.normal(size=(1000, 3)))
    v = next(v for v in drawn if lemma13(v, vectors))
    f = repaired(v, vectors)
    assert least_gap(rounded(v, len(vectors)), vectors) >= sqrt(3)
    assert least_gap(f, vectors) >= sqrt(3)
    assert min(f) >= 1


# Slips in the restatement of Vardi et al. (appendices C and G).


def test_points_do_not_fit_in_the_bits_of_labels() -> None:
    """With rho = log C and c = log R, as printed, groups of different points have one number u."""
    (a, b), (c, d) = (2, 8), (3, 6)
    swapped, right = 1, 4  # log C for C = 2 labels, log R for R = 16
    assert (a << swapped) + b == (c << swapped) + d
    assert (a << right) + b != (c << right) + d


def test_labels_of_one_bit() -> None:
    """Bits i to j of a number with i = j, which the lemma on bits excludes, are needed."""
    layers = deep_readout([(2, 1), (4, 1), (9, 1)], 0, 1, range(2, 9), 9)
    for x, y in ((2, 1), (4, 1), (9, 1), (7, 0)):
        state: exact_truth.Column = [Fraction(x), *[Fraction(0)] * 8]
        for layer in layers:
            state = exact_truth.feed_forward(layer, state)
        assert state[1] == y


# How much it takes.


def random_sentences(count: int, length: int = 6, words: int = 16) -> Corpus:
    rng = np.random.default_rng(0)
    texts = [[f"w{x}" for x in rng.integers(0, words, length)] for _ in range(count)]
    return Corpus.from_sentences([(t, rng.choice(list("wxyz"), length).tolist()) for t in texts])


def last_only(corpus: Corpus) -> Corpus:
    last = np.zeros(corpus.n_tokens, bool)
    last[corpus.offsets[1:] - 1] = True
    return replace(corpus, label_ids=np.where(last, corpus.label_ids, -1))


def test_next_token_parameters_grow_like_the_root_of_sentences() -> None:
    small, large = (
        kajitsuka2025.build(pose([last_only(random_sentences(n))], positions=False), 0).count
        for n in (500, 2000)
    )
    assert 1.7 < large.nonzero / small.nonzero < 2.5


def test_all_labels_take_the_root_of_length_more() -> None:
    corpus = random_sentences(500)
    every, last = (
        kajitsuka2025.build(pose([c], positions=False), 0).count
        for c in (corpus, last_only(corpus))
    )
    assert 1.7 < every.nonzero / last.nonzero < 3  # sqrt(6) = 2.4
    assert every.width == 12


def test_next_token_is_certified() -> None:
    """Contexts that are not asked have ids of their own, too."""
    corpus = last_only(random_sentences(60, 4, 5))
    problem = pose([corpus], positions=False)
    found = certify(problem, kajitsuka2025.build(problem, 0))
    assert found.contexts > len(problem.contexts)


def test_same_seed_same_network() -> None:
    problem = posed(REPEATS)
    assert kajitsuka2025.build(problem, 3) == kajitsuka2025.build(problem, 3)
    assert kajitsuka2025.build(problem, 3) != kajitsuka2025.build(problem, 4)
