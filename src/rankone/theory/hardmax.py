"""Theorem 1: two sequences that no hardmax attention layer tells apart, in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankone.arrays import Floats
from rankone.errors import VectorError
from rankone.theory.numeric_input import as_floats

STEPS = (1, 2, 5, 6), (1, 3, 4, 6)  # least, greatest and sum are the same


@dataclass(frozen=True)
class CounterExample:
    """The sequences (1, 2, 5, 6) v and (1, 3, 4, 6) v, tokens as rows, and the places of 1v and 6v.

    Definition 2 asks for different context ids of 1v, and of 6v, in ``first`` and ``second``, whose
    sets of tokens differ. No hardmax attention (eq. 5) achieves that. Proof: let c =
    (W^K v)^T (W^Q v) for one head. The query x v, x > 0, scores the key y v with c x y. If c > 0
    all weight is on the greatest y, if c < 0 on the least, if c = 0 every token has the same; so
    the head returns 6, 1 or 3.5 times W^V v, in both sequences. Hence the sum over any number of
    heads is the same, and so is the token itself. (The paper's (1, 2, 4) and (1, 3, 4) differ in
    the third case, the mean.)

    ``direction`` is v, its entries rounded to 50 bits: the tokens are exact multiples of it.
    """

    direction: Floats
    first: Floats
    second: Floats
    shared: tuple[int, ...] = (0, 3)


@dataclass(frozen=True)
class Difference:
    """A token whose output differs: its place, the coordinate, and the output in each sequence."""

    place: int
    coordinate: int
    first: Fraction
    second: Fraction


@dataclass(frozen=True)
class Indistinguishable:
    """Whether given weights map the shared tokens alike in both sequences; if not, where."""

    heads: int
    witness: Difference | None

    @property
    def ok(self) -> bool:
        return self.witness is None

    def to_json(self) -> dict[str, Any]:
        found = self.witness and {name: str(value) for name, value in vars(self.witness).items()}
        return {"ok": self.ok, "heads": self.heads, "witness": found}


def counter_example(direction: ArrayLike) -> CounterExample:
    """The two sequences of Theorem 1 along a given direction other than 0."""
    v = as_floats(direction)
    if v.ndim != 1 or not v.any() or not np.isfinite(v).all():
        raise VectorError(
            "the direction must be a finite vector other than 0", remedy="give a list of numbers"
        )
    mantissa, exponent = np.frexp(v)
    with np.errstate(over="ignore"):
        v = np.ldexp(np.round(np.ldexp(mantissa, 50)), exponent - 50)
        first, second = (np.outer(steps, v) for steps in STEPS)
    if not np.isfinite(first).all():
        raise VectorError("six times the direction overflows", remedy="give a shorter direction")
    return CounterExample(v, first, second)


def indistinguishable(
    key: ArrayLike,
    query: ArrayLike,
    value: ArrayLike,
    output: ArrayLike,
    *,
    example: CounterExample | None = None,
) -> Indistinguishable:
    """F_H(first)_k = F_H(second)_k for every shared token k   (Theorem 1), checked exactly.

    W^K_i, W^Q_i, W^V_i are ``key[i]``, ``query[i]``, ``value[i]`` (s x d), W^O_i is ``output[i]``
    (d x s). By default v is (1, ..., 1).
    """
    weights = [_exact(w) for w in (key, query, value, output)]
    example = example or counter_example(np.ones(weights[0].shape[-1:] or 1))
    places = list(example.shared)
    first, second = (
        hardmax_attention(tokens, *weights)[places] for tokens in (example.first, example.second)
    )
    witness = None
    for i, j in np.argwhere(first != second)[:1].tolist():
        witness = Difference(places[i], j, first[i, j], second[i, j])
    return Indistinguishable(len(weights[0]), witness)


def hardmax_attention(
    z: ArrayLike, key: ArrayLike, query: ArrayLike, value: ArrayLike, output: ArrayLike
) -> NDArray[Any]:
    """F_H(Z) = Z + sum_i W^O_i (W^V_i Z) sigma_H[(W^K_i Z)^T (W^Q_i Z)]   (eq. 5), on fractions.

    Tokens are rows; all arrays hold numbers, or `Fraction`, as the result does. Hardmax shares the
    weight among the largest scores.
    """
    out = z = _exact(z)
    weights = [_exact(w) for w in (key, query, value, output)]
    shapes = [w.shape for w in weights]
    heads, size, dim = (*shapes[0], 0, 0, 0)[:3]
    fits = shapes == [(heads, size, dim)] * 3 + [(heads, dim, size)]
    if not (fits and z.ndim == 2 and z.shape[1] == dim and z.size):
        raise VectorError(
            f"weights of shapes {shapes} for tokens of shape {z.shape}",
            remedy="give key, query and value as (heads, s, d), output as (heads, d, s), and "
            "tokens as (n, d)",
        )
    for k, q, v, o in zip(*weights, strict=True):
        scores = (z @ q.T) @ (z @ k.T).T
        largest = scores == scores.max(axis=1, keepdims=True)
        share = _exact(largest) / largest.sum(axis=1, keepdims=True).astype(object)
        out = out + share @ (z @ v.T) @ o.T
    return out


def _exact(x: ArrayLike) -> NDArray[Any]:
    try:
        given = np.asarray(x)
        if given.dtype == object and all(isinstance(number, Fraction) for number in given.flat):
            return given
    except (TypeError, ValueError, RuntimeError):
        pass
    numbers = as_floats(x)
    if not np.isfinite(numbers).all():
        raise VectorError("a weight is not finite", remedy="give finite numbers")
    return np.asarray(np.vectorize(Fraction, otypes=[object])(numbers))
