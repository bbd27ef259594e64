"""Slips in the main text and in the proofs of Theorems 1 and 2 (eq. 6 to 47)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

F = Fraction
fractions = st.fractions(-5, 5, max_denominator=30)
BITS = 30_000  # the context ids of the toy agree in more than 4000 decimals


@pytest.fixture(autouse=True, scope="module")
def precision() -> Iterator[None]:
    with ctx.workprec(BITS):
        yield


def average(values: Sequence[arb], scores: Sequence[arb]) -> arb:
    """The softmax average of the values."""
    shares = [score.exp() for score in scores]
    total = sum((p * x for p, x in zip(shares, values, strict=True)), arb(0))
    return total / sum(shares, arb(0))


@pytest.mark.parametrize("pair", [(1, 2), (1, 1)])
def test_eq_6_excludes_every_sequence(pair: tuple[int, int]) -> None:
    """Eq. 6 and 62 ask X_k != X_l "for any k, l": also for k = l. Repair: for k != l."""
    printed = all(pair[k] != pair[i] for k in range(2) for i in range(2))
    repaired = all(pair[k] != pair[i] for k in range(2) for i in range(2) if k != i)
    assert not printed
    assert repaired == (len(set(pair)) == 2)


def test_eq_19_and_38_have_shapes_that_do_not_multiply() -> None:
    """Eq. 19 takes n x d matrices, where eq. 2 multiplies W (s x d) by Z: d x n. And eq. 38 has
    u^T u'^T, a row times a row; u^T u' is meant. (For s = 1 nobody notices.)
    """
    s, d, n = 2, 3, 4
    weight, u = np.ones((s, d)), np.ones((s, 1))
    with pytest.raises(ValueError, match="mismatch"):
        weight @ np.ones((n, d))
    assert (weight @ np.ones((d, n))).shape == (s, n)
    with pytest.raises(ValueError, match="mismatch"):
        u.T @ u.T
    assert (u.T @ u).shape == (1, 1)


@given(x=st.lists(fractions, min_size=2, max_size=4), t=fractions, data=st.data())
def test_eq_12_is_an_equality(x: list[Fraction], t: Fraction, data: st.DataObject) -> None:
    """Eq. 12 prints ">="; the two sides are equal, for any weights in place of the softmax.

    x and y are the projections of two sequences, t that of the shared token.
    """
    same_length = st.lists(fractions, min_size=len(x), max_size=len(x))
    y, p, q = (data.draw(same_length) for _ in range(3))

    def dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
        return sum((s * r for s, r in zip(a, b, strict=True)), F(0))

    left = abs(t) * abs(dot(x, p) - dot(y, q))
    assert left == abs(dot([s * t for s in x], p) - dot([s * t for s in y], q))


def attend(tied: str) -> list[arb]:
    """What x_0 averages to in {x_0, x_1} and in {x_0, x_2}; the value has the weight of `tied`.

    Tokens (1, 0), (2, -5), (1 + s(-5)/s(-10), -10), with s the logistic function. Keys are read
    off the second coordinate, queries off the first, which is 1 for x_0: the keys are its scores.
    """

    def logistic(x: int) -> arb:
        return 1 / (1 + (-arb(x)).exp())

    query = [arb(1), arb(2), 1 + logistic(-5) / logistic(-10)]
    key = [arb(0), arb(-5), arb(-10)]
    value = {"key": key, "query": query}[tied]
    return [average([value[0], value[i]], [key[0], key[i]]) for i in (1, 2)]


def test_eq_20_the_text_ties_the_wrong_pair() -> None:
    """The text under eq. 20 lets value and query share v1; the formula lets key and value.

    With the text's tying two sets whose scores 0, -5, -10 are more than 2 log 2 + 3 apart give the
    same 1.0066928509...; then the sum is no Boltzmann operator, and Lemma 1 says nothing of it. By
    the formula they give -0.0335 and -0.00045, as far apart as Lemma 1 wants.
    """
    assert arb(5) > 2 * arb(2).log() + 3
    by_text, by_formula = attend(tied="query"), attend(tied="key")
    assert abs(by_text[0] - by_text[1]) < arb(10) ** -5000
    assert abs(by_text[0] - arb("1.0066928509")) < 1e-10
    assert abs(by_formula[0] - by_formula[1]) > arb(2).log() ** 2 * arb(-10).exp()


def hardmax_mean(tokens: Sequence[int], query: int, sign: int) -> Fraction:
    """What one head of hardmax attention averages to; by eq. 24 the scores are sign * query * a."""
    scores = [sign * query * a for a in tokens]
    chosen = [a for a, score in zip(tokens, scores, strict=True) if score == max(scores)]
    return F(sum(chosen), len(chosen))


def test_theorem_1_proof_overlooks_ties() -> None:
    """The proof calls (a1, a2, a4) v and (a1, a3, a4) v indistinguishable for hardmax.

    So they are unless all scores tie, as with W^K = 0: then hardmax averages, and (1, 2, 4) gives
    7/3 where (1, 3, 4) gives 8/3.
    """
    assert hardmax_mean((1, 2, 4), 1, 0) == F(7, 3)
    assert hardmax_mean((1, 3, 4), 1, 0) == F(8, 3)


@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize("query", [1, 6])
def test_theorem_1_repaired(query: int, sign: int) -> None:
    """Repair: (1, 2, 5, 6) v and (1, 3, 4, 6) v have the same least, largest and mean token.

    Of (W^K v)^T (W^Q v) only the sign matters, so these are all the heads there are; tokens 1 v and
    6 v get the same context id in both sequences.
    """
    assert hardmax_mean((1, 2, 5, 6), query, sign) == hardmax_mean((1, 3, 4, 6), query, sign)


@given(key=fractions, query=fractions, value=fractions)
def test_theorem_2_needs_r_min_above_0(key: Fraction, query: Fraction, value: Fraction) -> None:
    """Theorem 2 does not ask r_min > 0, as Lemma 3 does. A token 0 would break it.

    Whatever the weights all its scores are 0, so that it gets the plain mean of the values: 0 in
    {0, x, -x} and in {0, 2x, -2x}, here for d = 1. (Corollary 1 does ask r_min > 0.)
    """
    found = []
    for tokens in ([F(0), F(1), F(-1)], [F(0), F(2), F(-2)]):
        scores = [(key * x) * (query * tokens[0]) for x in tokens]
        assert not any(scores)
        found.append(sum(value * x for x in tokens) / len(tokens))
    assert found[0] == found[1]


@dataclass(frozen=True)
class Toy:
    """Figures of the proof of Theorem 2, taken literally, for three tokens of dimension 1."""

    eps: arb
    r_min: arb
    log_n: arb
    delta: arb  # eq. 43
    scores: list[list[arb]]  # per query, of all tokens
    gap: arb  # the smallest between context ids of a token in different sequences
    derived: arb  # what eq. 41 and 44 give for it: eps/(4 r_max) delta' / (r_max |u^T u'|)
    eq_8: arb  # printed again as eq. 45
    eq_42: arb
    eq_47: arb


def toy(exponent: int, n: int = 2) -> Toy:
    """Tokens 10^-exponent (1, -1, -0.9) and v = 1. The sequences are all sets of n tokens.

    r_min, r_max and eps satisfy Definition 1, strictly.
    """
    length = arb(10) ** -exponent
    tokens = [length * x / 10 for x in (10, -10, -9)]
    r_min, r_max, eps = (length * x / 1000 for x in (890, 1010, 99))
    log_n = arb(n).log()
    delta = 2 * log_n + 3
    size = arb(len(tokens) + 1) ** 4 * arb.pi()  # (|V| + 1)^4 pi d
    scale = size / 8 * delta / (eps * r_min)  # eq. 29
    delta_prime = log_n**2 * (-2 * scale * r_max**2).exp()  # eq. 44
    decay = (-size * delta * r_max**2 / (4 * eps * r_min)).exp()
    gaps = []
    for t in tokens:
        sets = [x for x in combinations(tokens, n) if any(y is t for y in x)]
        means = [average(x, [scale * t * y for y in x]) for x in sets]
        gaps += [abs(x - y) for x, y in combinations(means, 2)]
    return Toy(
        eps=eps,
        r_min=r_min,
        log_n=log_n,
        delta=delta,
        scores=[[scale * t * x for x in tokens] for t in tokens],
        gap=min(gaps, default=arb(0)) * eps / (4 * r_max),
        derived=eps / (4 * r_max) * delta_prime / (r_max * scale),
        eq_8=2 * log_n**2 * eps**2 * r_min / (r_max**2 * size * delta) * decay,
        eq_42=eps / (4 * r_max) * delta_prime / (size * delta * r_max),
        eq_47=eps * r_min * log_n / (r_max**2 * size * delta) * decay,
    )


def is_one(x: arb) -> bool:
    return bool(abs(x - 1) < arb(10) ** -1000)


@pytest.mark.parametrize("exponent", [0, 400])
def test_eq_8_is_right(exponent: int) -> None:
    """Eq. 8 and 45, printed alike, are what eq. 41 and 44 give, and the context ids keep to it."""
    found = toy(exponent)
    assert is_one(found.derived / found.eq_8)
    assert found.gap > found.eq_8


def test_eq_42_lacks_a_factor() -> None:
    """Eq. 42 drops 8 eps r_min from eq. 41, and so claims more whenever 8 eps r_min < 1.

    A gap grows with the length of the tokens, the printed bound with its inverse. Tokens
    10^-400 (1, -1, -0.9) violate it: gap 10^-4531, printed 10^-4040. Repair: eq. 45.
    """
    unit, tiny = toy(0), toy(400)
    assert all(is_one(x.eq_42 / x.eq_8 * 8 * x.eps * x.r_min) for x in (unit, tiny))
    assert unit.gap > unit.eq_42
    assert tiny.gap < tiny.eq_42


def test_eq_47_is_an_older_constant() -> None:
    """Eq. 47 restates eq. 8 in the proof of Corollary 1, with 1/(2 eps log n) times its value.

    It does not change with the length of the tokens, as a gap does. Tokens 10^-400 (1, -1, -0.9)
    violate it: gap 10^-4531, printed 10^-4439. Repair: eq. 8.
    """
    unit, tiny = toy(0), toy(400)
    assert all(is_one(x.eq_47 / x.eq_8 * 2 * x.eps * x.log_n) for x in (unit, tiny))
    assert unit.gap > unit.eq_47
    assert tiny.gap < tiny.eq_47


@pytest.mark.parametrize("exponent", [0, 400])
def test_the_scores_are_apart_by_more_than_delta(exponent: int) -> None:
    """Lemma 1 needs delta > 2 log n + 3, and the proof of Theorem 2 puts delta = 2 log n + 3.

    Eq. 30 saves it: Definition 1 is strict, so the finitely many scores are further apart than
    that, and Lemma 1 applies with their smallest distance for delta.
    """
    found = toy(exponent)
    assert not found.delta > 2 * found.log_n + 3
    smallest = min(abs(a - b) for row in found.scores for a, b in combinations(row, 2))
    assert smallest > found.delta


@given(tokens=st.lists(fractions.filter(bool), min_size=2, max_size=6, unique=True))
def test_one_token_needs_eq_28_only(tokens: list[Fraction]) -> None:
    """For n = 1 the sets are the tokens, so the context ids are eps/2 apart by eq. 28.

    Eq. 8 says less, see below. Here d = 1 and W^O u'' = -eps/(4 r_max), the worst sign.
    """
    eps = min(abs(x - y) for x, y in combinations(tokens, 2)) * F(99, 100)
    weight = eps / (4 * max(map(abs, tokens)) * F(101, 100))
    ids = [x - weight * x for x in tokens]  # the softmax of one score is 1
    assert all(abs(x - y) > eps / 2 for x, y in combinations(ids, 2))


def test_eq_8_is_0_for_one_token() -> None:
    """For n = 1 eq. 8 has log n = 0. Repair: delta = eps/2 there, min(eps/2, eq. 8) in general."""
    assert toy(0, n=1).eq_8 == 0
    assert all(toy(exponent).eq_8 < toy(exponent).eps / 2 for exponent in (0, 400))


whole = st.integers(-9, 9)


@given(data=st.data())
def test_eq_41_multiplies_u_prime_by_itself(data: st.DataObject) -> None:
    """Line 4 of eq. 41 has |u'^T u'| where line 3 has u'^T u: for u = 2, u' = 3, 9 in place of 6.

    Repair: |u^T u'|, the number that eq. 29 fixes. `m` is the difference of the two averages.
    """
    x, v, m, u, u_prime = (
        np.array(data.draw(st.lists(whole, min_size=size, max_size=size)))
        for size in (2, 2, 2, 3, 3)
    )
    line_3 = abs(x @ np.outer(v, u_prime) @ np.outer(u, v) @ m)
    assert line_3 == abs(v @ x) * abs(u @ u_prime) * abs(v @ m)
    one, u, u_prime = np.array([1]), np.array([2]), np.array([3])
    line_3 = abs(one @ np.outer(one, u_prime) @ np.outer(u, one) @ one)
    assert (line_3, abs(u_prime @ u_prime)) == (6, 9)


def test_footnote_3_asks_more_than_is_needed() -> None:
    """Footnote 3 wants eq. 72 of v' too; eq. 75, |v'.x| bounded below, is enough for the query.

    v' = (0, 1) is constant on (1, 1), (2, 1), (3, 1): no two tokens are told apart by it, against
    eq. 72. Scores 2 log n + 3 apart are enough for Lemma 1, and context ids differ accordingly.
    """
    n, tokens = 2, [(arb(x), arb(1)) for x in (1, 2, 3)]
    log_n = arb(n).log()
    scale = (2 * log_n + 3) * (1 + arb(10) ** -9)
    assert all(x[1] - y[1] == 0 for x, y in combinations(tokens, 2))
    for t in tokens:
        pairs = [p for p in combinations([x[0] for x in tokens], n) if any(x == t[0] for x in p)]
        means = [average(p, [scale * t[1] * x for x in p]) for p in pairs]
        bound = log_n**2 * (-scale * (3 - 1)).exp() / (scale * t[1])
        assert all(abs(x - y) > bound for x, y in combinations(means, 2))
