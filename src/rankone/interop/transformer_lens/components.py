"""Attention and feed-forward layers with a hook on every activation.

Where no hook changes anything, the outputs are those of the layer to the last bit: what hooks make
of a number is added as a difference. They get copies, which they may change in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformer_lens.hook_points import HookPoint
from transformer_lens.model_bridge.generalized_components.base import GeneralizedComponent

from rankone.interop.transformer_lens.units import units_of


class HeadsBridge(GeneralizedComponent):
    """F(Z) = Z + sum_i W^O_i (W^V_i Z) sigma[(W^K_i Z)^T (W^Q_i Z)]   (eq. 2, 5 and 20).

    ``hook_in`` is Z. ``hook_q``, ``hook_k``, ``hook_v`` and ``hook_z``, the averages, are (batch,
    n, heads, head size); ``hook_attn_scores``, minus infinity under the mask, and ``hook_pattern``
    are (batch, heads, query, key); ``hook_result`` is what each head adds, (batch, n, heads, d),
    and ``hook_out`` what all of them add.
    """

    def __init__(self, name: str, config: Any) -> None:
        super().__init__(name, config)
        self.hook_q, self.hook_k, self.hook_v, self.hook_z = (HookPoint() for _ in range(4))
        self.hook_attn_scores, self.hook_pattern = HookPoint(), HookPoint()
        self.hook_result = HookPoint()

    def forward(self, z: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        layer: Any = self.original_component
        z = self.hook_in(z)
        hooks = self.hook_q, self.hook_k, self.hook_v
        query, key, value = (
            hook(x.transpose(1, 2).clone()).transpose(1, 2)  # key and value may be one tensor
            for hook, x in zip(hooks, layer.read(z), strict=True)
        )
        scores = self.hook_attn_scores(layer.scores(query, key, mask))
        weights = self.hook_pattern(layer.weigh(scores, mask))
        averages = self.hook_z((weights @ value).transpose(1, 2)).transpose(1, 2)
        output = layer.matrices[3]
        added = torch.einsum("hds,bhns->bnd", output, averages)
        if self.config.use_attn_result and self.hook_result.has_hooks(dir="both"):
            result = torch.einsum("hds,bhns->bnhd", output, averages)
            added = added + (self.hook_result(result.clone()) - result).sum(2)
        return z + self.hook_out(added), weights

    @property
    def W_K(self) -> Tensor:  # noqa: N802  the names of TransformerLens
        """(heads, d, head size), as are W_Q and W_V."""
        return self._matrices[0].mT

    @property
    def W_Q(self) -> Tensor:  # noqa: N802
        return self._matrices[1].mT

    @property
    def W_V(self) -> Tensor:  # noqa: N802
        return self._matrices[2].mT

    @property
    def W_O(self) -> Tensor:  # noqa: N802
        """(heads, head size, d)."""
        return self._matrices[3].mT

    @property
    def _matrices(self) -> tuple[Tensor, ...]:
        layer: Any = self.original_component
        matrices: tuple[Tensor, ...] = layer.matrices
        return matrices


class UnitsBridge(GeneralizedComponent):
    """F(H)_k = H_k + W2 relu(W1 H_k + b1) + b2   (eq. 3), of any kind.

    ``hook_in`` is H, ``hook_pre`` what the units see and ``hook_post`` what they give, (batch, n,
    units), and ``hook_out`` what the layer adds to H. Units are computed one by one only where one
    of their hooks is used; a change of theirs is added to what the layer gives.
    """

    def __init__(self, name: str, config: Any) -> None:
        super().__init__(name, config)
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()

    def forward(self, h: Tensor) -> Tensor:
        layer: Any = self.original_component
        h = self.hook_in(h)
        out: Tensor = layer(h)
        if any(hook.has_hooks(dir="both") for hook in (self.hook_pre, self.hook_post)):
            units = units_of(layer)
            seen = units.seen(layer, h)
            changed = self.hook_post(torch.relu(self.hook_pre(seen.clone())))
            out = out + units.written(layer, changed - torch.relu(seen))
        if self.hook_out.has_hooks(dir="both"):
            added = out - h
            out = out + (self.hook_out(added.clone()) - added)
        return out
