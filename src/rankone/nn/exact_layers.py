"""Attention and feed-forward layers in Arb balls, at the precision that `ctx.prec` says."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from flint import arb

from rankone.deadline import tick

Vector = list[arb]
Matrix = list[Vector]


@dataclass(frozen=True)
class Head:
    """W^K, W^Q, W^V (s x d) and W^O (d x s) of one head."""

    key: Matrix
    query: Matrix
    value: Matrix
    output: Matrix


class Attention:
    """Eq. 2 or 5 over named tokens: what belongs to a token, or to a pair, is computed once.

    ``averages(k, visible)`` is what token k sees in the tokens `visible`, head by head: the softmax
    average of their values (hardmax: the mean over the largest scores).
    """

    def __init__(self, heads: Sequence[Head], kind: Literal["softmax", "hardmax"]) -> None:
        self.heads, self.kind = heads, kind
        self.seen: dict[Hashable, list[tuple[Vector, Vector, Vector]]] = {}
        self.weights: dict[tuple[Hashable, Hashable], Vector] = {}

    def see(self, name: Hashable, z: Vector) -> None:
        """Introduce a token."""
        if name not in self.seen:
            self.seen[name] = [
                (product(h.key, z), product(h.query, z), product(h.value, z)) for h in self.heads
            ]

    def averages(self, k: Hashable, visible: Sequence[Hashable]) -> list[Vector]:
        return [self._average(h, k, visible) for h in range(len(self.heads))]

    def output(self, averages: Iterable[Vector]) -> Vector:
        """sum_i W^O_i averages_i, which is added to the token."""
        parts = [product(h.output, a) for h, a in zip(self.heads, averages, strict=True)]
        return [sum(column, arb(0)) for column in zip(*parts, strict=True)]

    def _average(self, head: int, k: Hashable, visible: Sequence[Hashable]) -> Vector:
        values = [self.seen[name][head][2] for name in visible]
        rows = [self._pair(k, name)[head] for name in visible]
        weights = rows if self.kind == "softmax" else _largest(rows)
        total = sum(weights, arb(0))
        return [dot(weights, column) / total for column in zip(*values, strict=True)]

    def _pair(self, k: Hashable, name: Hashable) -> Vector:
        """e^score (hardmax: the score itself) of token k and a key, for every head.

        Not relative to a largest score: the exponents of balls do not overflow.
        """
        found = self.weights.get((k, name))
        if found is None:
            pairs = zip(self.seen[k], self.seen[name], strict=True)
            found = [dot(q[1], key[0]) for q, key in pairs]
            if self.kind == "softmax":
                found = [score.exp() for score in found]
            self.weights[k, name] = found
        return found


@dataclass(frozen=True)
class FeedForward:
    """H + sum_j out_j relu(gain_j row_j . H + bias_j) + bias2   (eq. 3).

    ``rows`` holds a row per unit, or one that all share, scaled by ``gains``; ``out`` a vector per
    unit, or one that all share, scaled by ``out_gains``.
    """

    rows: Matrix
    bias: Vector
    out: Matrix
    bias2: Vector
    gains: Vector | None = None
    out_gains: Vector | None = None

    def __call__(self, h: Vector) -> Vector:
        seen = product(self.rows, h)
        if self.gains is not None:
            seen = [gain * seen[0] for gain in self.gains]
        zero = arb(0)
        active = [arb.max(s + b, zero) for s, b in zip(seen, self.bias, strict=True)]
        if self.out_gains is not None:
            added = dot(active, self.out_gains)
            written = [added * w for w in self.out[0]]
        else:
            columns = zip(*self.out, strict=True) if self.out else [()] * len(h)
            written = [dot(active, column) for column in columns]
        return [x + y + z for x, y, z in zip(h, written, self.bias2, strict=True)]


def dot(a: Iterable[arb], b: Iterable[arb]) -> arb:
    tick()
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def norm(a: Vector) -> arb:
    return dot(a, a).sqrt()


def product(rows: Matrix, z: Vector) -> Vector:
    """A matrix, given by its rows, times a vector."""
    return [dot(row, z) for row in rows]


def _largest(scores: Vector) -> Vector:
    """Hardmax: 1 at the largest scores, 0 elsewhere; everything unknown if that is not decided.

    Scores of float64 numbers are exact once the precision holds all their digits, and then two
    equal ones are known to be equal.
    """
    best = scores[0]
    for score in scores[1:]:
        if score > best:  # only where it certainly is
            best = score
    marks = []
    for score in scores:
        behind = best - score
        if score is best or behind.is_zero():
            marks.append(arb(1))
        else:
            marks.append(arb(0) if behind > 0 else arb("nan"))
    return marks
