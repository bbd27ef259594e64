"""Graphs of language models for a piece of text, which take a state and give the next one.

The state is what `rankone.interop.huggingface` keeps in its cache: the last values of every head,
where there is a window, or running sums. All of it begins as zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from rankone.corpus.tasks import asks_next
from rankone.errors import ExportError
from rankone.interop.onnx.graph import feedforward, turned
from rankone.nn import Model, TokenClassifier
from rankone.nn.classifier import dtype_name
from rankone.nn.rank1_heads import Numbers, along, rank1_heads
from rankone.nn.windows import Fading

Vectors = list[tuple[Numbers, Numbers]]
Shapes = dict[str, tuple[tuple[int, ...], torch.dtype]]
LARGEST = 300.0  # of scores whose exponentials are added up as they are


class Step(nn.Module):
    """Logits of `input_ids` where `attention_mask` is not 0, both (batch, n), after all tokens that
    are in the state; and the state after them. Padding is in front of a text only.

    ``shapes`` are those of the parts of the state, for one text, and their types.
    """

    shapes: Shapes

    def __init__(self, network: TokenClassifier, vectors: Vectors) -> None:
        """`vectors` are value and output of each head."""
        super().__init__()
        self.table, self.positions, self.step = network.table, network.positions, network.step
        value, output = (np.stack(each) for each in zip(*vectors, strict=True))
        self.value = nn.Buffer(torch.from_numpy(value.T.copy()).to(network.dtype))
        self.output = nn.Buffer(torch.from_numpy(output.copy()).to(network.dtype))
        self.layer = feedforward(network.blocks[0].feedforward)
        self.weight, self.bias = turned(network.head.weight), network.head.bias

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, count: Tensor, *state: Tensor
    ) -> tuple[Tensor, ...]:
        real = attention_mask != 0
        ids = torch.where(real, input_ids, 0)
        z = embedding(torch.where(ids < 0, len(self.table), ids), self.table)
        seen = count[:, None] + torch.cumsum(real.long(), -1)  # tokens up to this one
        place = (seen - 1).clamp(min=0)
        if self.positions is not None:
            z = z + embedding(torch.where(real, place, 0), self.positions)
        if self.step is not None:
            z = z + place[..., None].to(z.dtype) * self.step
        averages, *after = self.averages(z, real, place, *state)
        z = z + averages.to(z.dtype) @ self.output
        logits = self.layer(z) @ self.weight + self.bias
        return logits, count + real.long().sum(-1), *after

    def zeros(self, batch: int) -> dict[str, Tensor]:
        """The state of so many texts before they begin."""
        return {
            name: torch.zeros(batch, *shape, dtype=dtype)
            for name, (shape, dtype) in self.shapes.items()
        }

    def described(self) -> dict[str, Any]:
        """Type and shape of each part of the state, as JSON; its first axis is the batch."""
        return {
            name: {"type": dtype_name(zero), "shape": list(zero.shape[1:])}
            for name, zero in self.zeros(1).items()
        }

    def averages(
        self, z: Tensor, real: Tensor, place: Tensor, *state: Tensor
    ) -> tuple[Tensor, ...]:
        """What heads average, (batch, n, heads), in float64, and the state after that."""
        raise NotImplementedError


class WindowStep(Step):
    """`Fading` heads: the state is ``values``, those of the last tokens; with the next one, as many
    as the window has."""

    def __init__(self, network: TokenClassifier, heads: list[Fading]) -> None:
        super().__init__(network, [(head.value, head.output) for head in heads])
        window = network.shape.window
        back = np.arange(window - 1, -1, -1)
        weights = np.exp(-np.outer(back, [head.decay for head in heads]))
        self.weights = nn.Buffer(torch.from_numpy(weights))
        self.totals = nn.Buffer(torch.from_numpy(np.cumsum(weights[::-1], axis=0)))
        self.shapes = {
            "count": ((), torch.int64),
            "values": ((window - 1, len(heads)), torch.float64),
        }

    def averages(
        self, z: Tensor, real: Tensor, place: Tensor, *state: Tensor
    ) -> tuple[Tensor, ...]:
        n, window = z.shape[1], len(self.weights)
        values = torch.where(real[..., None], (z @ self.value).double(), 0.0)
        values = torch.cat([*state, values], 1)
        near = torch.arange(n)[:, None] + torch.arange(window)
        found = (values[:, near] * self.weights).sum(2)
        return found / self.totals[place.clamp(max=window - 1)], values[:, n:]


class SumStep(Step):
    """Heads of rank 1 where all tokens have the same query: the state is ``total``, the sum of the
    weights so far, and ``added``, that of values times weights."""

    def __init__(self, network: TokenClassifier, scores: list[Numbers], vectors: Vectors) -> None:
        super().__init__(network, vectors)
        self.score = nn.Buffer(torch.from_numpy(np.stack(scores, 1)).to(network.dtype))
        one = ((len(scores),), torch.float64)
        self.shapes = {"count": ((), torch.int64), "total": one, "added": one}

    def averages(
        self,
        z: Tensor,
        real: Tensor,
        place: Tensor,  # noqa: ARG002
        *state: Tensor,
    ) -> tuple[Tensor, ...]:
        before, added = state
        weight = torch.where(real[..., None], torch.exp((z @ self.score).double()), 0.0)
        value = weight * (z @ self.value).double()
        weight = before[:, None] + torch.cumsum(weight, 1)
        value = added[:, None] + torch.cumsum(value, 1)
        found = value / torch.where(weight > 0, weight, 1.0)
        return found, weight[:, -1], value[:, -1]


def step_of(model: Model) -> Step | None:
    """The graph of a language model with a state; None where attention has none, and where there is
    nothing to go on with."""
    network = model.network
    if not asks_next(model.task.name) and not network.shape.window:
        return None
    if network.shape.window:
        fading = Fading.of(network)
        if fading is None:
            raise ExportError(
                "a window whose tokens are not weighted by their distance alone",
                remedy="export a model that memorize made, or leave out onnx (--onnx)",
            )
        return WindowStep(network, fading)
    heads = rank1_heads(network.blocks[0].attention)
    if network.shape.depth > 1 or heads is None:
        return None
    table = network.table.detach().numpy()
    spots = None if network.positions is None else network.positions.detach().numpy()
    scores = []
    for head in heads:
        query = along(head.query, table.T)
        score = float(query[0]) * head.key
        most = np.abs(table @ score).max()
        if spots is not None:
            most += np.abs(spots @ score).max()
        if np.ptp(query) or (spots is not None and (spots @ head.query).any()) or most > LARGEST:
            return None
        scores.append(score)
    return SumStep(network, scores, [(head.value, head.output) for head in heads])
