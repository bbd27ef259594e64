"""The two torch operators, by name and type; `linear` says what they do."""

from __future__ import annotations

import torch
from torch import library

# Defined by their schemas: operators made from functions load all of torch's compiler, two seconds
# of it, when they are called first.
library.define(
    "rankone::attention",
    "(Tensor query, Tensor key, Tensor value, Tensor? there, bool causal) -> (Tensor, Tensor)",
)
library.define(
    "rankone::attention_backward",
    "(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? there, Tensor out, "
    "Tensor total, bool causal) -> (Tensor, Tensor, Tensor)",
)
attention = torch.ops.rankone.attention.default
attention_backward = torch.ops.rankone.attention_backward.default
