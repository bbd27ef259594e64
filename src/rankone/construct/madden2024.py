"""Label distributions (Madden, Fox and Thrampoulidis 2024): logits are logs of frequencies.

Contexts with contradicting labels are no obstacle if the network is asked for the distribution of
labels that a context has in the corpus: then its cross-entropy is the conditional entropy of the
labels given the context, the least there is. One layer does it, with a hidden unit per context.
Every word has a random number z, every position a random number u, and for token k

    x_l = z[word l] + u[l],    f = sum_l x_l e^(x_l x_k) / sum_l e^(x_l x_k),
    logits = b2 + W2 psi(w f + b),   w, b in R^N for N contexts.

x is a coordinate of the state, f another one, which the attention writes, and every label has one
more, which the head copies. (Theorem 17 of the paper: f tells all contexts apart, for almost all z
and u. Its h_3 has the softmax phi in place of the activation psi.) Two activations:

    analytic    psi = tanh, b = 1/2 for all units, w random: the matrix psi(w_i f_t + b) has full
                rank, and W2 is solved for in ball arithmetic of as many digits as that takes;
    piecewise   psi = relu, w = 1, b = -(the f of the context before): the matrix is triangular,
                and the logits go straight from each f to the next (Zhang et al. 2016).

Targets: log(k / n) for a label that k of the n labels of a context are, FLOOR for others, and LEAD
more for the label to be predicted, so that it wins where two are equally frequent. If logits are
within TOLERANCE of that, the cross-entropy exceeds the entropy by less than 1e-20 nats: with p the
frequencies and q = softmax(logits), it does so by KL(p | q). The floor adds at most m e^(FLOOR + 1)
to it, m the number of labels, and shifts of logits by at most e around log p add at most e^2,
since they add log E[e^D] - E[D] for the shift D of a label drawn from p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from rankone.construct.exact import Asked, asked_contexts, features
from rankone.construct.label_entropy import PRECISE, label_counts
from rankone.construct.problem import RESERVE, Problem
from rankone.construct.vardi2022 import Unit
from rankone.construct.verify import check_fast
from rankone.deadline import tick
from rankone.errors import PrecisionError, UnfitError
from rankone.nn import TokenClassifier
from rankone.nn.exact import ExactAttention, ExactBlock, ExactFeedForward, ExactNetwork, Sparse
from rankone.nn.exact.floats import to_float64
from rankone.nn.exact.numbers import ZERO, Vector, ball, exact, middle, power
from rankone.nn.layers import Head

Logits = Mapping[int, fmpq]  # targets of labels that are seen; others get FLOOR

X, F, LOGITS = 0, 1, 2  # coordinates: x, f, and the first of the labels
FLOOR = -64
LEAD = power(-40)
TOLERANCE = power(-44)  # of a logit: less than LEAD / 2
ETA = exact(0.5)  # where tanh has no derivative that is 0
STEEP = 4  # the largest |w| of tanh: fewest digits, between flat units and units that are constant
MOST = 500  # contexts for tanh: half a minute, and weights of 400 decimal digits
BITS = 40  # of random numbers: no two are equal, and sums of two are float64 numbers
FIRST, LAST = 128, 1 << 14  # bits of working precision


def build_analytic(problem: Problem, seed: int) -> ExactNetwork:
    """Units of tanh, one per context; W2 is solved for, rounded, and checked."""
    asked, targets = _targets(problem)
    if len(asked) > MOST:
        raise UnfitError(
            f"{len(asked):,} contexts: solving for units of tanh takes time N^3 with ever more "
            "digits",
            where=problem.corpus.source,
            remedy=f"give at most {MOST} contexts, or choose the piecewise linear version",
        )
    rng = np.random.default_rng(seed)
    network = _attention(problem, rng)
    w = [STEEP * x for x in _drawn(rng, len(asked))]
    bits = FIRST + 4 * len(asked)
    while bits <= LAST:
        f = features(network, asked, bits)
        units = _solved(w, [x for (x,) in f], targets, bits)
        full = _with_units(network, units, "tanh")
        if units and _is_close(features(full, asked, bits), targets):
            return full
        bits += bits // 2
    raise _not_apart(problem)


def build_piecewise(problem: Problem, seed: int) -> ExactNetwork:
    """Units of relu, one per context, whose logits are proved to be within TOLERANCE.

    Let g be the least gap between two f. Knots are f rounded to within e <= g 2^-59, and logits go
    from knot to knot, with slopes that are multiples of 2^-52; each slope aims at the next target
    from where the line is, so errors do not add up, and a line is off by 4 * 2^-53 at most at a
    knot (no two f are 4 apart). No target is more than 65 from the next, so |slope| < 66 / g, and
    at f itself the logit is off by that times e more: in all less than 2^-48.
    """
    asked, targets = _targets(problem)
    network = _attention(problem, np.random.default_rng(seed))
    bits = FIRST
    while bits <= LAST:
        known = [middle(x) for (x,) in features(network, asked, bits)]
        order, gap = _sorted(known)
        if gap > 0 and max(radius for _, radius in known) <= gap * power(-60):
            digits = 59 + _exponent(1 / gap)
            knots = [_rounded(known[t][0], digits) for t in order]
            units = bent(knots, [targets[t] for t in order], 52)
            return _with_units(network, units, "relu")
        bits *= 2
    raise _not_apart(problem)


def build_float64(problem: Problem, seed: int) -> TokenClassifier:
    """The same with knots that are multiples of 2^-49 and slopes of 53 bits at most, so that all
    weights are float64 numbers; the network is run over the corpus before it is returned."""
    asked, targets = _targets(problem)
    _refuse_close(problem, asked, targets)
    network = _attention(problem, np.random.default_rng(seed))
    known = [middle(x) for (x,) in features(network, asked, FIRST)]
    order, _ = _sorted(known)
    knots = [_rounded(known[t][0], 49) for t in order]
    gap = min((b - a for a, b in pairwise(knots)), default=exact(1))
    if gap >= power(-38):
        units = bent(knots, [targets[t] for t in order], 51 - _exponent((1 - FLOOR) / gap))
        found = to_float64(_with_units(network, units, "relu"))
        if check_fast(found, problem)[0].holds(RESERVE):
            return found
    raise PrecisionError(
        f"two of {len(asked):,} contexts are {float(gap.p) / float(gap.q):.1e} apart, and float64 "
        "rounds the sum of their units too much",
        where=problem.corpus.source,
        remedy="give fewer sentences, or run it in exact arithmetic",
    )


def bent(knots: Sequence[fmpq], targets: Sequence[Logits], digits: int) -> list[Unit]:
    """Units of relu that take each label from FLOOR through its targets at increasing knots.

    Slopes are multiples of 2^-`digits`. A label that neither of two neighbours has stays where it
    is, so a unit only writes the labels of three contexts.
    """
    units: list[Unit] = []
    slopes: dict[int, fmpq] = {}
    values: dict[int, fmpq] = {}  # where labels are that are not at FLOOR
    last: Logits = {}
    before = knots[0] - 1
    for knot, own in zip(knots, targets, strict=True):
        tick()
        width, new = knot - before, dict[int, fmpq]()
        for c in {*last, *own}:
            value = values.get(c, exact(FLOOR))
            new[c] = _rounded((own.get(c, exact(FLOOR)) - value) / width, digits)
            values[c] = value + new[c] * width
        bends = {c: new.get(c, ZERO) - slopes.get(c, ZERO) for c in sorted({*slopes, *new})}
        units.append(({F: 1}, -before, {LOGITS + c: w for c, w in bends.items() if w}))
        slopes = {c: slope for c, slope in new.items() if slope}
        last, before = own, knot
    return units


def _targets(problem: Problem) -> tuple[list[Asked], list[Logits]]:
    """The contexts and the logits of the labels they have."""
    asked, counts = asked_contexts(problem), label_counts(problem)
    logs: dict[tuple[int, int], fmpq] = {}

    def log(k: int, n: int) -> fmpq:
        if (k, n) not in logs:
            with ctx.workprec(PRECISE):
                logs[k, n] = _rounded(middle((arb(k) / n).log())[0], 52)
        return logs[k, n]

    found: list[Logits] = []
    for context in asked:
        seen = counts[context.token]
        own = {c: log(k, sum(seen.values())) for c, k in seen.items()}
        own[context.label] += LEAD
        found.append(own)
    return asked, found


def _attention(problem: Problem, rng: np.random.Generator) -> ExactNetwork:
    """The network up to f, which its head shows."""
    dim = LOGITS + len(problem.corpus.label_names)
    words = _drawn(rng, len(problem.corpus.vocabulary))
    places = _drawn(rng, problem.length) if problem.placed else None
    x, f = Sparse.of([{X: 1}], dim), Sparse.of([{0: 1} if c == F else {} for c in range(dim)], 1)
    return ExactNetwork(
        Sparse.of(({X: z} for z in words), dim),
        None if places is None else Sparse.of(({X: u} for u in places), dim),
        (ExactBlock(ExactAttention((Head(x, x, x, f),))),),
        Sparse.of([{F: 1}], dim),
        (ZERO,),
        problem.causal,
    )


def _with_units(
    network: ExactNetwork, units: Sequence[Unit], activation: Literal["relu", "tanh"]
) -> ExactNetwork:
    """The network with hidden units, and a head that shows the logits."""
    dim, (block,) = network.dim, network.blocks
    floor = dict.fromkeys(range(LOGITS, dim), FLOOR)
    layer = ExactFeedForward.of(units, dim, floor, activation)
    return replace(
        network,
        blocks=(replace(block, feedforward=layer),),
        head=Sparse.of(({c: 1} for c in range(LOGITS, dim)), dim),
        bias=(ZERO,) * (dim - LOGITS),
    )


def _solved(w: Sequence[fmpq], f: Vector, targets: Sequence[Logits], bits: int) -> list[Unit]:
    """Units w_i with what they write; no units where the precision does not do."""
    labels = sorted({c for own in targets for c in own})
    with ctx.workprec(bits):
        rows = [[(ball(x) * v + ETA).tanh() for v in w] for x in f]
        wanted = [[own.get(c, exact(FLOOR)) - FLOOR for c in labels] for own in targets]
        try:
            found = arb_mat(rows).solve(arb_mat(wanted), algorithm="approx").tolist()
            digits = 50 + len(w).bit_length()
            written = [[_rounded(middle(x)[0], digits) for x in row] for row in found]
        except (ZeroDivisionError, ValueError):
            return []
    return [
        ({F: v}, ETA, {LOGITS + c: x for c, x in zip(labels, row, strict=True)})
        for v, row in zip(w, written, strict=True)
    ]


def _is_close(logits: Sequence[Vector], targets: Sequence[Logits]) -> bool:
    """Whether all logits are proved to be what they should be."""
    return all(
        abs(ball(logit) - own.get(c, exact(FLOOR))) < TOLERANCE
        for row, own in zip(logits, targets, strict=True)
        for c, logit in enumerate(row)
    )


def _refuse_close(problem: Problem, asked: Sequence[Asked], targets: Sequence[Logits]) -> None:
    """Float64 models must lead by 1/2, and logits of close frequencies do not."""
    for context, own in zip(asked, targets, strict=True):
        others = [logit for c, logit in own.items() if c != context.label]
        if others and own[context.label] - max(others) < 2 * exact(RESERVE):
            word, place = problem.named(context.token)
            raise PrecisionError(
                f"two labels of {word!r} are so close in frequency that their logits are less than "
                "1/2 apart",
                where=place,
                remedy="fix contradicting labels, or run it in exact arithmetic",
            )


def _not_apart(problem: Problem) -> PrecisionError:
    return PrecisionError(
        f"{LAST:,} bits do not tell the contexts apart",
        where=problem.corpus.source,
        remedy="give another seed (--seed)",
    )


def _sorted(known: Sequence[tuple[fmpq, fmpq]]) -> tuple[list[int], fmpq]:
    """The order of numbers with these midpoints and radii, and the least gap between two of them
    (negative if two may be equal, 1 if there is one number only)."""
    order = sorted(range(len(known)), key=lambda t: known[t][0])
    line = [known[t] for t in order]
    return order, min((b - a - r - s for (a, r), (b, s) in pairwise(line)), default=exact(1))


def _drawn(rng: np.random.Generator, count: int) -> list[fmpq]:
    """Random fractions in [-1, 1)."""
    return [fmpq(k, 1 << BITS) for k in rng.integers(-1 << BITS, 1 << BITS, count).tolist()]


def _rounded(x: fmpq, digits: int) -> fmpq:
    """The multiple of 2^-digits next to x."""
    return (x * power(digits) + fmpq(1, 2)).floor() * power(-digits)


def _exponent(x: fmpq) -> int:
    """The least whole number with 2^it > x >= 1."""
    return int(x.floor()).bit_length()
