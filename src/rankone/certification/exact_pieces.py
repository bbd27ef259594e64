"""A one-dimensional ReLU layer, summed exactly and evaluated in balls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rankone.arrays import Floats
from rankone.certification.ball_arithmetic import Balls, U, up

SUBNORMAL = 2.0**-1073  # more than the error of a slope that underflows
LARGEST = float(np.finfo(np.float64).max)
Integers = NDArray[np.object_]  # Python integers of any size


@dataclass(frozen=True)
class ExactPieces:
    """f(s) = sum_j t_j relu(g_j s + b_j) piece by piece: f(s) = value_k + slope_k (s - anchor_k).

    A unit bends f at theta_j = -b_j / g_j; passing it from left to right adds t_j |g_j| to the
    slope and sign(g_j) t_j b_j to the intercept. Products and sums use integers, the floats'
    mantissas, so slope_k and intercept_k are exact, and so is f at the anchor, a float near the
    left end of the piece; each is rounded once. (Sums of floats would drift: on a line of length
    10^7 with slopes of 10^9, by more than a label.) ``sharp`` means that every theta_j is a float;
    otherwise two bends may have been sorted wrongly, by less than their rounding.
    """

    knots: Floats
    anchors: Floats
    values: Floats
    slopes: Floats
    sharp: bool

    @classmethod
    def from_units(cls, gain: Floats, bias: Floats, out_gain: Floats) -> ExactPieces:
        flat = gain == 0
        with np.errstate(over="ignore"):  # clip bends beyond the largest float
            theta = np.clip(-bias[~flat] / gain[~flat], -LARGEST, LARGEST)
        order = np.argsort(theta, kind="stable")
        (g, g_unit), (b, b_unit), (t, t_unit) = map(_integers, (gain, bias, out_gain))
        constant = _total(t[flat] * np.maximum(b[flat], 0))
        g, b, t = (x[~flat][order] for x in (g, b, t))
        left = g < 0
        bends = np.concatenate([[_total((t * g)[left])], t * np.abs(g)]).cumsum()
        signed = np.where(left, -(t * b), t * b)
        intercepts = np.concatenate([[_total((t * b)[left]) + constant], signed]).cumsum()
        knots = theta[order]
        anchors = np.concatenate([knots[:1], knots]) if len(knots) else np.zeros(1)
        at, a_unit = _integers(anchors)
        unit = max(g_unit + a_unit, b_unit)  # of values and intercepts, apart from that of t
        values = (bends * at << unit - g_unit - a_unit) + (intercepts << unit - b_unit)
        theta_g = at[1:] * g << unit - g_unit - a_unit
        return cls(
            knots,
            anchors,
            _floats(values, t_unit + unit),
            _floats(bends, t_unit + g_unit),
            sharp=bool((theta_g == -(b << unit - b_unit)).all()),
        )

    def __call__(self, s: Balls) -> Balls:
        """f of balls.

        f bends nowhere faster than the steepest piece that the ball touches, so it is off by that
        slope times the radius, and by rounding: u |value| and 3 u |slope (s - anchor)| for the
        numbers and u for the sum. Infinite where the ball touches more than four pieces, or where
        bends in it may have been sorted wrongly. Rounding keeps the order of numbers, so a bend
        inside the ball has a knot between the rounded ends of the ball, or on one of them.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # these end as an infinite radius
            first = _search(self.knots, s.mid - s.rad)
            last = _search(self.knots, s.mid + s.rad, right=True)
            bent = np.flatnonzero(first != last)
            piece = first
            if len(bent):
                piece = first.copy()
                piece[bent] = _search(self.knots, s.mid[bent])
            value, slope = self.values[piece], self.slopes[piece]
            rise = slope * (s.mid - self.anchors[piece])
            mid = value + rise
            steepest = np.abs(slope)
            if len(bent):
                steepest[bent] = self._steepest(first[bent], last[bent])
            rad = U * (np.abs(value) + np.abs(mid) + 3 * np.abs(rise))
            rad += SUBNORMAL * np.abs(s.mid - self.anchors[piece])
            return Balls(mid, up(rad + (steepest + SUBNORMAL) * s.rad))

    def _steepest(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> Floats:
        if not self.sharp:
            return np.full(len(first), np.inf)
        steepest = np.abs(self.slopes[first])
        for step in range(1, 4):
            np.maximum(steepest, np.abs(self.slopes[np.minimum(first + step, last)]), out=steepest)
        steepest[last - first > 3] = np.inf
        return steepest


def _integers(x: Floats) -> tuple[Integers, int]:
    """The numbers as integer multiples of 2^-unit, and the smallest such unit."""
    mantissa, exponent = np.frexp(x)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    places = 53 - exponent.astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1].astype(np.int64) - 1
    used = (places - trailing)[whole != 0]
    unit = max(0, int(used.max())) if len(used) else 0
    shift = np.where(whole != 0, unit - places, 0)
    ints = (whole >> np.maximum(-shift, 0)).astype(object)
    return ints << np.maximum(shift, 0).astype(object), unit


def _total(numbers: Integers) -> int:
    return int(numbers.sum()) if len(numbers) else 0


def _floats(numbers: Integers, unit: int) -> Floats:
    """Multiples of 2^-unit as floats, each rounded once; infinite beyond their range."""
    try:
        return np.ldexp(numbers.astype(np.float64), -unit)
    except OverflowError:
        return np.array([_float(number, unit) for number in numbers.tolist()])


def _float(number: int, unit: int) -> float:
    try:
        return number / (1 << unit)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _search(knots: Floats, s: Floats, *, right: bool = False) -> NDArray[np.int64]:
    """How many knots lie below s (right: or on it); torch's bisection runs on all cores."""
    found = torch.searchsorted(torch.from_numpy(knots), torch.from_numpy(s), right=right)
    return np.asarray(found.numpy())
