"""The network of Proposition 1: feed-forward, rank-1 attention, feed-forward."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from rankone.errors import FunctionError
from rankone.nn.feedforward import FeedForward
from rankone.nn.layers import AttentionLayer
from rankone.nn.stairs import Stairs


class Approximator(nn.Module):
    """g(X) = P F2(F^SA(F1(E(X))))   (the network of Proposition 1).

    E takes the domain to the unit cube, (x - ``low``) / ``span``, and adds coordinates that are 0;
    with `positions` it puts 0, 1, ..., n - 1 on the last of them before the output (a positional
    encoding). P reads the last ``outputs`` coordinates. In between are ``f1`` (eq. 3),
    ``attention`` (eq. 2, 20) and ``f2`` (eq. 3), each with its skip connection; each can be called
    by itself. It takes sequences of ``n`` tokens in the domain and refuses others: they are not
    what it was built for. Without positions, tokens are sorted on the way in and put back on the
    way out, and equal ones take the output of the first: it changes nothing but rounding, and makes
    a permuted sequence, in the same place of a batch, give the permuted output to the last bit.
    """

    def __init__(
        self,
        *,
        n: int,
        low: Tensor,
        span: Tensor,
        f1: Stairs | FeedForward,
        attention: AttentionLayer,
        f2: Stairs | FeedForward,
        outputs: int,
        positions: bool = False,
    ) -> None:
        super().__init__()
        self.low, self.span = nn.Parameter(low), nn.Parameter(span)
        self.f1, self.attention, self.f2 = f1, attention, f2
        self.n, self.outputs, self.positions = n, outputs, positions
        self.width = f1.output.shape[0] if isinstance(f1, Stairs) else f1.weight1.shape[1]

    def embed(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n w"]:
        """E(X)."""
        z = (x - self.low) / self.span
        if not self.positions:
            return pad(z, (0, self.width - z.shape[-1]))
        place = torch.arange(z.shape[-2], dtype=z.dtype, device=z.device)
        place = place.unsqueeze(-1).expand(*z.shape[:-1], 1)
        room = self.width - z.shape[-1] - 1 - self.outputs
        return pad(torch.cat([pad(z, (0, room)), place], -1), (0, self.outputs))

    def check(self, x: Tensor) -> None:
        """Refuse what is not n tokens in the domain."""
        if x.shape[-2:] != (self.n, len(self.low)):
            raise FunctionError(
                f"the network takes (..., {self.n}, {len(self.low)}), not {tuple(x.shape)}",
                remedy="give n tokens of d numbers each",
            )
        z = (x - self.low) / self.span
        outside = ~((z >= 0) & (z <= 1)).all(-1)
        if outside.any():
            low, high = self.low.tolist(), (self.low + self.span).tolist()
            raise FunctionError(
                f"the token {x[outside][0].tolist()} is outside of the domain, from {low} to "
                f"{high}",
                remedy="build the network for a larger domain, or clip the input",
            )

    def contexts(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n w"]:
        """F^SA(F1(E(X))): what the readout sees."""
        return self._in_order(lambda x: self.attention(self.f1(self.embed(x))), x)

    def forward(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n m"]:
        out = self._in_order(lambda x: self.f2(self.attention(self.f1(self.embed(x)))), x)
        return out[..., self.width - self.outputs :]

    def _in_order(self, layers: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Layers on the sequence with its tokens sorted, put back afterwards."""
        self.check(x)
        if self.positions:
            return layers(x)
        places = torch.arange(x.shape[-2], device=x.device)
        order = places.expand(x.shape[:-1])
        for i in reversed(range(x.shape[-1])):  # the first coordinate decides
            again = x[..., i].detach().gather(-1, order).sort(stable=True).indices
            order = order.gather(-1, again)
        tokens = x.gather(-2, order.unsqueeze(-1).expand_as(x))
        new = (tokens[..., 1:, :] != tokens[..., :-1, :]).any(-1)
        first = pad((new * places[1:]).cummax(-1).values, (1, 0)).unsqueeze(-1)  # of equal ones
        out = layers(tokens)
        out = out.gather(-2, first.expand_as(out))
        return torch.empty_like(out).scatter(-2, order.unsqueeze(-1).expand_as(out), out)

    def expand(self) -> Approximator:
        """The same network with every matrix multiplied out: eq. 2 and 3, nothing else.

        With planes on cells, the same for inputs in the domain.
        """
        return Approximator(
            n=self.n,
            low=self.low.detach(),
            span=self.span.detach(),
            f1=self.f1.expand(),
            attention=self.attention.expand(),
            f2=self.f2.expand(),
            outputs=self.outputs,
            positions=self.positions,
        )
