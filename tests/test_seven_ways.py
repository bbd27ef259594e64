"""The seven ways to run a network, on the same networks, against the paper's equations.

Networks are those of `networks.SHAPES`: every entry of the tables of kinds, so that a new kind is
tested here without a new test. Floats may differ by the rounding of their type, as `dense_truth`
states it; balls must hold the exact value. docs/evaluation.md says what each way is for.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
import torch
from flint import arb, ctx

import dense_truth as truth
import networks
from rankone import choices
from rankone.arrays import Floats
from rankone.certification.float_balls import FloatBalls
from rankone.nn import (
    Architecture,
    Block,
    Evaluator,
    FeedForward,
    Model,
    SelfAttention,
    TokenClassifier,
)
from rankone.nn.arb_network import in_balls
from rankone.nn.layers import AttentionLayer, FeedForwardLayer, Head, module_of
from rankone.nn.ragged import Ragged

LENGTHS = [3, 1, 5]
OFFSETS = np.cumsum([0, *LENGTHS])
IDS = np.random.default_rng(0).permutation(OFFSETS[-1])  # all words: no ties, which Arb would leave
LONGEST = max(LENGTHS)

each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
each_shape = pytest.mark.parametrize("shape", networks.SHAPES, ids=networks.name)


def sentences() -> list[list[int]]:
    return [IDS[a:b].tolist() for a, b in pairwise(OFFSETS)]


def expected(model: Model) -> tuple[Floats, Floats]:
    """Features and logits of every token, by the equations as they stand."""
    features, logits = [], []
    for ids in sentences():
        past = np.tri(len(ids), dtype=bool) if model.network.shape.causal else None
        features.append(truth.features_of(model.network, ids, past).T)
        logits.append(truth.logits_of(model.network, ids, past).T)
    return np.concatenate(features), np.concatenate(logits)


def padded() -> tuple[torch.Tensor, torch.Tensor]:
    """Ids, and which of them are real."""
    rows = [ids + [0] * (LONGEST - len(ids)) for ids in sentences()]
    return torch.tensor(rows), torch.arange(LONGEST) < torch.tensor(LENGTHS)[:, None]


def test_the_networks_are_of_every_kind() -> None:
    assert {shape.attention for shape in networks.SHAPES} == set(get_args(choices.Attention))
    assert {shape.feedforward for shape in networks.SHAPES} == set(get_args(choices.FeedForward))


@each_dtype
@each_shape
@torch.no_grad()
def test_four_ways_in_floats(shape: Architecture, dtype: torch.dtype) -> None:
    """Module, ragged, evaluator, Hugging Face: each in the type of the weights."""
    hub = pytest.importorskip("rankone.interop.huggingface")
    model = networks.model(shape, 3, dtype)
    network = model.network
    features, logits = expected(model)
    ids, real = padded()
    found = network(ids, real)[real], network.features(ids, real)[real]
    for one, other in zip(found, (logits, features), strict=True):
        assert one.dtype == dtype
        truth.assert_close(one, other)
    ragged = network.ragged(network.table[torch.from_numpy(IDS)], Ragged(OFFSETS))
    assert ragged.dtype == dtype
    truth.assert_close(ragged, logits)
    run = Evaluator(network).run(IDS, OFFSETS, lambda z: z.T)
    assert torch.from_numpy(run).dtype == dtype
    truth.assert_close(run, features)
    pretrained = hub.as_pretrained(model)(input_ids=ids, attention_mask=real.long()).logits[real]
    assert pretrained.dtype == dtype
    truth.assert_close(pretrained, logits)


@each_dtype
@each_shape
def test_two_ways_in_balls(shape: Architecture, dtype: torch.dtype) -> None:
    """Arb has the equations' numbers to 100 digits, and they lie in the balls of float64."""
    model = networks.model(shape, 3, dtype)
    assert_balls(model.network, expected(model)[0])


def assert_balls(network: TokenClassifier, features: Floats) -> None:
    with ctx.workprec(400):
        net = in_balls(network)
        exact = [net.features(ids, k) for ids in sentences() for k in range(len(ids))]
        assert all(x.rel_accuracy_bits() > 300 for row in exact for x in row)
        mid = np.array([[float(x) for x in row] for row in exact])
        truth.assert_close(mid, features, torch.float64)
        (chunk,) = FloatBalls(network).run(IDS, OFFSETS)
        balls = chunk.features
        for j, row in enumerate(exact):
            for i, x in enumerate(row):
                assert abs(arb(float(balls.mid[i, j])) - x) <= float(balls.rad[i, j])
    known = np.isfinite(balls.rad).mean()
    assert known == 1 if network.shape.attention != "hardmax" else known > 0.5
    assert np.median(balls.rad) < truth.TOLERANCE[torch.float64]


@each_dtype
@each_shape
@torch.no_grad()
def test_the_graph_of_onnx(shape: Architecture, dtype: torch.dtype) -> None:
    """The module that is traced."""
    graph = pytest.importorskip("rankone.interop.onnx.graph")
    model = networks.model(shape, 3, dtype)
    ids, real = padded()
    found = graph.Graph(model.network)(ids, real.long())[real]
    assert found.dtype == dtype
    truth.assert_close(found, expected(model)[1])


