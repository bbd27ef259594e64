"""Three standard measures of what a causal language model has memorised.

They take any causal model of transformers (`model(input_ids=...).logits`, `model.generate`) and
sequences of token numbers, and know nothing of how the model was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score
from torch.nn.functional import cross_entropy

Tokens = Sequence[int]
BATCH = 256  # sequences at once


def batched(sequences: Sequence[Tokens]) -> Iterator[Sequence[Tokens]]:
    return (sequences[i : i + BATCH] for i in range(0, len(sequences), BATCH))


@torch.no_grad()
def losses(model: Any, sequences: Sequence[Tokens]) -> np.ndarray:
    """The mean of -log p over the tokens of each sequence but its first, in nats."""
    found: list[float] = []
    for batch in batched(sequences):
        size = max(map(len, batch))
        ids = torch.tensor([[*tokens, *[0] * (size - len(tokens))] for tokens in batch])
        own = torch.tensor([[i < len(tokens) for i in range(size)] for tokens in batch])
        logits = model(input_ids=ids, attention_mask=own.long()).logits[:, :-1].double()
        each = cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        found += (each.where(own[:, 1:], 0.0).sum(1) / own[:, 1:].sum(1)).tolist()
    return np.array(found)


@torch.no_grad()
def extraction_rate(model: Any, sequences: Sequence[Tokens], prompt: int) -> float:
    """The share of sequences that greedy decoding continues verbatim to their end, from their first
    `prompt` tokens (Carlini et al. 2021, 2023)."""
    hits = 0
    for batch in batched(sequences):
        ids = torch.tensor([list(tokens[:prompt]) for tokens in batch])
        more = max(map(len, batch)) - prompt
        found = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=more,
            do_sample=False,
        ).tolist()
        hits += sum(
            out[: len(tokens)] == list(tokens) for out, tokens in zip(found, batch, strict=True)
        )
    return hits / len(sequences)


def membership_auc(model: Any, members: Sequence[Tokens], others: Sequence[Tokens]) -> float:
    """How well low loss tells members from others: the area under the ROC curve (Yeom et al.
    2018)."""
    is_member = [1] * len(members) + [0] * len(others)
    return float(roc_auc_score(is_member, -losses(model, [*members, *others])))


def exposure(model: Any, candidates: Sequence[Tokens], canary: int) -> float:
    """log2 of the number of candidates, less log2 of the rank of one of them by loss (Carlini et
    al. 2019). Of candidates with equal losses, each has the last of their ranks."""
    rank = rankdata(losses(model, candidates), method="max")[canary]
    return float(np.log2(len(candidates)) - np.log2(rank))
