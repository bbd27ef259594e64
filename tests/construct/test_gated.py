"""Memory with gates: codes, silence, float32, and what float32 may do to sums."""

from __future__ import annotations

from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
import torch

import rankone
from rankone.construct.gated import codes, keys
from rankone.corpus import Corpus
from rankone.errors import PrecisionError, SettingError
from rankone.nn import FeedForward, TokenClassifier
from rankone.nn.gated import GatedFeedForward
from rankone.nn.gatekeeper import Gatekeeper


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return rankone.builtin_corpus(120)


@pytest.fixture(scope="module")
def memorized(corpus: Corpus) -> rankone.Memorized:
    return rankone.memorize(corpus, construction="gated", dtype="float32", verify="dense")


def layer_of(model: rankone.Model) -> GatedFeedForward:
    layer = model.network.blocks[0].feedforward
    assert isinstance(layer, GatedFeedForward)
    return layer


def test_codes_are_all_different_and_none_contains_another() -> None:
    rows = codes.codes(np.arange(comb(8, 4)), 8)
    assert len(np.unique(rows, axis=0)) == 70
    assert (rows.sum(1) == 4).all()
    shared = rows @ rows.T
    assert (np.diag(shared) == 4).all()
    assert shared[~np.eye(70, dtype=bool)].max() == 3
    assert [codes.coordinates_for(n) for n in (1, 2, 3, 6, 7, 70, 71)] == [2, 2, 4, 4, 6, 8, 10]


def test_a_word_has_the_same_keys_whatever_the_others_are() -> None:
    words = ["a", "rose", "", "ab", "r\u00f6schen"]
    one, two = keys.hash_words(words, 7), keys.hash_words([words[4], words[1]], 7)
    assert one[4] == two[0]
    assert one[1] == two[1]
    assert one[-1] == two[-1]
    assert len({*one.tolist(), *keys.hash_words(words, 8).tolist()}) == 12
    drawn = keys.uniform(keys.stream(keys.hash_words([str(i) for i in range(4000)], 0), 3), 1.0)
    assert (drawn * keys.GRID == np.rint(drawn * keys.GRID)).all()
    assert abs(drawn.mean()) < 0.05
    assert abs(drawn.std() - 3**-0.5) < 0.02


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("given", [{}, {"causal": True}, {"positions": False}, {"heads": 3}])
def test_memorizes_in_both_types(corpus: Corpus, dtype: str, given: dict[str, int]) -> None:
    found = rankone.memorize(corpus, construction="gated", dtype=dtype, verify="dense", **given)
    assert found.wrong == found.unavoidable
    assert found.draws == 1
    assert found.model.network.dtype == getattr(torch, dtype)
    assert found.dense_error < (0.01 if dtype == "float32" else 1e-9)
    line = rankone.memorize(corpus, positions=given.get("positions", True))
    assert found.hidden_units < line.hidden_units


def test_many_labels_share_digits() -> None:
    words = [f"w{i % 7}" for i in range(200)]
    sentences = [(words[i : i + 5], [f"L{i + j}" for j in range(5)]) for i in range(0, 195, 5)]
    found = rankone.memorize(sentences, construction="gated", dtype="float32", verify="dense")
    assert len(found.model.labels) > 100
    assert found.wrong == found.unavoidable
    assert layer_of(found.model).codes.shape[1] == 2


def test_compact_and_plain_are_the_same(memorized: rankone.Memorized, corpus: Corpus) -> None:
    network = memorized.model.network
    dense = network.expand()
    ids = torch.from_numpy(corpus.token_ids[: corpus.offsets[1]])[None]
    h = network.blocks[0].attention(network.embed(ids))
    torch.testing.assert_close(network.blocks[0].feedforward(h), dense.blocks[0].feedforward(h))
    count = sum(p.numel() for p in dense.parameters())
    assert memorized.dense_parameters == count
    assert memorized.parameters == sum(p.numel() for p in network.parameters()) < count


def test_units_are_silent_outside_their_group(memorized: rankone.Memorized) -> None:
    network, layer = memorized.model.network, layer_of(memorized.model)
    keeper = Gatekeeper.of(network)
    assert keeper is not None
    assert network.positions is not None
    full = layer.expand()
    for v in range(0, len(network.table), 7):
        for p in range(len(network.positions)):
            x = network.table[v] + network.positions[p]
            for a in (-1.5, 1.5):
                x = x.detach().clone()
                x[layer.reads] = a
                active = (full.weight1 @ x + full.bias1 > 0).nonzero()[:, 0].tolist()
                _, own = keeper.reached(np.array([v]), np.array([p]), len(layer.gates))
                assert set(active) <= set(own.tolist())


def test_the_proof_of_silence_fails_for_weights_that_leak(memorized: rankone.Memorized) -> None:
    for name, change in (("penalty", 0.25), ("gates", 0.5), ("table", 1.5)):
        files = memorized.model.files()
        model = rankone.Model(
            type(memorized.model.network).of(
                memorized.model.network.shape,
                {n: p.detach().clone() for n, p in memorized.model.network.named_parameters()},
            ),
            memorized.model.vocabulary,
            memorized.model.labels,
        )
        with torch.no_grad():
            weights = model.network.table if name == "table" else getattr(layer_of(model), name)
            weights.mul_(change)
        assert Gatekeeper.of(model.network) is None, name
        assert files


def test_certificate_holds_in_any_order(memorized: rankone.Memorized, corpus: Corpus) -> None:
    found = rankone.certify(memorized.model, corpus)
    assert found.ok
    assert found.any_order is True
    assert found.arithmetic is not None
    assert "any order" in found.arithmetic
    assert found.dtype == "float32"


