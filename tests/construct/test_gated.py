"""Memory with gates: codes, silence, float32, and what float32 may do to sums."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
import torch

import rankone
from rankone.construct.gated import codes, keys
from rankone.corpus import Corpus
from rankone.errors import PrecisionError, SettingError
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


@pytest.mark.parametrize("seed", range(3))
def test_an_attack_on_sums_and_exponentials(
    memorized: rankone.Memorized, corpus: Corpus, seed: int
) -> None:
    """float32 by hand: shuffled sums, exp off by 2 ulp, on the dense matrices."""
    rng, f = np.random.default_rng(seed), np.float32
    network = memorized.model.network.expand()
    assert network.positions is not None
    table, places = network.table.detach().numpy(), network.positions.detach().numpy()
    full = network.blocks[0].feedforward
    w1, b1, w2 = (x.detach().numpy() for x in (full.weight1, full.bias1, full.weight2))

    def total(terms: np.ndarray) -> np.ndarray:
        out = np.zeros(terms.shape[1:], f)
        for i in rng.permutation(len(terms)):
            out = (out + terms[i]).astype(f)
        return out

    wrong = 0
    wanted = rankone.memorize(corpus).model.predict(corpus)
    for s in rng.choice(corpus.n_sentences, 12, replace=False).tolist():
        a, b = corpus.offsets[s : s + 2]
        x = (table[corpus.token_ids[a:b]] + places[: b - a]).astype(f)
        h = x.copy()
        for head in network.blocks[0].attention.heads:
            k, q, v = (x @ m.numpy()[0] for m in (head.key, head.query, head.value))
            e = np.exp((q[0] * k).astype(f)).astype(f)
            e = (e + rng.integers(-2, 3, len(e)) * np.spacing(e)).astype(f)
            share = (e / total(e)).astype(f)
            h += np.outer(np.full(b - a, total((share * v).astype(f))), head.output.numpy()[:, 0])
        z = np.maximum(
            total(
                np.concatenate(
                    [w1.T[:, :, None] * h.T[:, None], b1[None, :, None] + 0 * h.T[:1, None]]
                )
            ),
            0,
        )
        y = (h + total(w2.T[:, :, None] * z[:, None]).T).astype(f)
        logits = y @ network.head.weight.detach().numpy().T
        names = [memorized.model.labels[i] for i in logits.argmax(1)]
        wrong += sum(x != y for x, y in zip(names, wanted[s], strict=True))
    assert wrong == 0


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
