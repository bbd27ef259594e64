"""The Boltzmann operator, its partition function, entropy and derivatives (Definition 3, B.2).

Every function takes float64 of any shape and works over the last axis, or takes a sequence of
`flint.arb` and returns arb at the current precision. In float64 an entry of -inf is masked and
contributes nothing (eq. 133). Each formula is written once: for object arrays, numpy calls exp,
log1p and the four operations of the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from rankone.errors import VectorError
from rankone.theory.numeric_input import as_floats

Vector = ArrayLike | Sequence[arb]

FAR = -2000.0  # exp(FAR / 2) is 0 in float64: entries this far below the largest contribute nothing


def softmax(a: Vector) -> Any:
    """p_i = e^(a_i) / sum_j e^(a_j), the sigma_S of eq. 2."""
    return _all(_shift(a).p)


def boltzmann(a: Vector) -> Any:
    """boltz(a) = a^T sigma_S[a] = sum_i a_i p_i   (eq. 13, 21, 80)."""
    s = _shift(a)
    return _one(s.top + s.mean)


def log_partition(a: Vector) -> Any:
    """L(a) = log sum_i e^(a_i)   (eq. 81)."""
    s = _shift(a)
    return _one(s.top + np.log1p(s.rest))


def entropy(a: Vector) -> Any:
    """S(p) = -sum_i p_i log p_i with p = sigma_S[a]   (eq. 82).

    Computed as L(a) - boltz(a) (eq. 85), both relative to the largest entry: two terms of the same
    sign, so that no digits are lost when the softmax saturates.
    """
    s = _shift(a)
    return _one(np.log1p(s.rest) - s.mean)


def gradient(a: Vector) -> Any:
    """d boltz(a) / d a_i = p_i (1 + log p_i + S(p))   (eq. 83), for every i.

    log p_i + S(p) = a_i - boltz(a) by eq. 85.
    """
    s = _shift(a)
    return _all(s.weigh(1 + s.below - s.mean))


def second_derivative(a: Vector) -> Any:
    """d^2 boltz(a) / d a_i^2 = p_i [(1 - 2 p_i)(log p_i + S(p) + 1) + 1]   (eq. 97), for every i.

    With q_i = 1 - p_i, summed and not subtracted, and h_i = a_i - boltz(a) the bracket is
    2 q_i + (q_i - p_i) h_i: near p_i = 1, eq. 97 itself is the difference of two ones.
    """
    s = _shift(a)
    q = np.where(s.is_top, s.rest, 1 + (s.rest - s.root * s.root)) / (1 + s.rest)
    return _all(s.weigh(2 * q + (q - s.p) * (s.below - s.mean)))


@dataclass(frozen=True)
class _Shifted:
    """A vector relative to its largest entry, so that every exponential is at most 1.

    ``below`` is a_i - top, ``root`` is exp(below / 2): its square may underflow where a product
    with something large between the two factors does not. ``rest`` is the sum of exp(below) over
    all but the entry ``is_top``, so that sum_i e^(a_i) = e^top (1 + rest).
    """

    top: NDArray[Any]
    is_top: NDArray[np.bool_]
    below: NDArray[Any]
    root: NDArray[Any]
    rest: NDArray[Any]

    def weigh(self, x: NDArray[Any]) -> NDArray[Any]:
        """p_i x_i."""
        return np.asarray(self.root * (x / (1 + self.rest)) * self.root)

    @property
    def p(self) -> NDArray[Any]:
        return np.asarray(self.root * (self.root / (1 + self.rest)))

    @property
    def mean(self) -> NDArray[Any]:
        """boltz(a) - top, never positive."""
        return np.asarray(self.weigh(self.below).sum(-1, keepdims=True))


def _shift(a: Vector) -> _Shifted:
    numbers = _numbers(a)
    largest = numbers.argmax(-1)[..., None]
    top = np.take_along_axis(numbers, largest, -1)
    is_top = np.arange(numbers.shape[-1]) == largest
    zero = type(numbers.flat[0])(0)
    with np.errstate(over="ignore"):
        below = np.where(is_top, zero, numbers - top)
    if numbers.dtype != object:
        below = np.maximum(below, FAR)
    root = np.exp(below / 2)
    rest = np.where(is_top, zero, root * root).sum(-1, keepdims=True)
    return _Shifted(top, is_top, below, root, rest)


def _numbers(a: Vector) -> NDArray[Any]:
    try:
        numbers = np.asarray(a if not hasattr(a, "detach") else as_floats(a))
    except ValueError:
        raise VectorError(
            "rows have different lengths", remedy="use -inf for masked entries"
        ) from None
    if not (numbers.ndim and numbers.size):
        raise VectorError(
            "the Boltzmann operator needs a vector", remedy="give a list of one or more numbers"
        )
    if numbers.dtype == object:
        if not all(isinstance(x, arb) and x.is_finite() for x in numbers.flat):
            raise VectorError("numbers must be float64 or finite arb", remedy="convert them first")
        return numbers
    numbers = as_floats(numbers)
    if not (numbers < np.inf).all():
        raise VectorError(
            "a number is nan or +inf", remedy="give finite numbers, or -inf for masked entries"
        )
    if not (numbers > -np.inf).any(-1).all():
        raise VectorError(
            "every entry is masked", remedy="leave out queries that attend to nothing"
        )
    return numbers


def _all(x: NDArray[Any]) -> Any:
    return x.tolist() if x.dtype == object else x


def _one(x: NDArray[Any]) -> Any:
    return x.squeeze(-1)[()]
