"""Whether two context ids are one and the same real vector: decided, not approximated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from rankone.certify.attention import array
from rankone.certify.rounding import Floats
from rankone.nn import Rank1Attention, SelfAttention, TokenClassifier

Sum = dict[Fraction, Fraction]  # exponent -> coefficient: a sum of c e^q
Vector = list[Fraction]
Place = tuple[Sequence[int], int]  # a sentence, as rows of the table, and a position in it


def coincide(network: TokenClassifier, one: Place, other: Place) -> bool | None:
    """Whether the first attention layer sends two tokens to the same context id.

    A token's context id is x + W^O N / D with D = sum_l e^(q . k_l), N = sum_l v_l e^(q . k_l),
    and all of x, W^O, q, k_l, v_l are rational, since weights are floats. Two context ids agree if

        (x - x') D D' + W^O (N D' - N' D) = 0

    in every coordinate, which is a sum of c_j e^(q_j) with rational c_j and different rational q_j.
    By the theorem of Lindemann and Weierstrass it is 0 only if every c_j is. None if there are
    several heads (the sums would have to be multiplied over all of them) or hardmax.
    """
    attention = network.blocks[0].attention
    if isinstance(attention, SelfAttention):
        if len(attention.key) > 1 or attention.kind != "softmax":
            return None
        key, query, value = (
            _rows(array(w)[0]) for w in (attention.key, attention.query, attention.value)
        )
        output = _rows(array(attention.output)[0])
    else:
        assert isinstance(attention, Rank1Attention)
        key = value = _rows(array(attention.v1)[None])
        query, output = _rows(array(attention.v2)[None]), _rows(array(attention.output)[:, None])
    terms = []
    for ids, k in (one, other):
        xs = [_embed(network, token, place) for place, token in enumerate(ids)]
        asked = [_dot(row, xs[k]) for row in query]
        total: Sum = defaultdict(Fraction)
        weighted: list[Sum] = [defaultdict(Fraction) for _ in value]
        for x in xs[: k + 1] if network.shape.causal else xs:
            score = _dot(asked, [_dot(row, x) for row in key])
            total[score] += 1
            for part, row in zip(weighted, value, strict=True):
                part[score] += _dot(row, x)
        terms.append((xs[k], total, weighted))
    (x, D, N), (x_, D_, N_) = terms
    for i, row in enumerate(output):
        difference: Sum = defaultdict(Fraction)
        _add(difference, x[i] - x_[i], D, D_)
        for w, part, part_ in zip(row, N, N_, strict=True):
            _add(difference, w, part, D_)
            _add(difference, -w, part_, D)
        if any(difference.values()):
            return False
    return True


def _add(total: Sum, factor: Fraction, a: Sum, b: Sum) -> None:
    if factor:
        for (p, c), (q, e) in product(a.items(), b.items()):
            total[p + q] += factor * c * e


def _embed(network: TokenClassifier, token: int, place: int) -> Vector:
    x = _vector(array(network.table[token]))
    if network.positions is None:
        return x
    return [a + b for a, b in zip(x, _vector(array(network.positions[place])), strict=True)]


def _vector(values: Floats) -> Vector:
    return [Fraction(v) for v in values.tolist()]


def _rows(values: Floats) -> list[Vector]:
    return [_vector(row) for row in values]


def _dot(a: Vector, b: Vector) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
