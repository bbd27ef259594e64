"""Networks that predict next tokens, with every kind of memory, and texts for them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import torch

import dense_truth
import networks
from rankone.corpus.tasks import END
from rankone.nn import Architecture, Model, TokenClassifier
from rankone.nn.kinds import ATTENTIONS, FEEDFORWARDS

LABELS = ("b", END, "a")  # in another order than in the vocabulary
TEXT = """\
The keeper of the tower wound the clock at seven. "At seven," said the keeper, "the tower sleeps."
The clock said seven, and the tower slept.

At eight the keeper said nothing. The clock of the tower said eight, and then it said nothing.
"""


@torch.no_grad()
def steady(shape: Architecture, seed: int, dtype: torch.dtype = torch.float64) -> Model:
    """Softmax heads with one query for all tokens; with a window, keys tell places alone."""
    network = networks.model(shape, seed, dtype).network
    attention = network.blocks[0].attention
    read = attention.query.abs().amax((0, 1)).argmax()  # some coordinate
    network.table[:, read] = 1.0
    if network.positions is not None:
        network.positions[:, read] = 0.0
    attention.query[..., torch.arange(shape.dim) != read] = 0.0
    if network.step is not None:
        other = (read + 1) % shape.dim
        network.step[:] = 0.0
        network.step[other] = 0.5
        network.table[:, other] = 0.25
        attention.value[..., other] = 0.0
        attention.key[..., torch.arange(shape.dim) != other] = 0.0
        attention.key[..., other] = attention.query[..., read].sign()
    return model_of(network)


def model_of(network: TokenClassifier) -> Model:
    reading = {"task": "next", "tokenizer": "characters", "window": network.shape.window}
    return Model(network, networks.WORDS, LABELS, reading)


def shapes(**settings: int) -> list[Architecture]:
    """Of every kind of feed-forward layer and attention; with heads of size 1."""
    return [
        dense_truth.sized(
            replace(networks.architecture(attention, feedforward, causal=True), **settings)
        )
        for attention, feedforward in product(ATTENTIONS, FEEDFORWARDS)
    ]


def random(shape: Architecture, seed: int) -> Model:
    return model_of(networks.model(shape, seed).network)


SOFTMAX = [shape for shape in shapes() if shape.attention == "softmax"]
KINDS = {
    "all of it": lambda seed: random(shapes(positions=20)[seed % 9], seed),
    "all of it, in two blocks": lambda seed: random(shapes(depth=2)[seed % 9], seed),
    "all in a window": lambda seed: random(shapes(window=3, depth=1 + seed % 2)[seed % 9], seed),
    "sums": lambda seed: steady(replace(SOFTMAX[seed % 3], positions=20 * (seed % 2)), seed),
    "fading": lambda seed: steady(replace(SOFTMAX[seed % 3], window=1 + seed % 5), seed),
}
MEMORIES = {
    "all of it": "Everything",
    "all of it, in two blocks": "Everything",
    "all in a window": "Everything",
    "sums": "Sums",
    "fading": "Fading",
}
