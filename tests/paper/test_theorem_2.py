"""Theorem 2: the weights as constructed, over all sequences, in ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from rankone.arrays import Floats
from rankone.construct.theorem2.projection import Query
from rankone.construct.theorem2.weights import Grade, GradedMapping, contextual_mapping

Ball = arb
Id = tuple[int, frozenset[int], list[Ball]]  # token, the set it sees, context id


@st.composite
def vocabularies(draw: st.DrawFn, size: int) -> Floats:
    """Different vectors with entries in halves: norms and distances from 1/2 on."""
    dim = draw(st.integers(1, 3))
    entry = st.integers(-2, 2).map(lambda k: k / 2)
    if dim == 1:
        entry = st.integers(-5, 5).map(lambda k: k / 2)
    row = st.tuples(*[entry] * dim).filter(any)
    return np.array(draw(st.lists(row, min_size=2, max_size=size, unique=True)))


def ball(number: Fraction | float) -> Ball:
    exact = Fraction(number)
    return arb(fmpq(exact.numerator, exact.denominator))


def dot(a: Floats, b: Floats) -> Fraction:
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))


def norm(vector: list[Ball]) -> Ball:
    return sum((a * a for a in vector), arb(0)).sqrt()


def context_ids(found: GradedMapping) -> Iterator[Id]:
    """F(X)_k of eq. 2 in the form of eq. 20, for every set of tokens and every token of it.

    Sets have n tokens, or up to n where they may differ in size.
    """
    mapping = found.mapping
    keys, queries = ([dot(x, v) for x in mapping.table] for v in (mapping.v1, mapping.v2))
    for size in range(1 if found.masked else found.n, found.n + 1):
        for tokens in combinations(range(len(keys)), size):
            for t in tokens:
                scores = [ball(keys[k] * queries[t]) for k in tokens]
                top = max(scores)
                weights = [(score - top).exp() for score in scores]
                average = sum(w * ball(keys[k]) for w, k in zip(weights, tokens, strict=True))
                average /= sum(weights)
                entries = zip(mapping.table[t], mapping.output, strict=True)
                yield t, frozenset(tokens), [ball(x) + average * ball(w) for x, w in entries]


def judge(found: GradedMapping) -> None:
    """Definition 2 with the figures of `found`, and how far apart the ids are on the line."""
    with ctx.workprec(int(-found.log_bound / math.log(2) * 1.1) + 192):
        ids = list(context_ids(found))
        delta, line = arb(found.log_bound).exp(), arb(found.log_line_bound).exp()
        epsilon = arb(found.separation.epsilon)
        for _, _, vector in ids:
            assert norm(vector) < arb(found.r)  # (27)
        for (t, seen, one), (u, other, two) in combinations(ids, 2):
            if (t, seen) == (u, other):
                continue
            difference = [a - b for a, b in zip(one, two, strict=True)]
            assert norm(difference) > (delta if t == u else epsilon / 2)  # (45) and (28)
            along = sum(
                a * ball(b) for a, b in zip(difference, found.mapping.direction, strict=True)
            )
            assert abs(along) > line


@given(vocabularies(size=4), st.booleans(), st.integers(0, 9))
def test_the_proofs_constants(x: Floats, masked: bool, seed: int) -> None:
    judge(contextual_mapping(x, 2, grade="paper", masked=masked, seed=seed))


def test_the_proofs_constants_for_three_of_four_tokens() -> None:
    x = np.array([[1.0, 0.25], [-0.5, 1.0], [0.5, -0.75], [-0.75, -0.5]])
    judge(contextual_mapping(x, 3, grade="paper"))


@given(
    vocabularies(size=5),
    st.integers(1, 3),
    st.sampled_from(["shared", "separate"]),
    st.booleans(),
    st.integers(0, 9),
)
def test_measured_constants(x: Floats, n: int, query: Query, masked: bool, seed: int) -> None:
    n = min(n, len(x))
    judge(contextual_mapping(x, n, grade="tight", query=query, masked=masked, draws=50, seed=seed))


@given(st.integers(0, 2**32), st.sampled_from(["shared", "separate"]))
def test_measured_constants_for_vectors_of_all_sizes(seed: int, query: Query) -> None:
    """Far from the origin, very small, or nearly alike."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4, 2)) * 10.0 ** rng.integers(-30, 30)
    x += rng.choice([0.0, 1e3]) * np.abs(x).max()
    judge(contextual_mapping(x, 2, grade="tight", query=query, draws=200))


