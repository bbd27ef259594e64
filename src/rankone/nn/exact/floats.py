"""From exact numbers to float64, where nothing is lost, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from flint import fmpq
from torch import Tensor, nn

from rankone.errors import PrecisionError
from rankone.nn.classifier import Architecture, TokenClassifier
from rankone.nn.exact.network import (
    ExactAttention,
    ExactBlock,
    ExactFeedForward,
    ExactNetwork,
    Sparse,
)
from rankone.nn.exact.numbers import exact
from rankone.nn.feedforward import Rank1FeedForward
from rankone.nn.gated import GatedFeedForward
from rankone.nn.layers import FeedForwardLayer, Head

REMEDY = "run it in exact arithmetic: rankone compare --constructions NAME"


def to_float64(network: ExactNetwork) -> TokenClassifier:
    """The same network in float64, bit for bit; an error if some weight is not a float64 number.

    All blocks get the same shape: what one does not have is 0. Unknown words get a row of zeros.
    """
    kinds = {layer.kind for layer in network.layers if isinstance(layer, ExactAttention)}
    if len(kinds) > 1 or any(
        isinstance(layer, ExactFeedForward) and layer.activation != "relu"
        for layer in network.layers
    ):
        raise PrecisionError(
            "only networks of relu with one kind of attention have a float64 model", remedy=REMEDY
        )
    heads = [h for x in network.layers if isinstance(x, ExactAttention) for h in x.heads]
    count = network.count
    shape = Architecture(
        vocabulary=len(network.table.rows) + 1,
        labels=len(network.bias),
        dim=network.dim,
        hidden=max(
            (x.hidden for x in network.layers if isinstance(x, ExactFeedForward)), default=0
        ),
        positions=network.length,
        depth=max(1, len(network.blocks)),
        attention="hardmax" if kinds == {"hardmax"} else "softmax",
        heads=max(1, count.heads),
        head_size=max((len(m.rows) for h in heads for m in (h.key, h.value)), default=1),
        feedforward="dense",
        causal=network.causal,
    )
    parameters = shape.parameter_shapes()
    tensors = {name: torch.zeros(s, dtype=torch.float64) for name, s in parameters.items()}
    _fill(tensors["table"], network.table)
    if network.positions is not None:
        _fill(tensors["positions"], network.positions)
    _fill(tensors["head.weight"], network.head)
    _fill_vector(tensors["head.bias"], network.bias)
    for i, block in enumerate(network.blocks):
        if block.attention is not None:
            for h, head in enumerate(block.attention.heads):
                for name in ("key", "query", "value", "output"):
                    _fill(tensors[f"blocks.{i}.attention.{name}"][h], getattr(head, name))
        if block.feedforward is not None:
            for name in ("weight1", "weight2"):
                _fill(tensors[f"blocks.{i}.feedforward.{name}"], getattr(block.feedforward, name))
            for name in ("bias1", "bias2"):
                vector = getattr(block.feedforward, name)
                _fill_vector(tensors[f"blocks.{i}.feedforward.{name}"], vector)
    return TokenClassifier.of(shape, tensors)


def from_float(network: TokenClassifier) -> ExactNetwork:
    """Weights as the numbers they are; layers that add nothing are left out."""
    blocks = []
    for block in network.blocks:
        heads = [head.map(_matrix) for head in block.attention.heads]
        attention = ExactAttention(tuple(heads), block.attention.kind)
        feedforward = _feedforward(block.feedforward)
        blocks.append(
            ExactBlock(
                attention if any(_writes(head) for head in heads) else None,
                feedforward if any(feedforward.weight2.rows) or any(feedforward.bias2) else None,
            )
        )
    return ExactNetwork(
        _matrix(network.table),
        None if network.positions is None else _matrix(network.positions),
        tuple(blocks),
        _matrix(network.head.weight),
        _vector(network.head.bias),
        network.shape.causal,
    )


def _feedforward(layer: FeedForwardLayer) -> ExactFeedForward:
    """Factors are multiplied as fractions: `expand` would round the products."""
    if isinstance(layer, GatedFeedForward):
        return _gated(layer)
    if not isinstance(layer, Rank1FeedForward):
        full = layer.expand()
        return ExactFeedForward(
            _matrix(full.weight1), _vector(full.bias1), _matrix(full.weight2), _vector(full.bias2)
        )
    a, w = _vector(layer.direction), _vector(layer.out_direction)
    g, t = _vector(layer.gain), _vector(layer.out_gain)
    return ExactFeedForward(
        Sparse.dense([[gain * x for x in a] for gain in g], len(a)),
        _vector(layer.bias1),
        Sparse.dense([[x * gain for gain in t] for x in w], len(t)),
        _vector(layer.bias2),
    )


def _gated(layer: GatedFeedForward) -> ExactFeedForward:
    gates, codes = (_dense(x) for x in (layer.gates, layer.codes))
    slopes, penalty, amplitude = (_dense(x) for x in (layer.slopes, layer.penalty, layer.amplitude))
    word, position, plus, minus, reads, writes = (
        getattr(layer, name).tolist() for name in GatedFeedForward.WHOLE
    )
    dim, count = layer.gates.shape[1], layer.hidden
    weight1 = [
        [penalty[j] * (x + y) for x, y in zip(gates[word[j]], gates[position[j]], strict=True)]
        for j in range(count)
    ]
    weight2 = [[exact(0)] * count for _ in range(dim)]
    for j in range(count):
        for at, slope in zip(reads, slopes[j], strict=True):
            weight1[j][at] += slope
        for at, x, y in zip(writes, codes[plus[j]], codes[minus[j]], strict=True):
            weight2[at][j] += amplitude[j] * (x - y)
    return ExactFeedForward(
        Sparse.dense(weight1, dim),
        _vector(layer.bias1),
        Sparse.dense(weight2, count),
        (exact(0),) * dim,
    )


def _dense(values: Tensor) -> Any:
    """Nested lists of exact numbers."""
    return _exactly(values.detach().double().tolist())


def _exactly(values: Any) -> Any:
    return [_exactly(x) for x in values] if isinstance(values, list) else exact(values)


def _writes(head: Head[Sparse]) -> bool:
    return any(head.output.rows) and any(head.value.rows)


def _fill(tensor: Tensor, matrix: Sparse) -> None:
    for i, row in enumerate(matrix.rows):
        for j, x in row:
            tensor[i, j] = _float(x)


def _fill_vector(tensor: Tensor, vector: Sequence[fmpq]) -> None:
    for i, x in enumerate(vector):
        tensor[i] = _float(x)


def _float(x: fmpq) -> float:
    try:
        rounded = int(x.p) / int(x.q)
    except OverflowError:
        rounded = float("inf")
    if rounded in (float("inf"), float("-inf")) or exact(rounded) != x:
        raise PrecisionError(
            f"a weight has {int(x.p).bit_length():,} bits over {int(x.q).bit_length():,}, "
            "and float64 cannot hold it",
            remedy=REMEDY,
        )
    return rounded


def _matrix(values: Tensor | nn.Parameter) -> Sparse:
    return Sparse.dense(values.detach().double().tolist(), values.shape[-1])


def _vector(values: Tensor | nn.Parameter) -> tuple[fmpq, ...]:
    return tuple(map(exact, values.detach().double().tolist()))
