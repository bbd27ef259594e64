"""What is looked at before a network is returned, and where it is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import rankone.approximation.verify as module
from rankone.approximation.build import build
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.readouts import largest_plane
from rankone.approximation.target import Target
from rankone.approximation.verify import EXACT, compare_dense, verify
from rankone.errors import PrecisionError


def by_place(x):
    return 100.0 * np.sin(x) + np.arange(1.0, x.shape[1] + 1)[:, None]


@pytest.fixture(scope="module")
def made():
    """With positions, so that f itself is not looked at again."""
    target, grid = Target(by_place, "f", 1), CellGrid(3, 2, np.zeros(1), np.ones(1), True)
    return target, build(target, grid, "constant", None, lambda *_: None), grid


def silent(_stage, _share):
    pass


@pytest.mark.parametrize(("off", "refused"), [(0.0, False), (0.9, False), (1.1, True)])
def test_a_network_that_is_off_at_a_centre_is_refused(made, off, refused):
    target, built, grid = made
    other = replace(built, values=built.values * (1 + off * EXACT))
    if refused:
        with pytest.raises(PrecisionError, match=r"off by .* at the centre of a cell"):
            verify(target, other, grid, 0, silent)
    else:
        found = verify(target, other, grid, 0, silent).grid_error
        assert found == pytest.approx(off * EXACT * np.abs(built.values).max(), abs=1e-13)


@pytest.mark.parametrize(("off", "refused"), [(0.0, False), (0.99, False), (1.01, True)])
def test_a_dense_network_that_is_off_by_more_than_rounding_is_refused(
    made, off, refused, monkeypatch
):
    target, built, grid = made
    allowed, more = 3e-11, EXACT * np.abs(built.values).max()
    monkeypatch.setattr(module, "compare_dense", lambda *_: (allowed + off * more, allowed))
    if refused:
        with pytest.raises(PrecisionError, match=r"multiplied out is .* off the fast path"):
            verify(target, built, grid, 0, silent)
    else:
        assert verify(target, built, grid, 0, silent).dense_difference == allowed + off * more


def test_a_dense_network_of_too_many_units_is_not_made(made, monkeypatch):
    target, built, grid = made
    monkeypatch.setattr(module, "DENSE_UNITS", built.f2.hidden)
    assert verify(target, built, grid, 0, silent).dense_difference is not None
    monkeypatch.setattr(module, "DENSE_UNITS", built.f2.hidden - 1)
    assert verify(target, built, grid, 0, silent).dense_difference is None


@pytest.mark.parametrize("readout", ["constant", "linear"])
def test_how_far_a_dense_network_may_be_off(readout, monkeypatch):
    """Four roundings of F2, each of all that is added up there, and 1/64 of a plane."""
    target, grid = Target(np.square, "f", 1), CellGrid(4, 2, np.full(1, -1.0), np.full(1, 2.0))
    built = build(target, grid, readout, None, lambda *_: None)
    off, allowed = compare_dense(built, grid, np.random.default_rng(3))
    assert off <= allowed
    rng, full = np.random.default_rng(3), built.network.expand()
    rows = rng.integers(len(built.sequences), size=24)
    inside = rng.uniform(0.02, 0.98, (24, 2, 1)) - 0.5
    x = torch.from_numpy(grid.centres(built.sequences[rows]) + inside * 3 / 4)
    with torch.no_grad():
        h = full.contexts(x).reshape(48, -1).abs().numpy().max(0)
    w1, b1, w2 = (
        np.abs(w.detach().numpy()) for w in (full.f2.weight1, full.f2.bias1, full.f2.weight2)
    )
    rounding = 2.0**-53 * (w2 @ (w1 @ h + b1)).max()
    wanted = 4 * rounding + largest_plane(built.f2) / 64
    assert allowed == pytest.approx(wanted, rel=1e-12, abs=0)
    with torch.no_grad():
        full.f2.bias2[-1] += 0.125
    monkeypatch.setattr(built.network, "expand", lambda: full)
    monkeypatch.setattr(module, "DENSE_UNITS", 5 * built.f2.hidden)  # five rows at a time
    assert compare_dense(built, grid, np.random.default_rng(3))[0] == pytest.approx(0.125)
