"""The feed-forward layer with skip connection (eq. 3), in general and with matrices of rank 1: then
it is a piecewise linear function of one number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rankone.arrays import Floats
from rankone.nn.layers import FeedForwardLayer, Shapes, module_of


class FeedForward(FeedForwardLayer):
    """F(H)_k = H_k + W2 relu(W1 H_k + b1) + b2   (eq. 3).

    H_k is row k of `h`; W1 (q x d), b1, W2 (d x q), b2 are ``weight1``, ``bias1``, ``weight2``,
    ``bias2``.
    """

    kind = "dense"

    def __init__(self, dim: int, hidden: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.weight1 = nn.Parameter(torch.randn(hidden, dim, dtype=dtype) * dim**-0.5)
        self.bias1 = nn.Parameter(torch.zeros(hidden, dtype=dtype))
        self.weight2 = nn.Parameter(torch.randn(dim, hidden, dtype=dtype) * max(1, hidden) ** -0.5)
        self.bias2 = nn.Parameter(torch.zeros(dim, dtype=dtype))

    @staticmethod
    def sizes(dim: int, hidden: int) -> Shapes:
        """The shape of every parameter."""
        weights = {"weight1": (hidden, dim), "weight2": (dim, hidden)}
        return {**weights, "bias1": (hidden,), "bias2": (dim,)}

    def expand(self) -> FeedForward:
        return self

    def forward(self, h: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        hidden = torch.relu(nn.functional.linear(h, self.weight1, self.bias1))
        return h + nn.functional.linear(hidden, self.weight2, self.bias2)


class Rank1FeedForward(FeedForwardLayer):
    """F(H)_k = H_k + w sum_j t_j relu(g_j a^T H_k + b_j) + b2: eq. 3 with W1 = g a^T, W2 = w t^T.

    Kept as factors: ``gain`` (g), ``direction`` (a), ``bias1`` (b), ``out_direction`` (w),
    ``out_gain`` (t), ``bias2``. All that the layer sees of a token is the number s = a^T H_k, and
    all that it adds is a piecewise linear function of s, which `piecewise` returns.
    """

    kind = "rank1"

    def __init__(self, dim: int, hidden: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(hidden, dtype=dtype))
        self.direction = nn.Parameter(torch.randn(dim, dtype=dtype) * dim**-0.5)
        self.bias1 = nn.Parameter(torch.randn(hidden, dtype=dtype))
        self.out_direction = nn.Parameter(torch.randn(dim, dtype=dtype) * dim**-0.5)
        self.out_gain = nn.Parameter(torch.randn(hidden, dtype=dtype) * max(1, hidden) ** -0.5)
        self.bias2 = nn.Parameter(torch.zeros(dim, dtype=dtype))

    @classmethod
    def assemble(cls, **vectors: Tensor) -> Rank1FeedForward:
        """From given vectors, under the names above."""
        return module_of(cls, vectors)

    @staticmethod
    def sizes(dim: int, hidden: int) -> Shapes:
        """The shape of every parameter."""
        units: Shapes = dict.fromkeys(("gain", "bias1", "out_gain"), (hidden,))
        return {**units, **dict.fromkeys(("direction", "out_direction", "bias2"), (dim,))}

    def forward(self, h: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        s = (h @ self.direction).unsqueeze(-1)
        added = torch.relu(s * self.gain + self.bias1) @ self.out_gain
        return h + added.unsqueeze(-1) * self.out_direction + self.bias2

    def piecewise(self) -> PiecewiseLinear:
        """What the hidden layer adds along ``out_direction``, as a function of s.

        In float64 also where the weights are float32: sums over all units would lose more digits
        than the layer itself does.
        """
        units = (self.gain, self.bias1, self.out_gain)
        return PiecewiseLinear.from_units(*(unit.detach().double().numpy() for unit in units))

    @torch.no_grad()
    def expand(self) -> FeedForward:
        """The same layer with its two matrices multiplied out."""
        full = FeedForward(len(self.direction), len(self.gain), dtype=self.gain.dtype)
        full.weight1.copy_(self.gain[:, None] * self.direction)
        full.bias1.copy_(self.bias1)
        full.weight2.copy_(self.out_direction[:, None] * self.out_gain)
        full.bias2.copy_(self.bias2)
        return full


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
