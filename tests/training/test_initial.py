"""The network before the first step: drawn by the seed alone, and constructed where asked."""

import numpy as np
import pytest
import torch

import rankone
from rankone import Corpus
from rankone.construct.theorem2.projection import measure
from rankone.errors import SettingError
from rankone.nn.ragged import Ragged
from rankone.training import initial as room
from rankone.training.batches import batches
from rankone.training.initial import POINTS, SPREAD, initial
from rankone.training.processes import Processes
from rankone.training.settings import Settings
from rankone.training.state import Run

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}

each_attention = pytest.mark.parametrize("attention", ["rank1", "theorem2", "softmax"])
each_dtype = pytest.mark.parametrize("dtype", TOLERANCE)
each_depth = pytest.mark.parametrize("depth", [1, 3])


@pytest.fixture(scope="module")
def corpus():
    return rankone.builtin_corpus(200)


def words(n):
    """A corpus of so many words."""
    return Corpus.from_sentences([([f"w{i}"], ["x"]) for i in range(n)])


def double(tensor):
    return tensor.detach().double().numpy()


# What is drawn.


@each_dtype
@each_attention
def test_the_same_seed_gives_the_same_bits(corpus, attention, dtype):
    settings = Settings(attention=attention, dtype=dtype, dim=8, depth=2, seed=5)
    first = initial(corpus, settings).state_dict()
    torch.manual_seed(1)
    np.random.seed(1)  # what others draw does not matter
    second = initial(corpus, settings).state_dict()
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == getattr(torch, dtype)
        assert torch.equal(first[name], second[name]), name


@each_attention
def test_another_seed_gives_other_weights(corpus, attention):
    first, second = (
        initial(corpus, Settings(attention=attention, dim=8, seed=seed)) for seed in (0, 1)
    )
    for (name, a), b in zip(first.named_parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b) == name.endswith(("bias1", "bias2")), name


@each_attention
def test_nothing_else_is_drawn_from(corpus, attention):
    torch.manual_seed(3)
    kept = torch.get_rng_state(), np.random.get_state()[1].copy()
    initial(corpus, Settings(attention=attention, dim=8))
    assert torch.equal(torch.get_rng_state(), kept[0])
    np.testing.assert_array_equal(np.random.get_state()[1], kept[1])


@pytest.mark.parametrize("std", [0.02, 1.0, 5.0])
def test_the_tables_have_the_standard_deviation_asked_for(std):
    corpus = Corpus.from_sentences([([f"w{i}" for i in range(400)], ["x"] * 400)])
    network = initial(corpus, Settings(init_std=std, dim=64))
    for table in (network.table, network.positions):
        assert abs(table.std().item() / std - 1) < 0.03  # 25,600 draws: six deviations
        assert abs(table.mean().item() / std) < 0.04


def test_the_standard_deviation_is_a_factor_of_the_tables_and_of_nothing_else(corpus):
    small, large = (initial(corpus, Settings(init_std=std, dim=8)) for std in (0.5, 2.0))
    for (name, a), b in zip(small.named_parameters(), large.parameters(), strict=True):
        assert torch.equal(a * 4 if name in ("table", "positions") else a, b), name


def test_tables_may_start_at_zero(corpus):
    network = initial(corpus, Settings(init_std=0, dim=8))
    assert not network.table.any()
    assert not network.positions.any()


@each_attention
def test_there_are_positions_only_where_they_are_asked_for(corpus, attention):
    network = initial(corpus, Settings(attention=attention, dim=8, positions=False))
    assert network.positions is None
    assert network.table.shape == (len(corpus.vocabulary) + 1, 8)


@pytest.mark.parametrize("attention", ["rank1", "softmax"])
def test_everything_trains(corpus, attention):
    network = initial(corpus, Settings(attention=attention, dim=8, depth=2))
    assert all(p.requires_grad for p in network.parameters())


# "theorem2": v1 and v2 constructed, and fixed.


@torch.no_grad()
def blocks(corpus, **settings):
    """What each block sees at the start, and its v1 and v2: the first the rows of the token table,
    the others what becomes of the first sentences, about 4,096 tokens."""
    network = initial(corpus, Settings(attention="theorem2", **settings))
    last = np.searchsorted(corpus.offsets, 4096, side="right") - 1
    sentences = Ragged(corpus.offsets[: last + 1])
    z = network.table[torch.from_numpy(corpus.token_ids[: corpus.offsets[last]])]
    z = z + network.positions[sentences.positions]
    found, seen = [], network.table
    for block in network.blocks:
        attention = block.attention
        found.append(tuple(map(double, (seen, attention.v1, attention.v2))))
        z = block.ragged(z, sentences)
        seen = z.unique(dim=0)
    return found


