"""The cells that keys and queries are put into, and polynomials on them.

The weight of a key at distance d from the extreme key is e^(-y d), with y, d >= 0: a kernel that
depends on the product alone. So a cell may be as wide as a fixed share of the distance of its
points from 0, but need not be narrower than a fixed share of the ORIGIN, the distance that moves a
score by 16 to 32. Floating-point numbers are divided in just this way: with the origin a power of
two, the exponent of `point + origin` gives the octave, and the leading BITS of its mantissa give
the cell. Nothing is sorted, and nothing is searched for.

In a cell a function is a polynomial of TERMS terms. Cells are merged, 2^(BITS - GROUP_BITS) at a
time, into groups with NODES Chebyshev nodes; kernels are evaluated between the nodes of groups,
never between points. `docs/attention.md` has the mathematics.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

BITS = 8  # 256 cells per octave
TERMS = 8
GROUP_BITS = 4  # 16 groups per octave, 16 cells each
NODES = 16
SCALE_EXPONENT = 5  # the largest score at the end of the first octave is between 16 and 32

CELLS_PER_OCTAVE = 1 << BITS
GROUPS = 1 << GROUP_BITS
MEMBERS = CELLS_PER_OCTAVE // GROUPS

LEAST_EXPONENT, GREATEST_EXPONENT = -1000, 1000  # of an origin: its cells have normal widths


def origin(reach: float, opposite: float) -> float:
    """The power of two o with o * opposite in [16, 32), or a smaller one that no point exceeds.

    `reach` is the largest point of this grid, `opposite` the largest of the other one.
    """
    exponent = LEAST_EXPONENT
    if reach > 0.0:
        exponent = math.frexp(reach)[1]
    if opposite > 0.0:
        exponent = min(exponent, SCALE_EXPONENT - math.frexp(opposite)[1])
    return math.ldexp(1.0, max(LEAST_EXPONENT, min(GREATEST_EXPONENT, exponent)))


def error_bound(
    n: int,
    *,
    terms: int = TERMS,
    bits: int = BITS,
    nodes: int = NODES,
    group_bits: int = GROUP_BITS,
) -> float:
    """The error of the mean over n keys, relative to the largest |value|, without rounding.

    A key whose score is t below the best lies in cells on which its weight is e^(-a s), |s| <= 1,
    with a <= (2^SCALE_EXPONENT + t) / 2^(bits + 1). Interpolation at p Chebyshev nodes has a
    relative error of at most epsilon (the sum of the Chebyshev coefficients beyond p), and enlarges
    the relative error of its input by at most lambda (a weighted Lebesgue constant). Keys are
    interpolated in groups, then in cells; then the same is done for queries:

        (1 + lambda_cell lambda_group) (epsilon_cell + lambda_cell epsilon_group).

    The key contributes a share of at most e^-t to the mean. Both numerator and denominator are off,
    and values relative to that of the extreme key may be twice the largest: four times the above.
    """
    scores = np.linspace(0.0, math.log(n) + 60.0, 201)
    worst = 0.0
    for t in scores:
        a, b = ((2.0**SCALE_EXPONENT + t) / 2.0 ** (k + 1) for k in (bits, group_bits))
        enlarged = _weighted_lebesgue(a, terms)
        error = _epsilon(a, terms) + enlarged * _epsilon(b, nodes)
        error *= 1 + enlarged * _weighted_lebesgue(b, nodes)
        worst = max(worst, min(1.0, n * math.exp(-t)) * error)
    return 4 * worst


def _epsilon(a: float, p: int) -> float:
    """2 sum_(k >= p) 2 I_k(a), divided by the least of e^(-a s).

    The Bessel function I_k(a) is at most (a/2)^k e^(a^2 / 4(k + 1)) / k!.
    """
    rest = 1 / (1 - a / (2 * (p + 1)))
    return 4 * (a / 2) ** p / math.factorial(p) * math.exp(a + a * a / (4 * (p + 1))) * rest


def _weighted_lebesgue(a: float, p: int) -> float:
    """max over s of sum_m |L_m(s)| e^(-a s_m) / e^(-a s), with L_m the Lagrange polynomials."""
    angle = np.pi * (np.arange(p) + 0.5) / p
    x = np.cos(angle)
    s = np.cos(np.linspace(0.0, np.pi, 16 * p + 1))[:, None]  # between the nodes too
    gap = np.where(s == x, 1.0, s - x)
    lagrange = np.cos(p * np.arccos(s)) * (-1.0) ** np.arange(p) * np.sin(angle) / (p * gap)
    sums = (np.abs(np.where(s == x, 1.0, lagrange)) * np.exp(a * (s - x))).sum(1)
    return float(sums.max())


@cache
def nodes() -> NDArray[np.float64]:
    """The zeros of T_NODES, in decreasing order; exactly symmetric."""
    return np.array([_cosine(2 * m + 1) for m in range(NODES)])


@cache
def refinement() -> NDArray[np.float64]:
    """A[i, j, m]: the factor of t^j in cell i of a group, for the polynomial that is 1 at node m.

    With c_k the Chebyshev coefficients of the values f_m at the nodes of the group, the polynomial
    is sum_k c_k T_k(s), and s = (2i + 1 - MEMBERS + t) / MEMBERS in cell i. It is written in powers
    of t, reduced modulo T_TERMS(t), that is, interpolated at the zeros of T_TERMS. This is computed
    in integers, because the factors are differences of large numbers.
    """
    dct = np.array([[_cosine(k * (2 * m + 1)) for m in range(NODES)] for k in range(NODES)])
    dct *= 2 / NODES
    dct[0] /= 2
    out = np.empty((MEMBERS, TERMS, NODES))
    for i in range(MEMBERS):
        powers = np.array([_reduced(p, k) for k, p in enumerate(_shifted(i))])
        out[i] = powers.T @ dct
    return out


def _cosine(k: int) -> float:
    """cos(pi k / (2 NODES)), with its argument reduced exactly to an eighth of the circle."""
    k %= 4 * NODES
    k = min(k, 4 * NODES - k)
    sign = 1.0 if k <= NODES else -1.0
    k = min(k, 2 * NODES - k)
    unit = math.pi / (2 * NODES)
    return sign * (math.cos(unit * k) if 2 * k <= NODES else math.sin(unit * (NODES - k)))


def _shifted(i: int) -> list[list[int]]:
    """MEMBERS^k T_k((a + t) / MEMBERS) in powers of t, for k < NODES; a is the middle of cell i."""
    a = 2 * i + 1 - MEMBERS
    previous, current = [1], [a, 1]
    out = [previous, current]
    for _ in range(2, NODES):
        following = [2 * a * c for c in current] + [0]
        for j, c in enumerate(current):
            following[j + 1] += 2 * c
        for j, c in enumerate(previous):
            following[j] -= MEMBERS**2 * c
        previous, current = current, following
        out.append(current)
    return out


def _reduced(polynomial: list[int], k: int) -> list[float]:
    """polynomial / MEMBERS^k modulo T_TERMS, as TERMS floats."""
    divisor = _chebyshev(TERMS)
    lead = divisor[-1]
    rest = list(polynomial)
    scale = MEMBERS**k
    while len(rest) > TERMS:
        top = rest.pop()
        rest = [lead * c for c in rest]
        scale *= lead
        for j in range(TERMS):
            rest[len(rest) - TERMS + j] -= top * divisor[j]
    return [c / scale for c in rest + [0] * (TERMS - len(rest))]


def _chebyshev(k: int) -> list[int]:
    previous, current = [1], [0, 1]
    for _ in range(1, k):
        following = [0] + [2 * c for c in current]
        for j, c in enumerate(previous):
            following[j] -= c
        previous, current = current, following
    return current
