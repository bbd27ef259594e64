"""A model in the class that transformers knows, bit for bit."""

from __future__ import annotations

import torch

from rankone.extras import extra
from rankone.nn import Model, TokenClassifier
from rankone.nn.hub import NAMES

with extra("hf", "Hugging Face"):
    from rankone.interop.huggingface.modeling_rankone import (
        CONSTRUCTED,
        RankOneConfig,
        RankOneForTokenClassification,
        checksum,
    )


def as_pretrained(model: Model) -> RankOneForTokenClassification:
    """The same parameters, shared. The way back is `save_pretrained`, with the tokenizer, and
    `rankone.load`."""
    network, weights = model.network, dict(model.network.named_parameters())
    constructed = is_constructed(network)
    config = RankOneConfig(
        **{theirs: getattr(network.shape, ours) for ours, theirs in NAMES.items()},
        id2label=dict(enumerate(model.labels)),
        label2id={label: i for i, label in enumerate(model.labels)},
        reading=model.reading,
        dtype=network.table.dtype,
        made_by=CONSTRUCTED if constructed else None,
        made_in=str(network.table.dtype).removeprefix("torch."),
        made_sha256=checksum(weights) if constructed else None,
    )
    with torch.device("meta"):
        found = RankOneForTokenClassification(config)
    found.load_state_dict(weights, assign=True)
    found.eval()
    return found


def is_constructed(network: TokenClassifier) -> bool:
    """Whether the head still is what `memorize` writes, 2c p with bias -c^2 for label c = 1, 2, ...

    The weights themselves are asked, for a network that was trained further in torch keeps its
    files and its report. A constructed mapping without a readout has a head of zeros.
    """
    weight, bias = network.head.weight, network.head.bias
    number = torch.arange(1, len(bias) + 1, dtype=bias.dtype)
    head = bias.equal(-(number**2)) and weight.equal(number[:, None] * weight[:1])
    return network.shape.feedforward == "rank1" and (head or not (weight.any() or bias.any()))
