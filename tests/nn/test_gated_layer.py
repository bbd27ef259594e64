"""Large groups by products of matrices: to the last bit what unit by unit gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rankone import Corpus, memorize
from rankone.nn import Evaluator, gated_layer
from rankone.nn.gated_layer import Large

RNG = np.random.default_rng(0)
WORDS = RNG.choice([" a", " b", " c", "."], 900, p=[0.6, 0.2, 0.15, 0.05])
CORPUS = Corpus.from_texts(["".join(WORDS)], window=12)


@pytest.fixture(scope="module")
def network():
    return memorize(CORPUS).model.network


def features(network, monkeypatch, large, tokens=1):
    monkeypatch.setattr(gated_layer, "LARGE", large)
    monkeypatch.setattr(gated_layer, "TOKENS", tokens)
    evaluator = Evaluator(network)
    assert bool(evaluator.gated.singles) == (large < 1000)
    return np.concatenate(list(evaluator.features(CORPUS.token_ids, CORPUS.offsets)), axis=1)


@pytest.mark.parametrize("held", [1, 100, 1 << 20])
def test_bits(network, monkeypatch, held):
    one = features(network, monkeypatch, 1000)
    monkeypatch.setattr(gated_layer, "HELD", held)
    assert (features(network, monkeypatch, 2) == one).all()
    assert (features(network, monkeypatch, 2, tokens=100) == one).all()


def test_active_units_are_never_missed(network, monkeypatch):
    """Slopes and averages at the edge of what single precision can tell."""
    monkeypatch.setattr(gated_layer, "LARGE", 2)
    layer = Evaluator(network).gated
    large = next(iter(layer.singles.values()))
    last = large.first + len(large.slopes)
    slopes = layer.units.slopes[large.first : last]
    rng = np.random.default_rng(1)
    for scale in (1e-30, 1.0, 1e6):
        a = rng.standard_normal((slopes.shape[1], 400)) * scale
        z = slopes @ a
        least = large.border[:, None] - large.slip[:, None] * (np.sqrt((a**2).sum(0)) + 1)
        rough = large.slopes @ a.astype(np.float32)
        active = z + layer.units.bias[large.first : last, None] > 0
        assert not (active & (rough <= least)).any()


def test_numbers_beyond_single_precision_go_another_way(network):
    units = Evaluator(network).gated.units
    steep = units._replace(slopes=units.slopes * 1e20)
    assert Large.of(0, 5, steep) is None
    assert Large.of(0, 5, units) is not None


def test_the_module_itself(network):
    """The literal layer, on some tokens."""
    ids = torch.from_numpy(CORPUS.token_ids[None, :60])
    expected = network.features(ids)[0].detach().numpy().T
    found = next(Evaluator(network).features(CORPUS.token_ids[:60], np.array([0, 60])))
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("numbers", [1, 1000, 1 << 20])
def test_matrices_in_pieces(network, numbers):
    """What the pieces add is what all matrices add, also to a token that many units look at."""
    layer = network.blocks[0].feedforward
    h = network.blocks[0].attention(network.embed(torch.from_numpy(CORPUS.token_ids[None, :60])))[0]
    h = torch.cat([h, torch.zeros_like(h[:1]), 3 * h[5:7]]).detach()
    pieces = layer.in_pieces(numbers)
    assert len(pieces) == layer.hidden if numbers == 1 else len(pieces) < layer.hidden
    expected = layer.expand()(h) - h
    assert sum(added(h) for added in pieces).numpy() == pytest.approx(
        expected.detach().numpy(), abs=1e-9
    )
    assert (expected.abs() > 0.5).any()
