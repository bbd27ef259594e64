"""Rank-1 softmax attention by the table of all scores: O(n^2), the reference for faster ways."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

SCORES = 1 << 24  # held at once, per batch; gradients hold all of them


def direct_attention(
    query: Float[Tensor, "*batch q"],
    key: Float[Tensor, "*batch n"],
    value: Float[Tensor, "*batch n c"],
    *,
    causal: bool = False,
    mask: Bool[Tensor, "*#batch #q n"] | None = None,
) -> Float[Tensor, "*batch q c"]:
    """out_k = sum_l value_l e^(y_k x_l) / sum_l e^(y_k x_l)   over the keys l that k may attend to.

    Keys are taken relative to the extreme one BEFORE they are multiplied by the query: the
    difference of two keys is exact to rounding, while y x_l - y x_max loses the digits that
    y x_l and y x_max share. Keys whose difference overflows are infinitely far apart.
    """
    q, n = query.shape[-1], key.shape[-1]
    if n == 0:
        return value.new_zeros(*query.shape, value.shape[-1])
    if query.device.type != "meta" and torch.is_autocast_enabled(query.device.type):
        with torch.autocast(query.device.type, enabled=False):
            return direct_attention(query, key, value, causal=causal, mask=mask)
    # With other strides, sums could be taken in another order: now equal numbers give equal bits.
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    step = max(1, SCORES // max(1, math.prod(query.shape[:-1]) * n))
    parts = []
    for i in range(0, max(q, 1), step):
        allowed = mask if mask is None or mask.shape[-2] == 1 else mask[..., i : i + step, :]
        part = query[..., i : i + step]
        if causal:
            k = torch.arange(i, i + part.shape[-1], device=query.device)
            seen = torch.arange(n, device=query.device) <= k[:, None]
            allowed = seen if allowed is None else seen & allowed
        parts.append(_attend(part, key, value, allowed))
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    high, low = _extremes(key, mask)
    nearest = torch.where(query >= 0, high, low).unsqueeze(-1)
    distance = key.unsqueeze(-2) - nearest
    if mask is not None:
        # Before it is multiplied: a masked key may lie far beyond the extreme one, and infinity
        # times 0 would be NaN in the gradient.
        distance = torch.where(mask, distance, 0.0)
    weights = torch.exp(query.unsqueeze(-1) * distance)
    if mask is None:
        return weights @ value / weights.sum(-1, keepdim=True)
    weights = torch.where(mask, weights, 0.0)
    total = weights.sum(-1, keepdim=True)
    some = mask.any(-1).unsqueeze(-1)  # a query that sees nothing gets 0
    return torch.where(some, seen_sum(weights, value, mask) / torch.where(some, total, 1.0), 0.0)


def seen_sum(weights: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """`weights` @ `value`, for weights that are 0 where the `mask` is False.

    Values that a query does not see may be anything: 0 times infinity is never added.
    """
    finite = torch.isfinite(value)
    if _decided(finite.all()):
        return weights @ value
    out = weights @ value.where(finite, 0.0)
    odd = (~finite).any(-1).view(-1, value.shape[-2]).any(0)
    for i in odd.nonzero().flatten().tolist():
        part = value[..., i : i + 1, :].where(~finite[..., i : i + 1, :], 0.0)
        out = out + torch.where(mask[..., i : i + 1], weights[..., i : i + 1] * part, 0.0)
    return out


def _decided(condition: Tensor) -> bool:
    """The condition; True where no tensor may decide what to do: in a graph or a transform."""
    if torch.compiler.is_compiling():
        return True
    try:
        return bool(condition)
    except RuntimeError:
        return True


def _extremes(key: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The largest and the smallest key each query may attend to (0 if none)."""
    if mask is None:
        return key.amax(-1, keepdim=True), key.amin(-1, keepdim=True)
    keys = key.unsqueeze(-2)
    some = mask.any(-1)
    high = torch.where(mask, keys, -torch.inf).amax(-1)
    low = torch.where(mask, keys, torch.inf).amin(-1)
    return torch.where(some, high, 0.0), torch.where(some, low, 0.0)
