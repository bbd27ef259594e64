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

    so f is known from its value at the leftmost bend and its slopes: sort the bends, add the
    slopes up from left to right (prefix sums), add slope times distance up to get the value at
    each bend, and find the piece of a given s by bisection. ``knots`` are the sorted bends,
    ``values`` f at each, ``slopes`` the q + 1 slopes left of, between and right of them.
    """

    knots: Floats
    values: Floats
    slopes: Floats

    @classmethod
    def from_units(cls, gain: Floats, bias: Floats, out_gain: Floats) -> PiecewiseLinear:
        flat = gain == 0
        constant = float(out_gain[flat] @ np.maximum(bias[flat], 0.0))
        gain, bias, out_gain = gain[~flat], bias[~flat], out_gain[~flat]
        theta = -bias / gain
        order = np.argsort(theta, kind="stable")
        theta = theta[order]
        left = gain < 0
        slopes = np.empty(len(theta) + 1)
        slopes[0] = out_gain[left] @ gain[left]
        slopes[1:] = (out_gain * np.abs(gain))[order]
        np.cumsum(slopes, out=slopes)
        values = np.empty(len(theta))
        if len(theta):
            values[0] = constant + out_gain[left] @ (gain[left] * theta[0] + bias[left])
            values[1:] = slopes[1:-1] * np.diff(theta)
            np.cumsum(values, out=values)
        else:
            theta, values = np.zeros(1), np.full(1, constant)
            slopes = np.zeros(2)
        return cls(theta, values, slopes)

    def __call__(self, s: Floats) -> Floats:
        # torch's bisection is the same as numpy's, but runs on all cores.
        piece = torch.searchsorted(torch.from_numpy(self.knots), torch.from_numpy(s)).numpy()
        anchor = np.maximum(piece - 1, 0)
        rise = np.take(self.slopes, piece) * (s - np.take(self.knots, anchor))
        return np.asarray(np.take(self.values, anchor) + rise)
