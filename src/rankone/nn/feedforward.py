"""The feed-forward layer with skip connection (eq. 3), in general and with matrices of rank 1."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rankone.nn.given import module_of
from rankone.nn.piecewise import PiecewiseLinear


class FeedForward(nn.Module):
    """F(H)_k = H_k + W2 relu(W1 H_k + b1) + b2   (eq. 3).

    H_k is row k of `h`; W1 (q x d), b1, W2 (d x q), b2 are ``weight1``, ``bias1``, ``weight2``,
    ``bias2``.
    """

    def __init__(self, dim: int, hidden: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.weight1 = nn.Parameter(torch.randn(hidden, dim, dtype=dtype) * dim**-0.5)
        self.bias1 = nn.Parameter(torch.zeros(hidden, dtype=dtype))
        self.weight2 = nn.Parameter(torch.randn(dim, hidden, dtype=dtype) * max(1, hidden) ** -0.5)
        self.bias2 = nn.Parameter(torch.zeros(dim, dtype=dtype))

    @property
    def hidden(self) -> int:
        """How many hidden units there are."""
        return len(self.bias1)

    def forward(self, h: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        hidden = torch.relu(nn.functional.linear(h, self.weight1, self.bias1))
        return h + nn.functional.linear(hidden, self.weight2, self.bias2)


class Rank1FeedForward(nn.Module):
    """F(H)_k = H_k + w sum_j t_j relu(g_j a^T H_k + b_j) + b2: eq. 3 with W1 = g a^T, W2 = w t^T.

    Kept as factors: ``gain`` (g), ``direction`` (a), ``bias1`` (b), ``out_direction`` (w),
    ``out_gain`` (t), ``bias2``. All that the layer sees of a token is the number s = a^T H_k, and
    all that it adds is a piecewise linear function of s, which `piecewise` returns.
    """

    def __init__(self, dim: int, hidden: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(hidden, dtype=dtype))
        self.direction = nn.Parameter(torch.randn(dim, dtype=dtype) * dim**-0.5)
        self.bias1 = nn.Parameter(torch.randn(hidden, dtype=dtype))
        self.out_direction = nn.Parameter(torch.randn(dim, dtype=dtype) * dim**-0.5)
        self.out_gain = nn.Parameter(torch.randn(hidden, dtype=dtype) * max(1, hidden) ** -0.5)
        self.bias2 = nn.Parameter(torch.zeros(dim, dtype=dtype))

    @classmethod
    def assemble(
        cls,
        *,
        gain: Tensor,
        direction: Tensor,
        bias1: Tensor,
        out_direction: Tensor,
        out_gain: Tensor,
        bias2: Tensor,
    ) -> Rank1FeedForward:
        """From given vectors."""
        given = {
            "gain": gain,
            "direction": direction,
            "bias1": bias1,
            "out_direction": out_direction,
            "out_gain": out_gain,
            "bias2": bias2,
        }
        return module_of(cls, given)

    def forward(self, h: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        s = (h @ self.direction).unsqueeze(-1)
        added = torch.relu(s * self.gain + self.bias1) @ self.out_gain
        return h + added.unsqueeze(-1) * self.out_direction + self.bias2

    def piecewise(self) -> PiecewiseLinear:
        """What the hidden layer adds along ``out_direction``, as a function of s."""
        return PiecewiseLinear.from_units(
            self.gain.detach().numpy(), self.bias1.detach().numpy(), self.out_gain.detach().numpy()
        )

    @torch.no_grad()
    def expand(self) -> FeedForward:
        """The same layer with its two matrices multiplied out."""
        full = FeedForward(len(self.direction), len(self.gain), dtype=self.gain.dtype)
        full.weight1.copy_(self.gain[:, None] * self.direction)
        full.bias1.copy_(self.bias1)
        full.weight2.copy_(self.out_direction[:, None] * self.out_gain)
        full.bias2.copy_(self.bias2)
        return full
