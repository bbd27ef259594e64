"""A model in the class that transformers knows, bit for bit."""

from __future__ import annotations

import torch

from rankone.extras import extra
from rankone.nn import Model
from rankone.nn.hub import NAMES

with extra("hf", "Hugging Face"):
    from rankone.interop.huggingface.modeling_rankone import (
        RankOneConfig,
        RankOneForTokenClassification,
    )


def as_pretrained(model: Model) -> RankOneForTokenClassification:
    """The same parameters, shared. The way back is `save_pretrained`, with the tokenizer, and
    `rankone.load`."""
    network = model.network
    config = RankOneConfig(
        **{theirs: getattr(network.shape, ours) for ours, theirs in NAMES.items()},
        id2label=dict(enumerate(model.labels)),
        label2id={label: i for i, label in enumerate(model.labels)},
        reading=model.reading,
        dtype=network.table.dtype,
        made_in=str(network.table.dtype).removeprefix("torch."),
    )
    with torch.device("meta"):
        found = RankOneForTokenClassification(config)
    found.load_state_dict(dict(network.named_parameters()), assign=True)
    found.eval()
    return found
