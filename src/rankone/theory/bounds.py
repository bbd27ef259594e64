"""The bounds of Theorem 2, Corollary 2 and Appendix C, and the parameters of the corollaries."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from flint import arb, ctx

from rankone.errors import VectorError
from rankone.theory.lemma_claims import down, up
from rankone.theory.numeric_input import as_real, as_whole

GUARD = 20  # decimal digits on top of those that separate context ids
BITS = 128  # precision of the balls in which bounds are evaluated


@dataclass(frozen=True)
class MappingBound:
    """An (r, delta)-contextual mapping (Definition 2) for what is given in the first six fields.

    Every figure is rounded to the safe side: ``log_delta``, ``log10_delta`` and ``output_norm``
    down, the others up.
    """

    r_min: float  # |x| > r_min for every token x,
    r_max: float  # |x| < r_max,
    epsilon: float  # |x - y| > epsilon for any two: Definition 1
    vocabulary: int  # |V|, the number of different tokens
    n: int  # tokens in a sequence, or the most that a query sees
    dim: int  # d
    r: float  # r of eq. 7: every context id is shorter
    log_delta: float  # natural logarithm of delta, the smaller of epsilon / 2 and eq. 8
    log10_delta: float  # the same to base 10
    scale: float  # |u^T u'| of eq. 29
    output_norm: float  # |W^O u''| of eq. 32
    logit_bound: float  # r of eq. 37: every logit is smaller in size
    digits: int  # log10(r / delta) + GUARD: decimal digits that tell the ids apart

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def theorem2(
    r_min: float, r_max: float, epsilon: float, *, vocabulary: int, n: int, dim: int
) -> MappingBound:
    """r = r_max + epsilon/4 (eq. 7) and delta = min(epsilon/2, delta_8) with (eq. 8)

        delta_8 = epsilon/(4 r_max) (log n)^2 e^{-2R} / (r_max |u^T u'|),
        |u^T u'| = (|V|+1)^4 (pi d/8)(2 log n + 3) / (epsilon r_min)   (eq. 29),
        R = |u^T u'| r_max^2   (eq. 37).

    Different tokens are epsilon/2 apart (eq. 28), the same token in different sets delta_8 (eq.
    45). For n = 1 the latter cannot be: delta is epsilon/2.
    """
    return _mapping(r_min, r_max, epsilon, vocabulary, n, dim, masked=False)


def masked(
    r_min: float, r_max: float, epsilon: float, *, vocabulary: int, n: int, dim: int
) -> MappingBound:
    """As Theorem 2 with log n + 1 for (log n)^2   (Appendix C, eq. 132).

    n is the largest number of tokens that a query attends to; what is told apart are these sets,
    none of them empty. A query need not attend to itself, so the same token can see different sets
    even for n = 1. The bound rests on `appendix_c`.
    """
    return _mapping(r_min, r_max, epsilon, vocabulary, n, dim, masked=True)


def corollary2(
    r_max: float,
    epsilon: float,
    *,
    n: int,
    dim: int,
    sentences: int,
    vocabulary: int | None = None,
    masked: bool = False,
) -> MappingBound:
    """Theorem 2 for X + E with E_{:,k} = k (2 r_max + epsilon)/sqrt(d) (1, ..., 1)   (eq. 48).

    X + E has no repeated token and is (r_max + epsilon, r_max + n (2 r_max + epsilon),
    epsilon)-separated: |E_k| is k steps of 2 r_max + epsilon. (Eq. 48 has steps of 2 r_max in every
    coordinate, which are too long for the norms it claims and, for d <= 3, too short to keep
    tokens at different positions apart.) ``vocabulary``, the number of different tokens of X + E,
    is at most nN. `masked`: as in the function of that name, for sentences of different lengths.
    """
    r_max, epsilon = as_real("r_max", r_max), as_real("epsilon", epsilon)
    n, sentences = as_whole("n", n), as_whole("sentences", sentences)
    _require(0 < epsilon <= 2 * r_max, f"epsilon = {epsilon} is not in (0, 2 r_max]")
    with ctx.workprec(BITS):
        step = 2 * arb(r_max) + arb(epsilon)
        low, high = down(arb(r_max) + arb(epsilon)), up(arb(r_max) + n * step)
    size = n * sentences if vocabulary is None else vocabulary
    return _mapping(low, high, epsilon, size, n, dim, masked=masked)


def _mapping(
    r_min: float, r_max: float, epsilon: float, vocabulary: int, n: int, dim: int, *, masked: bool
) -> MappingBound:
    r_min, r_max = as_real("r_min", r_min), as_real("r_max", r_max)
    epsilon, n, dim = as_real("epsilon", epsilon), as_whole("n", n), as_whole("dim", dim)
    vocabulary = as_whole("vocabulary", vocabulary)
    _require(
        0 < r_min < r_max, f"r_min = {r_min} and r_max = {r_max} do not satisfy 0 < r_min < r_max"
    )
    _require(0 < epsilon <= 2 * r_max, f"epsilon = {epsilon} is not in (0, 2 r_max]")
    _require(vocabulary >= n, f"{vocabulary} tokens cannot fill a sequence of {n} without repeats")
    with ctx.workprec(BITS):
        low, high, eps, log_n = arb(r_min), arb(r_max), arb(epsilon), arb(n).log()
        scale = arb(vocabulary + 1) ** 4 * arb.pi() * dim / 8 * (2 * log_n + 3) / (eps * low)
        output_norm = eps / (4 * high)
        logit_bound = scale * high**2
        log_delta = (eps / 2).log()
        if masked or n > 1:
            factor = log_n + 1 if masked else log_n**2
            same = (output_norm * factor / (high * scale)).log() - 2 * logit_bound
            log_delta = log_delta.min(same)
        log_r, ten = (high + eps / 4).log(), arb(10).log()
        digits = up((log_r - log_delta) / ten)
        _require(math.isfinite(digits), "r_max^2 / (epsilon r_min) is too large for float64")
        return MappingBound(
            *(r_min, r_max, epsilon, vocabulary, n, dim),
            r=up(high + eps / 4),
            log_delta=down(log_delta),
            log10_delta=down(log_delta / ten),
            scale=up(scale),
            output_norm=down(output_norm),
            logit_bound=up(logit_bound),
            digits=math.ceil(digits) + GUARD,
        )


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise VectorError(what, remedy="use the figures that `separation` measures (Definition 1)")


@dataclass(frozen=True)
class ParameterCounts:
    """Counts for N sentences of n tokens in R^d, head size s, q = nN hidden units.

    The feed-forward layer is Zhang et al.'s: a direction a, thresholds b_j and weights w_j. The
    bias b^(2) of eq. 3 is 0 and counted only where the matrices are counted dense.
    """

    paper: int  # Corollary 1: attention_factors + feedforward_separate = 4(s+d) + d(2nN+d)
    attention_factors: int  # 4(s+d): two vectors for each of W^O, W^V, W^K, W^Q, all of rank 1
    attention_dense: int  # 4sd: every entry of the four matrices
    attention_rank1: int  # 3d: v1, v2 and W^O of eq. 20, where key and value share v1
    feedforward_separate: int  # d(2nN+d): a network of its own for each of d output coordinates
    feedforward_shared: int  # d + nN + dnN: a and b_j shared by all coordinates, W^(2) of its own
    feedforward_dense: int  # 2dnN + nN + d: every entry of W^(1), b^(1), W^(2), b^(2) with q = nN
    positions: int  # dn: the entries of E in Corollary 2, which no other count includes

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def parameter_counts(n: int, sentences: int, dim: int, head_size: int = 1) -> ParameterCounts:
    """4(s+d) + d(2nN+d) (Corollaries 1 and 2), and the other readings of "parameters".

    n, N, d, s are ``n``, ``sentences``, ``dim`` and ``head_size``.
    """
    n, sentences = as_whole("n", n), as_whole("sentences", sentences)
    dim, head_size = as_whole("dim", dim), as_whole("head_size", head_size)
    units = n * sentences
    factors, separate = 4 * (head_size + dim), dim * (2 * units + dim)
    return ParameterCounts(
        paper=factors + separate,
        attention_factors=factors,
        attention_dense=4 * head_size * dim,
        attention_rank1=3 * dim,
        feedforward_separate=separate,
        feedforward_shared=dim + units + dim * units,
        feedforward_dense=2 * dim * units + units + dim,
        positions=dim * n,
    )
