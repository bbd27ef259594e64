"""Theorem 2: attention weights of rank 1 that tell all contexts apart, with a proved bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.construct.contextual_mapping import ContextualMapping
from rankone.construct.theorem2.projection import (
    SLIGHT,
    Projection,
    Query,
    fewest_digits,
    find_projection,
    measure,
    point_set,
)
from rankone.construct.theorem2.rational import Logits, below, exact_dot, unit
from rankone.documents import figures
from rankone.errors import PrecisionError, RankOneError, VectorError
from rankone.theory import bounds
from rankone.theory.lemma_claims import down, up
from rankone.theory.pair_search import U
from rankone.theory.separation import Separation, separation

Grade = Literal["paper", "tight"]

RESERVE = 1e-9  # by which the logit gaps of grade "tight" exceed 2 log n + 3, relatively
COARSE = 1e-3  # rounding that moves logits by more than this share of them is refused


@dataclass(frozen=True)
class GradedMapping:
    """An (r, delta)-contextual mapping for all sequences of ``n`` different tokens (Theorem 2).

    The weights are W^K = u v^T, W^Q = u' v'^T, W^V = u'' v^T (v' = v where ``query`` is "shared"),
    and ``mapping`` holds them in the form of eq. 20: v1 = v, v2 = ``scale`` v' with ``scale`` =
    |u^T u'|, output = w = W^O u''. ``projection`` tells of v, ``separation`` of the tokens.

    ``min_logit_gap`` is the least |(W^K x - W^K y)^T W^Q t| over tokens x != y and t; Lemma 1 needs
    more than ``needed_gap`` = 2 log n + 3. Every context id is shorter than ``r``, different tokens
    are more than epsilon / 2 apart, the same token in different sets more than delta =
    exp(``log_bound``) <= epsilon / 2. The readout sees context ids along v = ``mapping.direction``
    only: there all of them are more than exp(``log_line_bound``) apart. ``digits`` is
    log10(r / delta) and a guard: what arithmetic needs to see that ids differ.

    All of this is proved for the float64 weights as they are, and for the matrices of any head
    size that ``mapping.attention`` makes of them, as long as nothing more is rounded.
    """

    mapping: ContextualMapping
    grade: Grade
    query: Query
    n: int
    masked: bool
    separation: Separation
    projection: Projection
    scale: float
    min_logit_gap: float
    needed_gap: float
    r: float
    log_bound: float
    log_line_bound: float
    digits: int

    @property
    def ok(self) -> bool:
        return self.min_logit_gap > self.needed_gap

    @property
    def log10_bound(self) -> float:
        return self.log_bound / math.log(10)

    def to_json(self) -> dict[str, Any]:
        """The figures, without the weights."""
        return {"log10_bound": self.log10_bound, **figures(self, "mapping")}


def contextual_mapping(
    vectors: ArrayLike,
    n: int,
    *,
    grade: Grade = "paper",
    query: Query = "shared",
    masked: bool = False,
    draws: int = 1000,
    seed: int = 0,
) -> GradedMapping:
    """Weights for which the proof of Theorem 2 holds: for the tokens V, and any n of them.

    "paper" has the proof's constants: v is the first draw that satisfies Lemma 2 for V and 0,
    |u^T u'| is eq. 29 rounded up, |w| is eq. 32 rounded down, and the bound is eq. 8.

    "tight" measures. Lemma 1 asks for |u^T u'| min_t |v'^T t| min |v^T (x - y)| > 2 log n + 3, so
    |u^T u'| is chosen by this, with a reserve. By Lemma 7 the contexts of a token t are then more
    than |w| (log n)^2 e^{-qS} / q apart, where S = max v^T x - min v^T x and q = |v2^T t|; that is
    least for the largest q. v is the draw for which this takes the fewest digits, about
    qS / log 10. With a query of its own ("separate", footnote 3) they are far fewer.

    `masked`: queries see sets of different sizes, n at most (Appendix C). Then log n + 1 stands for
    (log n)^2, see `rankone.theory.lemmas.appendix_c`.
    """
    apart = separation(vectors)
    _check(apart, n, grade, query)
    x = point_set(vectors)
    promise = bounds.masked if masked else bounds.theorem2
    bound = promise(apart.r_min, apart.r_max, apart.epsilon, vocabulary=len(x), n=n, dim=apart.dim)
    literal = grade == "paper"
    points = x if query == "separate" else np.concatenate([x, np.zeros((1, apart.dim))])
    if literal:
        projection = find_projection(points, draws=draws, seed=seed, method="sample")
        v = asked = projection.v
    else:
        v, asked = fewest_digits(x, points, query, draws=draws, seed=seed)
        projection = measure(points, v, draws=draws, method="digits")
        v, asked = projection.v, unit(asked)

    needed = (2 * math.log(n) + 3) * (1 + 8 * U)  # not below what Lemma 1 needs
    rounding = _rounding(x, projection, asked)
    logits = Logits.of(x, v, asked)
    smallest = below(logits.gap * logits.weakest)
    if not (smallest > SLIGHT and rounding < COARSE):
        raise _no_room()
    scale = bound.scale if literal else needed * (1 + RESERVE + 2 * rounding) / smallest
    v2 = np.asarray(scale * asked)
    logits = Logits.of(x, v, v2)

    # Attention adds less than epsilon / 4 to a token (eq. 34), and on the line less than gap / 4.
    reach = apart.r_max if literal else float(logits.reach) + 16 * U * apart.r_max
    along = min(float(logits.gap), apart.epsilon) / (4 * reach) * (1 - rounding)
    norm = bound.output_norm * (1 - rounding) if literal else along
    output = _output(v, norm, min(norm, along))
    on_line = exact_dot(output[None], v)[0]

    with ctx.workprec(bounds.BITS):
        log_bound, log_line_bound = arb(apart.epsilon / 2).log(), (_ball(logits.gap) / 2).log()
        if masked or n > 1:
            q, spread, log_n = _ball(logits.strongest), _ball(logits.spread), arb(n).log()
            if literal:
                q, spread = arb(scale) * apart.r_max, 2 * arb(apart.r_max)
            q *= 1 + arb(rounding)
            average = ((log_n + 1 if masked else log_n**2) / q).log() - q * spread
            size = _ball(exact_dot(output[None], output)[0]).sqrt()
            log_bound = log_bound.min(average + size.log() - rounding)
            log_line_bound = log_line_bound.min(average + _ball(on_line).log() - rounding)
        digits = (arb(bound.r).log() - log_bound) / arb(10).log()
    found = GradedMapping(
        mapping=ContextualMapping(x, None, v, v2, output, v, output / float(on_line)),
        grade=grade,
        query=query,
        n=n,
        masked=masked,
        separation=apart,
        projection=projection,
        scale=scale,
        min_logit_gap=below(logits.gap * logits.weakest * (1 - Fraction(rounding))),
        needed_gap=needed,
        r=bound.r,
        log_bound=down(log_bound),
        log_line_bound=down(log_line_bound),
        digits=math.ceil(up(digits)) + bounds.GUARD,
    )
    if not found.ok:
        raise _no_room()
    return found


def _check(apart: Separation, n: int, grade: str, query: str) -> None:
    if (grade, query) not in (("paper", "shared"), ("tight", "shared"), ("tight", "separate")):
        raise RankOneError(
            f"there is no grade {grade!r} with query {query!r}",
            remedy="give grade paper with query shared, or grade tight with shared or separate",
        )
    if not apart.ok:
        raise VectorError("; ".join(apart.broken), remedy="give vectors that meet Definition 1")
    if not 1 <= n <= apart.vectors:
        raise VectorError(
            f"no sequence has {n} different tokens out of {apart.vectors}",
            remedy=f"give n from 1 to {apart.vectors}",
        )


def _no_room() -> PrecisionError:
    return PrecisionError(
        "float64 has no room for the weights: the vectors are too small or too close together",
        remedy="scale all of them by one number, or give vectors that are further apart",
    )


def _rounding(x: Floats, projection: Projection, asked: Floats) -> float:
    """How far rounding can move a logit or a gap of two, relatively, for any head size.

    Where matrices are made, v1 becomes a multiple of v1 + e with |e_i| <= u |v1_i|, u = 2^-53, so
    v1^T (x - y) moves by u |x - y| at most, which is u / ratio of itself; the same for v2. Rounding
    of u^T u' and of the output adds a few u: 8 u for each of the two is more than all of it.
    """
    queries = np.array([float(abs(q)) for q in exact_dot(x, asked)])
    ratio = min(projection.ratio, float((queries / np.linalg.norm(x, axis=1)).min()))
    return 16 * U / ratio if ratio else math.inf


def _output(v: Floats, norm: float, along: float) -> Floats:
    """w with v^T w = along and, where there is more than one dimension, |w| = norm.

    Context ids of one token differ along w only, so a readout along v sees them if v^T w != 0; but
    the tokens themselves may be so close on v that a larger v^T w would mix them up.
    """
    if len(v) == 1 or along == norm:
        return np.asarray(along * v)
    least = int(np.abs(v).argmin())
    across = np.eye(len(v))[least] - v[least] * v
    return np.asarray(along * v + math.sqrt(norm**2 - along**2) / np.linalg.norm(across) * across)


def _ball(exact: Fraction) -> arb:
    return arb(fmpq(exact.numerator, exact.denominator))
