"""Heads of codes and distributions: leads and losses are no better than the exact logits say."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, fmpq
from mpmath import mp, mpf
from tests.certification.test_label_heads import exact_logits, lead, winners
from tests.nn.test_mixed_codes import CODES, MIXED, features, head

from rankone.certification import entropy, mixed_head
from rankone.certification.ball_arithmetic import Balls
from rankone.certification.entropy import Losses, least_difference, least_total, log_up
from rankone.certification.label_heads import LinearHead, head_of
from rankone.certification.mixed_head import MixedHead

WIDE = (np.indices((2,) * 8).reshape(8, -1).T.sum(1) == 4).nonzero()[0]
FAR = np.array([[i >> k & 1 for k in range(8)] for i in WIDE.tolist()], float)  # 70 codes of 8


def of(layer: Any) -> MixedHead:
    found = head_of(layer)
    assert isinstance(found, MixedHead)
    return found


def near(rng: np.random.Generator, size: float, count: int = 60) -> np.ndarray:
    """Features around codes and distributions, and some that are near nothing."""
    codes = CODES[rng.integers(len(CODES), size=count)].T + rng.uniform(-size, size, (4, count))
    own = np.eye(2)[rng.integers(2, size=count)].T + rng.uniform(-size, size, (2, count))
    first = features(codes, rng.uniform(-size, size, (2, count)) / 20)
    second = features(rng.uniform(-size, size, (4, count)) / 100, own)
    return np.concatenate([first, second, rng.uniform(-1, 1, (8, count))], 1)


@pytest.mark.parametrize("size", [1e-3, 0.2, 0.6])
@pytest.mark.parametrize("rad", [0.0, 1e-3])
def test_leads_hold_wherever_features_are(size: float, rad: float) -> None:
    rng, layer = np.random.default_rng(int(size * 1000)), head()
    found, z = of(layer), near(rng, size)
    decoded = found.decode(Balls(z, np.full_like(z, rad)))
    proved = decoded.off < 0.5
    assert proved[:60].all() or size > 0.1
    for i in range(z.shape[1]):
        for _ in range(3):
            signs = rng.choice([-1, 1], 8)
            point = [
                Fraction(float(x)) + int(s) * Fraction(rad)
                for x, s in zip(z[:, i], signs, strict=True)
            ]
            logits = exact_logits(layer, point)
            if proved[i]:
                assert winners(logits) == [decoded.labels[i]]
                assert lead(logits) >= 2 * (Fraction(1, 2) - Fraction(float(decoded.off[i])))


@pytest.mark.parametrize("size", [1e-3, 0.2, 0.6])
def test_the_same_labels_as_all_logits(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In balls, in the run, and in Arb, with and without a look at all logits."""
    rng, layer = np.random.default_rng(7), head()
    found, every, z = of(layer), LinearHead(layer), near(rng, size)
    _, labels = every.run(z)
    exact = every.decode(Balls(z, np.zeros_like(z)))
    for _ in range(2):
        decoded = found.decode(Balls(z, np.zeros_like(z)))
        assert (decoded.labels == exact.labels).all()
        assert (decoded.off >= exact.off - 1e-12).all()
        assert (found.run(z)[1] == labels).all()
        assert (found.run(z.astype(np.float32))[1] == every.run(z.astype(np.float32))[1]).all()
        assert (decoded.values.mid == z[found.cols]).all()
        for i in range(0, z.shape[1], 5):
            row = [Fraction(float(x)) for x in z[:, i]]
            label, off, values = found.exact([arb(fmpq(x.numerator, x.denominator)) for x in row])
            assert label == winners(exact_logits(layer, row))[0]
            assert off < 0.5
            assert 2 * (0.5 - float(off)) <= lead(exact_logits(layer, row)) + 1e-9
            assert [float(x) for x in values] == z[found.cols, i].tolist()
        unknown = found.codes.leader[:1].repeat(z.shape[1]), np.full(z.shape[1], -np.inf)
        monkeypatch.setattr(found, "leader", lambda *_, unknown=unknown: unknown)
        monkeypatch.setattr(found, "_exact_lead", lambda *_: arb(-1))


def test_only_what_is_in_doubt_takes_all_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    found, seen = of(head()), list[int]()
    parts = mixed_head.in_parts
    monkeypatch.setattr(
        mixed_head, "in_parts", lambda doubt, n: (seen.append(int(doubt.sum())), parts(doubt, n))[1]
    )
    z = features(
        np.array([[1, 1, 0, 0.5], [1, 1, 0, 0.5], [0, 0.5, 0, 0], [0, 0, 0, 0.5]]),
        np.array([[0, 0, 1, 0], [0, 0, 0, 0.0]]),
    )
    found.decode(Balls(z, np.zeros_like(z)))
    assert seen == [2]


def loss(logits: list[Fraction], label: int) -> mpf:
    sizes = [mpf(x.numerator) / x.denominator for x in logits]
    return mp.log(sum(mp.exp(x - sizes[label]) for x in sizes))


