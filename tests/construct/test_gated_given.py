"""Memory with gates and given vectors: half-spaces, their rounding, and the proof from weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rankone
from rankone.arrays import Floats
from rankone.certification.gated_balls import GatedBalls
from rankone.construct.gated.halfspaces import find_gates
from rankone.corpus import Corpus
from rankone.errors import PrecisionError, VectorError
from rankone.nn import TokenClassifier, evaluate, gatekeeper
from rankone.nn.evaluate import Evaluator
from rankone.nn.gated import GatedFeedForward
from rankone.nn.gatekeeper import Gatekeeper, gated_layer_of

CODE = 6  # coordinates of positions of the built-in corpus
NAMES = [f"w{i}" for i in range(10_000)]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return rankone.builtin_corpus(120)


def drawn(words: int, dim: int, kind: str = "normal", seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    found = rng.standard_normal((words, dim))
    if kind != "normal":
        found /= np.linalg.norm(found, axis=1, keepdims=True)
    if kind == "scaled":
        found *= 10 ** rng.uniform(-1, 1, (words, 1))
    return np.asarray(found)


def memorized(corpus: Corpus, vectors: Any, **settings: Any) -> rankone.Memorized:
    return rankone.memorize(
        corpus, construction="gated", vectors=vectors, verify="dense", **settings
    )


@pytest.fixture(scope="module")
def found(corpus: Corpus) -> rankone.Memorized:
    return memorized(corpus, drawn(len(corpus.vocabulary), 20))


def layer_of(network: TokenClassifier) -> GatedFeedForward:
    layer = gated_layer_of(network)
    assert layer is not None
    return layer


def keeper_of(network: TokenClassifier) -> Gatekeeper:
    keeper = Gatekeeper.of(network, inexact=True)
    assert keeper is not None
    return keeper


def copied(network: TokenClassifier) -> TokenClassifier:
    weights = {name: p.detach().clone() for name, p in network.named_parameters()}
    return TokenClassifier.of(network.shape, weights)


# Labels.

SETTINGS: list[dict[str, Any]] = [{}, {"positions": False}, {"causal": True}, {"heads": 3}]


@pytest.mark.parametrize(
    ("dim", "kind"), [(8, "unit"), (16, "normal"), (50, "normal"), (50, "scaled"), (300, "normal")]
)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_memorizes_with_given_vectors(
    corpus: Corpus, dim: int, kind: str, settings: dict[str, Any]
) -> None:
    vectors = drawn(len(corpus.vocabulary), dim, kind)
    result = memorized(corpus, vectors, **settings)
    assert result.wrong == result.unavoidable
    assert (result.draws, result.settings["vectors"]) == (1, "given")
    assert result.dense_error < 1e-9
    table = result.model.network.table.detach().numpy()
    assert np.array_equal(table[:-1, :dim], vectors)
    assert np.array_equal(table[-1, :dim], vectors.mean(0))
    assert (table[:, dim:] == table[0, dim:]).all()
    proof = rankone.certify(result.model, corpus)
    assert (proof.outcome.value, proof.any_order) == ("certified", None)
    assert proof.margin is not None
    assert proof.margin > 0.49


@pytest.mark.parametrize("settings", [{}, {"causal": True}, {"heads": 6}], ids=str)
def test_float32(corpus: Corpus, settings: dict[str, Any]) -> None:
    vectors = drawn(len(corpus.vocabulary), 16).astype(np.float32)
    result = memorized(corpus, vectors, dtype="float32", **settings)
    assert result.wrong == result.unavoidable
    assert result.dense_error < 0.02
    assert np.array_equal(result.model.network.table[:-1, :16].detach().numpy(), vectors)
    assert rankone.certify(result.model, corpus).ok


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_the_size_of_vectors_does_not_matter(corpus: Corpus, scale: float) -> None:
    result = memorized(corpus, scale * drawn(len(corpus.vocabulary), 20))
    assert result.dense_error < 1e-9
    assert rankone.certify(result.model, corpus).ok


def test_vectors_far_from_0(corpus: Corpus) -> None:
    """Their inner products are nearly equal, and gates must look at differences."""
    result = memorized(corpus, 1e3 + drawn(len(corpus.vocabulary), 20))
    assert result.dense_error < 1e-6
    assert rankone.certify(result.model, corpus).ok


def test_one_unit_more_per_word_whose_usual_label_is_another(corpus: Corpus) -> None:
    """And one gate for each word that has units, open for it alone."""
    result = memorized(corpus, drawn(len(corpus.vocabulary), 20), heads=2)
    layer = layer_of(result.model.network)
    flat = ~layer.slopes.any(1) & (layer.position == 0) & (layer.minus > 0)
    counts = np.zeros((len(corpus.vocabulary), len(corpus.label_names)), np.int64)
    np.add.at(counts, (corpus.token_ids, corpus.label_ids), 1)
    default = result.model.predict([["nobody knows this"]])[0][0]
    number = corpus.label_names.index(default)
    sure = np.sort(counts, axis=1)[:, -1] > counts[:, number]
    assert sure.sum() <= flat.sum() <= (counts.max(1) >= counts[:, number]).sum()
    word = keeper_of(result.model.network).word
    assert word[-1] == 0
    opened = word[word > 0]
    assert sorted(opened.tolist()) == sorted(torch.unique(layer.word).tolist())


def test_unknown_words_get_the_most_frequent_label(found: rankone.Memorized) -> None:
    corpus = rankone.builtin_corpus(120)
    default = corpus.label_names[np.bincount(corpus.label_ids).argmax()]
    assert found.model.predict([["quux", "blah", "quux"]]) == [[default] * 3]


def test_many_labels_share_digits() -> None:
    words = [f"w{i % 7}" for i in range(200)]
    sentences = [(words[i : i + 5], [f"L{i + j}" for j in range(5)]) for i in range(0, 195, 5)]
    result = memorized(Corpus.from_sentences(sentences), np.eye(7))
    assert result.wrong == result.unavoidable
    assert layer_of(result.model.network).codes.shape[1] == 2


def test_words_without_exceptions_need_no_gates() -> None:
    result = memorized(Corpus.from_sentences([(["a", "b"], ["X", "X"])]), [[0.0, 1.0], [0.0, 2.0]])
    assert result.hidden_units == 0
    one = Corpus.from_sentences([(["a"], ["X"]), (["a", "a"], ["X", "X"])])
    assert memorized(one, [[3.0]]).wrong == 0


def test_the_seed_draws_the_directions(corpus: Corpus, found: rankone.Memorized) -> None:
    vectors = drawn(len(corpus.vocabulary), 20)
    again, other = memorized(corpus, vectors), memorized(corpus, vectors, seed=1)
    assert again.model.files() == found.model.files()
    assert other.model.files() != found.model.files()


def test_saved_and_loaded(found: rankone.Memorized, corpus: Corpus, tmp_path: Path) -> None:
    found.save(tmp_path / "model")
    again = rankone.load(tmp_path / "model")
    assert again.predict(corpus) == found.model.predict(corpus)


def test_a_file_of_vectors(found: rankone.Memorized, corpus: Corpus, tmp_path: Path) -> None:
    rows = zip(corpus.vocabulary, drawn(len(corpus.vocabulary), 20).tolist(), strict=True)
    path = tmp_path / "glove.txt"
    path.write_text("".join(f"{word} {' '.join(map(repr, row))}\n" for word, row in rows))
    assert memorized(corpus, path).model.files() == found.model.files()


# What a network computes, and what is known of it.


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_units_are_silent_outside_their_group(corpus: Corpus, settings: dict[str, Any]) -> None:
    """All words, all positions, the largest averages of either sign, with all matrices written out;
    in its own group, a unit sees its gate up to rounding."""
    network = memorized(corpus, drawn(len(corpus.vocabulary), 20), **settings).model.network
    network.requires_grad_(False)
    layer, keeper = layer_of(network), keeper_of(network)
    full, count = layer.expand().requires_grad_(False), len(layer.gates)
    value = torch.stack([head.value[0] for head in network.blocks[0].attention.heads])
    reach = (network.table @ value.T).abs().amax(0)
    places = [torch.zeros(network.shape.dim)]
    if network.positions is not None:
        places = list(network.positions)
        reach = reach + (network.positions @ value.T).abs().amax(0)
    reach = reach[layer.reads - layer.reads.min()].detach()
    for v, row in enumerate(network.table):
        for p, place in enumerate(places):
            x = (row + place).detach().clone()
            _, own = keeper.reached(np.array([v]), np.array([p]), count)
            x[layer.reads] = 0.0
            seen = (full.weight1 @ x)[own]
            assert float(seen.abs().max() if len(own) else 0.0) < 1e-8
            for signs in (-1.0, 1.0):
                x[layer.reads] = signs * reach
                active = (full.weight1 @ x + full.bias1 > 0).nonzero()[:, 0].tolist()
                assert set(active) <= set(own.tolist())


def test_all_ways_agree(found: rankone.Memorized, corpus: Corpus) -> None:
    """The fast path, the compact layer, the dense one, and balls; also where the own gate gives a
    number that is not tiny, as long as others are silent."""
    for shift in (0.0, 2.0**-13):
        network = copied(found.model.network)
        layer = layer_of(network)
        words = torch.unique(layer.word)
        with torch.no_grad():
            layer.gates[words, 20 + CODE] += shift
        assert Gatekeeper.of(network, inexact=True) is not None
        ids, offsets = corpus.token_ids[: corpus.offsets[9]], corpus.offsets[:10]
        fast = np.concatenate([*Evaluator(network).features(ids, offsets)], 1).T
        gated = GatedBalls.of(network)
        assert gated is not None
        balls = next(gated.run(ids, offsets)).features
        for i in range(9):
            at = slice(*offsets[i : i + 2].tolist())
            own = torch.from_numpy(ids[at])[None]
            for one in (network, network.expand()):
                h = one.blocks[0].attention(one.embed(own), causal=False)
                wanted = one.blocks[0].feedforward(h)[0].detach().numpy()
                np.testing.assert_allclose(fast[at], wanted, atol=1e-9, rtol=0)
                off = np.abs(balls.mid[:, at].T - wanted[:, gated.out])
                assert (off <= balls.rad[:, at].T + 1e-10).all()
        assert balls.rad.max() < 1e-9


def test_a_few_tokens_need_no_proof(
    found: rankone.Memorized, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = found.model.predict(corpus)

    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(gatekeeper, "opened_by_products", never)
    first = corpus.sentences[0].tokens[:1]
    assert found.model.predict([first])
    with pytest.raises(AssertionError):
        found.model.predict(corpus)
    monkeypatch.setattr(evaluate, "PROOF", 0)
    assert found.model.predict(corpus) == wanted


def test_balls_hold_the_exact_numbers(found: rankone.Memorized, corpus: Corpus) -> None:
    """Those of arithmetic with 200 bits on the network's own weights."""
    from flint import ctx

    from rankone.nn.arb_network import in_balls

    ids, offsets = corpus.token_ids[: corpus.offsets[1]], corpus.offsets[:2]
    gated = GatedBalls.of(found.model.network)
    assert gated is not None
    balls = next(gated.run(ids, offsets)).features
    with ctx.workprec(200):
        exact = in_balls(found.model.network)
        for k in range(len(ids)):
            features = exact.features(ids.tolist(), k)
            for i, x in enumerate(features[at] for at in gated.out.tolist()):
                away = abs(x - balls.mid[i, k])
                assert away <= balls.rad[i, k]


