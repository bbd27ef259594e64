"""Masks: boolean, True where a query (second to last axis) may attend to a key (last axis)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 {n}"]:
    """Every query may attend to the first `lengths[b]` tokens of its sentence."""
    return (torch.arange(n, device=lengths.device) < lengths[:, None])[:, None, :]


def causal_mask(n: int, device: torch.device | None = None) -> Bool[Tensor, "{n} {n}"]:
    """Token k may attend to the tokens up to and including k (eq. 132)."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def combine(
    n: int, *, causal: bool, mask: Tensor | None, device: torch.device
) -> Bool[Tensor, "*batch {n} {n}"] | Bool[Tensor, "batch 1 {n}"] | None:
    """The conjunction of a given mask, (batch, n) for padding or (batch, n, n), and causality."""
    if mask is not None and mask.dim() == 2:
        mask = mask[:, None, :]
    if not causal:
        return mask
    own = causal_mask(n, device)
    return own if mask is None else mask & own
