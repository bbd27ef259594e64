"""Lemma 3: one unit vector for keys and queries makes all logit gaps larger than any delta."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from rankone.arrays import Floats
from rankone.construct.theorem2.projection import find_projection
from rankone.theory.separation import Separation, separation


@st.composite
def vocabularies(draw: st.DrawFn) -> Floats:
    """Different vectors, none of them 0, on a grid or anywhere."""
    size, dim = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        return rng.standard_normal((size, dim)) * 10.0 ** draw(st.integers(-3, 3))
    cells = rng.choice(5**dim - 1, size=min(size, 5**dim - 1), replace=False)
    cells += cells >= 5**dim // 2  # the middle of the grid is 0
    return np.stack(np.unravel_index(cells, (5,) * dim), axis=1) - 2.0


def ball(number: Fraction) -> arb:
    return arb(fmpq(number.numerator, number.denominator))


def dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def exact(rows: Floats) -> list[list[Fraction]]:
    return [[Fraction(a) for a in row] for row in rows.tolist()]


def scale(known: Separation, delta: Fraction) -> arb:
    """|u^T u'| of eq. 73."""
    power = arb(known.vectors + 1) ** 4
    size = ball(delta / Fraction(known.epsilon) / Fraction(known.r_min))
    return power * arb.pi() * known.dim / 8 * size


@given(vocabularies(), st.fractions("1/1000", 1000), st.integers(1, 4), st.integers(0, 99))
def test_every_logit_gap_exceeds_delta(x: Floats, delta: Fraction, s: int, seed: int) -> None:
    """(74) and (75) for W^K = u v^T and W^Q = u' v^T, whatever u and u' with eq. 73 are."""
    known = separation(x)
    found = find_projection(np.vstack([x, np.zeros(x.shape[1])]), seed=seed, method="sample")
    v = [Fraction(a) for a in found.v.tolist()]
    rng = np.random.default_rng(seed)
    u, other = exact(rng.integers(1, 9, (2, s)) * rng.choice([-1.0, 1.0], (2, s)))
    other[0] += Fraction(1, 16)  # so that u and u' are not orthogonal
    stretch = scale(known, delta) / abs(ball(dot(u, other)))  # makes |u^T u'| that of eq. 73
    tokens = exact(x)
    for c in tokens:
        query = [a * dot(v, c) for a in other]
        for a, b in permutations(tokens, 2):
            key = [p * (dot(v, a) - dot(v, b)) for p in u]
            assert abs(ball(dot(key, query))) * stretch > ball(delta)  # (74)
        along, square = dot(v, c) ** 2, dot(c, c)
        least = 8 * ball(square) / (arb.pi() * known.dim * arb(len(x) + 1) ** 4)
        assert least <= ball(along)  # (75), squared
        assert along <= square


def test_a_zero_vector_is_why_r_min_must_be_positive() -> None:
    """Its query is 0, and so are all its logits: no |u^T u'| helps."""
    known = separation([[0.0, 0.0], [1.0, 0.0]])
    assert not known.ok
    assert known.r_min == 0


def test_leaving_out_zero_is_not_enough() -> None:
    """Lemma 2 for V alone may choose a v that is orthogonal to a token."""
    x = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, -1.0]])
    found = find_projection(x, method="plane")
    with_zero = find_projection(np.vstack([x, np.zeros(2)]), method="plane")
    assert np.abs(x @ with_zero.v).min() > 0.1
    v = np.array([0.0, 1.0])
    assert np.ptp(x @ v) == 2
    assert 0.0 in (x @ v).tolist()
    assert found.ok
    assert with_zero.ratio == pytest.approx(np.sin(np.pi / 8), rel=1e-12)
