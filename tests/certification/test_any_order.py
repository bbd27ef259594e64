"""Labels in any order of summation: attacks on every bound, and weights that must be refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
import torch
from tests.certification.gated_models import changed, layer_of, model_of, sentences_of
from tests.nn.test_label_codes import head_for

import rankone
from rankone.certification.align import align
from rankone.certification.any_order import AnyOrder
from rankone.certification.ball_arithmetic import Balls
from rankone.certification.gated_balls import GatedBalls, GatedChunk, Reached
from rankone.corpus import Corpus
from rankone.nn import Model, TokenClassifier
from rankone.nn.gatekeeper import reach_of
from rankone.nn.label_codes import LabelCodes

F = np.float32
U = 2.0**-24
SENTENCES = sentences_of(0)


def order_of(model: Model, longest: int = 5) -> AnyOrder | None:
    balls = GatedBalls.of(model.network)
    if balls is None:
        return None
    return AnyOrder.of(model.network, balls, np.zeros(100, np.int64), longest)


def made(model: Model) -> tuple[AnyOrder, GatedChunk]:
    order, corpus = order_of(model), Corpus.from_sentences(SENTENCES)
    assert order is not None
    (chunk,) = order.balls.run(align(model, corpus)[0], corpus.offsets)
    return order, chunk


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(SENTENCES, "float32", heads=1)


def test_averages_come_near_their_bound(model: Model) -> None:
    """Two tokens, values 1 and 0, exponentials off by 2 units in the last place to either side."""
    order, _ = made(model)
    worst, at, balls = 0.0, order.heads[0], order.balls
    y = F(at.query)
    for power, step in product(range(1, 6), range(12)):
        # just above a power of 2, where units in the last place are largest next to the number
        keys = np.array([np.ceil(-power * np.log(2) / float(y) * 2**15 + step) / 2**15, 0.0])
        balls.table[:2, at.key], balls.table[:2, at.value] = keys, [1.0, 0.0]
        balls.columns.clear()
        balls.positions[:, [at.key, at.value]] = 0.0
        starts, ids = np.array([0, 2]), np.array([0, 1])
        chunk = GatedChunk(0, 2, ids, ids, starts, *[None] * 3)  # type: ignore[arg-type]
        sizes, bound = order.averages_slip(chunk)
        p = np.exp(float(y) * keys)
        exact = p[0] / p.sum()
        assert sizes[0] == pytest.approx(exact, rel=1e-12)
        assert bound[0, 0] >= 16 * U * exact
        for signs in ((2, -2), (-2, 2)):
            for less in (F(0), F((y * keys).max())):
                e = np.exp((y * keys.astype(F) - less).astype(float))
                ulp = np.spacing(e.astype(F)).astype(float)
                e = np.where(np.array(signs) > 0, np.floor(e / ulp + 2), np.ceil(e / ulp - 2))
                e = (e * ulp).astype(F)
                for run in (F(e[0] / (e[0] + e[1])), F(e[0] * F(1)) / F(e[0] + e[1])):
                    worst = max(worst, abs(float(run) - exact) / bound[0, 0])
    assert 0.5 < worst <= 1


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_averages_of_long_sentences(causal: bool, dtype: str) -> None:
    """(2 n + 12) u sum p |v|, with n the tokens that are seen, and no less than what is lost."""
    sentences = [(["a", "b", "c"] * 9, [f"L{i}" for i in range(27)]), (["b"], ["L1"])]
    order = order_of(model_of(sentences, dtype, causal=causal), 27)
    assert order is not None
    corpus = Corpus.from_sentences(sentences)
    network = model_of(sentences, dtype, causal=causal)
    (chunk,) = order.balls.run(align(network, corpus)[0], corpus.offsets)
    sizes, bound = order.averages_slip(chunk)
    u = torch.finfo(getattr(torch, dtype)).eps / 2
    for row, head in enumerate(order.heads):
        key, value = order.balls.embed(
            np.array([head.key, head.value]), chunk.ids, chunk.positions
        ).mid
        for t in range(28):
            seen = slice(0, t + 1 if causal else 27) if t < 27 else slice(27, 28)
            p = np.exp(head.query * key[seen])
            s = (p * np.abs(value[seen])).sum() / p.sum()
            n = seen.stop - seen.start
            assert sizes[row, t] == pytest.approx(s, rel=1e-12)
            assert bound[row, t] == pytest.approx((2 * n + 12) * u * s + 1e-30, rel=1e-4)


def just_above_one(rng: np.random.Generator, *shape: int) -> Any:
    return (1 + rng.random(shape) * 2.0**-6).astype(F).astype(float)


def test_units_and_features_come_near_their_bounds(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """float32 by hand, with numbers that lose most in rounding. Half the bounds would be wrong."""
    order, chunk = made(model)
    balls, rng, n = order.balls, np.random.default_rng(0), len(chunk.ids)
    balls.codes = balls.codes * 17.0  # so that this product is rounded too
    balls.dense_codes = balls.dense_codes * 17.0
    seen, written = [], []
    token, none = np.arange(n), np.zeros(n)
    for _ in range(300):
        units = len(balls.bias)
        balls.slopes = just_above_one(rng, units, 1)
        balls.bias = just_above_one(rng, units) * 2.0**-6
        balls.amplitude = just_above_one(rng, units)
        unit, a = rng.integers(units, size=n), just_above_one(rng, n)
        given(monkeypatch, order, "averages_slip", (a[None], np.zeros((1, n))))
        steep, bias = balls.slopes[unit, 0], balls.bias[unit]
        exact = steep * a + bias  # 48 bits and a few
        there = Reached(token, unit, Balls(exact, none))
        features = balls.features(chunk.ids, chunk.positions, chunk.moved, there)
        piece = GatedChunk(
            0, n, chunk.ids, chunk.positions, chunk.starts, chunk.moved, there, features
        )
        slip = order.units_slip(piece)
        run = (steep.astype(F) * a.astype(F) + bias.astype(F)).astype(float)
        seen.append((np.abs(run - exact) / slip).max())
        with monkeypatch.context() as patch:
            given(patch, order, "units_slip", none)
            away = order.features_slip(piece)
        z = exact.astype(F).astype(float)  # a number of float32
        base = balls.embed(balls.out, chunk.ids, chunk.positions).mid
        for k, at in enumerate(balls.out.tolist()):
            o = balls.written_by(unit, int(np.flatnonzero(balls.writes == at)[0]))
            share = (balls.amplitude[unit].astype(F) * z.astype(F)) * o.astype(F)
            sums = (base[k].astype(F) + share).astype(float)
            truth = base[k] + balls.amplitude[unit] * o * z
            written.append((np.abs(sums - truth) / away[k]).max())
    assert 0.5 < max(seen) <= 1
    assert 0.5 < max(written) <= 1


def given(monkeypatch: pytest.MonkeyPatch, order: AnyOrder, name: str, value: Any) -> None:
    """Let a method return this."""
    monkeypatch.setattr(order, name, lambda _: value)


def test_what_units_are_off_is_passed_on(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """What averages are off goes through slopes and amplitudes, as much as it can."""
    order, chunk = made(model)
    ones = np.ones((1, len(chunk.ids)))
    given(monkeypatch, order, "averages_slip", (ones, 1e-3 * ones))
    reached, balls = chunk.reached, order.balls
    slip = order.units_slip(chunk)
    assert slip == pytest.approx(np.abs(balls.slopes[reached.unit, 0]) * 1e-3, rel=1e-3, abs=1e-5)
    away, upper = order.features_slip(chunk), reached.seen.mid + slip
    for k, at in enumerate(balls.out.tolist()):
        o = balls.written_by(reached.unit, int(np.flatnonzero(balls.writes == at)[0]))
        share = np.abs(balls.amplitude[reached.unit] * o) * slip * (upper > 0)
        wanted = np.bincount(reached.token, share, len(chunk.ids))
        assert away[k] == pytest.approx(wanted, rel=1e-3, abs=1e-5)


def runs(weight: Any, bias: Any, y: Any) -> list[Any]:
    """Logits in float32 with the terms in every order."""
    terms = [(w * x).astype(F) for w, x in zip(weight.T.astype(F)[:, :, None], y.astype(F))]  # noqa: B905
    terms.append(np.broadcast_to(bias.astype(F)[:, None], terms[0].shape))
    found = []
    for some in permutations(terms):
        total = some[0]
        for term in some[1:]:
            total = (total + term).astype(F)
        found.append(total)
    return found


def test_logits_at_near_ties(model: Model) -> None:
    """Two labels whose exact logits differ by less than rounding: no claim where a run errs."""
    order, _ = made(model)
    rng, ratios = np.random.default_rng(1), []
    for _ in range(300):
        weight, y = just_above_one(rng, 2, 1), just_above_one(rng)
        bias = just_above_one(rng, 2) * 2.0**-6
        bias[1] = F(bias[0] + (weight[0, 0] - weight[1, 0]) * y)
        y = y + rng.integers(-600, 601, (1, 200)) * 2.0**-23  # leads of at most about 1e-6
        order.weight, order.bias, order.codes = weight, bias, None
        logits = [
            [Fraction(w) * Fraction(x) + Fraction(b) for x in y[0].tolist()]
            for w, b in zip(weight[:, 0].tolist(), bias.tolist(), strict=True)
        ]
        lead = np.array([float(a - b) for a, b in zip(*logits, strict=True)])
        labels = np.where(lead > 0, 0, 1)
        sure = order._by_logits(y, np.zeros_like(y), labels)
        for run in runs(weight, bias, y):
            wrong = (run[0] > run[1]) != (lead > 0)
            wrong |= run[0] == run[1]
            assert not (sure & wrong).any()
            size = np.abs(weight) @ np.abs(y) + np.abs(bias)[:, None]
            ratios.append((np.abs(lead) / (2 * U * size.sum(0)))[wrong].max(initial=0))
    assert max(ratios) > 0.4


def test_codes_at_near_ties(model: Model) -> None:
    order, _ = made(model)
    codes = np.arange(1025.0, 1040.0)[:, None]  # 2 c^2 is just above a power of 2
    order.codes = LabelCodes.of(head_for(codes))
    rng, least, limit = np.random.default_rng(0), 1.0, 0.0
    for _ in range(20):
        label = rng.integers(15, size=50_000)
        y = (codes[label, 0] + rng.uniform(-0.5, 0.5, 50_000)).astype(F).astype(float)[None]
        away = np.abs(y[0] - codes[label, 0])
        sure = order._by_codes(y, np.zeros_like(y), label)
        limit = max(limit, away[sure].max())
        for run in runs(2 * codes, -(codes**2).sum(1), y):
            bad = (run.argmax(0) != label) | ((run == run.max(0)).sum(0) > 1)
            assert not (sure & bad).any()
            least = min(least, away[bad].min(initial=1.0))
    assert 0.5 - limit < 3 * (0.5 - least)  # tests/nn/test_label_codes.py knows its exact size


def test_slips_of_features_count_for_both_kinds_of_heads(model: Model) -> None:
    order, _ = made(model)
    order.weight, order.bias, order.codes = np.eye(2), np.zeros(2), None
    y, label = np.array([[1.0, 1.0], [0.75, 0.75]]), np.array([0, 0])
    slip = np.array([[0.124, 0.126], [0.124, 0.126]])
    assert order._by_logits(y, slip, label).tolist() == [True, False]
    order.codes = LabelCodes.of(head_for([[1.0, 1.0], [2.0, 3.0]]))
    slip = np.array([[0.49, 0.49], [0.24, 0.26]])
    assert order._by_codes(y, slip, label).tolist() == [True, False]


CORRUPT: dict[str, Callable[[TokenClassifier], Any]] = {
    "value off the grid": lambda n: n.table[0, :].masked_fill_(
        n.blocks[0].attention.value[0, 0] != 0, 2.0**-21
    ),
    "large key": lambda n: n.table[0, :].masked_fill_(n.blocks[0].attention.key[0, 0] != 0, 2.5),
    "query": lambda n: n.blocks[0].attention.query.mul_(1.5),
    "steep query": lambda n: n.blocks[0].attention.query.mul_(8),
    "two queries": lambda n: n.table[0, :].masked_fill_(
        n.blocks[0].attention.query[0, 0] != 0, 2.0
    ),
    "value weight": lambda n: n.blocks[0].attention.value.mul_(2),
    "output": lambda n: n.blocks[0].attention.output.mul_(0.5),
    "written before": lambda n: n.table[0, :].masked_fill_(
        n.blocks[0].attention.output[0, :, 0] != 0, 2.0**-10
    ),
    "tiny slope": lambda n: layer_of(n).slopes[0].fill_(1e-30),
    "codes": lambda n: layer_of(n).codes.add_(0.5),
    "writes what it reads": lambda n: layer_of(n).writes[:1].copy_(layer_of(n).reads[:1]),
    "writes twice": lambda n: layer_of(n).writes[1:2].copy_(layer_of(n).writes[:1]),
    "head reads a key": lambda n: n.head.weight[0].add_(n.blocks[0].attention.key[0, 0]),
}


@pytest.mark.parametrize("what", CORRUPT)
def test_weights_that_are_refused(model: Model, what: str) -> None:
    def change(network: TokenClassifier) -> None:
        CORRUPT[what](network)
        layer_of(network).penalty.mul_(64)  # so that the gates stay silent

    assert order_of(changed(model, lambda n: layer_of(n).penalty.mul_(64))) is not None
    assert order_of(changed(model, change)) is None


def test_sentences_too_long_for_the_bounds(model: Model) -> None:
    assert order_of(model, 1 << 20) is not None
    assert order_of(model, 1 << 22) is None


def test_how_much_the_penalty_must_have_to_spare() -> None:
    """Silent in exact arithmetic, but perhaps not when rounded: refused."""
    model = model_of(SENTENCES, "float64", heads=1)
    balls = GatedBalls.of(model.network)
    assert balls is not None
    layer, dim = layer_of(model.network), model.network.shape.dim
    seen = reach_of(model.network, layer, balls.table, balls.positions)
    for extra, silent in ((1.0, False), (2.0, False), (5.0, True)):
        share = 1 + extra * 2 * (dim + 8) * 2.0**-53 + 2.0**-20

        def change(network: TokenClassifier, share: float = share) -> None:
            layer_of(network).penalty.copy_(torch.from_numpy(np.maximum(seen * share, 1.0)))

        small = changed(model, change)
        assert GatedBalls.of(small.network) is not None
        assert (order_of(small) is not None) == silent


def test_a_token_without_a_proved_label_is_not_right(model: Model) -> None:
    order, chunk = made(model)
    off = np.zeros(len(chunk.ids))
    off[3] = 0.5
    order.see(chunk, chunk.features.mid.argmax(0), off)
    assert not order.right


def test_other_labels_are_not_right(model: Model) -> None:
    order, chunk = made(model)
    labels = chunk.features.mid.argmax(0)
    order.see(chunk, labels, np.zeros(len(labels)))
    assert order.right
    order.see(chunk, (labels + 1) % 3, np.zeros(len(labels)))
    assert not order.right


def test_only_tokens_that_are_asked(model: Model) -> None:
    order, chunk = made(model)
    order.gold = np.full(len(chunk.ids), -1)
    order.see(chunk, np.full(len(chunk.ids), -1), np.full(len(chunk.ids), np.nan))
    assert order.right


@pytest.mark.parametrize("given", [{}, {"causal": True}, {"positions": False}, {"heads": 3}])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_certificates_of_models_that_memorize_made(dtype: str, given: dict[str, Any]) -> None:
    corpus = rankone.builtin_corpus(40)
    found = rankone.memorize(corpus, construction="gated", dtype=dtype, **given)
    certificate = rankone.certify(found.model, corpus)
    assert certificate.ok
    assert certificate.any_order is True
