"""The head of codes: the same labels as all logits, in balls, in Arb and in its own type."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from tests.certification.test_label_heads import balls, decode, exact_logits, lead, winners
from tests.nn.test_label_codes import drawn, head_for

from rankone.certification import label_heads
from rankone.certification.ball_arithmetic import Balls
from rankone.certification.label_heads import OVERFLOW, CodeHead, LinearHead, head_of
from rankone.certification.leads import in_parts


def heads(codes: Any, dtype: torch.dtype = torch.float64) -> tuple[CodeHead, LinearHead]:
    """That of codes, and the one that looks at all logits."""
    layer = head_for(codes, dtype=dtype)
    found = head_of(layer)
    assert isinstance(found, CodeHead)
    return found, LinearHead(layer)


def spread(y: Any) -> Any:
    """Features with y in their places, and other numbers between them."""
    z = np.full((2 * len(y) + 1, y.shape[1]), 123.0, y.dtype)
    z[1::2] = y
    return z


@given(st.integers(0, 10**9), st.integers(1, 3), st.integers(2, 11))
def test_its_bound_holds_at_all_corners_and_is_attained(seed: int, size: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    codes = drawn(seed, labels, size)
    layer = head_for(codes)
    head, every = heads(codes)
    code = codes[rng.integers(labels)]
    mid = code + rng.integers(-15, 16, size) / 32
    rad = rng.choice([0.0, 2.0**-7, 2.0**-4], size)
    z, wide = (spread(x[:, None])[:, 0].tolist() for x in (mid, rad))
    label, off = decode(head, z, [x if i % 2 else 5.0 for i, x in enumerate(wide)])
    columns = zip(mid, code, rad, strict=True)
    truth = max(abs(Fraction(m) - int(c)) + Fraction(r) for m, c, r in columns)
    if truth < Fraction(1, 2):
        assert codes[label].tolist() == code.tolist()
        assert truth <= Fraction(off) <= truth + Fraction(1, 10**9)
    for side in range(2**size):
        signs = [1 if side >> i & 1 else -1 for i in range(size)]
        corner = [Fraction(m) + s * Fraction(r) for m, s, r in zip(mid, signs, rad, strict=True)]
        features = [Fraction(0)] * len(z)
        features[1::2] = corner
        logits = exact_logits(layer, features)
        if off < 0.5:
            assert winners(logits) == [label]
            assert lead(logits) >= 1 - 2 * Fraction(off)
        with ctx.workprec(300):
            mine, distance, values = head.exact(balls(features))
            theirs, other, _ = every.exact(balls(features))
            no_more = distance.upper() + 2.0**-200 >= other
        assert all(v.contains(b) for v, b in zip(values, balls(corner), strict=True))
        if other < 0.5 or distance < 0.5:
            assert winners(logits) == [mine] == [theirs]
            assert no_more  # margins are no larger than that of all logits
        if lead(logits) > 0:
            assert distance < 0.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("span", [8, 1000])
def test_the_run_at_near_ties(dtype: str, span: int) -> None:
    """Its labels are those of the logits that it computes, which differ from the nearest code."""
    rng = np.random.default_rng(0)
    codes = np.unique(rng.integers(-span, span, (60, 2)), axis=0).astype(float)
    codes = np.concatenate([codes, np.unique(codes + np.eye(2)[0], axis=0)])
    codes = np.unique(codes, axis=0)
    head, every = heads(codes, getattr(torch, dtype))
    unit = np.finfo(dtype).eps / 2
    near = rng.choice(len(codes), 40_000)
    y = codes[near].T + np.array([[0.5], [0.0]])
    y *= 1 + unit * rng.integers(-40, 40, y.shape)
    z = spread(y.astype(dtype))
    labels = head.run(z)[1]
    assert (labels == every.run(z)[1]).all()
    closest = np.abs(z[1::2].astype(float)[:, :, None] - codes.T[:, None]).max(0).argmin(1)
    assert (labels != closest).any() or span == 8  # otherwise these prove nothing


def test_only_what_is_in_doubt_takes_all_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    head, _ = heads(drawn(0, 40, 2))
    seen: list[int] = []
    monkeypatch.setattr(
        label_heads,
        "in_parts",
        lambda doubt, n: (seen.append(int(doubt.sum())), in_parts(doubt, n))[1],
    )
    codes = head.codes.codes
    z = spread(np.concatenate([codes.T + 0.49, codes.T[:, :3] + 0.5], axis=1))
    head.run(z)
    head.decode(Balls(z, np.zeros_like(z)))
    assert seen == [3, 3]


def test_features_that_are_no_numbers() -> None:
    head, _ = heads([[1.0, 2.0], [3.0, 0.0]])
    z = spread(np.array([[np.inf, 1.0, np.nan], [2.0, 2.0, 0.0]]))
    with np.errstate(invalid="ignore"):
        assert head.run(z)[1].tolist() == [OVERFLOW, 0, OVERFLOW]
        found = head.decode(Balls(z, np.zeros_like(z)))
    assert not (found.off[[0, 2]] < 0.5).any()
    assert found.off[1] < 0.5
    _, off, _ = head.exact([arb(0), arb("nan"), arb(0), arb(2), arb(0)])
    assert not off < 0.5


def test_many_labels_take_little_memory() -> None:
    """29,000 labels and 65,000 tokens: the table of all logits would take 15 GB."""
    numbers = np.arange(29_000)
    codes = np.stack([numbers // 16**i % 16 - 8 for i in range(4)], 1)
    head, _ = heads(codes)
    y = codes[np.arange(65_000) % 29_000].T + 0.3
    assert (head.run(spread(y))[1] == np.arange(65_000) % 29_000).all()
    found = head.decode(Balls(spread(y), np.zeros((9, 65_000))))
    assert (found.labels == np.arange(65_000) % 29_000).all()
    assert found.off.max() < 0.31
