"""Small models with gates, for tests: made by `memorize`, or with weights of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import rankone
from rankone.nn import Model, TokenClassifier
from rankone.nn.gated import GatedFeedForward

Sentences = list[tuple[list[str], list[str]]]

WORDS = ["a", "b", "c", "d"]


def sentences_of(seed: int, count: int = 10, labels: int = 3) -> Sentences:
    """Random words, and labels that depend on more than the word."""
    rng = np.random.default_rng(seed)
    seen: dict[tuple[str, ...], list[str]] = {}
    for _ in range(count):
        words = rng.choice(WORDS, rng.integers(1, 5)).tolist()
        names = [f"L{i:02}" for i in rng.integers(labels, size=len(words)).tolist()]
        seen.setdefault(tuple(words), names)
    return [(list(words), names) for words, names in seen.items()]


def model_of(sentences: Sentences, dtype: str = "float64", **given: Any) -> Model:
    return rankone.memorize(sentences, construction="gated", dtype=dtype, **given).model


def changed(model: Model, change: Callable[[TokenClassifier], None]) -> Model:
    """A copy with other weights."""
    old = model.network
    tensors = {name: p.detach().clone() for name, p in old.named_parameters()}
    network = TokenClassifier.of(old.shape, tensors)
    with torch.no_grad():
        change(network)
    return Model(network, model.vocabulary, model.labels)


def layer_of(network: TokenClassifier) -> GatedFeedForward:
    layer = network.blocks[0].feedforward
    assert isinstance(layer, GatedFeedForward)
    return layer