@pytest.mark.parametrize("size", [1e-9, 1e-3])
@pytest.mark.parametrize("far", [48.0, 2.0, 0.25])
def test_losses(size: float, far: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """No less than in mpmath, and not much more: at codes, at distributions, and elsewhere."""
    monkeypatch.setattr(entropy, "FAR", far)
    rng, layer = np.random.default_rng(3), head()
    found, z = of(layer), near(rng, size, 20)
    gold = rng.integers(4, size=z.shape[1])
    with np.errstate(all="ignore"):
        gold[:20] = np.where(
            rng.random(20) < 0.8, found.decode(Balls(z, 0 * z)).labels[:20], gold[:20]
        )
    gold[5] = -1
    losses = Losses(found, np.arange(len(gold)), gold)
    losses.see(0, Balls(z[:, :30], np.full((8, 30), 1e-13)))
    losses.see(30, Balls(z[:, 30:], np.full((8, len(gold) - 30), 1e-13)))
    (one, other), asked = losses.found, np.flatnonzero(gold >= 0)
    bounds = np.concatenate([one, other])[asked]
    with mp.workdps(60):
        exact = [
            loss(exact_logits(layer, [Fraction(float(x)) for x in z[:, i]]), int(gold[i]))
            for i in asked.tolist()
        ]
        for bound, true in zip(bounds.tolist(), exact, strict=True):
            assert mpf(bound) >= true
        assert losses.total() >= sum(exact)
        coded = np.flatnonzero(asked < 20)
        right = [i for i in coded.tolist() if exact[i] < 1e-3]
        assert max(bounds[right]) <= 3 * np.exp(-16 * (1 - 3 * size)) * (1 + 1e-9)
        if far == 48.0:
            others = [i for i in range(len(asked)) if i not in right and asked[i] < 40]
            assert max(float(mpf(bounds[i]) - exact[i]) for i in others) < 300 * size


def test_tokens_of_one_context_share_a_sum() -> None:
    """Only the first one's other logits are looked at; own logits are those of each."""
    layer = head()
    z = features(np.zeros((4, 3)), np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    gold = np.array([0, 1, 2])
    losses = Losses(of(layer), np.array([0, 0, 2]), gold)
    losses.see(0, Balls(z, np.zeros_like(z)))
    share = np.exp(MIXED - MIXED.max(0))
    share /= share.sum(0)
    want = -np.log([share[0, 0], share[1, 0], share[2, 1]])
    assert losses.found[0] == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_codes_that_differ() -> None:
    assert least_difference(CODES) == 2
    assert least_difference(FAR) == 2
    assert least_difference(FAR[[0, -1]]) == 8
    few = [row for row in FAR if (row != FAR[0]).sum() in (0, 4)]
    pairs = [(a != b).sum() for i, a in enumerate(few) for b in few[:i]]
    assert least_difference(np.array(few)) == min(pairs)


def test_logarithms_rounded_up() -> None:
    x = np.concatenate([1 + np.arange(50) * 2.0**-52, np.geomspace(1, 1e9, 200)])
    with mp.workdps(40):
        for found, given in zip(log_up(x).tolist(), x.tolist(), strict=True):
            assert 0 <= found - mp.log(mpf(given)) <= 1e-12 * found + 1e-14


def test_the_least_total() -> None:
    contexts = np.array([0, 0, 0, 3, 3, 5, 0, 7])
    gold = np.array([1, 1, 2, 0, 1, 2, 1, -1])
    want = 3 * np.log(4 / 3) + np.log(4) + 2 * np.log(2)
    assert float(least_total(contexts, gold)) == pytest.approx(want, rel=1e-15)


def test_features_that_are_no_numbers() -> None:
    found = of(head())
    z = np.full((8, 2), np.nan)
    z[:, 0] = features(CODES[:1].T, np.zeros((2, 1)))[:, 0]
    decoded = found.decode(Balls(z, np.zeros_like(z)))
    assert decoded.off[0] < 0.5
    assert not decoded.off[1] < 0.5
    losses = Losses(found, np.arange(2), np.array([0, 0]))
    losses.see(0, Balls(z, np.zeros_like(z)))
    assert losses.total() == np.inf
    assert torch.is_grad_enabled()


def test_what_is_known_of_a_distribution_alone() -> None:
    """The lead of a leader shrinks with its share, at the lower end of its ball."""
    found, layer = of(head()), head()
    z = features(np.zeros((4, 1)), np.array([[1.0], [0.0]]))
    rad = np.zeros_like(z)
    rad[3] = 0.25
    whole = Balls(z, rad)
    _, lead_ = found.leader(whole[found.codes.at], whole[found.codes.own])
    z[3] = 0.75
    exact = lead(exact_logits(layer, [Fraction(float(x)) for x in z[:, 0]]))
    assert float(exact) == 0.375
    assert 0.375 * (1 - 1e-9) < lead_[0] <= exact
