"""Hidden units of a feed-forward layer of any kind: what each sees, and what they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from rankone.interop.huggingface.layers_rankone import (
    DenseFeedForward,
    GatedFeedForward,
    Rank1FeedForward,
)


class Units(NamedTuple):
    """W1 h + b1, (..., units), and W2 times such numbers, (..., d): eq. 3 without its sum."""

    seen: Callable[[Any, Tensor], Tensor]
    written: Callable[[Any, Tensor], Tensor]


def _seen_gated(layer: GatedFeedForward, h: Tensor) -> Tensor:
    fines = h @ layer.gates.T
    fine = layer.penalty * (fines[..., layer.word] + fines[..., layer.position])
    return fine + linear(h[..., layer.reads], layer.slopes, layer.bias1)


def _written_gated(layer: GatedFeedForward, active: Tensor) -> Tensor:
    """By code, since a row for each unit may be more than memory holds."""
    strength = (active * layer.amplitude).flatten(0, -2).T
    codes = strength.new_zeros(len(layer.codes), strength.shape[1])
    codes = codes.index_add(0, layer.plus, strength).index_add(0, layer.minus, -strength)
    out = active.new_zeros(strength.shape[1], layer.gates.shape[1])
    out = out.index_add(1, layer.writes, codes.T @ layer.codes)
    return out.view(*active.shape[:-1], -1)


UNITS: dict[type, Units] = {
    DenseFeedForward: Units(
        lambda layer, h: linear(h, layer.weight1, layer.bias1),
        lambda layer, active: linear(active, layer.weight2),
    ),
    Rank1FeedForward: Units(
        lambda layer, h: (h @ layer.direction)[..., None] * layer.gain + layer.bias1,
        lambda layer, active: (active @ layer.out_gain)[..., None] * layer.out_direction,
    ),
    GatedFeedForward: Units(_seen_gated, _written_gated),
}


def units_of(layer: torch.nn.Module) -> Units:
    return UNITS[type(layer)]