@each_depth
def test_only_v1_and_v2_are_fixed(corpus, depth):
    network = initial(corpus, Settings(attention="theorem2", dim=8, depth=depth))
    fixed = {name for name, p in network.named_parameters() if not p.requires_grad}
    assert fixed == {f"blocks.{i}.attention.{v}" for i in range(depth) for v in ("v1", "v2")}


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_training_moves_everything_but_v1_and_v2(corpus, optimizer):
    settings = Settings(attention="theorem2", dim=8, depth=2, optimizer=optimizer, lr=0.1)
    run = Run(initial(corpus, settings), settings, Processes())
    before = {name: p.detach().clone() for name, p in run.network.named_parameters()}
    for batch in batches(corpus, 1000, seed=0, epoch=0, first=0, processes=Processes()):
        run.step(batch, settings.lr)
    for name, p in run.network.named_parameters():
        assert torch.equal(p, before[name]) == name.endswith(("v1", "v2")), name
    assert not {name for name in run.tensors() if "moment" in name and "v1" in name}


@each_dtype
@pytest.mark.parametrize(("depth", "init_std"), [(1, 1e-3), (3, 0.02), (1, 1.0), (3, 100.0)])
def test_projections_are_as_promised(corpus, depth, init_std, dtype):
    """Lemma 2 holds for v1 and v2, which point the same way; keys and scores are spread as said."""
    how = {"dim": 16, "depth": depth, "dtype": dtype, "init_std": init_std}
    for seen, v1, v2 in blocks(corpus, **how):
        for v in (v1, v2):
            assert measure(seen[:POINTS], v, draws=0, method="given").ok
        units = v1 / np.linalg.norm(v1), v2 / np.linalg.norm(v2)
        np.testing.assert_allclose(*units, rtol=0, atol=TOLERANCE[dtype])
        key, query = seen @ v1, seen @ v2
        assert key.std() == pytest.approx(1.0, rel=TOLERANCE[dtype])
        ends = np.outer([query.min(), query.max()], [key.min(), key.max()])
        assert np.ptp(ends) == pytest.approx(SPREAD, rel=TOLERANCE[dtype])
        assert np.ptp(ends, axis=1).max() == pytest.approx(SPREAD, rel=TOLERANCE[dtype])


def test_lemma_2_holds_for_many_words_in_single_precision():
    [(table, v1, v2)] = blocks(words(4095), dim=4, dtype="float32", seed=0)
    for v in (v1, v2):
        assert measure(table, v, draws=0, method="given").ok


def test_blocks_have_vectors_of_their_own(corpus):
    vectors = [v1 for _, v1, _ in blocks(corpus, dim=16, depth=3)]
    for i in range(3):
        for j in range(i):
            cosine = vectors[i] @ vectors[j]
            cosine /= np.linalg.norm(vectors[i]) * np.linalg.norm(vectors[j])
            assert abs(cosine) < 0.99


def test_the_other_weights_are_those_of_rank1(corpus):
    plain, fixed = (
        initial(corpus, Settings(attention=kind, dim=8, depth=2)) for kind in ("rank1", "theorem2")
    )
    for (name, a), b in zip(plain.named_parameters(), fixed.parameters(), strict=True):
        assert torch.equal(a, b) != name.endswith(("v1", "v2")), name


def test_more_words_than_are_looked_at_are_still_spread_as_promised(corpus, monkeypatch):
    monkeypatch.setattr(room, "POINTS", 10)
    [(table, v1, v2)] = blocks(corpus, dim=16, dtype="float64")
    assert measure(table[:10], v1, draws=0, method="given").ok
    assert np.ptp(np.outer(table @ v2, table @ v1)) == pytest.approx(SPREAD, rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2])
def test_few_dimensions_and_few_words(dim):
    for corpus in (words(1), words(2), words(30)):
        [(table, v1, _)] = blocks(corpus, dim=dim)
        assert measure(table, v1, draws=0, method="given").ok


@pytest.mark.parametrize("init_std", [0.0, 1e-50])
def test_equal_rows_are_refused_with_a_remedy(corpus, init_std):
    with pytest.raises(SettingError, match="rows of the token table are equal") as caught:
        initial(corpus, Settings(attention="theorem2", init_std=init_std, dim=8))
    assert "init_std" in caught.value.remedy
