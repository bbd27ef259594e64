"""Sorting by attention: every round against the sorted tokens, and the bound on beta."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st
from mpmath import exp, mp, mpf

import corpora
import exact_truth
from corpora import Sentences, spelled
from exact_models import certify, posed
from rankone import Corpus
from rankone.construct import kim2023
from rankone.construct.exact import asked_contexts, whole_weights
from rankone.construct.kim2023 import CONSTANT, REST, H, M, X, Z
from rankone.construct.problem import pose
from rankone.errors import UnfitError
from rankone.nn.exact import ExactAttention

LENGTHS = spelled("abcd xyxz", "dcb yyx", "a x", "ca zz", "abc xyz", "dab xxy")
REPEATS = spelled("aab xyx", "aba xyy", "ab xx", "b y", "bbbb xyxy")
DPS = 60
TINY = 1e-40


@st.composite
def different(draw: st.DrawFn) -> Sentences:
    """Sentences that do not repeat a token."""
    words = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True)
    found = draw(st.lists(words, min_size=1, max_size=8))
    return [(words, [draw(st.sampled_from("xyz")) for _ in words]) for words in found]


@given(different())
def test_sets_of_tokens(sentences: Sentences) -> None:
    problem = posed(sentences)
    network = kim2023.build(problem, 0)
    certify(problem, network)
    assert network.count.attentions == problem.longest


@given(corpora.sentences(max_sentences=6, max_length=5), st.integers(0, 3))
def test_positions_allow_repeats(sentences: Sentences, seed: int) -> None:
    if max(len(words) for words, _ in sentences) > 1:
        problem = posed(sentences, positions=True)
        certify(problem, kim2023.build(problem, seed))


@pytest.mark.parametrize(
    "sentences",
    [LENGTHS, spelled("a x"), spelled("a x", "b y"), spelled("ab xx"), spelled("ab xy", "ba xy")],
    ids=["lengths", "one token", "single tokens", "one label", "conflict"],
)
def test_equations_written_out(sentences: Sentences) -> None:
    problem = posed(sentences)
    network = kim2023.build(problem, 1)
    for context in asked_contexts(problem):
        labels = exact_truth.labels(network, context.sentence, DPS)
        assert labels[context.place] == context.label


@pytest.mark.parametrize(
    ("sentences", "positions"), [(LENGTHS, False), (REPEATS, True)], ids=["sets", "positions"]
)
def test_rounds_sort(sentences: Sentences, positions: bool) -> None:
    """Round l finds the l-th largest token and sets it to 0; x adds up, less 1/8 at most."""
    problem = posed(sentences, positions)
    network = kim2023.build(problem, 0)
    words, n = len(problem.corpus.vocabulary), problem.longest
    k = words * problem.length + 1
    attentions = [x for x in network.layers if isinstance(x, ExactAttention)]
    weights = [fmpq(1, 2 * k) * layer.heads[0].output.rows[X][0][1] for layer in attentions]
    assert len(weights) == n
    assert all(w.q == 1 for w in weights)
    sorting = replace(network, blocks=network.blocks[: 2 * n - 1])
    seen = set()
    for sentence in {context.sentence for context in asked_contexts(problem)}:
        z0 = [w + 1 + (words * i if positions else 0) for i, w in enumerate(sentence)]
        largest = sorted(z0, reverse=True)
        total = sum(int(w.p) * z for w, z in zip(weights, largest, strict=False))
        states = exact_truth.states(sorting, sentence, DPS)
        for place, z in enumerate(z0):
            for number in range(1, n):  # attention and two feed-forward layers each
                after = states[3 * number][place]
                assert abs(short(after[Z], 0 if z in largest[:number] else z)) < TINY
                assert abs(short(after[M], 0)) < TINY
                assert abs(short(after[H], 0)) < TINY
            exact, end = 2 * (z + k * total), states[-1][place]
            assert -TINY < short(end[X], exact) < 1 / 8
            assert all(end[c] == 0 for c in REST)
            seen.add((sentence if positions else frozenset(sentence), z, exact))
    numbers = sorted(x for _, _, x in seen)
    assert min(b - a for a, b in pairwise(numbers)) >= 2


def short(x: exact_truth.Real, wanted: int) -> float:
    """By how much x is less than what it should be."""
    with mp.workdps(DPS):
        return float(wanted - exact_truth.real(x))


def test_beta_is_what_the_proof_asks_for() -> None:
    """2^beta >= 16 n K sum w, and the least such whole number but for one."""
    problem = posed(LENGTHS)
    network = kim2023.build(problem, 0)
    layer = network.layers[0]
    assert isinstance(layer, ExactAttention)
    head = layer.heads[0]
    ((at, beta),) = head.query.rows[0]
    attentions = [x for x in network.layers if isinstance(x, ExactAttention)]
    total = sum((x.heads[0].output.rows[X][0][1] for x in attentions), fmpq(0))
    bound = 8 * problem.longest * int(total.p)  # 16 n K sum w
    assert at == CONSTANT
    assert 1 << (int(beta.p) - 1) <= bound <= 1 << int(beta.p)


@given(st.sets(st.integers(0, 12), min_size=1, max_size=6), st.integers(0, 4), st.integers(1, 9))
def test_softmax_falls_short_by_little(z: set[int], zeros: int, beta: int) -> None:
    """max z - M <= (n - 1) e^-beta, with any number of zeros below the largest."""
    numbers = [*z, *([0] * zeros if max(z) else [])]
    with mp.workdps(DPS):
        shares = [exp(mpf(beta * x)) for x in numbers]
        mean = sum(p * x for p, x in zip(shares, numbers, strict=True)) / sum(shares)
        tiny = mpf(10) ** (10 - DPS)
        assert -tiny <= max(z) - mean <= (len(numbers) - 1) * exp(-mpf(beta)) + tiny


vectors = st.dictionaries(st.integers(0, 2), st.integers(1, 3).map(fmpq), max_size=3)


@given(st.lists(vectors, min_size=1, max_size=8), st.integers(0, 9))
def test_whole_weights(some: list[dict[int, fmpq]], seed: int) -> None:
    """They tell vectors apart."""
    some = [dict(items) for items in {tuple(sorted(v.items())) for v in some}]
    w, sums = whole_weights(some, range(3), seed)
    assert sums == [sum((w[c] * x for c, x in v.items()), fmpq(0)) for v in some]
    assert len(set(sums)) == len(some)
    assert all(1 <= x <= len(some) ** 2 for x in w.values())


@given(st.sets(st.tuples(*[st.integers(0, 3)] * 2), min_size=2, max_size=5))
def test_one_draw_in_two_succeeds(some: set[tuple[int, int]]) -> None:
    draws = list(product(range(1, len(some) ** 2 + 1), repeat=2))
    good = sum(len({w[0] * a + w[1] * b for a, b in some}) == len(some) for w in draws)
    assert 2 * good > len(draws)


def test_whole_weights_draw_again() -> None:
    """(0, 1) and (1, 0) need different weights: some first draw has equal ones."""
    some = [{0: fmpq(1)}, {1: fmpq(1)}]
    found = [whole_weights(some, range(2), seed)[0] for seed in range(20)]
    first = [np.random.default_rng(seed).integers(1, 4, 2, endpoint=True) for seed in range(20)]
    assert all(w[0] != w[1] for w in found)
    assert any(a == b for a, b in first)
    with pytest.raises(ValueError, match="different"):
        whole_weights([some[0], dict(some[0])], range(2), 0)


def test_only_some_tokens_are_asked() -> None:
    """The others keep ids of their own, and take nothing of the readout."""
    corpus = Corpus.from_sentences(LENGTHS)
    last = corpus.positions == 0
    some = replace(corpus, label_ids=np.where(last, corpus.label_ids, -1))
    problem = pose([some], positions=False)
    network = kim2023.build(problem, 0)
    contexts = {(word, frozenset(words)) for words, _ in LENGTHS for word in words}
    assert certify(problem, network).contexts == len(contexts)
    assert network.count.layers < kim2023.build(posed(LENGTHS), 0).count.layers


def test_refusals() -> None:
    with pytest.raises(UnfitError, match="4 sentences repeat a token"):
        kim2023.build(posed([*REPEATS, *spelled("aa xx")]), 0)
    corpus = Corpus.from_sentences(LENGTHS)
    with pytest.raises(UnfitError, match="causal"):
        kim2023.build(pose([corpus], positions=True, length=4, causal=True), 0)


def random_sets(count: int) -> Sentences:
    rng = np.random.default_rng(0)
    chosen = rng.permutation(list(combinations("abcdefghijkl", 4)))[:count]
    return [(list(words), rng.choice(list("vwxyz"), 4).tolist()) for words in chosen]


def test_parameters_grow_like_the_root() -> None:
    """Rounds cost O(n), and four times the contexts twice the readout, up to logarithms."""
    few, many = (kim2023.build(posed(random_sets(n)), 0) for n in (100, 400))
    rounds = sum(len([*x.numbers]) for x in many.layers[: many.last_attention + 1])
    assert rounds <= 15 * 4
    assert 1.8 < many.count.nonzero / few.count.nonzero < 2.6
    assert many.count.width == many.dim == 13


def test_same_seed_same_network() -> None:
    problem = posed(random_sets(20))
    assert kim2023.build(problem, 3) == kim2023.build(problem, 3)
    assert kim2023.build(problem, 3) != kim2023.build(problem, 4)


def test_long_sentences() -> None:
    """Balls double in every round, and precision rises to meet them."""
    words = [chr(ord("a") + i % 26) + str(i) for i in range(48)]
    problem = posed([(words, ["x", "y"] * 24), (words[::2], ["y"] * 24), (words[:1], ["x"])])
    certify(problem, kim2023.build(problem, 0))