@each_dtype
def test_the_file_of_onnx(dtype: torch.dtype) -> None:
    """In the type of the weights, for sentences of any length."""
    serialize = pytest.importorskip("rankone.interop.onnx.serialize")
    export = pytest.importorskip("rankone.interop.onnx.export")
    network = networks.of_every_kind(3, causal=True).to(dtype).requires_grad_(False)
    model = Model(network, networks.WORDS, networks.LABELS)
    session = export.opened(serialize.serialize(model))
    ids, real = padded()
    given = {"input_ids": ids.numpy(), "attention_mask": real.long().numpy()}
    (logits,) = session.run(["logits"], given)
    assert torch.from_numpy(logits).dtype == dtype
    truth.assert_close(logits[real.numpy()], expected(model)[1])
    given = {name: np.ones((1, 40), dtype=np.int64) for name in given}
    assert np.isfinite(session.run(["logits"], given)[0]).all()
    for places in ([2, 3, 4], [0, 2, 4]):  # padded elsewhere, beside a row of nothing else
        ids, mask = np.full((2, 5), 10**12), np.zeros((2, 5), dtype=np.int64)
        ids[0, places], mask[0, places] = IDS[:3], 1
        (logits,) = session.run(["logits"], {"input_ids": ids, "attention_mask": mask})
        truth.assert_close(logits[0, places], expected(model)[1][:3])
        assert np.isfinite(logits).all()
    for size in ((0, 0), (1, 0)):
        given = {name: np.zeros(size, dtype=np.int64) for name in given}
        assert session.run(["logits"], given)[0].shape == (*size, len(networks.LABELS))


class OneKey(AttentionLayer):
    """A kind that nobody knows: softmax heads that share one key and value of size 1."""

    kind = "softmax"

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.v = torch.nn.Parameter(torch.empty(1, dim, dtype=torch.float64))
        self.asks = torch.nn.Parameter(torch.empty(heads, 1, dim, dtype=torch.float64))
        self.output = torch.nn.Parameter(torch.empty(heads, dim, 1, dtype=torch.float64))

    @property
    def heads(self) -> list[Head[torch.Tensor]]:
        key = self.v.detach()
        pairs = zip(self.asks.detach(), self.output.detach(), strict=True)
        return [Head(key, query, key, output) for query, output in pairs]

    @property
    def settings(self) -> dict[str, Any]:
        return {"attention": "softmax", "heads": len(self.asks), "head_size": 1}

    def expand(self) -> SelfAttention:
        key = self.v.expand_as(self.asks)
        given = {"key": key, "query": self.asks, "value": key, "output": self.output}
        return module_of(SelfAttention, given, {"kind": self.kind})

    def forward(self, z: torch.Tensor, *masks: Any, **more: Any) -> torch.Tensor:
        return self.expand()(z, *masks, **more)


class Tied(FeedForwardLayer):
    """Another: F(H) = H + W^T relu(W H + b)."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(hidden, dim, dtype=torch.float64))
        self.bias = torch.nn.Parameter(torch.empty(hidden, dtype=torch.float64))

    @property
    def hidden(self) -> int:
        return len(self.bias)

    @property
    def settings(self) -> dict[str, Any]:
        return {"feedforward": "dense", "hidden": self.hidden}

    def expand(self) -> FeedForward:
        names, zeros = ("weight1", "bias1", "weight2", "bias2"), self.weight.new_zeros(4)
        tensors = (self.weight.detach(), self.bias.detach(), self.weight.detach().T, zeros)
        return module_of(FeedForward, dict(zip(names, tensors, strict=True)))

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return h + torch.relu(h @ self.weight.T + self.bias) @ self.weight


@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_layers_that_nobody_knows(causal: bool) -> None:
    """A new kind runs in all ways of rankone itself, by its heads and by what it expands to."""
    graph = pytest.importorskip("rankone.interop.onnx.graph")
    whole = networks.model(networks.architecture("softmax", "dense", 9, causal, 2), 5).network
    blocks = [truth.randomize(Block(OneKey(4, 3), Tied(4, 6)), seed) for seed in (1, 2)]
    parts = (whole.shape, whole.table, whole.positions, blocks, whole.head)
    network = TokenClassifier.assemble(*parts)
    full = network.expand()
    assert (full.shape.heads, full.shape.head_size) == (3, 1)
    features, logits = expected(Model(full, networks.WORDS, networks.LABELS))
    ids, real = padded()
    truth.assert_close(network(ids, real)[real], logits)
    truth.assert_close(
        network.ragged(network.table[torch.from_numpy(IDS)], Ragged(OFFSETS)), logits
    )
    truth.assert_close(Evaluator(network).run(IDS, OFFSETS, lambda z: z.T), features)
    truth.assert_close(graph.Graph(network)(ids, real.long())[real], logits)
    assert_balls(network, features)
