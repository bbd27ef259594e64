"""Ball arithmetic in float64: arrays of balls, and an exponential with a proved error bound.

A ball is a float64 midpoint and a radius. It contains the real number that the same formula gives
in exact arithmetic, with the float64 weights taken as exact. Only IEEE 754 is relied on: + - * /
are correctly rounded, so each is off by at most u = 2^-53 relative to its result (and 2^-1075 where
it underflows). Sums and dot products may be added up in any order, fused or not, by any library:

    |fl(sum_i a_i b_i) - sum_i a_i b_i|  <=  gamma_n sum_i |a_i b_i| + n 2^-1075,
    gamma_n = n u / (1 - n u)

(Higham, Accuracy and Stability of Numerical Algorithms, 3.1). Radii are sums and products of
non-negative numbers with at most 2^10 roundings each, so `up`, which enlarges them by a factor
1 + 2^-40, covers their own rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankone.arrays import Floats

U = 2.0**-53
TINY = 2.0**-900  # more than what underflows in any sum here, even after division by e^-60
SLACK = 1 + 2.0**-40


def gamma(n: Any, u: float = U) -> Any:
    """n u / (1 - n u), rounded up: the relative error of a sum of n rounded products."""
    return n * u / (1 - n * u) * SLACK


def up(radius: Floats) -> Floats:
    """Slightly larger, to cover the rounding of the radius itself. NaN means unknown."""
    larger = radius * SLACK
    larger += TINY
    return larger


def total(radii: Floats) -> Floats:
    """Sum over the first axis, rounded up."""
    return np.asarray(radii.sum(0) * (1 + gamma(len(radii))))


@dataclass(frozen=True)
class Balls:
    """The exact number lies within `rad` of `mid`; both have one shape, usually (d, tokens)."""

    mid: Floats
    rad: Floats

    @classmethod
    def rounded(cls, mid: Floats) -> Balls:
        """Balls around results of a single rounded operation on exact numbers."""
        return cls(mid, up(U * np.abs(mid)))

    def __add__(self, other: Balls) -> Balls:
        mid = self.mid + other.mid
        return Balls(mid, up(self.rad + other.rad + U * np.abs(mid)))

    def shifted(self, exact: Floats | float) -> Balls:
        """Add exact numbers."""
        mid = self.mid + exact
        return Balls(mid, up(self.rad + U * np.abs(mid)))

    def lower(self) -> Floats:
        """A lower bound: rounded down once more, since mid - rad is rounded itself."""
        return np.nextafter(self.mid - self.rad, -np.inf)

    def upper(self) -> Floats:
        return np.nextafter(self.mid + self.rad, np.inf)

    def __getitem__(self, at: Any) -> Balls:
        return Balls(self.mid[at], self.rad[at])

    def __setitem__(self, at: Any, balls: Balls) -> None:
        self.mid[at], self.rad[at] = balls.mid, balls.rad


def linear(weight: Floats, z: Balls) -> Balls:
    """weight z for exact weights (m, d) or (d,) and balls (d, tokens).

    The radius is |weight| rad for the radius of z plus gamma_d |weight| |mid| for the sum; both are
    sums of d terms themselves, so they are enlarged by gamma_d.
    """
    size, error = np.abs(weight), gamma(weight.shape[-1])
    rad = size @ z.rad + error * (size @ np.abs(z.mid))
    return Balls(weight @ z.mid, up(rad * (1 + error)))


def sparse(weight: Floats, z: Balls) -> Balls:
    """The same row by row, over the coordinates that a row reads; a row of the identity is exact.

    0 times a coordinate is 0, for every number in its ball.
    """
    shape = len(weight), z.mid.shape[1]
    out = Balls(np.zeros(shape), np.zeros(shape))
    for i, row in enumerate(weight):
        at = np.flatnonzero(row)
        if len(at) == 1 and row[at[0]] == 1.0:
            out[i] = z[at[0]]
        elif len(at):
            out[i] = linear(row[at], z[at])
    return out


# exp: ln 2 in three parts, the first with 20 zeros at its end so that k times it is exact
LOG2_E = 1.4426950408889634
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")  # ln 2 - high - low is below 2^-86
COEFFICIENTS = [1.0]
for _i in range(1, 14):
    COEFFICIENTS.append(COEFFICIENTS[-1] / _i)
LOWEST = -700.0  # e^-700 is still a normal number; below it, exp returns 0
EXP_ERROR = 4 * U


def exp(t: Floats) -> Floats:
    """e^t for t <= 0 with relative error below 3 u, and 0 (off by at most e^-700) for t < -700.

    t = k ln 2 + r with |r| <= 0.347, so e^t = 2^k e^r. With ln 2 = high + low + rest,
    r = (t - k high) - k low: the product k high is exact, the two differences are off by u times
    their size (0.347 u each), k low by 1011 u 2^-32 and the rest by 1011 2^-86, in all 0.7 u.
    e^r is summed up to r^13 by Horner's rule h_i = 1/i! + r h_(i+1). What is left out is below
    1.1 * 0.347^14 / 14! < 0.05 u. A step is off by u |h_i| for the sum, u |r h_(i+1)| for the
    product and at most i u / i! for the coefficient (nothing for i < 3), weighted with |r|^i:

        u |h_0| + 2 u sum_(i>0) |r^i h_i| + u sum_(i>2) i |r|^i / i!

    The first is u e^r. r^i h_i is the series of e^r from r^i on: those sum up to r e^r for r > 0,
    and for r < 0, where signs alternate, to at most e^|r| - 1 < 0.415. The last is below 0.024 u.
    So all is off by at most (1 + 2 * 0.415 / 0.706 + 0.024 / 0.706) u < 2.22 u
    relative to e^r >= 0.706, with the error of r and what is left out by less than 3 u; 2^k is
    exact. `EXP_ERROR` is more, so it bounds the logarithm of such a factor too.
    """
    clipped = np.maximum(t, LOWEST)
    unknown = np.isnan(clipped)
    if unknown.any():
        clipped = np.where(unknown, LOWEST, clipped)
    k = np.rint(clipped * LOG2_E)
    r = (clipped - k * LN2_HIGH) - k * LN2_LOW
    h = np.full_like(r, COEFFICIENTS[-1])
    for coefficient in COEFFICIENTS[-2::-1]:
        h *= r
        h += coefficient
    result: Floats = np.ldexp(h, k.astype(np.int32))
    result[t < LOWEST] = 0.0
    result[unknown] = np.nan
    return result
