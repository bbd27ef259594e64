"""Networks of every kind that a model directory can hold, with random weights."""

from __future__ import annotations

from itertools import product

import torch
from hypothesis import strategies as st

import dense_truth
from rankone.nn import Model, Network, TokenClassifier

WORDS, LABELS = tuple("abcdefgh"), ("O", "B-X", "I-X")

SHAPES = [
    Network(
        len(WORDS) + 1,
        len(LABELS),
        dim=4,
        hidden=6,
        positions=positions,
        depth=depth,
        attention=attention,
        heads=1 if attention == "rank1" else 2,
        head_size=1 if attention == "rank1" else 3,
        feedforward=feedforward,
        causal=causal,
    )
    for attention, feedforward, positions, causal, depth in product(
        ("rank1", "softmax", "hardmax"), ("rank1", "dense"), (0, 9), (False, True), (1, 2)
    )
]
shapes = st.sampled_from(SHAPES)
seeds = st.integers(0, 1 << 20)


def model(shape: Network, seed: int, dtype: torch.dtype = torch.float64) -> Model:
    network = dense_truth.randomize(TokenClassifier(shape, dtype=dtype), seed)
    return Model(network, WORDS[: shape.vocabulary - 1], LABELS[: shape.labels])
