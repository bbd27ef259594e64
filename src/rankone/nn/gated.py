"""The feed-forward layer with gates: hidden units that are silent outside their own group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rankone.nn.feedforward import FeedForward
from rankone.nn.layers import FeedForwardLayer, Shapes, module_of

PAIRS = 1 << 22  # of tokens and gates, or of tokens and units, held at once


class GatedFeedForward(FeedForwardLayer):
    """F(H)_k = H_k + sum_j o_j relu(B_j (G_w + G_p)^T H_k + v_j^T a + b_j): eq. 3, kept compact.

    Unit j belongs to a group of tokens: w and p are its rows of ``gates``, ``word[j]`` and
    ``position[j]`` (row 0 is 0: no gate), and B_j is ``penalty[j]``. Tokens of other groups are
    fined so much that the unit is 0 whatever else it sees: the coordinates a = H_k[``reads``], with
    the weights v_j = ``slopes[j]`` and the bias b_j = ``bias1[j]``. It writes
    o_j = ``amplitude[j]`` (``codes[plus[j]]`` - ``codes[minus[j]]``) to the coordinates ``writes``.
    """

    kind = "gated"
    gates: nn.Parameter
    word: nn.Parameter
    position: nn.Parameter
    penalty: nn.Parameter
    slopes: nn.Parameter
    amplitude: nn.Parameter
    codes: nn.Parameter
    plus: nn.Parameter
    minus: nn.Parameter
    reads: nn.Parameter
    writes: nn.Parameter
    WHOLE = ("word", "position", "plus", "minus", "reads", "writes")  # parameters that are indices

    def __init__(
        self,
        dim: int,
        hidden: int,
        gates: int = 1,
        reads: int = 1,
        writes: int = 1,
        codes: int = 1,
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, shape in self.sizes(dim, hidden, gates, reads, writes, codes).items():
            if name in self.WHOLE:
                tensor = torch.zeros(shape, dtype=torch.int64)
            else:
                tensor = torch.randn(shape, dtype=dtype) * dim**-0.5
            setattr(self, name, nn.Parameter(tensor, requires_grad=tensor.is_floating_point()))

    @staticmethod
    def sizes(dim: int, hidden: int, gates: int, reads: int, writes: int, codes: int) -> Shapes:
        """The shape of every parameter."""
        units = ("word", "position", "penalty", "bias1", "amplitude", "plus", "minus")
        return {
            "gates": (gates, dim),
            **dict.fromkeys(units, (hidden,)),
            "slopes": (hidden, reads),
            "codes": (codes, writes),
            "reads": (reads,),
            "writes": (writes,),
        }

    @classmethod
    def assemble(cls, **tensors: Tensor) -> GatedFeedForward:
        """From given tensors, under the names above."""
        return module_of(cls, tensors)

    @property
    def settings(self) -> dict[str, Any]:
        rows, (codes, writes) = len(self.gates), self.codes.shape
        sizes = {"gates": rows, "reads": len(self.reads), "writes": writes, "codes": codes}
        return {**super().settings, **sizes}

    def forward(self, h: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        if not self.hidden:
            return h
        flat = h.reshape(-1, h.shape[-1])
        order = torch.argsort(self.word, stable=True)
        parts = torch.split(flat, max(1, PAIRS // len(self.gates)))
        added = [self._added(part, order) for part in parts]
        change = torch.zeros_like(flat).index_add(1, self.writes, torch.cat(added))
        return h + change.reshape(h.shape)

    def _added(self, h: Tensor, order: Tensor) -> Tensor:
        """What the units write for some tokens; only those are computed that may be active."""
        fines, a = h @ self.gates.T, h[:, self.reads]
        token, gate = self._awake(fines, a).nonzero(as_tuple=True)
        first = torch.searchsorted(self.word[order], torch.arange(len(self.gates) + 1))
        out = h.new_zeros(len(h), self.codes.shape[1])
        count = (first[1:] - first[:-1])[gate]
        ends = torch.cumsum(count, 0)
        i = 0
        while i < len(count):  # so many pairs of token and gate that not too many units come up
            base = int(ends[i - 1]) if i else 0
            j = max(i + 1, int(torch.searchsorted(ends, base + PAIRS, right=True)))
            n, g, t = count[i:j], gate[i:j], token[i:j]
            unit = torch.repeat_interleave(first[g] - (torch.cumsum(n, 0) - n), n)
            unit = order[unit + torch.arange(len(unit))]
            t = torch.repeat_interleave(t, n)
            fine = fines[t, self.word[unit]] + fines[t, self.position[unit]]
            seen = (a[t] * self.slopes[unit]).sum(-1)
            active = torch.relu(self.penalty[unit] * fine + seen + self.bias1[unit])
            o = self.codes[self.plus[unit]] - self.codes[self.minus[unit]]
            out = out.index_add(0, t, (active * self.amplitude[unit])[:, None] * o)
            i = j
        return out

    @torch.no_grad()
    def _awake(self, fines: Tensor, a: Tensor) -> Tensor:
        """For which tokens and gates of words some unit may be active: an upper bound of what its
        units can reach is above 0. Nothing is taken for granted about the weights."""
        rows, used = len(self.gates), torch.unique(self.position)
        most, least = fines[:, used].max(1).values, fines[:, used].min(1).values
        size = a.abs().max(0).values if len(a) else a.new_zeros(a.shape[1])
        seen = self.slopes.abs() @ size + self.bias1
        nothing = fines.new_full((rows,), -torch.inf)
        reach = nothing.scatter_reduce(0, self.word, seen, "amax")
        sizes = (
            nothing.scatter_reduce(0, self.word, b, "amax") for b in (self.penalty, -self.penalty)
        )
        high, low = (torch.nan_to_num(x, neginf=0.0) for x in sizes)
        x = torch.stack([fines + most[:, None], fines + least[:, None]])
        most_fine = torch.maximum((x * high).amax(0), (x * -low).amax(0))
        slack = 2.0**-12 * (most_fine.abs() + reach.abs())  # far more than rounding
        return most_fine + reach + torch.nan_to_num(slack, posinf=0.0) > 0

    @torch.no_grad()
    def expand(self) -> FeedForward:
        """The same layer with both matrices written out."""
        full = FeedForward(self.gates.shape[1], 0, dtype=self.gates.dtype)
        weight1 = self.penalty[:, None] * (self.gates[self.word] + self.gates[self.position])
        weight1.index_add_(1, self.reads, self.slopes)
        weight2 = weight1.new_zeros(self.gates.shape[1], len(weight1))
        o = self.codes[self.plus] - self.codes[self.minus]
        weight2.index_add_(0, self.writes, (self.amplitude[:, None] * o).T)
        full.weight1, full.weight2 = nn.Parameter(weight1), nn.Parameter(weight2)
        full.bias1 = nn.Parameter(self.bias1.detach().clone())
        return full

    @torch.no_grad()
    def in_pieces(self, numbers: int) -> list[Callable[[Tensor], Tensor]]:
        """Functions from tokens (tokens, d) to what some of the units add to them, for one run of
        units after the other, with their matrices written out: those of all units may be more than
        memory holds. About so many numbers are held at once. Left out are columns of W1 that are
        0, and units that are 0 for all of the tokens."""
        seen = self.gates.any(0).index_fill(0, self.reads, True).nonzero()[:, 0]
        gates, reads = self.gates[:, seen], torch.searchsorted(seen, self.reads)

        @torch.no_grad()
        def added(own: slice, h: Tensor) -> Tensor:
            weight1 = self.penalty[own, None] * (gates[self.word[own]] + gates[self.position[own]])
            weight1.index_add_(1, reads, self.slopes[own])
            hidden = torch.relu(nn.functional.linear(h[:, seen], weight1, self.bias1[own]))
            active = (hidden != 0).any(0).nonzero()[:, 0]
            unit = active + own.start
            o = self.codes[self.plus[unit]] - self.codes[self.minus[unit]]
            out = hidden[:, active] @ (self.amplitude[unit, None] * o)
            return torch.zeros_like(h).index_add_(1, self.writes, out)

        step = max(1, numbers // max(1, len(seen)))
        return [partial(added, slice(i, i + step)) for i in range(0, self.hidden, step)]
