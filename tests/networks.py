"""Networks of every kind that a model directory can hold, with random weights."""

from __future__ import annotations

from itertools import cycle, product
from typing import Any

import torch
from hypothesis import strategies as st

import dense_truth
from rankone.nn import Architecture, Model, TokenClassifier
from rankone.nn.kinds import ATTENTIONS, FEEDFORWARDS

WORDS, LABELS = tuple("abcdefgh"), ("O", "B-X", "I-X")


def architecture(
    attention: str, feedforward: str, positions: int = 0, causal: bool = False, depth: int = 1
) -> Architecture:
    """Small, with two heads of size 3 if the attention takes such settings."""
    sizes = {"heads": 2, "head_size": 3}
    shape = Architecture(
        len(WORDS) + 1,
        len(LABELS),
        dim=4,
        hidden=6,
        positions=positions,
        depth=depth,
        attention=attention,
        feedforward=feedforward,
        causal=causal,
        **{name: sizes[name] for name in ATTENTIONS[attention].takes},
    )
    return dense_truth.sized(shape)


SHAPES = [
    architecture(*given)
    for given in product(ATTENTIONS, FEEDFORWARDS, (0, 9), (False, True), (1, 2))
]
shapes = st.sampled_from(SHAPES)
seeds = st.integers(0, 1 << 20)


def name(shape: Architecture) -> str:
    """Short, for the name of a test."""
    more = {"positions": shape.positions, "causal": shape.causal, "deep": shape.depth > 1}
    return " ".join([shape.attention, shape.feedforward, *(k for k, v in more.items() if v)])


def of_every_kind(seed: int, **settings: Any) -> TokenClassifier:
    """Blocks of all kinds in one network, as no saved network has."""
    drawn = [
        model(architecture(attention, feedforward, **settings), seed + i).network
        for i, (attention, feedforward) in enumerate(zip(ATTENTIONS, cycle(FEEDFORWARDS)))
    ]
    last, blocks = drawn[-1], [network.blocks[0] for network in drawn]
    return TokenClassifier.assemble(last.shape, last.table, last.positions, blocks, last.head)


def model(shape: Architecture, seed: int, dtype: torch.dtype = torch.float64) -> Model:
    network = dense_truth.randomize(TokenClassifier(shape, dtype=dtype), seed)
    return Model(network, WORDS[: shape.vocabulary - 1], LABELS[: shape.labels])
