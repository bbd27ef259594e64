"""The feed-forward layer with gates: hidden units that are silent outside their own group."""

from __future__ import annotations

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

    def expand(self) -> FeedForward:
        """The same layer with both matrices written out."""
        return self.expand_units(0, self.hidden)

    @torch.no_grad()
    def expand_units(self, first: int, last: int) -> FeedForward:
        """A layer of these units only, with both matrices written out: all of them may be more than
        memory holds."""
        own = slice(first, last)
        full = FeedForward(self.gates.shape[1], 0, dtype=self.gates.dtype)
        gates = self.gates[self.word[own]] + self.gates[self.position[own]]
        weight1 = self.penalty[own, None] * gates
        weight1.index_add_(1, self.reads, self.slopes[own])
        weight2 = weight1.new_zeros(self.gates.shape[1], len(weight1))
        o = self.codes[self.plus[own]] - self.codes[self.minus[own]]
        weight2.index_add_(0, self.writes, (self.amplitude[own, None] * o).T)
        full.weight1, full.weight2 = nn.Parameter(weight1), nn.Parameter(weight2)
        full.bias1 = nn.Parameter(self.bias1[own].detach().clone())
        return full
