"""Masks: boolean, True where a query (second to last axis) may attend to a key (last axis)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from rankone.errors import AttentionError

Mask = Bool[Tensor, "*#batch_and_n n"]  # (..., n, n), (..., 1, n), or (n,) for one sequence


def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 {n}"]:
    """Every query may attend to the first `lengths[b]` tokens of its sentence."""
    return (torch.arange(n, device=lengths.device) < lengths[:, None])[:, None, :]


def causal_mask(n: int, device: torch.device | None = None) -> Bool[Tensor, "{n} {n}"]:
    """Token k may attend to the tokens up to and including k (eq. 132)."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def per_query(mask: Tensor | None) -> Tensor | None:
    """A mask with an axis of queries: padding, (batch, n), is the same for all of them."""
    return mask[:, None, :] if mask is not None and mask.dim() == 2 else mask


def and_causal(mask: Tensor | None, n: int, device: torch.device) -> Tensor:
    """The conjunction of a mask with an axis of queries, and causality."""
    own = causal_mask(n, device)
    return own if mask is None else mask & own


def and_past(mask: Tensor | None, asking: Int[Tensor, "*batch m"], n: int) -> Tensor:
    """The same for the queries at the places `asking` only: (..., m, n)."""
    own = torch.arange(n, device=asking.device) <= asking.unsqueeze(-1)
    return own if mask is None else mask & own


def and_window(mask: Tensor | None, n: int, window: int, device: torch.device) -> Tensor | None:
    """The conjunction of a mask with an axis of queries, and a window: token k may attend to the
    tokens from k - window + 1 on (0: there is no window). What comes after k is left to causality.
    """
    if not window:
        return mask
    own = torch.ones(n, n, dtype=torch.bool, device=device).triu(1 - window)
    return own if mask is None else mask & own


def not_ignored(mask: Tensor, where: str) -> Bool[Tensor, "..."]:
    """A mask of torch's attention, True or -inf where nothing may be attended to, in ours."""
    if mask.dtype == torch.bool:
        return ~mask
    allowed = mask == 0
    fits = (allowed | (mask == -torch.inf)).all()
    what = "a mask may only hold 0 and -inf, or booleans: nothing can be added to the scores"
    if torch.compiler.is_compiling():  # where no tensor may decide what is done next
        torch._assert_async(fits, f"{where}: {what}")
    elif mask.requires_grad or not fits:
        raise AttentionError(what, where=where, remedy="mask with torch.bool, True = not allowed")
    return allowed