def fewer_penalties(network: TokenClassifier) -> None:
    layer_of(network).penalty.mul_(0.25)


def one_penalty(network: TokenClassifier) -> None:
    layer_of(network).penalty[3] *= 0.125


def turned(network: TokenClassifier) -> None:
    layer_of(network).gates[2, :20] = layer_of(network).gates[2, :20].roll(1)


def shifted(network: TokenClassifier) -> None:
    layer_of(network).gates[2] *= 1.0
    layer_of(network).gates[2, :20] += 1e-2


def moved(network: TokenClassifier) -> None:
    rows = np.flatnonzero(keeper_of(network).word)
    network.table[rows[0]] = network.table[rows[1]]


def silent_moved(network: TokenClassifier) -> None:
    """A word without units onto one that has some."""
    word = keeper_of(network).word
    network.table[int((word == 0).argmax())] = network.table[int((word > 0).argmax())]


def unknown_moved(network: TokenClassifier) -> None:
    network.table[-1] = network.table[int((keeper_of(network).word > 0).argmax())]


def position_seen(network: TokenClassifier) -> None:
    assert network.positions is not None
    network.positions[3, 5] = 1e-3


def written(network: TokenClassifier) -> None:
    attention = network.blocks[0].attention
    assert isinstance(attention, rankone.nn.SelfAttention)
    attention.output[0, 4, 0] = 1e-3


