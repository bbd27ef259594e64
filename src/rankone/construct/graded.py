"""Weights of a grade as a model: the contextual mapping of Theorem 2, without a readout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from rankone.construct.mapping import tensor
from rankone.construct.setting import Setting
from rankone.construct.theorem2 import GradedMapping
from rankone.corpus import Corpus
from rankone.nn import Block, Model, Network, Rank1FeedForward, TokenClassifier


def graded_model(
    corpus: Corpus,
    where: Setting,
    graded: GradedMapping,
    *,
    head_size: int = 1,
    causal: bool = False,
) -> Model:
    """X, E and attention in float64, no hidden unit and a head of zeros, to be saved and certified.

    float64 holds the weights of attention, for eq. 29 and 32 are ordinary numbers; it is what they
    compute that takes thousands of digits. A readout would need weights of that size, so there is
    none: the features of this model are the context ids. Unknown words stand at the mean.
    """
    table = np.vstack([where.table, where.table.mean(0)])
    mapping = replace(graded.mapping, table=table, positions=where.positions)
    dim = table.shape[1]
    nothing = torch.zeros(0, dtype=torch.float64)
    zero = torch.zeros(dim, dtype=torch.float64)
    head = nn.Linear(dim, len(corpus.label_names), dtype=torch.float64)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    shape = Network(
        vocabulary=len(table),
        labels=len(corpus.label_names),
        dim=dim,
        hidden=0,
        positions=0 if where.positions is None else len(where.positions),
        attention="rank1" if head_size == 1 else "softmax",
        head_size=head_size,
        feedforward="rank1",
        causal=causal,
    )
    readout = Rank1FeedForward.assemble(
        gain=nothing,
        direction=zero,
        bias1=nothing.clone(),
        out_direction=zero.clone(),
        out_gain=nothing.clone(),
        bias2=zero.clone(),
    )
    network = TokenClassifier.assemble(
        shape,
        nn.Parameter(tensor(table)),
        None if where.positions is None else nn.Parameter(tensor(where.positions)),
        [Block(mapping.attention(head_size), readout)],
        head,
    )
    return Model(network, corpus.vocabulary, corpus.label_names, corpus.reading)
