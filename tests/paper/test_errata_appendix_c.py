"""Slips in Appendix C, masked attention (eq. 132 and 133), judged in ball arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given

from paper.problems import visible_pairs
from rankone.theory.boltzmann import boltzmann
from rankone.theory.lemmas import appendix_c


@pytest.fixture(autouse=True, scope="module")
def precision() -> Iterator[None]:
    with ctx.workprec(3000):
        yield


def log(n: int) -> arb:
    return arb(n).log()


def needed(n: int) -> arb:
    """Just above 2 log n + 3, and exact."""
    return (2 * log(n) + 3 + arb(2) ** -30).mid()


def gap(a: list[arb], b: list[arb]) -> arb:
    return abs(boltzmann(a) - boltzmann(b))


def test_eq_132_gives_the_scores_the_shape_of_the_tokens() -> None:
    """Eq. 132 puts the softmax in R^(d x n); scores and mask are n x n."""
    s, d, n = 2, 3, 5
    weight, z = np.ones((s, d)), np.ones((d, n))
    scores = (weight @ z).T @ (weight @ z) + np.zeros((n, n))
    assert scores.shape == (n, n) != (d, n)


def test_eq_133_multiplies_infinity_by_zero() -> None:
    """Eq. 133 drops c^T sigma_S[a + c]; where c is -inf the softmax is 0, and -inf * 0 is not 0.

    Repair: masked entries take no part in the sum. Then boltz(a + c) is boltz of what is visible.
    """
    c = np.array([0.0, -np.inf, 0.0])
    softmax = np.exp(c) / np.exp(c).sum()
    with np.errstate(invalid="ignore"):
        assert np.isnan(c @ softmax)
    a = np.array([1.0, 7.0, 2.0])
    assert boltzmann(a + c) == boltzmann(a[[0, 2]])


@pytest.mark.parametrize("n", [2, 5, 20, 21, 50])
def test_lemma_7_does_not_carry_over_to_masks(n: int) -> None:
    """Appendix C: with one attention vector and two masks, "the same way as Lemma 1" is not open.

    Scores 0, -D, -2D, ... with D just above 2 log n + 3; one mask shows the first, one all n. Then
    no k has a_{k+1} > b_{k+1}: one list goes on where the other ends. The gap is about D e^-D, and
    from n = 21 on below the (log n)^2 e^-D of eq. 117. Repair: (log n + 1) e^-D.
    """
    row = [-needed(n) * k for k in range(n)]
    decay = row[1].exp()
    assert bool(gap(row[:1], row) > log(n) ** 2 * decay) == (n < 21)
    assert bool(gap(row[:1], row) < log(n) ** 2 * decay) == (n >= 21)
    assert gap(row[:1], row) > (log(n) + 1) * decay


def test_lemma_1_with_padding_counted() -> None:
    """Eq. 16 with masks fails where n counts what is hidden, and r bounds what is visible.

    Of 21 places two are visible, with scores D/2 and -D/2, D just above 2 log 21 + 3; a second mask
    shows the first alone. The gap is 0.98 times (log 21)^2 e^-2r. With n = 2, the largest number
    of visible tokens, eq. 16 holds, and so does the library's bound.
    """
    half = needed(21) / 2
    short, long = [half], [half, -half]
    decay = (-2 * half).exp()
    assert gap(short, long) < log(21) ** 2 * decay
    assert gap(short, long) > log(2) ** 2 * decay
    claim = appendix_c(short, long)
    assert claim.ok
    assert gap(short, long) > claim.log_bound.exp()


@given(pair=visible_pairs())
def test_appendix_c_repaired(pair: tuple[list[float], list[float]]) -> None:
    """Different visible sets are more than (log n + 1) e^-D apart, and as eq. 16 says.

    D = a_1 - b_{k+1} as in Lemma 7. Eq. 16 holds with n the largest number of visible tokens, since
    those spread over (n - 1)(2 log n + 3) > (log n)^2; the proof of Lemma 1 does not give it. Here
    2r is the spread of what is visible.
    """
    a, b = ([arb(x) for x in sorted(row, reverse=True)] for row in pair)
    n = max(len(a), len(b))
    spread = max(a[0], b[0]) - min(a[-1], b[-1])
    assert gap(a, b) > log(n) ** 2 * (-spread).exp()
    k = next(k for k in range(n) if a[k : k + 1] != b[k : k + 1])
    reach = max(a[0], b[0]) - min(a[k : k + 1] + b[k : k + 1])
    bound = (log(n) + 1) * (-reach).exp()
    assert gap(a, b) > bound
    claim = appendix_c(a, b)
    assert claim.ok, claim.broken
    assert claim.log_bound.exp().overlaps(bound)
