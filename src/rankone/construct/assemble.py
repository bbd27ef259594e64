"""Putting the parts together: tables, attention, readout and head as one network."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from rankone.construct.mapping import ContextualMapping, tensor
from rankone.construct.readout import Readout
from rankone.nn import Block, Network, Rank1Attention, SelfAttention, TokenClassifier


def assemble(
    mapping: ContextualMapping,
    attention: Rank1Attention | SelfAttention,
    readout: Readout,
    labels: int,
    causal: bool,
) -> TokenClassifier:
    """The one-layer Transformer of Corollary 1 or 2 with a linear head.

    The block puts the number of the label, from 1, out along the readout's direction p. The head's
    row for label c is 2c p with bias -c^2: 2c y - c^2 = y^2 - (y - c)^2 is largest at the c
    nearest to y.
    """
    vocabulary, dim = mapping.table.shape
    rank1 = isinstance(attention, Rank1Attention)
    head_size = 1 if isinstance(attention, Rank1Attention) else attention.key.shape[1]
    shape = Network(
        vocabulary=vocabulary,
        labels=labels,
        dim=dim,
        hidden=len(readout.gain),
        positions=0 if mapping.positions is None else len(mapping.positions),
        attention="rank1" if rank1 else "softmax",
        head_size=head_size,
        feedforward="rank1",
        causal=causal,
    )
    number = np.arange(1.0, labels + 1)
    head = nn.Linear(dim, labels, dtype=torch.float64)
    head.weight = nn.Parameter(tensor(2 * number[:, None] * mapping.direction))
    head.bias = nn.Parameter(tensor(-(number**2)))
    return TokenClassifier.assemble(
        shape,
        nn.Parameter(tensor(mapping.table)),
        None if mapping.positions is None else nn.Parameter(tensor(mapping.positions)),
        [Block(attention, readout.layer(mapping.direction, mapping.write))],
        head,
    )
