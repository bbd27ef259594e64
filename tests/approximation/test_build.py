"""The built network: f at the centres, the same multiplied out, and its rate."""

from itertools import permutations

import numpy as np
import pytest
import torch

import dense_truth as truth
from rankone import approximate, converge
from rankone.approximation.build import alike, build
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.target import Target
from rankone.errors import FunctionError, SettingError

LOW, HIGH = -1.0, 2.0


def function(m, *, positions=False):
    """Smooth, of all tokens and coordinates; of their order too if there are positions."""

    def f(x):
        weight = np.arange(1.0, x.shape[-2] + 1)[:, None] if positions else 1.0
        own, all_of_it = (
            x.sum(-1, keepdims=True),
            (weight * np.sin(x)).mean((-2, -1), keepdims=True),
        )
        return np.concatenate([np.cos(own + k) + np.sin(k - own) * all_of_it for k in range(m)], -1)

    return f


def made(D, n, d, m, readout="constant", *, positions=False, delta=None):
    f = function(m, positions=positions)
    grid = CellGrid(D, n, np.full(d, LOW), np.full(d, HIGH), positions)
    return f, grid, build(Target(f, "f", m), grid, readout, delta, lambda _stage, _share: None)


def off_ramps(grid, count, seed=0):
    """Points of random cells, not within a tenth of a cell of its edge."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(grid.tokens, size=(count, grid.n))
    inside = rng.uniform(-0.4, 0.4, (count, grid.n, grid.d))
    return grid.centres(tokens) + inside * grid.span / grid.cells


def run(network, x):
    with torch.no_grad():
        return network(torch.from_numpy(x)).numpy()


CASES = [
    *[(8, 2, 1, 1, False), (3, 2, 2, 2, False), (4, 3, 1, 3, False), (2, 2, 3, 1, False)],
    *[(3, 1, 2, 1, False), (1, 3, 1, 1, False), (5, 2, 1, 2, True), (2, 2, 2, 1, True)],
]
each_case = pytest.mark.parametrize(("D", "n", "d", "m", "positions"), CASES)
each_readout = pytest.mark.parametrize("readout", ["constant", "linear"])


@each_readout
@each_case
def test_f_at_every_centre_in_every_order(D, n, d, m, positions, readout):
    f, grid, built = made(D, n, d, m, readout, positions=positions)
    sequences = grid.all_sequences()
    orders = [range(n)] if positions else permutations(range(n))
    for order in orders:
        x = grid.centres(sequences[:, list(order)])
        y = f(x)
        assert np.abs(run(built.network, x) - y).max() <= 1e-12 * np.abs(y).max()


@each_case
def test_a_constant_readout_is_constant_on_cells(D, n, d, m, positions):
    f, grid, built = made(D, n, d, m, positions=positions)
    x = off_ramps(grid, 50)
    cell = np.floor((x - LOW) / (HIGH - LOW) * D)
    centre = LOW + (HIGH - LOW) * (cell + 0.5) / D
    assert np.abs(run(built.network, x) - f(centre)).max() <= 1e-12 * np.abs(built.values).max()


def plain(state, x, *, outputs, positions, feed_forward=truth.feed_forward):
    """Eq. 3, eq. 2, eq. 3 on one sequence, tokens as columns, from nothing but named matrices."""
    w = {name: p.numpy() for name, p in state.items()}
    Z = np.zeros((w["f1.weight1"].shape[1], len(x)))
    Z[: x.shape[1]] = ((x - w["low"]) / w["span"]).T
    if positions:
        Z[-outputs - 1] = np.arange(len(x))
    first, second = (
        [w[f"{layer}.{name}"] for name in ("weight1", "bias1", "weight2", "bias2")]
        for layer in ("f1", "f2")
    )
    heads = [w[f"attention.{name}"] for name in ("output", "value", "key", "query")]
    H = truth.self_attention(feed_forward(Z, *first), *heads)
    return feed_forward(H, *second)[-outputs:].T


@each_readout
@each_case
def test_nothing_but_matrices(D, n, d, m, positions, readout):
    """No table beside the weights: the state dict, in numpy, gives what the fast path gives."""
    _, grid, built = made(D, n, d, m, readout, positions=positions, delta=2.0**-7)
    x, state = off_ramps(grid, 12), built.network.expand().state_dict()
    by_hand = np.stack([plain(state, one, outputs=m, positions=positions) for one in x])
    np.testing.assert_allclose(by_hand, run(built.network, x), rtol=0, atol=1e-8)


@each_readout
@each_case
def test_multiplied_out_with_the_narrowest_ramps(D, n, d, m, positions, readout):
    """Off by rounding: what F1 and attention are off by, times how steep F2 is, and F2 itself.

    F1 puts a cell number and a residual off by 2^-53 / delta or so, which planes magnify; F2 adds
    up units whose sizes are in the matrices.
    """
    _, grid, built = made(D, n, d, m, readout, positions=positions)
    x, full = torch.from_numpy(off_ramps(grid, 60, 1)), built.network.expand()
    with torch.no_grad():
        h = full.contexts(x).reshape(-1, full.width)
        units = full.f2.weight1.abs() @ h.abs().amax(0) + full.f2.bias1.abs()
        f2 = 4 * 2.0**-53 * (full.f2.weight2.abs() @ units).max()
        tilt, slope = (getattr(built.f2, name, torch.zeros(1)) for name in ("tilt", "slope"))
        steepest = D ** (d - 1) * tilt.abs().max() + d * slope.abs().max()
        f1 = 4 * 2.0**-53 / built.delta * steepest
        off = (full(x) - built.network(x)).abs().max()
    assert off <= f1 + f2 + 1e-12


def waves(x):
    return np.sin(3 * x) * np.cos(2 * x.sum(-2, keepdims=True))


def in_lanes(lanes):
    """Eq. 3 with the units added up in so many lanes, one by one in each, on every processor."""

    def feed_forward(H, weight1, bias1, weight2, bias2):
        terms = weight2[:, :, None] * np.maximum(weight1 @ H + bias1[:, None], 0)
        total = sum(terms[:, lane::lanes].cumsum(1)[:, -1] for lane in range(lanes))
        return H + total + bias2[:, None]

    return feed_forward


@pytest.mark.parametrize(("n", "D"), [(1, 50), (2, 5), (2, 50), (3, 11)])
def test_rounding_is_nothing_beside_the_error(n, D):
    """Multiplied out, a linear readout is as near to f: off by a hundredth of the error at most.

    All of it comes from the sum of F1, whose units are as large as 1 / delta, up to 2^44, and
    cancel to the number of a cell. A partial sum P of them is rounded to 2^-53 P, so the number is
    right only if partial sums stay small, and that is a matter of the order: with D = 50 it is off
    by several cells if positive units come first, or in three lanes, and exact in the order of
    `in_turn`, in one lane or in 2, 4 or 8. (F2, in any order tried, is off by less than 10^-4 of
    the error.) A matrix product adds up in an order of its own, which is why this test adds up by
    itself.
    """
    result = approximate(waves, n=n, grid=D, readout="linear", samples=1 << 12)
    x, state = off_ramps(result.grid, 100), result.network.expand().state_dict()
    for lanes in (1, 2, 4, 8):
        layer = in_lanes(lanes)
        by_hand = [plain(state, one, outputs=1, positions=False, feed_forward=layer) for one in x]
        assert np.abs(np.stack(by_hand) - result(x)).max() <= result.error / 100


@pytest.mark.parametrize(("readout", "slope"), [("constant", -1.0), ("linear", -2.0)])
def test_the_rate_for_two_numbers(readout, slope):
    found = converge(waves, [8, 16, 32, 64], n=2, readout=readout, samples=1 << 13)
    assert found.slope == pytest.approx(slope, abs=0.07)
    assert all(ratio == pytest.approx(2.0**-slope, rel=0.1) for ratio in found.ratios[1:])


def test_the_rate_for_one_token():
    settings = {"n": 1, "d": 2, "readout": "linear", "samples": 1 << 13}
    found = converge(lambda x: np.sin(3 * x.sum(-1, keepdims=True)), [4, 8, 16], **settings)
    assert found.slope == pytest.approx(-2.0, abs=0.1)


@each_readout
@pytest.mark.parametrize("share", [0.5, 0.3, 0.2])
@pytest.mark.parametrize("D", [2, 3, 7])
def test_wide_ramps_are_right_or_refused(D, share, readout):
    """A delta that is let through leaves f at the centres, and the dense network the same."""
    try:
        result = approximate(
            function(1), n=2, grid=D, readout=readout, delta=share / D, samples=256
        )
    except SettingError as error:
        refusal = str(error)
    else:
        refusal = ""
    if share > 0.2 and refusal:
        assert "delta" in refusal
        return
    assert not refusal
    start = result.network.f1.start[0].detach().numpy()
    lower, upper = np.append(0.0, start + result.delta), np.append(start, 1.0)
    rng = np.random.default_rng(D)
    tokens = rng.integers(D, size=(300, 2, 1))
    x = lower[tokens] + (upper - lower)[tokens] * rng.uniform(0.001, 0.999, tokens.shape)
    np.testing.assert_allclose(run(result.network.expand(), x), result(x), rtol=0, atol=1e-9)


def test_equal_tokens_may_differ_by_rounding_only():
    """And take the value of the first; the sequence that is shown is the one that is off."""
    grid = CellGrid(2, 2, np.zeros(1), np.ones(1))
    sequences, values = (
        grid.all_sequences(),
        np.array([[[1.0], [1.0]], [[2.0], [3.0]], [[5.0]] * 2]),
    )
    assert sequences.tolist() == [[0, 0], [0, 1], [1, 1]]
    target = Target(lambda x: x, "f", 1)
    rounding = 1e-9 * 4 + 64 * 2.0**-52 * 5
    for off in (0.99, -0.99):
        near = values.copy()
        near[2, 1] -= off * rounding
        assert np.array_equal(alike(target, grid, sequences, near), values)
    far = values.copy()
    far[2, 1] -= 1.01 * rounding
    with pytest.raises(FunctionError, match=r"at \[\[0.75\], \[0.75\]\], where tokens are equal"):
        alike(target, grid, sequences, far)
