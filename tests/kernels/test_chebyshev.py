"""The cells, the polynomials on them, and the bound on what they leave out."""

from __future__ import annotations

import math
import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rankone.kernels import chebyshev, rank1_attention
from rankone.kernels.chebyshev import error_bound

EPS = 2.0**-53


def test_a_polynomial_with_few_terms_is_refined_exactly():
    """Degree below TERMS: nothing is cut off, in any cell of the group."""
    matrix, x = chebyshev.refinement(), chebyshev.nodes()
    t = np.linspace(-1, 1, 9)
    for degree in range(chebyshev.TERMS):
        for i in range(chebyshev.MEMBERS):
            s = (2 * i + 1 - chebyshev.MEMBERS + t) / chebyshev.MEMBERS
            found = np.polynomial.polynomial.polyval(t, matrix[i] @ x**degree)
            assert np.abs(found - s**degree).max() <= 16 * EPS


def test_a_polynomial_with_more_terms_is_interpolated_where_that_is_best():
    """At the zeros of T_TERMS in each cell nothing is cut off, whatever the degree."""
    matrix, x = chebyshev.refinement(), chebyshev.nodes()
    t = np.cos(np.pi * (np.arange(chebyshev.TERMS) + 0.5) / chebyshev.TERMS)
    for degree in range(chebyshev.TERMS, chebyshev.NODES):
        for i in range(chebyshev.MEMBERS):
            s = (2 * i + 1 - chebyshev.MEMBERS + t) / chebyshev.MEMBERS
            found = np.polynomial.polynomial.polyval(t, matrix[i] @ x**degree)
            assert np.abs(found - s**degree).max() <= 16 * EPS


def test_nodes_are_the_zeros_of_the_chebyshev_polynomial():
    x = chebyshev.nodes()
    assert x.tolist() == sorted(x, reverse=True)
    assert (x == -x[::-1]).all()
    assert np.abs(np.cos(chebyshev.NODES * np.arccos(x))).max() <= 64 * EPS


@given(st.floats(1e-280, 1e280), st.floats(1e-280, 1e280))
def test_the_origin_is_a_power_of_two_that_suits_the_largest_score(reach, opposite):
    o = chebyshev.origin(reach, opposite)
    assert math.frexp(o)[0] == 0.5
    assert o * opposite < 32.0
    assert o * opposite >= 16.0 or o > reach  # or the first octave has all points


def lagrange(points, p):
    """(len(points), p): the Lagrange polynomials at the zeros of T_p."""
    angle = np.pi * (np.arange(p) + 0.5) / p
    k = np.arange(p)
    scale = np.where(k == 0, 1.0, 2.0) / p
    return np.cos(np.arccos(np.clip(points, -1, 1))[:, None] * k) @ (
        scale[:, None] * np.cos(k[:, None] * angle)
    )


def interpolation(point, origin, sizes):
    """Nodes and weights that stand for a point, after groups and then cells.

    `sizes` is (terms, bits, nodes, group_bits).
    """
    terms, bits, nodes, group_bits = sizes
    top = origin * 2.0 ** math.floor(math.log2((point + origin) / origin))

    def interval(fineness):
        width = top / 2**fineness
        low = top + math.floor((point + origin - top) / width) * width - origin
        return low + width / 2, width / 2

    middle, half = interval(bits)
    inner = middle + half * np.cos(np.pi * (np.arange(terms) + 0.5) / terms)
    outer_middle, outer_half = interval(group_bits)
    outer = outer_middle + outer_half * np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    weights = lagrange(np.array([(point - middle) / half]), terms)
    return outer, (weights @ lagrange((inner - outer_middle) / outer_half, nodes))[0]


