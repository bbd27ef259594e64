"""Slips in Corollaries 1 and 2 (eq. 17, 48 to 50), in exact fractions or ball arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, count, product

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from rankone.theory.bounds import corollary2, parameter_counts

F = Fraction
Column = tuple[Fraction, ...]
Vector = list[arb]


@pytest.fixture(autouse=True, scope="module")
def precision() -> Iterator[None]:
    with ctx.workprec(40_000):
        yield


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), F(0))


def minus(x: Column, y: Column) -> Column:
    return tuple(a - b for a, b in zip(x, y, strict=True))


@dataclass(frozen=True)
class Zhang:
    """x -> sum_j w_j relu(a.x - b_j), the memorising network of Zhang et al. (2016)."""

    a: Column
    b: list[Fraction]
    w: list[Column]

    def __call__(self, x: Column) -> Column:
        hidden = [max(dot(self.a, x) - b, F(0)) for b in self.b]
        return tuple(dot(hidden, row) for row in zip(*self.w, strict=True))

    @classmethod
    def fit(cls, wanted: dict[Column, Column]) -> Zhang:
        """One unit per point, by forward substitution in the order of the projections a.x."""
        powers = (tuple(F(t**i) for i in range(len(next(iter(wanted))))) for t in count())
        a = next(a for a in powers if len({dot(a, x) for x in wanted}) == len(wanted))
        points = sorted(wanted, key=lambda x: dot(a, x))
        s = [dot(a, x) for x in points]
        b = [s[0] - 1, *s[:-1]]
        w: list[Column] = []
        for x, here, threshold in zip(points, s, b, strict=True):
            so_far = cls(a, b[: len(w)], w)(x) if w else tuple(F(0) for _ in wanted[x])
            w.append(tuple(rest / (here - threshold) for rest in minus(wanted[x], so_far)))
        return cls(a, b, w)


small = st.fractions(-4, 4, max_denominator=12)
labels = st.tuples(*[st.integers(0, 5).map(F)] * 2)
memories = st.dictionaries(st.tuples(small, small), labels, min_size=1, max_size=7)


@given(wanted=memories)
def test_eq_17_forgets_the_skip_connection(wanted: dict[Column, Column]) -> None:
    """Corollary 1 lets Zhang's network send context id H to label Y; eq. 3 then adds H to it.

    The keys are context ids, the values labels. Fitted to Y the block returns H + Y, wrong at every
    H but 0. Repair: fit Y - H.
    """
    printed = Zhang.fit(wanted)
    repaired = Zhang.fit({h: minus(y, h) for h, y in wanted.items()})
    for h, y in wanted.items():
        assert printed(h) == y
        assert (tuple(map(sum, zip(h, printed(h), strict=True))) == y) == (not any(h))
        assert tuple(map(sum, zip(h, repaired(h), strict=True))) == y


def test_the_count_of_corollary_1_counts_factors() -> None:
    """4(s + d) + d(2nN + d) counts factors: two per matrix of rank 1, and d networks of Zhang's.

    One network with vector labels has a, b shared by all d outputs: d + nN + dnN numbers. Written
    out as the matrices of eq. 3 it has nN (d + 1) + d (nN + 1) entries, more than the printed
    d(2nN + d) as soon as nN + d > d^2.
    """
    n, sentences, d = 3, 2, 2
    ids = {(F(k), F(k * k)): (F(k % 3), F(k % 2)) for k in range(n * sentences)}
    net = Zhang.fit({h: minus(y, h) for h, y in ids.items()})
    q = len(net.b)
    counts = parameter_counts(n, sentences, d, head_size=1)
    assert counts.feedforward_shared == len(net.a) + q + sum(map(len, net.w)) == 20
    assert counts.feedforward_dense == q * d + q + d * q + d == 32
    assert counts.feedforward_separate == sum(
        len(one.a) + len(one.b) + len(one.w)
        for one in (Zhang.fit({h: (y[i],) for h, y in ids.items()}) for i in range(d))
    )
    assert counts.paper == 4 * (1 + d) + d * (2 * n * sentences + d) == 40


def norm(x: Vector) -> arb:
    return sum((a * a for a in x), arb(0)).sqrt()


def distance(x: Vector, y: Vector) -> arb:
    return norm([a - b for a, b in zip(x, y, strict=True)])


def diagonal(length: arb, d: int) -> Vector:
    """(1, ..., 1), as long as asked for."""
    return [length / arb(d).sqrt()] * d


def printed_48(k: int, d: int, r_max: arb) -> Vector:
    """Column k = 1, 2, ... of eq. 48: 2 k r_max in every coordinate."""
    return [2 * k * r_max] * d


def repaired_48(k: int, d: int, r_max: arb, eps: arb) -> Vector:
    """k steps of length 2 r_max + eps along (1, ..., 1)."""
    return diagonal(k * (2 * r_max + eps), d)


def plus(x: Vector, y: Vector) -> Vector:
    return [a + b for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_eq_48_makes_tokens_too_long(d: int, n: int) -> None:
    """Eq. 48 is said to give norms below (2n + 1) r_max; column n alone is 2n sqrt(d) r_max long.

    So for every d >= 2: a token 0.99 along (1, ..., 1) with r_max = 1 reaches 4 sqrt(2) + 0.99 =
    6.65 for d = n = 2, where 5 is claimed.
    """
    longest = norm(plus(diagonal(arb(99) / 100, d), printed_48(n, d, arb(1))))
    assert bool(longest > 2 * n + 1) == (d >= 2)
    assert bool(longest < 2 * n + 1) == (d == 1)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 9])
def test_eq_48_brings_tokens_together(d: int) -> None:
    """Eq. 48 is said to keep X + E eps-separated; steps of 2 sqrt(d) r_max are too short, d <= 3.

    Tokens +-0.95 along (1, ..., 1), r_max = 1, eps = 1.89. One at position 1, the other at 2 are
    2 sqrt(d) - 1.9 apart: 0.1, 0.93, 1.56 for d = 1, 2, 3. From d = 4 on the step is 4 r_max, which
    is always enough.
    """
    eps, token = arb(189) / 100, diagonal(arb(95) / 100, d)
    other = [-x for x in token]
    assert distance(token, other) > eps
    apart = distance(plus(token, printed_48(1, d, arb(1))), plus(other, printed_48(2, d, arb(1))))
    assert bool(apart < eps) == (d <= 3)
    assert bool(apart > eps) == (d >= 4)


@given(data=st.data(), d=st.sampled_from([1, 2, 3, 5]), n=st.integers(1, 3))
def test_eq_48_repaired_separates(data: st.DataObject, d: int, n: int) -> None:
    """Repair: E_k = k (2 r_max + eps)/sqrt(d) (1, ..., 1).

    X + E is then (r_max + eps, r_max + n (2 r_max + eps), eps)-separated, and no sequence repeats a
    token. r_max and eps are taken as close as Definition 1 lets them, tokens come with their
    opposites, and one pair lies along (1, ..., 1): the worst case.
    """
    coordinates = st.tuples(*[st.integers(-4, 4)] * d).filter(any)
    drawn = data.draw(st.sets(coordinates, max_size=3)) | {(3,) * d}
    tokens = [[arb(x) for x in token] for token in drawn | {tuple(-x for x in t) for t in drawn}]
    with ctx.workprec(200):
        r_max = max(map(norm, tokens)) * (1 + arb(2) ** -40)
        eps = min(distance(x, y) for x, y in combinations(tokens, 2)) * (1 - arb(2) ** -40)
        placed = [plus(x, repaired_48(k, d, r_max, eps)) for k in range(1, n + 1) for x in tokens]
        assert all(r_max + eps < norm(x) < r_max + n * (2 * r_max + eps) for x in placed)
        assert all(distance(x, y) > eps for x, y in combinations(placed, 2))


def context_ids(sequences: Sequence[Vector], scale: arb, weight: arb) -> list[Vector]:
    """Attention for d = 1: x + weight * average, with scores scale * x * y."""
    found = []
    for sequence in sequences:
        shares = [[(scale * x * y).exp() for y in sequence] for x in sequence]
        means = [
            sum((p * y for p, y in zip(row, sequence, strict=True)), arb(0)) / sum(row, arb(0))
            for row in shares
        ]
        found.append([x + weight * mean for x, mean in zip(sequence, means, strict=True)])
    return found


def test_eq_49_is_too_small_for_d_2() -> None:
    """Eq. 49 claims context ids shorter than (2n + 1) r_max + eps/4, by the norms of eq. 48.

    d = n = 2, r_max = 1, eps = 1.89, a token 0.99 along (1, 1): X + E is 6.65 long, attention of
    weight eps/(4 (2n + 1)) moves it by 0.63 at most, and 6.02 is above 5.47. Repair: as eq. 7 with
    r_max + n (2 r_max + eps) for r_max.
    """
    n, eps = 2, arb(189) / 100
    longest = norm(plus(diagonal(arb(99) / 100, 2), printed_48(n, 2, arb(1))))
    moved = eps / (4 * (2 * n + 1)) * longest
    assert longest - moved > (2 * n + 1) + eps / 4


def test_eq_50_is_too_large_for_d_1() -> None:
    """Eq. 50 is eq. 8 with the separation claimed for eq. 48, which fails; so does eq. 50.

    d = 1, n = 2, N = 1, r_max = 1, eps = 1.9 and the sequence (t, -t), t = 1 - 10^-2000. With eq.
    48 it becomes 3 -+ 10^-2000, and by the weights of the proof the context ids differ by about
    10^-2000, where eq. 50 claims 10^-1598. Repair: eq. 8 with the separation of the repaired
    eq. 48.
    """
    n, eps, r_max, log_n = 2, arb(19) / 10, arb(1), arb(2).log()
    delta = 2 * log_n + 3
    size = arb(n + 1) ** 4 * arb.pi()  # (nN + 1)^4 pi d
    wide = (2 * n + 1) ** 2
    claimed = (
        2 * log_n**2 * eps**2 / (wide * r_max * size * delta)
        * (-wide * size * delta * r_max / (4 * eps)).exp()
    )  # fmt: skip
    token = 1 - arb(10) ** -2000
    assert 2 * token > eps
    scale, weight = size / 8 * delta / (eps * r_max), eps / (4 * (2 * n + 1) * r_max)
    (ids,) = context_ids([[token + 2, -token + 4]], scale, weight)
    assert abs(ids[0] - ids[1]) < claimed
    step = 2 * r_max + eps
    low, high = r_max + eps, r_max + n * step
    scale, weight = size / 8 * delta / (eps * low), eps / (4 * high)
    (ids,) = context_ids([[token + step, -token + 2 * step]], scale, weight)
    assert abs(ids[0] - ids[1]) > eps / 2


def test_corollary_2_repaired() -> None:
    """All four sequences of two tokens +-0.95, repeats included: context ids as the bound says.

    Positions, scale and weight from the repaired eq. 48; delta from the library.
    """
    n, eps, r_max = 2, F(3, 2), F(1)
    bound = corollary2(float(r_max), float(eps), n=n, dim=1, sentences=4, vocabulary=4)
    step, token = arb(7) / 2, arb(95) / 100
    placed = [
        [x + k * step for k, x in enumerate(sequence, start=1)]
        for sequence in product([token, -token], repeat=n)
    ]
    ids = context_ids(placed, arb(bound.scale), arb(bound.output_norm))
    for x, y in combinations([x for sequence in ids for x in sequence], 2):
        assert abs(x) < bound.r
        assert abs(x - y).log() > bound.log_delta