@pytest.mark.parametrize("grade", ["paper", "tight"])
def test_masks_put_log_n_plus_one_for_its_square(grade: Grade) -> None:
    """Appendix C, repaired."""
    x = np.array([[1.0, 0.25], [-0.5, 1.0], [0.5, -0.75], [-0.75, -0.5]])
    plain, masked = (contextual_mapping(x, 3, grade=grade, masked=m).log_bound for m in (0, 1))
    log_n = math.log(3)
    assert masked - plain == pytest.approx(math.log((log_n + 1) / log_n**2), abs=1e-10)


@given(vocabularies(size=5), st.integers(1, 3), st.integers(0, 99))
def test_each_displayed_inequality(x: Floats, n: int, seed: int) -> None:
    """(29) to (34), (38) and (45) for the literal weights."""
    n = min(n, len(x))
    found = contextual_mapping(x, n, grade="paper", seed=seed)
    with ctx.workprec(256):
        check_displayed(found, x, n)


def check_displayed(found: GradedMapping, x: Floats, n: int) -> None:
    known, mapping, dim = found.separation, found.mapping, x.shape[1]
    r_min, r_max, epsilon = map(arb, (known.r_min, known.r_max, known.epsilon))
    v, log_n = mapping.v1, arb(n).log()
    delta = 2 * log_n + 3
    power = arb(len(x) + 1) ** 4
    literal = power * arb.pi() * dim / 8 * delta / (epsilon * r_min)
    assert literal <= arb(found.scale) <= literal * (1 + arb(2) ** -50)  # (29), rounded up
    np.testing.assert_allclose(mapping.v2, found.scale * v, rtol=2**-52)

    keys, queries = ([dot(t, w) for t in x] for w in (v, mapping.v2))
    for a, b in permutations(keys, 2):
        for c in queries:
            assert ball(abs((a - b) * c)) > delta  # (30)
    for t, key in zip(x, keys, strict=True):
        least = 8 * ball(dot(t, t)) / (arb.pi() * dim * power)
        assert least <= ball(key**2)  # (31), squared
        assert key**2 <= dot(t, t)

    w = ball(dot(mapping.output, mapping.output)).sqrt()
    assert w <= epsilon / (4 * r_max)  # (32), rounded down
    assert w >= epsilon / (4 * r_max) * (1 - arb(10) ** -9)
    largest = ball(max(dot(t, t) for t in x)).sqrt()
    assert w * max(ball(abs(key)) for key in keys) <= epsilon / (4 * r_max) * largest  # (33)
    assert epsilon / (4 * r_max) * largest < epsilon / 4  # (34)

    logits = found.scale * r_max**2  # (37)
    assert all(ball(abs(a * c)) <= logits for a in keys for c in queries)  # (38)
    promised = epsilon / 2
    if n > 1:
        constant = 2 * log_n**2 * epsilon**2 * r_min / (r_max**2 * power * delta * arb.pi() * dim)
        promised = (
            constant * (-power * delta * arb.pi() * dim * r_max**2 / 4 / epsilon / r_min).exp()
        )
    rest = promised.log() - arb(found.log_bound)
    assert 0 <= rest <= arb(10) ** -9 * (1 + abs(arb(found.log_bound)))  # (45)


def test_without_the_logit_gaps_the_bound_fails() -> None:
    """y / (1 + e^y) rises and falls, so a token at 3 that sees 3 - y cannot tell two y apart."""
    low, high = 1.5, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        falls = middle / (1 + math.exp(middle)) > 0.5 / (1 + math.exp(0.5))
        low, high = (middle, high) if falls else (low, middle)
    found = contextual_mapping([[3.0], [2.5], [3 - low]], 2, grade="tight")
    judge(found)
    q, spread, w = 1.0, low, float(found.mapping.output[0])
    bound = math.log(w * math.log(2) ** 2 / q) - q * spread  # what Lemma 7 would promise
    weak = replace(found.mapping, v2=np.array([q / 3]))
    with pytest.raises(AssertionError, match="norm"):
        judge(replace(found, mapping=weak, log_bound=bound, log_line_bound=-math.inf))


@pytest.mark.parametrize("grade", ["paper", "tight"])
def test_one_token_per_sequence(grade: Grade) -> None:
    """Then no token has two contexts, and all ids are epsilon / 2 apart."""
    found = contextual_mapping([[1.0, 0.5], [0.5, -1.0], [2.0, 2.0]], 1, grade=grade)
    assert found.log_bound == pytest.approx(math.log(found.separation.epsilon / 2), rel=1e-12)
    judge(found)
