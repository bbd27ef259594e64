"""Heads that choose the label with the nearest code: row 2c and bias -|c|^2, c whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from torch import nn

from rankone.arrays import Bools, Floats, Ints

MOST_COORDINATES = 16
LARGEST = 2.0**20  # of a code: sums of squares are exact


@dataclass(frozen=True)
class LabelCodes:
    """The codes c of a head whose logits are 2 c . y - |c|^2 = |y|^2 - |y - c|^2.

    y are the features in the coordinates ``at``. The leads of c over the other labels are

        |y - c'|^2 - |y - c|^2 = sum_i d_i (d_i + 2 (c_i - y_i)),  d = c - c'.

    Codes are whole numbers and differ, so if |y_i - c_i| <= e < 1/2 for all i, every term with
    d_i != 0 is at least |d_i| (|d_i| - 2e) >= 1 - 2e: c leads by at least 1 - 2e, with no look at
    the other labels. (By just that, if some other code is 1 away in the coordinate that is off.)

    ``codes[k]`` is the code of label k. ``size[i]`` is the largest |c_i|, ``square`` the largest
    |c|^2. ``keys`` are the codes as single numbers in base ``stride``, in order, those of the
    labels ``order``.
    """

    at: Ints
    codes: Floats
    size: Floats
    square: float
    low: Floats
    high: Floats
    stride: Ints
    keys: Ints
    order: Ints

    @classmethod
    def of(cls, head: nn.Linear) -> LabelCodes | None:
        """None unless the weights are just that: every number whole, and no two codes equal."""
        weight, bias = (x.detach().double().numpy() for x in (head.weight, head.bias))
        at = np.flatnonzero(weight.any(0))
        if len(bias) < 2 or not 1 <= len(at) <= MOST_COORDINATES:
            return None
        codes = np.ascontiguousarray(weight[:, at]) / 2
        if not ((codes == np.rint(codes)) & (np.abs(codes) <= LARGEST)).all():
            return None
        squares = (codes**2).sum(1)
        low, high = codes.min(0), codes.max(0)
        spans = [int(x) + 1 for x in (high - low).tolist()]
        if not (bias == -squares).all() or prod(spans) >= 1 << 62:
            return None
        stride = np.array([prod(spans[:i]) for i in range(len(spans))])
        keys = (codes - low).astype(np.int64) @ stride
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if (keys[1:] == keys[:-1]).any():
            return None
        size = np.abs(codes).max(0)
        return cls(at, codes, size, float(squares.max()), low, high, stride, keys, order)

    def nearest(self, y: Floats) -> tuple[Ints, Bools]:
        """For every column the label whose code is y rounded, and whether there is one."""
        n = np.rint(y)
        inside = ((n >= self.low[:, None]) & (n <= self.high[:, None])).all(0)
        n = np.where(inside, n, self.low[:, None]) - self.low[:, None]
        keys = self.stride @ n.astype(np.int64)
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.order[found], inside & (self.keys[found] == keys)

    def away(self, y: Floats, labels: Ints) -> Floats:
        """max_i |y_i - c_i|: the largest coordinate of what is between y and the code of a label.

        Exact where it is below 1/2, for then y_i and c_i are within a factor 2, or c_i is 0.
        """
        return np.asarray(np.abs(y - self.codes.T[:, labels]).max(0))

    def slip(self, y: Floats, u: float) -> Floats:
        """How far a logit of any label may be off, added up in any order with unit roundoff u.

        A product 2 c_i y_i passes through s + 1 roundings at most, and -|c|^2 through s.
        """
        s = len(self.at)
        products = (s + 1) * u / (1 - (s + 1) * u) * 2 * (self.size @ np.abs(y))
        return np.asarray((products + s * u / (1 - s * u) * self.square) * (1 + 2.0**-40))

    def terms(self, y: Floats) -> Floats:
        """At least sum_i |2 c_i y_i| + |c|^2 for every label: the numbers that a logit sums up."""
        return np.asarray(2 * (self.size @ np.abs(y)) + self.square)
