"""Networks with a window: certificates say what mpmath finds, whatever the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.certification import judge
from tests.certification.gated_models import changed, layer_of

import rankone
from rankone import Corpus
from rankone.certification import Outcome, rare
from rankone.certification.any_order import AnyOrder
from rankone.certification.ball_arithmetic import Balls
from rankone.certification.exact_scores import fading
from rankone.certification.float_balls import FloatBalls
from rankone.certification.gated_balls import GatedBalls
from rankone.certification.referee import Referee, precision
from rankone.certification.told_apart import least_distance
from rankone.certification.window_averages import Powers, WindowAverages
from rankone.certification.windows import placeless
from rankone.errors import CorpusError, ModelError
from rankone.nn import Model, TokenClassifier
from rankone.nn.arb_network import in_balls

TEXTS = ("the cat and the dog and the cat sat", "a dog and the cat", "a dog and a dog sat")


def check(model: Model, corpus: Corpus) -> rankone.Certificate:
    """No claim goes beyond what mpmath finds."""
    found = rankone.certify(model, corpus)
    sentences = [(list(s.tokens), list(s.labels)) for s in corpus.sentences]
    with judge.digits():
        truth = judge.truth(model, sentences)
        least = min(truth.distances().values(), default=judge.mpf("inf"))
        if found.mapping is Outcome.CERTIFIED and least < judge.mpf("inf"):
            assert judge.mpf(found.delta) < least
            assert judge.mpf(found.delta) >= least * (1 - judge.mpf(2) ** -13)  # six digits
        elif found.mapping is Outcome.REFUTED:
            assert least < judge.mpf(10) ** -140
        if found.labels is not Outcome.UNDECIDED:
            assert found.wrong == len(truth.wrong)
        longest = max(sum(x * x for x in q) ** 0.5 for q in truth.context_ids)
        assert longest <= float(found.r) <= longest * (1 + 1e-4) + 1e-300
        run = judge.float_run(model, corpus)
        codes = np.array([[float(x) for x in z] for z in truth.features])
        read = model.network.head.weight.detach().numpy().any(0)
        if found.margin is not None and model.network.shape.feedforward == "gated":
            assert np.abs(run - codes)[:, read].max() <= float(found.float_distance) + 1e-15
    return found


@cache
def memorized(
    window: int, dtype: str = "float64", texts: tuple[str, ...] = TEXTS
) -> tuple[Model, Corpus]:
    corpus = Corpus.from_texts(texts, window=window)
    return rankone.memorize(corpus, dtype=dtype).model, corpus  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", [1, 5])
def test_a_model_that_memorize_made(window: int, dtype: str) -> None:
    model, corpus = memorized(window, dtype)
    assert check(model, corpus).ok


def faded_less(network: TokenClassifier) -> None:
    """One head has another exponent, of many digits."""
    network.blocks[0].attention.key[0] *= 0.7  # type: ignore[operator, index]


def longer_step(network: TokenClassifier) -> None:
    assert network.step is not None
    network.step *= 2


def reversed_order(network: TokenClassifier) -> None:
    """The first word of a window counts most."""
    network.blocks[0].attention.key[0] *= -1  # type: ignore[operator, index]


def keys_of_words(network: TokenClassifier) -> None:
    """A word counts for more than others, wherever it stands."""
    assert network.step is not None
    network.table[0, network.step.detach() != 0] = 0.5


def weak_penalties(network: TokenClassifier) -> None:
    layer_of(network).penalty.mul_(2.0**-6)


def other_units(network: TokenClassifier) -> None:
    layer_of(network).bias1.mul_(0.5)


def other_window(network: TokenClassifier) -> None:
    network.shape = replace(network.shape, window=3)


CHANGES: list[Callable[[TokenClassifier], None]] = [
    faded_less, longer_step, reversed_order, keys_of_words, weak_penalties, other_units,
    other_window,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_changed_weights(change: Callable[[TokenClassifier], None]) -> None:
    model, corpus = memorized(4)
    model = changed(model, change)
    if change is other_window:
        corpus = replace(corpus, window=3)
    found = check(model, corpus)
    if change in (longer_step, reversed_order, other_units):
        assert found.outcome is Outcome.REFUTED
        assert found.reason is not None
    assert (GatedBalls.of(model.network) is None) == (change is weak_penalties)


def test_windows_whose_order_is_lost() -> None:
    """Plain averages: abc and bac are one to all heads, and two to the claim."""
    corpus = Corpus.from_texts(["xxabc", "xxbac"], tokenizer="characters", window=3)
    model = changed(
        rankone.memorize(corpus).model,
        lambda network: network.blocks[0].attention.key.zero_(),  # type: ignore[union-attr, operator]
    )
    found = check(model, corpus)
    assert found.mapping is Outcome.REFUTED
    assert found.closest is not None
    assert {(s.sentence, s.position) for s in found.closest} == {(1, 6), (2, 6)}


def random_model(seed: int, dtype: torch.dtype, **shape: Any) -> Model:
    """Random weights, but nothing except for keys reads the step, along the last coordinate."""
    model = judge.random_model(seed, dtype, causal=True, feedforward="dense", **shape)
    network = model.network
    with torch.no_grad():
        assert network.step is not None
        network.step.zero_()
        network.step[-1] = 0.375
        attention, layer = network.blocks[0].attention, network.blocks[0].feedforward
        for weight in (attention.query, attention.value, layer.weight1, network.head.weight):
            weight[..., -1] = 0  # type: ignore[index, operator]
        attention.output[:, -1] = 0  # type: ignore[index, operator]
    return model


@given(
    st.integers(0, 10**6),
    st.sampled_from(["softmax", "hardmax"]),
    st.integers(1, 2),
    st.integers(1, 4),
    judge.sentences(),
    st.sampled_from([torch.float64, torch.float32]),
)
def test_any_network_with_a_window(
    seed: int, kind: str, heads: int, window: int, texts: list[str], dtype: torch.dtype
) -> None:
    model = random_model(seed, dtype, attention=kind, heads=heads, window=window, dim=4)
    labels = np.random.default_rng(seed).integers(3, size=sum(map(len, texts))).tolist()
    corpus = Corpus.from_sentences(judge.labelled(texts, labels))
    check(model, replace(corpus, window=window))


@pytest.mark.parametrize("window", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("decay", [0.0, 0.375, 1.0, 40.0])
def test_averages_that_fade(window: int, decay: float) -> None:
    """Radii hold in mpmath, and are not much larger than need be."""
    rng = np.random.default_rng(0)
    values = Balls(rng.uniform(-1, 1, (1, 40)), np.zeros((1, 40)))
    inner = np.concatenate([np.arange(23), np.arange(17)])
    found = Powers(decay, window).averages(values, inner)
    assert 0 < found.rad.max() < 1e-13
    with judge.digits():
        for i, place in enumerate(inner.tolist()):
            n = min(place + 1, window)
            own = [judge.mpf(float(v)) for v in values.mid[0, i + 1 - n : i + 1][::-1]]
            weights = [judge.mpmath.exp(-judge.mpf(decay) * j) for j in range(n)]
            exact = judge.dot(weights, own) / sum(weights)
            assert abs(exact - judge.mpf(float(found.mid[0, i]))) <= float(found.rad[0, i])


def test_both_ways_to_average(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laid out as sentences, windows have the same averages; in pieces, tokens have."""
    model, corpus = memorized(4)
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    one, other = WindowAverages(model.network), WindowAverages(model.network)
    assert one.decays is not None
    other.decays = None
    a, b = one(rows, corpus.offsets), other(rows, corpus.offsets)
    assert (np.abs(a.mid - b.mid) <= a.rad + b.rad).all()
    assert b.rad.max() < 1e-12
    monkeypatch.setattr("rankone.certification.window_averages.LAID_OUT", 5)
    c = other(rows, corpus.offsets)
    assert (np.abs(a.mid - c.mid) <= a.rad + c.rad).all()
    balls = GatedBalls.of(model.network)
    assert balls is not None
    pieces = list(balls.run(rows, corpus.offsets, 7))
    assert len(pieces) == -(-len(rows) // 7)
    (whole,) = balls.run(rows, corpus.offsets)
    for name in ("moved", "features"):
        mid = np.concatenate([getattr(p, name).mid for p in pieces], 1)
        assert np.abs(mid - getattr(whole, name).mid).max() < 1e-12
    (slow,) = FloatBalls(model.network).run(rows, corpus.offsets)
    far = np.abs(slow.features.mid[balls.out] - whole.features.mid)
    assert (far <= slow.features.rad[balls.out] + whole.features.rad).all()


def test_what_is_refused() -> None:
    model, corpus = memorized(4)
    for window in (0, 3):
        other = Corpus.from_texts(TEXTS, window=window)
        with pytest.raises(CorpusError, match="window of 4 tokens, but the corpus was read with"):
            rankone.certify(model, other)

    def seen(network: TokenClassifier, name: str) -> None:
        assert network.step is not None
        attention = network.blocks[0].attention
        at = int(network.step.nonzero()[0])
        if name == "gates":
            layer_of(network).gates[1, at] = 1.0
        elif name == "reads":
            network.step[layer_of(network).reads[0]] = 1.0
        elif name == "head":
            network.head.weight[0, at] = 1.0
        elif name == "output":
            attention.output[0, at] = 1.0  # type: ignore[index, operator]
        else:
            getattr(attention, name)[0, 0, at] = 1.0

    for name in ("gates", "reads", "head", "output", "query", "value"):
        strange = changed(model, lambda network, name=name: seen(network, name))  # type: ignore[misc]
        assert not placeless(strange.network)
        with pytest.raises(ModelError, match="not only the window"):
            rankone.certify(strange, corpus)
    plain, _ = memorized(0, texts=("a b",))
    with pytest.raises(CorpusError, match="no window, but the corpus was read with a window of 4"):
        rankone.certify(plain, corpus)


def test_a_changed_token_is_not_certified() -> None:
    model, corpus = memorized(4)
    ids = corpus.label_ids.copy()
    ids[3] = ids[2]
    assert ids[3] != corpus.label_ids[3]
    found = rankone.certify(model, replace(corpus, label_ids=ids))
    assert found.outcome is Outcome.REFUTED
    assert "is labelled" in str(found.reason)


def test_the_step_does_not_tell_words_apart() -> None:
    """A word's number there is added to the place: context ids are taken without it."""
    model, corpus = memorized(4)
    rows = np.arange(len(model.vocabulary))

    def told(network: TokenClassifier) -> None:
        assert network.step is not None
        network.table[1] = network.table[0]
        network.table[1, int(network.step.nonzero()[0])] = 1.0

    assert least_distance(model.network, rows, rows * 0) == 1
    other = changed(model, told)
    assert least_distance(other.network, rows, rows * 0) == 0
    found = check(other, corpus)
    assert found.mapping is not Outcome.UNDECIDED


def test_two_words_that_are_one() -> None:
    """What only their keys tell apart is seen by none of them where they stand alone."""
    corpus = Corpus.from_texts(["xab", "yab"], tokenizer="characters", window=2)

    def same(network: TokenClassifier) -> None:
        rows = [corpus.vocabulary.index(c) for c in "xy"]
        network.table[rows[1]] = network.table[rows[0]]

    model = changed(rankone.memorize(corpus).model, same)
    found = check(model, corpus)
    assert found.mapping is Outcome.REFUTED  # <begin> x and <begin> y


@pytest.mark.parametrize("change", [None, keys_of_words])
def test_the_referee_sees_the_same_window(change: Any) -> None:
    """Context ids and features in Arb lie in the balls of float64, and are no other ones."""
    model, corpus = memorized(4)
    model = model if change is None else changed(model, change)
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    referee = Referee(model.network, rows, corpus.offsets, 128, lambda *_: None)
    balls = GatedBalls.of(model.network)
    assert balls is not None
    (chunk,) = balls.run(rows, corpus.offsets)
    _, q = balls.located(chunk.ids, chunk.positions * 0, chunk.moved)
    with precision(128):
        net = in_balls(model.network)
        for token in (1, len(rows) - 1):
            ids, k = referee.place(token)
            assert len(ids) == k + 1 <= 4
            for exact, found in (
                (net.context_id(ids, k), q),
                ([net.features(ids, k)[i] for i in balls.out.tolist()], chunk.features),
            ):
                for i, x in enumerate(exact):
                    off = abs(x - float(found.mid[i, token]))
                    assert off <= float(found.rad[i, token]) + 1e-30


def test_runs_in_any_order() -> None:
    """Of a window n tokens count, and scores must be exact for all places."""
    model, corpus = memorized(4)
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    balls = GatedBalls.of(model.network)
    assert balls is not None
    gold = np.zeros(len(rows), np.int64)
    order = AnyOrder.of(model.network, balls, gold, corpus.longest)
    assert order is not None
    (chunk,) = balls.run(rows, corpus.offsets)
    sizes, bound = order.averages_slip(chunk)
    table = model.network.table.detach().numpy()
    assert balls.windows is not None
    assert balls.windows.decays is not None
    for row, (head, decay) in enumerate(zip(order.heads, balls.windows.decays, strict=True)):
        for token in range(len(rows)):
            n = min(4, int(chunk.positions[token]) + 1)
            p = np.exp(-decay * np.arange(n)[::-1])
            values = np.abs(table[rows[token + 1 - n : token + 1], head.value])
            size = (p * values).sum() / p.sum()
            assert sizes[row, token] == pytest.approx(size, rel=1e-12)
            want = (2 * n + 12) * 2.0**-53 * size + 1e-30
            assert bound[row, token] == pytest.approx(want, rel=1e-6, abs=0)
    assert fading(model.network, balls, 1 << 50) is not None
    assert fading(model.network, balls, 1 << 53) is None  # 3/4 of an odd place takes two bits more
    single, _ = memorized(4, "float32")
    less = GatedBalls.of(single.network)
    assert less is not None
    assert fading(single.network, less, 1 << 21) is not None
    assert fading(single.network, less, 1 << 23) is None
    assert rankone.certify(model, corpus).any_order
    weak = changed(model, faded_less)
    others = GatedBalls.of(weak.network)
    assert others is not None
    assert AnyOrder.of(weak.network, others, gold, corpus.longest) is None


WORDS = " ".join(
    f"w{i}" for i in range(70)
)  # and contexts of q whose usual label is a distribution
WORDS += "".join(f" {c} q {d}" for c in "abc" for d in "xy") + " d q z a q x a q y"


def test_coordinates_that_few_tokens_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distributions by entries, or as other coordinates: the same features, and slips of runs."""
    model, corpus = memorized(2, texts=(WORDS, "w3 w1 w9 w3"))
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    gold = np.zeros(len(rows), np.int64)
    found = []
    for seldom in (rare.SELDOM, 10**9):
        monkeypatch.setattr(rare, "SELDOM", seldom)
        balls = GatedBalls.of(model.network)
        assert balls is not None
        order = AnyOrder.of(model.network, balls, gold, corpus.longest)
        assert order is not None
        (chunk,) = balls.run(rows, corpus.offsets)
        found.append((balls.rare.there.sum(), chunk.features, order.features_slip(chunk)))
    (some, one, slip), (none, other, slip_) = found
    assert some >= 1
    assert none == 0
    assert np.abs(one.mid - other.mid).max() < 1e-13
    assert np.abs(one.rad - other.rad).max() <= 0.5 * other.rad.max()
    touched = one.rad > 1e-20  # what nobody adds to is not rounded
    assert (slip <= 2 * slip_).all()
    assert (slip >= slip_ / 2)[touched].all()
    (slow,) = FloatBalls(model.network).run(rows, corpus.offsets)
    far = np.abs(slow.features.mid[balls.out] - one.mid)
    assert (far <= slow.features.rad[balls.out] + one.rad).all()
    assert rankone.certify(model, corpus).ok


def test_leads_that_rounding_may_take() -> None:
    model, corpus = memorized(4)
    balls = GatedBalls.of(model.network)
    assert balls is not None
    order = AnyOrder.of(model.network, balls, np.zeros(9, np.int64), corpus.longest)
    assert order is not None
    assert order.mixed is not None
    codes = order.mixed.codes
    y, slip = np.zeros((len(balls.out), 2)), np.zeros((len(balls.out), 2))
    y[codes.at] = codes.codes[:1].T
    slip[codes.at] = 0.5 - np.array([1e-9, 1e-14])
    label = np.zeros(2, np.int64)
    assert order._by_mixed(y, slip, label).tolist() == [True, False]
    assert order._by_mixed(y, slip, label + 1).tolist() == [False, False]


def test_many_contexts_of_different_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not compared if contexts of each word are further apart; the bound is sound."""
    corpus = Corpus.from_texts(["abcdefg"], tokenizer="characters", window=3)
    model = rankone.memorize(corpus).model
    one = rankone.certify(model, corpus)
    monkeypatch.setattr("rankone.certification.context_gaps.MANY", 2)
    other = rankone.certify(model, corpus)
    assert one.ok
    assert other.ok
    assert one.closest is not None
    assert other.closest is None
    assert 0.99 < float(other.delta) < 1 < float(one.delta)
    assert rankone.check_certificate(other, model, corpus).ok


def test_forgotten_windows() -> None:
    """Contexts are windows there, too."""
    model, corpus = memorized(4)
    other = Corpus.from_texts(["the cat and the dog and the dog and"], window=4)
    found = rankone.certify(model, corpus, forgotten=other).forgotten
    assert found is not None
    ours = {
        tuple(s.tokens[max(0, i - 3) : i + 1])
        for s in corpus.sentences
        for i in range(len(s.tokens))
    }
    theirs = {
        tuple(s.tokens[max(0, i - 3) : i + 1])
        for s in other.sentences
        for i in range(len(s.tokens))
    }
    assert (found.contexts, found.held) == (len(theirs), len(ours & theirs))
