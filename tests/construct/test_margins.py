"""The widest margin between one point and all others, against what is known of it."""

from __future__ import annotations

import numpy as np
import pytest

from rankone.construct.gated.margins import SLACK, least_squares, widest_margin


def ahead(a, point):
    """s . (x - y) for all other points y, and the length of s."""
    s = widest_margin(a, point)
    return np.delete((a[point] - a) @ s, point), float(np.sqrt(s @ s))


def test_of_two_points_it_is_their_distance():
    a = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert widest_margin(a, 0) == pytest.approx([-3 / 25, -4 / 25])


@pytest.mark.parametrize("angle", [0.3, 1e-2, 2e-3])
def test_a_corner_between_two_neighbours(angle):
    """On a circle, of radius 1: neighbours lie 1 - cos(angle) behind, and all others further."""
    turn = np.concatenate([[0.0, angle, -angle], np.linspace(2 * angle, np.pi, 40)])
    a = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    found, length = ahead(a, 0)
    assert found.min() >= 1 - SLACK
    assert 1 / length == pytest.approx(1 - np.cos(angle), rel=2 * SLACK)
    assert found[:2] == pytest.approx([1, 1], rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_no_direction_is_better(seed):
    """Among many that are tried, and none that is near it."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((300, 6)) * [1, 1, 1, 1, 0.1, 0.01]
    for point in np.argsort(-(a**2).sum(1))[:5].tolist():
        found, length = ahead(a, point)
        if found.min() < 0:
            continue
        s = widest_margin(a, point)
        for size in (1e-3, 1e-2, 0.1, 1.0):
            other = s + size * length * rng.standard_normal((2000, 6)) / np.sqrt(6)
            gaps = np.delete((a[point] - a) @ other.T, point, axis=0).min(0)
            assert (gaps / np.sqrt((other**2).sum(1)) <= (1 + 2 * SLACK) / length).all()


def test_inside_there_is_none():
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.standard_normal((100, 3)), [[0.0, 0.0, 0.0]]])
    assert not widest_margin(a, 100).any()
    twins = np.concatenate([a, a[:1] * 1.0])
    assert not widest_margin(twins, 0).any()


@pytest.mark.parametrize("seed", range(6))
def test_least_squares_has_the_marks_of_an_optimum(seed):
    """x >= 0, and nothing pulls a coordinate that could move."""
    rng = np.random.default_rng(seed)
    rows, wanted = rng.standard_normal((9, 30)), rng.standard_normal(9)
    start = np.where(rng.random(30) < 0.2, rng.random(30), 0.0) if seed % 2 else np.zeros(30)
    x = least_squares(rows, wanted, start)
    pull = rows.T @ (wanted - rows @ x)
    assert (x >= 0).all()
    assert np.abs(pull[x > 0]).max() < 1e-10
    assert pull.max() < 1e-10


def test_runs_of_one_sign_in_float32():
    """What stands after so many dashes: all contexts of "-" lie on a few lines, close together."""
    from rankone import Corpus, memorize

    runs = [f"{word}{'-' * count}{count % 7}\n" for count in range(1, 24) for word in ("ab", "a")]
    corpus = Corpus.from_texts(["".join(runs)], tokenizer="characters", window=32)
    result = memorize(corpus, dtype="float32")
    assert result.wrong == result.unavoidable
    assert result.max_error < 0.05


def test_the_remedy_of_a_refusal_is_one_that_is_left(monkeypatch):
    """Nobody is told to give as many heads as there are."""
    from rankone import Corpus, memorize
    from rankone.construct.gated import draw
    from rankone.errors import PrecisionError

    monkeypatch.setattr(draw, "OFF", -1.0)
    corpus = Corpus.from_texts(["a rose is a rose"], tokenizer="characters", window=3)
    for dtype, heads, remedy in (
        ("float32", 32, "give more heads (64), or choose float64"),
        ("float32", 64, "choose float64"),
        ("float64", 64, "try another seed, or a smaller corpus"),
    ):
        with pytest.raises(PrecisionError) as refused:
            memorize(corpus, dtype=dtype, heads=heads)
        assert refused.value.remedy == remedy


def test_where_a_context_is_hard_its_half_space_is_the_widest(monkeypatch):
    from rankone.construct.gated import solitary
    from rankone.construct.gated.units import Fitting, directions_for

    rng = np.random.default_rng(3)
    a = rng.standard_normal((60, 6))
    a /= np.sqrt((a**2).sum(1))[:, None]
    a[30:] = a[:30] + 1e-3 * rng.standard_normal((30, 6))
    points, noise = np.arange(60), np.full(60, 1e-6)
    how = Fitting("float32", directions_for(6), 1.0, one_hot=False, placed=False)
    monkeypatch.setattr(solitary, "FEW_HARD", 0)
    first = solitary.sides_of(a, points, noise, how).off
    monkeypatch.setattr(solitary, "FEW_HARD", 1 << 20)
    monkeypatch.setattr(solitary, "HARD", -1.0)
    found = solitary.sides_of(a, points, noise, how)
    assert (found.off <= first).all()
    there = np.isfinite(first)
    assert there.mean() > 0.5
    assert np.median(found.off[there] / first[there]) < 0.9
    for i in range(60):  # and it is right: 1 at its own context, and 0 at all others
        seen = np.maximum(a @ found.slopes[i] + found.bias[i], 0) * found.amplitude[i]
        assert seen[i] == pytest.approx(1, abs=1e-6) or found.off[i] == np.inf
        assert not np.delete(seen, i).any()
