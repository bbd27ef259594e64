"""Exact figures of float64 vectors, which are whole numbers times a power of 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats
from rankone.theory.pair_search import U


@dataclass(frozen=True)
class Logits:
    """What there is to know of (v1^T x) (v2^T t) for tokens x and t; see Lemma 3 and eq. 37."""

    gap: Fraction  # min |v1^T (x - y)| over x != y; 2 |v1^T x| for one token, as epsilon is 2 r_max
    spread: Fraction  # max v1^T x - min v1^T x
    reach: Fraction  # max |v1^T x|
    weakest: Fraction  # min |v2^T t|
    strongest: Fraction  # max |v2^T t|

    @classmethod
    def of(cls, tokens: Floats, v1: Floats, v2: Floats) -> Logits:
        keys = sorted(exact_dot(tokens, v1))
        queries = sorted(map(abs, exact_dot(tokens, v2)))
        reach = max(abs(keys[0]), abs(keys[-1]))
        gap = min((b - a for a, b in pairwise(keys)), default=2 * reach)
        return cls(gap, keys[-1] - keys[0], reach, queries[0], queries[-1])


def unit(v: Floats) -> Floats:
    """`v`, scaled so that its exact norm lies in [1 - 2^-50, 1].

    Aimed at 1 - 3u, u = 2^-53: rounding the factor costs at most u, and so does each product.
    """
    v = np.asarray(v / np.linalg.norm(v))
    excess = exact_dot(v[None], v)[0] - 1  # of the squared norm
    if -15 * Fraction(U) <= excess <= 0:
        return v
    return np.asarray(v * (1 - (float(excess) / 2 + 3 * U)))


def exact_dot(rows: Floats, v: Floats) -> list[Fraction]:
    """The products of all rows with v, exactly."""
    (whole, low), (by, low_v) = _whole(rows), _whole(v)
    smallest = Fraction(2) ** (low + low_v)
    return [int(product) * smallest for product in whole @ by]


def below(exact: Fraction | float) -> float:
    """The float64 number at or next below an exact one."""
    rounded = float(exact)
    return rounded if rounded <= exact else math.nextafter(rounded, -math.inf)


def _whole(x: Floats) -> tuple[NDArray[np.object_], int]:
    """Whole numbers m and an exponent e with x = m 2^e."""
    mantissa, exponent = np.frexp(x)
    low = int(exponent.min())
    whole = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    return np.left_shift(whole, (exponent - low).astype(object)), low - 53