def truncated(y, d, u, sizes):
    """The mean with every weight interpolated as the grids do; y, d >= 0."""
    keys = [interpolation(x, chebyshev.origin(d.max(), y.max()), sizes) for x in d]
    queries = [interpolation(x, chebyshev.origin(y.max(), d.max()), sizes) for x in y]
    weights = np.array([[a @ np.exp(-np.outer(s, t)) @ b for t, b in keys] for s, a in queries])
    return (weights @ u) / weights.sum(1)


@pytest.mark.parametrize(
    "sizes",
    [(3, 8, 16, 4), (5, 7, 16, 4), (8, 8, 8, 4), (8, 8, 11, 4), (4, 6, 9, 4), (8, 8, 16, 3)],
)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_truncation_is_within_the_bound_and_the_bound_is_not_idle(sizes, scale):
    rng = np.random.default_rng(0)
    d = np.concatenate([[0.0], rng.uniform(0, 1, 30), rng.uniform(0, 30 / scale, 30)])
    d = np.minimum(d, 1.0)
    y = scale * np.concatenate([rng.uniform(0, 1, 12), [1.0]])
    u = rng.choice([-1.0, 1.0], len(d))
    terms, bits, nodes, group_bits = sizes
    weights = np.exp(-np.outer(y, d))
    error = np.abs(truncated(y, d, u, sizes) - (weights @ u) / weights.sum(1)).max()
    bound = error_bound(len(d), terms=terms, bits=bits, nodes=nodes, group_bits=group_bits)
    assert error <= bound + 100 * EPS
    if scale > 1.0 and error > 1e-12:  # small scores are far easier than the bound assumes
        assert bound <= 1e5 * error


@pytest.mark.parametrize(("a", "p"), [(0.1, 8), (0.2, 8), (1.0, 8), (1.5, 16), (2.0, 16)])
def test_what_interpolation_leaves_out_is_no_more_than_said_and_hardly_less(a, p):
    """The Chebyshev coefficients of e^(-a s) are 2 I_k(a), up to their signs."""
    beyond = 4 * mpmath.nsum(lambda k: mpmath.besseli(k, a), [p, mpmath.inf]) * mpmath.exp(a)
    assert beyond <= chebyshev._epsilon(a, p) <= 1.001 * beyond


@pytest.mark.parametrize(("a", "p"), [(0.0, 8), (0.1, 8), (1.0, 16), (4.0, 16)])
def test_interpolation_enlarges_errors_by_no_more_than_said(a, p):
    s, x = np.linspace(-1, 1, 2001), np.cos(np.pi * (np.arange(p) + 0.5) / p)
    worst = (np.abs(lagrange(s, p)) * np.exp(a * (s[:, None] - x))).sum(1).max()
    assert worst <= chebyshev._weighted_lebesgue(a, p) * (1 + 1e-9)
    assert chebyshev._weighted_lebesgue(a, p) <= worst * (1 + 1e-9)


def test_the_bounds_are_those_of_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "attention.md").read_text()
    table = re.findall(r"^\| ([\d,]+) \| (\d\.\de-\d\d) \|$", text, re.MULTILINE)
    assert len(table) == 4
    for n, bound in table:
        assert f"{error_bound(int(n.replace(',', ''))):.1e}" == bound


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e3, 1e6])
def test_the_kernel_is_within_the_bound_and_rounding(scale):
    generator = torch.Generator().manual_seed(1)
    n = 2000
    y, x = torch.randn(2, n, generator=generator, dtype=torch.float64)
    u = 2 * torch.rand(n, generator=generator, dtype=torch.float64) - 1
    linear, direct = (
        rank1_attention(scale * y, x, u, method=method) for method in ("linear", "direct")
    )
    assert (linear - direct).abs().max() <= error_bound(n) + 100 * EPS


def test_a_finer_grid_has_a_smaller_bound_and_more_keys_a_larger_one():
    assert error_bound(1000) < error_bound(10**6) < 1e-12
    coarse = error_bound(1000, terms=4)
    assert error_bound(1000, terms=4, bits=12) < coarse < error_bound(1000, terms=3)
