"""Directions in which one point lies beyond all others."""

from __future__ import annotations

import numpy as np
import pytest

from rankone.kernels.compiled import solitary


def directions(z):
    """For all points (rows of z) a direction, and which other point lies farthest in it."""
    points = np.arange(len(z))
    s, nearest = np.empty((len(z), z.shape[1]), np.float32), np.empty(len(z), np.int64)
    solitary.stand_out(np.ascontiguousarray(z.T, np.float32), points, s, nearest)
    return s, nearest


def ahead(s, z):
    """By how much each point is ahead of the next one in its direction, relative to its distance;
    and which one that is."""
    products = s.astype(float) @ z.T
    own = np.diag(products).copy()
    np.fill_diagonal(products, -np.inf)
    best = products.argmax(1)
    distance = np.sqrt(((z - z[best]) ** 2).sum(1))
    return (own - products.max(1)) / distance, best


@pytest.mark.parametrize("seed", range(4))
def test_every_corner_is_found(seed):
    """Points on a sphere are all corners, however close some of them are."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((200, 8))
    z[100:] = z[:100] + 1e-2 * rng.standard_normal((100, 8))
    z *= np.sqrt(8) / np.sqrt((z**2).sum(1))[:, None]
    s, nearest = directions(z)
    far, best = ahead(s, z)
    assert (far > 0).mean() > 0.98
    good = far > solitary.ENOUGH * solitary.MARGIN * 1.01
    assert good.mean() > 0.9
    assert (nearest[good] == best[good]).all()


def test_a_point_inside_has_no_direction():
    rng = np.random.default_rng(0)
    z = np.concatenate([np.eye(3), -np.eye(3), [[0.1, 0.1, 0.1]]]) * 2
    far, _ = ahead(directions(z)[0], z)
    assert (far[:6] > 0).all()
    assert far[6] < 0
    assert rng is not None


def test_projecting_keeps_to_the_margin():
    own = np.array([1.0, 0.0], np.float32)
    rivals = np.array([[0.0, 1.0], [1.0, 0.1], [9.0, 9.0]], np.float32)
    s = own.copy()
    solitary.project(s, own, rivals, 2)  # the third one is not looked at
    for rival in rivals[:2]:
        d = own - rival
        assert s @ d >= solitary.MARGIN * np.sqrt(d @ d) * 0.999
    before = s.copy()
    solitary.project(s, own, rivals, 2)
    assert s == pytest.approx(before, abs=1e-3)
    solitary.project(s, own, own[None], 1)  # a rival at the same place says nothing
    assert np.isfinite(s).all()


def test_the_largest_number_but_the_own():
    products = np.array([[3.0, 9.0, 5.0], [7.0, 1.0, 7.0]], np.float32)
    best, far = np.empty(2, np.int64), np.empty(2, np.float32)
    solitary.most_beyond(products, np.array([1, 0]), best, far)
    assert best.tolist() == [2, 2]
    assert far.tolist() == [4.0, 0.0]
