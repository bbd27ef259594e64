"""Networks with gates in balls: against mpmath, fractions, and the way that multiplies all out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from mpmath import mpf
from tests.certification import judge
from tests.certification.gated_models import changed, layer_of, model_of, sentences_of

import rankone
from rankone.certification.align import align
from rankone.certification.ball_arithmetic import Balls
from rankone.certification.context_gaps import measure_gaps
from rankone.certification.context_ids import ContextIds
from rankone.certification.float_balls import FloatBalls
from rankone.certification.float_evaluation import Readings, evaluate, head_for
from rankone.certification.gated_balls import GatedBalls, Reached
from rankone.corpus import Corpus
from rankone.corpus.contexts import visible_contexts
from rankone.nn import Model, TokenClassifier
from rankone.spans import places

GIVEN: list[dict[str, Any]] = [
    {},
    {"heads": 1},
    {"heads": 3, "causal": True},
    {"positions": False},
    {"dtype": "float32"},
    {"labels": 40},
]


def drawn(given: dict[str, Any], seed: int = 0) -> tuple[Any, Model]:
    options = dict(given)
    sentences = sentences_of(seed, labels=options.pop("labels", 3))
    if "positions" in given:  # else the order of words would matter
        sentences = [(["a"] * i + ["b"], ["x"] * i + [f"L{i % 3}"]) for i in range(1, 7)]
    if given.get("labels"):  # more than 32, so that labels are codes
        sentences += [([f"w{i}"], [f"M{i}"]) for i in range(40)]
    return sentences, model_of(sentences, **options)


def entangled(network: TokenClassifier) -> None:
    """Heads that read and write several coordinates, where there are numbers already."""
    attention = network.blocks[0].attention
    writes, reads = layer_of(network).writes, layer_of(network).reads
    one = int(attention.key[0, 0].nonzero()[0, 0])  # type: ignore[union-attr, index]
    attention.key[0, 0, one + 1] = 0.3  # type: ignore[union-attr, index]
    attention.query[0, 0, one] = 0.7  # type: ignore[union-attr, index]
    attention.value[0, 0, one] = -0.6  # type: ignore[union-attr, index]
    attention.output[0, writes[0], 0] = 0.1  # type: ignore[union-attr, index]
    network.table[:, reads[0]] = torch.linspace(-0.01, 0.01, len(network.table))
    layer_of(network).penalty.mul_(4)


def run(model: Model, corpus: Corpus, slow: bool = False) -> tuple[ContextIds, Readings]:
    rows, _ = align(model, corpus)
    shape = model.network.shape
    contexts = visible_contexts(corpus, positions=bool(shape.positions), causal=shape.causal)
    balls = FloatBalls(model.network) if slow else GatedBalls.of(model.network)
    assert balls is not None
    head = head_for(model.network, balls)
    ids, readings = evaluate(
        model.network, rows, corpus.offsets, contexts, head, lambda *_: None, balls
    )
    assert ids is not None
    return ids, readings


def inside(exact: Any, balls: Balls) -> None:
    for row, column in enumerate(exact):
        for i, x in enumerate(column):
            rad = float(balls.rad[i, row])
            assert abs(x - mpf(float(balls.mid[i, row]))) <= rad * (1 + 1e-12)
            assert rad <= 2.0**-28


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("tangled", [False, True])
def test_against_mpmath(given: dict[str, Any], tangled: bool) -> None:
    sentences, model = drawn(given)
    model = changed(model, entangled) if tangled else model
    corpus = Corpus.from_sentences(sentences)
    rows, _ = align(model, corpus)
    balls = GatedBalls.of(model.network)
    assert balls is not None
    (chunk,) = balls.run(rows, corpus.offsets)
    moved, q = balls.located(chunk.ids, chunk.positions * balls.placed, chunk.moved)
    sizes = balls.sizes(chunk.ids, chunk.positions, chunk.moved)
    assert chunk.positions.tolist() == places(corpus.offsets).tolist()
    with judge.digits():
        truth = judge.truth(model, sentences)
        inside(truth.context_ids, q)
        inside([[z[i] for i in balls.out] for z in truth.features], chunk.features)
        for z, size in zip(truth.context_ids, sizes.tolist(), strict=True):
            norm = sum(x * x for x in z) ** 0.5
            assert norm <= size <= norm * (1 + 2.0**-40)
    assert not moved.mid[np.setdiff1d(np.arange(len(moved.mid)), balls.written)].any()


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("tangled", [False, True])
def test_the_same_as_the_slow_way(given: dict[str, Any], tangled: bool) -> None:
    options = {k: v for k, v in given.items() if k != "labels"}
    corpus = rankone.builtin_corpus(25)
    model = rankone.memorize(corpus, construction="gated", **options).model
    if given.get("labels"):
        sentences, model = drawn(given)
        corpus = Corpus.from_sentences(sentences)
    model = changed(model, entangled) if tangled else model
    quick, slow = run(model, corpus), run(model, corpus, slow=True)
    gaps, others = (measure_gaps(ids) for ids, _ in (quick, slow))
    assert float(gaps.lower) == pytest.approx(float(others.lower), rel=1e-9)
    assert gaps.pair is not None
    at = np.searchsorted(slow[0].tokens, gaps.pair)  # perhaps another pair that is as close
    _, q = slow[0].locate(at)
    assert np.linalg.norm(q.mid[:, 0] - q.mid[:, 1]) == pytest.approx(float(gaps.lower), rel=1e-9)
    assert not gaps.unsure
    assert not others.unsure
    assert quick[0].size == pytest.approx(slow[0].size, rel=1e-12)
    assert (quick[1].labels == slow[1].labels).all()
    assert (quick[1].run_labels == slow[1].run_labels).all()
    assert quick[1].off == pytest.approx(slow[1].off, abs=1e-5)
    assert (quick[1].off <= slow[1].off * (1 + 1e-9) + 1e-12).all()
    assert quick[1].distance <= slow[1].distance * (1 + 1e-9) + 1e-12


def o_of(balls: GatedBalls) -> np.ndarray:
    """What every unit writes to each coordinate."""
    every = np.arange(len(balls.bias))
    return np.stack([balls.written_by(every, i) for i in range(len(balls.writes))], 1)


def made(model: Model) -> GatedBalls:
    balls = GatedBalls.of(model.network)
    assert balls is not None
    return balls


@pytest.mark.parametrize("given", [{}, {"heads": 3}, {"labels": 40}])
def test_radii_of_averages_pass_through_units(given: dict[str, Any]) -> None:
    """Averages at the corners of wide balls: nothing is outside, and something is on the rim."""
    sentences, model = drawn(given)
    balls, corpus = made(model), Corpus.from_sentences(sentences)
    rows, _ = align(model, corpus)
    (chunk,) = balls.run(rows, corpus.offsets)
    heads, o = len(balls.written), o_of(balls)
    wide = Balls(chunk.moved.mid, np.full_like(chunk.moved.rad, 2.0**-12))
    reached = balls.reached(chunk.ids, chunk.positions, wide)
    features = balls.features(chunk.ids, chunk.positions, wide, reached)
    furthest, ratio = np.zeros(len(reached.token)), 0.0
    for signs in product((-1, 1), repeat=heads):
        sums: dict[tuple[int, int], Fraction] = {}
        for k, (t, j) in enumerate(zip(reached.token, reached.unit, strict=True)):
            z = Fraction(float(balls.bias[j]))
            for i, at in enumerate(balls.reads):
                row = int(np.flatnonzero(balls.written == at)[0])
                a = Fraction(float(wide.mid[row, t])) + signs[row] * Fraction(1, 2**12)
                z += Fraction(float(balls.slopes[j, i])) * a
            away = abs(z - Fraction(float(reached.seen.mid[k])))
            assert away <= Fraction(float(reached.seen.rad[k]))
            furthest[k] = max(furthest[k], float(away))
            for i, at in enumerate(balls.writes):
                row = int(np.flatnonzero(balls.out == at)[0])
                share = Fraction(float(balls.amplitude[j])) * Fraction(float(o[j, i]))
                sums[int(t), row] = sums.get((int(t), row), Fraction(0)) + share * max(z, 0)
        base = balls.embed(balls.out, chunk.ids, chunk.positions)
        for (t, row), added in sums.items():
            exact = Fraction(float(base.mid[row, t])) + added
            away = abs(exact - Fraction(float(features.mid[row, t])))
            assert away <= Fraction(float(features.rad[row, t]))
            if features.rad[row, t] > 1e-9:
                ratio = max(ratio, float(away) / float(features.rad[row, t]))
    assert len(furthest)
    assert furthest == pytest.approx(reached.seen.rad, rel=1e-6)
    assert ratio > 0.99


def just_above_one(rng: np.random.Generator, *shape: int) -> Any:
    """Where rounding costs most, relative to the number."""
    return 1 + rng.random(shape) * 2.0**-6


def test_rounding_of_units_comes_near_its_bound() -> None:
    """One head: a product and a sum. A bound half as large would be wrong."""
    sentences, model = drawn({"heads": 1})
    balls, corpus, rng = made(model), Corpus.from_sentences(sentences), np.random.default_rng(0)
    rows, _ = align(model, corpus)
    (chunk,) = balls.run(rows, corpus.offsets)
    balls.codes = balls.codes * 17.0  # so that this product is rounded too
    balls.dense_codes = balls.dense_codes * 17.0
    balls.table[:, balls.out] = 15.0  # so that the sum is, which is above 32
    balls.columns.clear()
    o = o_of(balls)
    seen, written = [], []
    token = np.arange(len(rows))
    for _ in range(400):
        units = len(balls.bias)
        balls.slopes, balls.bias = just_above_one(rng, units, 1), just_above_one(rng, units)
        balls.bias *= 2.0**-6
        balls.amplitude = just_above_one(rng, units)
        a = just_above_one(rng, 1, len(rows))
        reached = balls.reached(chunk.ids, chunk.positions, Balls(a, np.zeros_like(a)))
        for t, j, mid, rad in zip(
            reached.token, reached.unit, reached.seen.mid, reached.seen.rad, strict=True
        ):
            z = Fraction(balls.slopes[j, 0]) * Fraction(a[0, t]) + Fraction(balls.bias[j])
            seen.append(float(abs(z - Fraction(mid)) / Fraction(rad)))
        unit = rng.integers(units, size=len(rows))  # one for each token
        sees = just_above_one(rng, len(rows))
        exactly = Reached(token, unit, Balls(sees, np.zeros_like(sees)))
        features = balls.features(chunk.ids, chunk.positions, chunk.moved, exactly)
        base = balls.embed(balls.out, chunk.ids, chunk.positions).mid
        for t, j in enumerate(unit.tolist()):
            for i in np.flatnonzero(o[j]).tolist():
                k = int(np.flatnonzero(balls.out == balls.writes[i])[0])
                added = Fraction(sees[t]) * Fraction(balls.amplitude[j]) * Fraction(o[j, i])
                off = abs(Fraction(base[k, t]) + added - Fraction(features.mid[k, t]))
                written.append(float(off / Fraction(features.rad[k, t])))
    assert 0.5 < max(seen) <= 1
    assert 0.65 < max(written) <= 1  # some of it is for the product with the amplitude


def test_codes_that_are_not_whole_are_rounded_too() -> None:
    """o is a rounded difference: its error is passed on."""
    _, model = drawn({"labels": 40})

    def change(network: TokenClassifier) -> None:
        layer_of(network).codes.copy_(
            torch.rand(layer_of(network).codes.shape, dtype=torch.float64) * 1e3
        )

    balls = made(changed(model, change))
    assert balls.o_slip > 0
    codes = layer_of(changed(model, change).network).codes
    assert made(model).o_slip == 0
    plus, minus = (np.random.default_rng(i).integers(len(codes), size=500) for i in (0, 1))
    table = codes.detach().numpy()
    for one, other in zip(table[plus].ravel(), table[minus].ravel(), strict=True):
        exact = Fraction(float(one)) - Fraction(float(other))
        assert abs(exact - Fraction(float(one - other))) <= balls.o_slip


def test_weights_too_large_for_squares_go_the_slow_way() -> None:
    _, model = drawn({})
    huge = changed(model, lambda network: network.table[0, -1].fill_(2.0**500))
    assert GatedBalls.of(huge.network) is None
