"""How a model is run where nobody asks for gradients: what can be found once, from its weights.

This file is saved with the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from .cache_rankone import Everything, Fading, Memory, RankOneCache, Sums
from .layers_rankone import Attention, Block, GatedFeedForward, NextTokens
from .lookup_rankone import Lookup

if TYPE_CHECKING:
    from .pretrained_rankone import RankOnePreTrainedModel

LARGEST = 300.0  # of scores whose exponentials are added up as they are


class Plan:
    """The memory of each block, for a gated layer the way to its units (`Lookup`), and the columns
    of the head that are not 0.
    """

    @torch.no_grad()
    def __init__(self, model: RankOnePreTrainedModel) -> None:
        self.parameters = [module._parameters for module in model.modules()]
        self.state = self._state()
        self.window = model.config.window
        self.blocks = [block for block in model.blocks if isinstance(block, Block)]
        self.attentions = [block.attention for block in self.blocks]
        self.output = [
            attention.matrices[3].transpose(1, 2).flatten(0, 1) for attention in self.attentions
        ]
        head = getattr(model, "head", None)
        self.head = Head(head) if isinstance(head, NextTokens) else None
        self.lookup: Lookup | None = None
        self.steady: tuple[Tensor, Tensor] | None = None
        if len(self.attentions) == 1:
            self.steady = _steady(model, self.attentions[0])
            layer = self.blocks[0].feedforward
            if isinstance(layer, GatedFeedForward):
                self.lookup = Lookup.of(
                    layer, model.table, model.positions, model.step, self.attentions[0]
                )

    def _state(self) -> list[tuple[int, int, torch.dtype]]:
        """What changes where a tensor of the model does."""
        return [
            (p.data_ptr(), 0 if p.is_inference() else p._version, p.dtype)
            for parameters in self.parameters
            for p in parameters.values()
            if p is not None
        ]

    def holds(self) -> bool:
        """Whether the weights are those that it was made of."""
        return self.state == self._state()

    def cache(self) -> RankOneCache:
        """One that remembers nothing yet."""
        return RankOneCache([self._memory(attention) for attention in self.attentions])

    def run(
        self,
        i: int,
        z: Tensor,
        past: RankOneCache,
        real: Tensor | None,
        rows: Tensor,
        places: Tensor,
    ) -> Tensor:
        """Block i for some more tokens, which have these rows of the table and these places."""
        if real is not None and bool(real.all()):
            real = None
        order = None
        if real is not None and bool((real[:, 1:] < real[:, :-1]).any()):
            order = torch.argsort(real.long(), dim=1, stable=True)  # the last ones are real
            real, seen = real.gather(1, order), z.gather(1, order[..., None].expand_as(z))
        else:
            seen = z
        found = past.layers[i].averages(seen, real)
        if order is not None:
            back = torch.empty_like(order).scatter_(
                1, order, torch.arange(order.shape[1], device=z.device).expand_as(order)
            )
            found = found.gather(1, back[..., None].expand_as(found))
        h = z + found @ self.output[i]
        if self.lookup is None:
            out: Tensor = self.blocks[i].feedforward(h)
            return out
        return self.lookup(h, rows, places)

    def _memory(self, attention: Attention) -> Memory:
        if self.steady is None:
            return Everything(attention, self.window)
        return (Fading if self.window else Sums)(*self.steady)


class Head:
    """`NextTokens` without the columns that are 0, one column for each token of the tokenizer."""

    def __init__(self, head: NextTokens) -> None:
        self.seen = head.weight.any(0).nonzero()[:, 0]
        weight = head.weight[:, self.seen]
        self.most = weight.abs().amax(0)
        self.never = head.BELOW + head.bias.abs().amax()
        self.weight = weight.new_zeros(len(self.seen) + 1, head.size)
        self.weight[-1] = -1.0
        self.weight[:, head.token] = nn.functional.pad(weight, (0, 1)).T
        self.bias = head.bias.new_zeros(head.size)
        self.bias[head.token] = head.bias

    def __call__(self, z: Tensor) -> Tensor:
        y = z[..., self.seen]
        y = torch.cat([y, (y.abs() @ self.most + self.never)[..., None]], -1)
        logits = torch.addmm(self.bias, y.flatten(0, -2), self.weight)
        return logits.view(*z.shape[:-1], -1)


def _steady(model: RankOnePreTrainedModel, attention: Attention) -> tuple[Tensor, Tensor] | None:
    """What `Fading` or `Sums` takes, for softmax heads where every token has the same query; None
    for others."""
    key, query, value, _ = attention.matrices
    heads, size = key.shape[:2]
    table, positions, step = model.table, model.positions, model.step
    asked = table @ query.flatten(0, 1).T
    if attention.kind == "hardmax" or not (asked == asked[:1]).all():
        return None
    if any((x @ query.flatten(0, 1).T).any() for x in (positions, step) if x is not None):
        return None
    score = torch.einsum("hs,hsd->dh", asked[0].view(heads, size), key)
    read = value.flatten(0, 1).T
    if step is None:
        most = sum((x @ score).abs().amax(0) for x in (table, positions) if x is not None)
        return (score, read) if (torch.as_tensor(most) < LARGEST).all() else None
    known, decay = table @ score, (step @ score).double()
    if not (known == known[:1]).all() or (step @ read).any() or not (decay > 0).all():
        return None
    back = torch.arange(model.config.window - 1, -1, -1, device=decay.device)
    weights = torch.exp(-back[:, None] * decay)
    return weights.repeat_interleave(size, dim=1), read
