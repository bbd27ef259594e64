"""What Theorem 2, Corollary 2 and Appendix C promise, in numbers of any size."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from flint import arb, ctx

from rankone.errors import VectorError
from rankone.theory.claims import down, up
from rankone.theory.given import as_real, as_whole

GUARD = 20  # decimal digits beyond those that tell context ids apart
BITS = 128  # of the balls the bounds are evaluated in


@dataclass(frozen=True)
class MappingBound:
    """An (r, delta)-contextual mapping (Definition 2) for what is given in the first six fields.

    Every figure is rounded to the side on which it stays true: ``log_delta``, ``log10_delta`` and
    ``output_norm`` down, the others up.
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
    digits: int  # log10(r / delta) + GUARD: what arithmetic needs to see that ids differ

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

    n is the largest number of tokens that a query sees; what is told apart are the sets that are
    seen, none of them empty. A query need not see itself, so for n = 1, too, the same token can see
    different sets. The bound rests on `appendix_c`.
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
    _require(0 < r_min < r_max, f"0 < r_min < r_max is needed, got {r_min} and {r_max}")
    _require(0 < epsilon <= 2 * r_max, f"epsilon = {epsilon} is not in (0, 2 r_max]")
    _require(
        vocabulary >= n, f"{vocabulary} tokens cannot fill a sequence of {n} without repeating"
    )
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
        raise VectorError(what, remedy="see Definition 1; `separation` measures these numbers")
