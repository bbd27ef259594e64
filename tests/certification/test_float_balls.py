"""Whole networks in float64 balls: the exact numbers, by the equations in mpmath, lie in them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from mpmath import mpf

from certification import judge
from rankone.arrays import Floats, Ints
from rankone.certification import float_balls
from rankone.certification.ball_arithmetic import Balls, U
from rankone.certification.float_balls import FloatBalls
from rankone.nn import FeedForward


def column(texts: list[str]) -> tuple[Ints, Ints]:
    ids = [judge.WORDS.index(c) for text in texts for c in text]
    return np.array(ids), np.cumsum([0, *map(len, texts)])


def inside(balls: Balls, exact: list[list[mpf]]) -> None:
    """Every number in its ball, and the ball is small: a part in 10^10 of the largest."""
    assert balls.rad.max() < 1e-10 * (1 + np.abs(balls.mid).max())
    for k, numbers in enumerate(exact):
        for row, number in enumerate(numbers):
            assert abs(number - mpf(balls.mid[row, k])) <= mpf(balls.rad[row, k])


@given(judge.shapes(), judge.sentences())
def test_random_networks(shape: dict[str, Any], texts: list[str]) -> None:
    model = judge.random_model(**shape)
    ids, offsets = column(texts)
    (chunk,) = FloatBalls(model.network).run(ids, offsets)
    literal = judge.Literal(model.network)
    with judge.digits(50):
        both = [literal(ids[a:b].tolist()) for a, b in pairwise(offsets)]
        inside(chunk.q, [q for first, _ in both for q in first])
        inside(chunk.features, [z for _, last in both for z in last])
    assert (chunk.first, chunk.last) == (0, len(ids))
    assert chunk.positions.tolist() == [k for text in texts for k in range(len(text))]


def test_chunks_and_tables_that_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers, a few sentences and a few hidden units at a time."""
    model = judge.random_model(3, depth=2, positions=judge.LONGEST)
    ids, offsets = column(["abc", "b", "acbd", "fa"])
    (whole,) = FloatBalls(model.network).run(ids, offsets)
    for cells in (1, 12):  # five hidden units: one column at a time, or two
        monkeypatch.setattr(float_balls, "UNITS_AT_ONCE", cells)
        parts = list(FloatBalls(model.network).run(ids, offsets, size=4))
        assert [(part.first, part.last) for part in parts] == [(0, 4), (4, 8), (8, 10)]
        for name in ("moved", "q", "features"):
            for numbers in ("mid", "rad"):
                found = np.concatenate([getattr(getattr(p, name), numbers) for p in parts], 1)
                assert found == pytest.approx(getattr(getattr(whole, name), numbers), rel=1e-12)
        assert np.concatenate([p.positions for p in parts]).tolist() == whole.positions.tolist()


def test_hidden_units_in_as_few_tables_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five units and four columns: two columns fit into twelve cells."""
    calls = []
    found = float_balls.linear

    def counted(weight: Floats, z: Balls) -> Balls:
        calls.append(z.mid.shape)
        return found(weight, z)

    monkeypatch.setattr(float_balls, "UNITS_AT_ONCE", 12)
    monkeypatch.setattr(float_balls, "linear", counted)
    h = Balls(np.ones((3, 4)), np.zeros((3, 4)))
    layer = FeedForward(3, 5, dtype=torch.float64)
    float_balls.feedforward(layer)(h)
    assert calls == [(3, 2), (5, 2)] * 2
    calls.clear()
    float_balls.feedforward(FeedForward(3, 0, dtype=torch.float64))(h)
    assert calls == [(3, 4), (0, 4)]


def test_a_context_id_at_its_bound() -> None:
    """x + E loses almost u beside 1, and so does what attention adds to it."""
    lost = U * (1 - 2.0**-20)
    model = judge.plain_model(
        [[1.0, 1.0]], v1=[0.0, 1.0], v2=[0.0, 0.0], output=[lost, 0.0], positions=1
    )
    with torch.no_grad():
        model.network.positions[0, 0] = lost
    moved, q = FloatBalls(model.network).context_ids(np.array([0]), np.array([0, 1]))
    assert moved.mid[0, 0] == lost
    assert q.mid[0, 0] == 1.0
    with judge.digits():
        exact = 1 + 2 * mpf(lost)
        used = (exact - 1) / mpf(q.rad[0, 0])
        assert 1 - 1e-5 < used <= 1