class Machine:
    """float32 by hand: sums in a random order, one number after the other or in lanes; products
    fused with them or not; tiny numbers flushed to 0; exponentials off by 2 units in the last
    place."""

    def __init__(self, seed: int, *, fused: bool, lanes: int, less_largest: bool) -> None:
        self.rng, self.fused, self.lanes = np.random.default_rng(seed), fused, lanes
        self.less_largest = less_largest

    def rounded(self, x: np.ndarray) -> np.ndarray:
        found = x.astype(np.float32)
        return np.where(np.abs(found) < 2.0**-126, np.float32(0), found)

    def dot(self, a: np.ndarray, b: np.ndarray, more: np.ndarray | float = 0.0) -> np.ndarray:
        """The sum over the last axis, of float64 arrays that hold float32 numbers."""
        a, b = np.broadcast_arrays(a, b)
        order = self.rng.permutation(a.shape[-1])
        parts = [np.zeros(a.shape[:-1], np.float32) for _ in range(self.lanes)]
        parts[0] = parts[0] + np.float32(0) + self.rounded(np.asarray(more))
        for i, j in enumerate(order.tolist()):
            product = a[..., j].astype(float) * b[..., j]  # exact
            if not self.fused:
                product = self.rounded(product).astype(float)
            lane = i % self.lanes
            parts[lane] = self.rounded(parts[lane].astype(float) + product)
        while len(parts) > 1:
            parts[0] = self.rounded(parts[0].astype(float) + parts.pop())
        return parts[0]

    def exp(self, x: np.ndarray) -> np.ndarray:
        e = np.exp(x.astype(float)).astype(np.float32)
        return self.rounded(e + self.rng.integers(-2, 3, e.shape) * np.spacing(e))

    def logits(self, network: TokenClassifier, ids: np.ndarray) -> np.ndarray:
        """Of a network that is written out."""
        full, head = network.blocks[0].feedforward, network.head
        assert isinstance(full, FeedForward)
        table, w1, b1, w2, w, b = (
            p.detach().numpy()
            for p in (network.table, full.weight1, full.bias1, full.weight2, head.weight, head.bias)
        )
        x = table[ids]
        if network.positions is not None:
            x = self.rounded(x + network.positions.detach().numpy()[: len(ids)])
        h = x.copy()
        for one in network.blocks[0].attention.heads:
            k, q, v, o = (m.numpy() for m in (one.key, one.query, one.value, one.output))
            key, query, value = (self.dot(x, row) for row in (k[0], q[0], v[0]))
            scores = self.rounded(query[:, None].astype(float) * key)
            if self.less_largest:
                scores = self.rounded(scores.astype(float) - scores.max(1, keepdims=True))
            e = self.exp(scores)
            if network.shape.causal:
                e = np.tril(e)
            share = self.rounded(e.astype(float) / self.dot(e, np.ones_like(e))[:, None])
            average = self.dot(share, value[None])
            h = self.rounded(h + self.rounded(average[:, None].astype(float) * o[:, 0]))
        z = np.maximum(self.dot(h[:, None], w1[None], b1), 0)
        y = self.dot(z[:, None], w2[None], h)
        return self.dot(y[:, None], w[None], b)


@pytest.mark.parametrize("given", [{}, {"causal": True}, {"positions": False, "heads": 3}], ids=str)
def test_an_attack_on_a_certificate(corpus: Corpus, given: dict[str, Any]) -> None:
    """Whatever the certificate says to be right in any order is right on every machine."""
    model = rankone.memorize(corpus, construction="gated", dtype="float32", **given).model
    assert rankone.certify(model, corpus).any_order is True
    wanted, dense = model.predict(corpus), model.network.expand()
    ids = model.rows(corpus.vocabulary)[corpus.token_ids]
    rng = np.random.default_rng(0)
    for seed, (fused, lanes, less) in enumerate(product((False, True), (1, 8), (False, True))):
        machine = Machine(seed, fused=fused, lanes=lanes, less_largest=less)
        for s in rng.choice(corpus.n_sentences, 3, replace=False).tolist():
            a, b = corpus.offsets[s : s + 2]
            labels = machine.logits(dense, ids[a:b]).argmax(1)
            assert [model.labels[i] for i in labels] == wanted[s]


def test_saved_and_loaded(memorized: rankone.Memorized, corpus: Corpus, tmp_path: str) -> None:
    memorized.save(f"{tmp_path}/model")
    again = rankone.load(f"{tmp_path}/model")
    assert again.predict(corpus) == memorized.model.predict(corpus)


def test_float32_that_cannot_hold_a_corpus_names_two_contexts() -> None:
    words = [f"w{i}" for i in range(400)]
    sentences = [(["x"] + words[i : i + 2] * 300, [f"L{i % 2}"] + ["O"] * 600) for i in range(120)]
    with pytest.raises(PrecisionError, match=r"(?s)1 head.*of 'x'.* apart.*more heads .2.*float64"):
        rankone.memorize(
            Corpus.from_sentences(sentences), construction="gated", dtype="float32", heads=1
        )


def test_settings_of_other_constructions_are_refused() -> None:
    corpus = rankone.builtin_corpus(20)
    with pytest.raises(SettingError, match="line does not take dtype"):
        rankone.memorize(corpus, dtype="float32")
    with pytest.raises(SettingError, match="gated does not take head_size"):
        rankone.memorize(corpus, construction="gated", head_size=2)
