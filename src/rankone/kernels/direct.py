"""Rank-1 softmax attention over a batch, by the table of all scores."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def rank1_attention(
    query: Float[Tensor, "*batch q"],
    key: Float[Tensor, "*batch n"],
    value: Float[Tensor, "*batch n"],
    *,
    mask: Bool[Tensor, "*#batch #q n"] | None = None,
) -> Float[Tensor, "*batch q"]:
    """out_k = sum_l value_l e^(y_k x_l) / sum_l e^(y_k x_l)   over the keys l that k may attend to.

    y is `query`, x is `key`; `mask` is True where a query may attend to a key. A query that may
    attend to nothing gets 0.

    Keys are taken relative to the extreme one BEFORE they are multiplied by the query: the
    difference of two keys is exact to rounding, while y x_l - y x_max loses the digits that
    y x_l and y x_max share.
    """
    high, low = _extremes(key, mask)
    nearest = torch.where(query >= 0, high, low).unsqueeze(-1)
    distance = key.unsqueeze(-2) - nearest
    if mask is not None:
        # Before it is multiplied: a masked key may lie far beyond the extreme one, and infinity
        # times 0 would be NaN in the gradient.
        distance = torch.where(mask, distance, 0.0)
    weights = torch.exp(query.unsqueeze(-1) * distance)
    if mask is not None:
        weights = torch.where(mask, weights, 0.0)
    total = weights.sum(-1)
    weighted = (weights @ value.unsqueeze(-1)).squeeze(-1)
    return torch.where(total > 0, weighted / torch.where(total > 0, total, 1.0), 0.0)


def _extremes(key: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The largest and the smallest key each query may attend to (0 if none)."""
    if mask is None:
        return key.amax(-1, keepdim=True), key.amin(-1, keepdim=True)
    keys = key.unsqueeze(-2)
    some = mask.any(-1)
    high = torch.where(mask, keys, -torch.inf).amax(-1)
    low = torch.where(mask, keys, torch.inf).amin(-1)
    return torch.where(some, high, 0.0), torch.where(some, low, 0.0)
