"""Decide exactly whether two context ids are the same real vector."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rankone.arrays import Floats
from rankone.certification.attention_balls import array
from rankone.certification.windows import steps
from rankone.deadline import tick
from rankone.nn import TokenClassifier
from rankone.nn.layers import Head

Vector = list[Fraction]
Place = tuple[Sequence[int], int]  # a sentence, as rows of the table, and a position in it
Sum = dict[Fraction, Fraction]  # exponent -> coefficient: a sum of c e^q with different q


@dataclass(frozen=True)
class Average:
    """N / D, what a head gives a token: vectors N and numbers D that are sums of c e^q."""

    N: list[Sum]
    D: Sum


def coincide(network: TokenClassifier, one: Place, other: Place) -> bool | None:
    """Whether the first attention layer sends two tokens to the same context id.

    With one head of softmax the context id of a token is x + W^O N / D, D = sum_l e^(q . k_l) and
    N = sum_l v_l e^(q . k_l), where all of x, W^O, q, k_l, v_l are rational, since weights are
    floats. Two context ids agree if

        (x - x') D D' + W^O (N D' - N' D) = 0

    in every coordinate: a sum of c_j e^(q_j) with rational c_j and different rational q_j. By the
    theorem of Lindemann and Weierstrass it is 0 only if every c_j is.

    With hardmax there is no e, and everything is rational for any number of heads. With several
    softmax heads, context ids agree if x and all averages do. If they do not, the answer is None
    (unknown): deciding it would multiply the sums over all heads. With a window, `one` and `other`
    are windows; x is taken without the coordinates of the step (`windows`).
    """
    attention = network.blocks[0].attention
    heads = [head.map(lambda weight: _rows(array(weight))) for head in attention.heads]
    hard = attention.kind == "hardmax"
    (x, seen), (x_, seen_) = (_averages(network, heads, place, hard) for place in (one, other))
    if hard:
        return _rational(x, heads, seen) == _rational(x_, heads, seen_)
    differences = [_differences(a, b) for a, b in zip(seen, seen_, strict=True)]
    if len(heads) == 1:
        sums = [_product(seen[0].D, seen_[0].D), *differences[0]]
        rows = ([a - b, *row] for a, b, row in zip(x, x_, heads[0].output, strict=True))
        return all(_vanishes(row, sums) for row in rows)
    equal = not any(any(part.values()) for parts in differences for part in parts)
    return True if x == x_ and equal else None


def _differences(a: Average, b: Average) -> list[Sum]:
    """N D' - N' D."""
    found = []
    for n, n_ in zip(a.N, b.N, strict=True):
        total = _product(n, b.D)
        for exponent, coefficient in _product(n_, a.D).items():
            total[exponent] -= coefficient
        found.append(total)
    return found


def _product(a: Sum, b: Sum) -> Sum:
    total: Sum = defaultdict(Fraction)
    for p, c in a.items():
        tick()
        for q, e in b.items():
            total[p + q] += c * e
    return total


def _vanishes(row: Vector, sums: list[Sum]) -> bool:
    """Whether the sum of row_i sums_i is 0."""
    tick()
    used = [(w, part) for w, part in zip(row, sums, strict=True) if w]
    exponents = {exponent for _, part in used for exponent in part}
    return not any(sum(w * part.get(e, 0) for w, part in used) for e in exponents)


def _averages(
    network: TokenClassifier, heads: list[Head[list[Vector]]], place: Place, hard: bool
) -> tuple[Vector, list[Average]]:
    """x of the token, and the average of every head; for hardmax without the scores."""
    ids, k = place
    xs = [_embed(network, token, position) for position, token in enumerate(ids)]
    own = [Fraction(0) if s else x for x, s in zip(xs[k], steps(network).tolist(), strict=True)]
    visible = xs[: k + 1] if network.shape.causal else xs
    found = []
    for head in heads:
        asked = [_dot(row, xs[k]) for row in head.query]
        scores = [_dot(asked, [_dot(row, x) for row in head.key]) for x in visible]
        top = max(scores)
        average = Average([defaultdict(Fraction) for _ in head.value], defaultdict(Fraction))
        for x, score in zip(visible, scores, strict=True):
            if hard and score < top:
                continue
            exponent = Fraction(0) if hard else score
            average.D[exponent] += 1
            for part, row in zip(average.N, head.value, strict=True):
                part[exponent] += _dot(row, x)
        found.append(average)
    return own, found


def _rational(x: Vector, heads: list[Head[list[Vector]]], seen: list[Average]) -> Vector:
    """The context id under hardmax."""
    for head, average in zip(heads, seen, strict=True):
        mean = [part[Fraction(0)] / average.D[Fraction(0)] for part in average.N]
        x = [a + _dot(row, mean) for a, row in zip(x, head.output, strict=True)]
    return x


def _embed(network: TokenClassifier, token: int, place: int) -> Vector:
    x = _vector(array(network.table[token]))
    if network.step is not None:
        step = _vector(array(network.step))
        return [a + place * e for a, e in zip(x, step, strict=True)]
    if network.positions is None:
        return x
    return [a + b for a, b in zip(x, _vector(array(network.positions[place])), strict=True)]


def _vector(values: Floats) -> Vector:
    return [Fraction(v) for v in values.tolist()]


def _rows(values: Floats) -> list[Vector]:
    return [_vector(row) for row in values]


def _dot(a: Vector, b: Vector) -> Fraction:
    tick()
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
