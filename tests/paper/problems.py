"""Vectors that meet the lemmas' hypotheses, and Arb as the judge of what the lemmas claim.

The judge evaluates the definitions as they stand and takes derivatives by power series; nothing is
imported from the package.
"""

from __future__ import annotations

import math
from itertools import accumulate

from flint import arb, arb_series, ctx
from hypothesis import strategies as st

SLACKS = [1e-9, 1e-3, 0.5, 8.0, 60.0]  # by which a gap exceeds its threshold, from border to far


def bits(*vectors) -> int:
    """Enough to see e^x beside 1 for every difference x of two entries, with 128 to spare."""
    numbers = [float(x) for row in vectors for x in row]
    return 128 + math.ceil((max(numbers) - min(numbers)) / math.log(2))


def boltz(a) -> arb:
    """sum_i a_i e^(a_i) / sum_i e^(a_i), at the current precision."""
    numbers = [arb(x) for x in a]
    weights = [(x - max(numbers)).exp() for x in numbers]
    return sum(x * w for x, w in zip(numbers, weights, strict=True)) / sum(weights)


def derivatives(a, i) -> tuple[arb, arb]:
    """The first and second derivative of boltz by a_i: coefficients of boltz(a + t e_i) in t."""
    top = max(map(arb, a))
    shifted = [arb_series([x - top, int(j == i)], 3) for j, x in enumerate(map(arb, a))]
    weights = [x.exp() for x in shifted]
    zero = arb_series([0], 3)
    moment = sum((x * w for x, w in zip(shifted, weights, strict=True)), zero)
    series = moment / sum(weights, zero)
    return series[1], 2 * series[2]


def distance(a, b) -> arb:
    """|boltz(a) - boltz(b)|, to about 100 bits or more."""
    with ctx.workprec(bits(a, b)):
        return abs(boltz(a) - boltz(b))


def exceeds(number: arb, log_bound: float) -> bool:
    """number > exp(log_bound), decided."""
    with ctx.workprec(200):
        return number > arb(log_bound).exp()


def needed(n: int) -> float:
    """2 log n + 3."""
    return 2 * math.log(n) + 3


def ladder(draw, n: int, steps: int) -> list[float]:
    """Decreasing numbers whose gaps exceed 2 log n + 3, many of them by very little."""
    slacks = draw(st.lists(st.sampled_from(SLACKS), min_size=steps - 1, max_size=steps - 1))
    top = draw(st.sampled_from([0.0, 1.0, -3.0, 50.0]))
    return list(accumulate((-needed(n) - slack for slack in slacks), initial=top))


def subset(draw, values: list[float], size: int) -> list[float]:
    """`size` of the values, in any order."""
    return draw(st.permutations(values))[:size]


@st.composite
def pairs(draw, max_n: int = 12) -> tuple[list[float], list[float]]:
    """a and b of n entries that Lemma 7 is about: different subsets of one ladder, any order."""
    n = draw(st.integers(1, max_n))
    values = ladder(draw, n, n + draw(st.integers(1, 3)))
    a = subset(draw, values, n)
    b = draw(st.permutations(values).map(lambda p: p[:n]).filter(lambda b: set(b) != set(a)))
    return a, b


@st.composite
def visible_pairs(draw, max_n: int = 12) -> tuple[list[float], list[float]]:
    """The same with at most n visible entries each; often one set contains the other."""
    n = draw(st.integers(1, max_n))
    values = ladder(draw, n, n + draw(st.integers(1, 3)))
    b = subset(draw, values, n)
    pool = sorted(b, reverse=True) if draw(st.booleans()) else draw(st.permutations(values))
    a = pool[: draw(st.integers(1, n))]
    if set(a) == set(b):
        a = a[:-1] or [next(x for x in values if x not in b)]
    return a, b


@st.composite
def families(draw) -> list[list[float]]:
    """Vectors that Lemma 1 is about; some are equal as sets."""
    n = draw(st.integers(1, 8))
    values = ladder(draw, n, n + draw(st.integers(0, 3)))
    centre = (values[0] + values[-1]) / 2
    values = [x - centre for x in values]  # makes r as small, and the bound as large, as it can be
    return [subset(draw, values, n) for _ in range(draw(st.integers(2, 5)))]


@st.composite
def below_the_rest(draw, reserve: int) -> tuple[list[float], int]:
    """A vector, and the place of an entry that lies just over log n + reserve below the largest.

    The others lie anywhere, or all at the top, where the entropy is greatest.
    """
    n = draw(st.sampled_from([2, 3, 5, 40]))
    spread = draw(st.sampled_from([0.0, 1e-3, 2.0, 30.0]))
    rest = [-spread * draw(st.floats(0, 1)) for _ in range(n - 2)]
    slack = draw(st.sampled_from([1e-12, 1e-6, 0.1, 5.0, 600.0]))
    order = draw(st.permutations([0.0, *rest, -(math.log(n) + reserve + slack)]))
    return order, order.index(min(order))