def no_number(network: TokenClassifier) -> None:
    network.table[5, 3] = torch.nan


DAMAGES = [
    *(fewer_penalties, one_penalty, turned, shifted, moved, silent_moved, unknown_moved),
    *(position_seen, written, no_number),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_the_proof_fails_for_weights_that_leak(
    found: rankone.Memorized, damage: Callable[[TokenClassifier], None]
) -> None:
    network = copied(found.model.network)
    assert Gatekeeper.of(network, inexact=True) is not None
    with torch.no_grad():
        damage(network)
    assert Gatekeeper.of(network, inexact=True) is None


def test_gates_that_round_are_never_taken_for_exact_ones(
    found: rankone.Memorized, corpus: Corpus
) -> None:
    assert Gatekeeper.of(found.model.network) is None
    keeper = Gatekeeper.of(found.model.network, inexact=True)
    assert keeper is not None
    assert not keeper.exact
    assert rankone.certify(found.model, corpus).any_order is None


# Gates.


@pytest.mark.parametrize("held", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("words", "dim", "kind"), [(500, 20, "normal"), (3000, 40, "unit"), (300, 299, "scaled")]
)
def test_gates_hold_one_vector_each(held: Any, words: int, dim: int, kind: str) -> None:
    table = drawn(words, dim, kind).astype(held).astype(np.float64)
    table = np.concatenate([table, table.mean(0, keepdims=True).astype(held)])
    asked = np.arange(0, words, 2)
    gates = find_gates(table, asked, held, dim + 8, NAMES)
    assert np.array_equal(gates.rows.astype(held), gates.rows)
    fines = gates.rows[:, :-1] @ table.T + gates.rows[:, -1:]
    own = fines[np.arange(len(asked)), asked].copy()
    assert (np.abs(own) <= (dim + 8) * np.finfo(held).eps * gates.size).all()
    fines[np.arange(len(asked)), asked] = -np.inf
    assert fines.max() <= -1.0
    assert np.array_equal(fines.argmax(1), gates.nearest)


def test_every_corner_of_a_hull_has_a_gate() -> None:
    """Points on a curve whose convex hull has them all as corners, at very different distances;
    neither they nor the whitened ones lie on a sphere."""
    t = np.linspace(0.2, 1.0, 40)
    table = np.stack([t, t**2], axis=1)
    table = np.concatenate([table, table.mean(0, keepdims=True)])
    gates = find_gates(table, np.arange(40), np.float64, 10, NAMES)
    fines = gates.rows[:, :-1] @ table.T + gates.rows[:, -1:]
    np.fill_diagonal(fines, -np.inf)
    assert fines.max() <= -1.0


# Refusals.

MIDDLE = Corpus.from_sentences(
    [(["a", "b", "c"], ["X", "Y", "Z"]), (["c", "b", "a"], ["Z", "Y", "X"])] * 2
    + [(["d", "d", "d"], ["X", "X", "X"])]
)


def test_a_vector_between_two_others_is_refused() -> None:
    order = {word: i for i, word in enumerate(MIDDLE.vocabulary)}
    vectors = np.zeros((4, 2))
    for word, row in {"a": (1, 0), "b": (2, 1), "c": (3, 2), "d": (1, 3)}.items():
        vectors[order[word]] = row
    with pytest.raises(
        VectorError, match=r"(?s)of 'b' cannot be gated.* '[ac]' is level"
    ) as caught:
        memorized(MIDDLE, vectors)
    assert "--construction line" in (caught.value.remedy or "")
    assert rankone.memorize(MIDDLE, vectors=vectors).wrong == 0
    vectors[order["b"]] += 0.01, -0.01
    assert memorized(MIDDLE, vectors).wrong == 0


def test_words_that_are_like_unknown_ones_are_refused() -> None:
    """The only word is its own mean, and has labels other than the usual one."""
    corpus = Corpus.from_sentences([(["a", "a", "a"], ["X", "Y", "X"])])
    with pytest.raises(VectorError, match=r"'a' cannot be gated.*mean of all vectors"):
        memorized(corpus, [[1.0, 2.0]])


def test_vectors_that_nearly_coincide_are_refused(corpus: Corpus) -> None:
    vectors = drawn(len(corpus.vocabulary), 20)
    layer = layer_of(memorized(corpus, vectors).model.network)
    assert layer.hidden
    one, other = corpus.vocabulary.index("Sydney"), corpus.vocabulary.index("Austin")
    vectors[one] = vectors[other] * (1 + 1e-14)
    with pytest.raises((PrecisionError, VectorError), match=r"'Sydney'|'Austin'"):
        memorized(corpus, vectors)


def test_float32_that_cannot_hold_the_gates(corpus: Corpus) -> None:
    vectors = 1e3 + drawn(len(corpus.vocabulary), 20)
    with pytest.raises(PrecisionError, match=r"(?s)float32 cannot.*choose float64"):
        memorized(corpus, vectors, dtype="float32")
    with pytest.raises(VectorError, match="float32 has no room for vectors as large as"):
        memorized(corpus, 1e30 * vectors, dtype="float32")


def test_float32_whose_groups_would_be_put_off_names_the_gate(corpus: Corpus) -> None:
    """The gates have room, but a group that is steep does not."""
    vectors = 20.0 + drawn(len(corpus.vocabulary), 12)
    with pytest.raises(PrecisionError, match=r"the gate of .* of its terms to .*put labels off"):
        memorized(corpus, vectors, dtype="float32")
