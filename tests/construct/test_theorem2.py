"""Grades of Theorem 2: matrices of any head size, fewer digits, refusals."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import torch
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.construct.theorem2.projection import draw_directions, fewest_digits
from rankone.construct.theorem2.weights import GradedMapping, _output, contextual_mapping
from rankone.errors import PrecisionError, RankOneError, VectorError

CHOICES = [("paper", "shared"), ("tight", "shared"), ("tight", "separate")]


def ball(number: Fraction) -> arb:
    return arb(fmpq(number.numerator, number.denominator))


def dots(rows: Floats, v: Floats) -> list[Fraction]:
    pairs = ([(Fraction(a), Fraction(b)) for a, b in zip(row, v, strict=True)] for row in rows)
    return [sum((a * b for a, b in row), Fraction(0)) for row in pairs]


def check_matrices(found: GradedMapping, head_size: int) -> None:
    """What the bound rests on, for the matrices of eq. 2 as they are stored: all of rank 1."""
    layer = found.mapping.attention(head_size)
    key, query, value, output = (
        getattr(layer, name).detach().numpy()[0] for name in ("key", "query", "value", "output")
    )
    assert (key == key[:1]).all()
    assert (query == query[:1]).all()
    assert (value == key).all()
    assert (output == output[:, :1]).all()
    x, s = found.mapping.table, head_size
    keys, queries = dots(x, key[0]), [abs(s * q) for q in dots(x, query[0])]
    gap = min(abs(a - b) for a, b in combinations(keys, 2))
    assert ball(gap * min(queries)) > 2 * arb(found.n).log() + 3
    assert ball(gap * min(queries)) >= arb(found.min_logit_gap)
    w = s * ball(dots([output[:, 0]], output[:, 0])[0]).sqrt()
    epsilon = arb(found.separation.epsilon)
    assert w * ball(max(map(abs, keys))) <= epsilon / 4
    q, spread = ball(max(queries)), ball(max(keys) - min(keys))
    lemma7 = (w * arb(found.n).log() ** 2 / q).log() - q * spread
    assert lemma7 >= arb(found.log_bound)
    line = s * ball(dots([output[:, 0]], found.mapping.direction)[0])
    own = dots(x, found.mapping.direction)
    apart = min(abs(a - b) for a, b in combinations(own, 2))
    assert 2 * line * ball(max(map(abs, keys))) <= ball(apart) / 2
    assert (line * arb(found.n).log() ** 2 / q).log() - q * spread >= arb(found.log_line_bound)


@given(
    st.sampled_from(CHOICES),
    st.sampled_from([2, 3, 5]),
    st.sampled_from([0.0, 1e3, 1e7]),
    st.integers(0, 2**32),
)
def test_matrices_of_any_head_size(
    choice: tuple[str, str], head_size: int, offset: float, seed: int
) -> None:
    """Also far from the origin, where the vectors nearly agree and rounding counts most."""
    grade, query = choice
    x = np.random.default_rng(seed).standard_normal((6, 3)) + offset
    found = contextual_mapping(x, 3, grade=grade, query=query, draws=30, seed=seed % 7)
    check_matrices(found, head_size)


def test_many_tokens() -> None:
    x = np.random.default_rng(0).standard_normal((80, 4))
    for grade, query in CHOICES:
        check_matrices(contextual_mapping(x, 20, grade=grade, query=query, draws=50), 3)


@pytest.mark.parametrize(
    ("size", "dim", "n", "literal", "tight", "separate"),
    [(10, 8, 3, 1e5, 300, 100), (30, 16, 5, 1e7, 1e4, 1500)],
)
def test_measuring_saves_digits(
    size: int, dim: int, n: int, literal: float, tight: float, separate: float
) -> None:
    """By orders of magnitude, and a query of its own by another one."""
    x = np.random.default_rng(1).standard_normal((size, dim))
    digits = [contextual_mapping(x, n, grade=g, query=q).digits for g, q in CHOICES]
    assert digits[0] > literal
    assert digits[1] < tight
    assert digits[2] < separate


def test_a_constant_coordinate_makes_the_best_query() -> None:
    x = np.random.default_rng(3).standard_normal((12, 3))
    x[:, 2] = 5.0
    found = contextual_mapping(x, 4, grade="tight", query="separate")
    np.testing.assert_allclose(found.mapping.v2, [0, 0, found.scale], atol=1e-12 * found.scale)


def test_signs_do_not_matter_to_a_query() -> None:
    """Three tokens about (1, 1), three about -(1, 1): |v'^T t| is even, v'^T t is not."""
    x = np.array([[1.0, 1.0], [1.5, 0.5], [0.5, 1.5]])
    x = np.concatenate([x, -x * [[1.0, 1.0]] + [[0.25, -0.25]]])
    found = contextual_mapping(x, 2, grade="tight", query="separate")
    queries = np.abs(x @ found.mapping.v2)
    assert queries.max() / queries.min() == pytest.approx(1, rel=1e-9)


def test_more_draws_need_no_more_digits() -> None:
    x = np.random.default_rng(5).standard_normal((9, 3))
    few, many = (contextual_mapping(x, 3, grade="tight", draws=k).digits for k in (20, 500))
    assert many <= few


@pytest.mark.parametrize("dim", [2, 3])
def test_of_the_directions_tried_none_needs_fewer_digits(dim: int) -> None:
    """The least (S / gap) (max |v'^T t| / min |v'^T t|), or each factor for itself."""
    x = np.random.default_rng(7).standard_normal((6, dim)) + 1

    def span(v: Floats) -> float:
        s = np.sort(x @ v)
        return float((s[-1] - s[0]) / np.diff(s).min())

    def unevenness(v: Floats) -> float:
        q = np.abs(x @ v)
        return float(q.max() / q.min())

    points, tried = np.vstack([x, np.zeros(dim)]), draw_directions(dim, 40, 3)
    v, same = fewest_digits(x, points, "shared", draws=40, seed=3)
    assert v.tolist() == same.tolist()
    assert span(v) * unevenness(v) <= min(span(w) * unevenness(w) for w in tried) * (1 + 1e-12)
    v, asked = fewest_digits(x, x, "separate", draws=40, seed=3)
    assert span(v) <= min(map(span, tried)) * (1 + 1e-12)
    assert unevenness(asked) <= min(map(unevenness, tried)) * (1 + 1e-12)


@pytest.mark.parametrize(("grade", "query"), CHOICES)
def test_the_layer_is_eq_20(grade: str, query: str) -> None:
    x = np.random.default_rng(2).standard_normal((5, 3))
    found = contextual_mapping(x, 4, grade=grade, query=query)
    mapping = found.mapping
    z = x[[3, 0, 4, 1]]
    scores = np.outer(z @ mapping.v2, z @ mapping.v1)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    average = (weights * (z @ mapping.v1)).sum(1) / weights.sum(1)
    expected = z + average[:, None] * mapping.output
    for head_size in (1, 3):
        ids = mapping.attention(head_size)(torch.from_numpy(z)).detach().numpy()
        np.testing.assert_allclose(ids, expected, rtol=1e-9)
    assert mapping.direction @ mapping.write == pytest.approx(1, rel=1e-12)
    assert mapping.direction @ mapping.output > 0


def test_figures() -> None:
    x = np.random.default_rng(2).standard_normal((5, 3))
    found = contextual_mapping(x, 2, grade="tight", query="separate", seed=3)
    again = contextual_mapping(x.tolist(), 2, grade="tight", query="separate", seed=3)
    assert json.dumps(found.to_json()) == json.dumps(again.to_json())
    figures = found.to_json()
    assert set(figures) == {"ok", "log10_bound", *(set(vars(found)) - {"mapping"})}
    assert figures["ok"] is True
    assert figures["log10_bound"] == pytest.approx(found.log_bound / math.log(10))
    assert found.digits == pytest.approx(math.log10(found.r) - found.log10_bound + 20.5, abs=0.6)
    assert found.min_logit_gap == pytest.approx(2 * math.log(2) + 3, rel=1e-8)
    assert found.min_logit_gap > found.needed_gap > 2 * math.log(2) + 3


def test_one_token() -> None:
    found = contextual_mapping([[2.0, 1.0]], 1, grade="tight")
    assert found.ok
    assert found.log_bound == pytest.approx(math.log(found.separation.r_max), rel=1e-12)


@pytest.mark.parametrize(
    ("vectors", "n", "message"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], 1, "row 2 has norm 0, and Theorem 2 needs r_min > 0"),
        ([[1.0, 0.0], [1.0, 0.0]], 1, "rows 1 and 2: the same vector twice"),
        ([[1.0, 0.0], [1.0, math.inf]], 1, "row 2: a number that is not finite"),
        ([[1.0, 0.0], [1.0, 1.0]], 0, "no sequence has 0 different tokens out of 2"),
        ([[1.0, 0.0], [1.0, 1.0]], 3, "no sequence has 3 different tokens out of 2"),
        ([1.0, 2.0], 1, "shape"),
        (1e-150 * np.eye(3), 1, "as large as 1e-150"),
        (1e150 * np.eye(3), 1, "as large as 1e\\+150"),
    ],
)
@pytest.mark.parametrize("grade", ["paper", "tight"])
def test_vectors_that_are_refused(vectors: ArrayLike, n: int, message: str, grade: str) -> None:
    with pytest.raises(VectorError, match=message):
        contextual_mapping(vectors, n, grade=grade)


def test_settings_that_are_refused() -> None:
    for grade, query in (("paper", "separate"), ("loose", "shared"), ("tight", "none")):
        with pytest.raises(RankOneError, match="there is no grade"):
            contextual_mapping(np.eye(2), 2, grade=grade, query=query)
    with pytest.raises(RankOneError, match="at least one draw"):
        contextual_mapping(np.eye(3), 2, grade="tight", draws=0)
    with pytest.raises(PrecisionError, match="no room for the weights"):
        contextual_mapping([[1e-99, 0.0], [1e-99, 1e-210]], 2, grade="tight")


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("along", [0.5, 1.25, 2.0])
def test_the_output_has_its_norm_and_its_share_along_v(dim: int, along: float) -> None:
    """In one dimension there is nothing but v, so the norm cannot be had."""
    v = np.array([0.6, -0.8, 0.0])[:dim] if dim > 1 else np.array([-1.0])
    w = _output(v, 2.0, along)
    assert v @ w == pytest.approx(along, rel=1e-14)
    assert np.linalg.norm(w) == pytest.approx(2.0 if dim > 1 else along, rel=1e-14)
