"""A one-dimensional ReLU layer as the piecewise linear function it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PiecewiseLinear:
    """f(s) = sum_j t_j relu(g_j s + b_j), evaluated in O(log q) per number.

    Unit j bends f at theta_j = -b_j / g_j by the slope t_j |g_j|, whichever way it faces::

        t relu(g s + b), g > 0:  ____/      g < 0:  \\____
                                  theta                theta

    so f is known from its value at one bend and its slopes: sort the bends, add the slopes up from
    left to right (prefix sums), add slope times distance up to get the value at each bend, and find
    the piece of a given s by bisection. ``knots`` are the sorted bends, ``values`` f at each,
    ``slopes`` the q + 1 slopes left of, between and right of them. Values were added up from the
    knot number ``start`` outwards, so a piece is drawn from its end that is nearer to it.
    """

    knots: Floats
    values: Floats
    slopes: Floats
    start: int = 0

    @classmethod
    def from_units(cls, gain: Floats, bias: Floats, out_gain: Floats) -> PiecewiseLinear:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            theta = -bias / gain
        flat = ~np.isfinite(theta)
        constant = float(out_gain[flat] @ np.maximum(bias[flat], 0.0))
        gain, bias, out_gain, theta = (x[~flat] for x in (gain, bias, out_gain, theta))
        if not len(theta):
            return cls(np.zeros(1), np.full(1, constant), np.zeros(2))
        order = np.argsort(theta, kind="stable")
        knots = theta[order]
        left = gain < 0
        slopes = np.empty(len(knots) + 1)
        slopes[0] = out_gain[left] @ gain[left]
        slopes[1:] = (out_gain * np.abs(gain))[order]
        np.cumsum(slopes, out=slopes)

        def value(at: float) -> tuple[float, float]:
            """f at a point, and the size of what is added up for it, to which its error is due."""
            active = gain * at + bias > 0
            terms = out_gain[active] * (gain[active] * at + bias[active])
            sizes = np.abs(out_gain[active]) * (np.abs(gain[active] * at) + np.abs(bias[active]))
            return float(terms.sum()), float(sizes.sum())

        # Exact at the left end for the readouts built here; near 0 if some unit bends far away.
        candidates = (0, int(np.abs(knots).argmin()))
        start = min(candidates, key=lambda i: value(float(knots[i]))[1])
        steps = slopes[1:-1] * np.diff(knots)
        first = [constant + value(float(knots[start]))[0]]
        right = np.cumsum(np.concatenate([first, steps[start:]]))
        left_of = np.cumsum(np.concatenate([first, -steps[:start][::-1]]))[:0:-1]
        return cls(knots, np.concatenate([left_of, right]), slopes, start)

    def __call__(self, s: Floats) -> Floats:
        s = np.asarray(s, order="C")
        # torch's bisection is the same as numpy's, but runs on all cores.
        piece = torch.searchsorted(torch.from_numpy(self.knots), torch.from_numpy(s)).numpy()
        anchor = piece - (piece > self.start)
        rise = np.take(self.slopes, piece) * (s - np.take(self.knots, anchor))
        return np.asarray(np.take(self.values, anchor) + rise)
