"""Proposition 1: two feed-forward layers and one head of attention come as near to f as wanted.

What the printed proof (eq. 51 to 71) says otherwise is in test_errata_proposition_1.py.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
import torch

from rankone import Approximation, approximate
from rankone.arrays import Floats
from rankone.errors import FunctionError
from rankone.nn import FeedForward, Rank1Attention, SelfAttention, Stairs, TiltedStairs

F = Fraction
POINTS, REPLICATES = 1 << 13, 10


def centred(x: Floats) -> Floats:
    return x - x.mean(-2, keepdims=True)


def pull(x: Floats) -> Floats:
    """Of two tokens, what one exerts on the other; nothing from equals."""
    u = x[..., None, :, :] - x[..., :, None, :]
    return np.asarray((u / (1 + (u**2).sum(-1, keepdims=True))).mean(-2))


def above_all(x: Floats) -> Floats:
    """Not smooth: how far a token is below the largest."""
    return np.asarray(x.max(-2, keepdims=True) - x)


def two_waves(x: Floats) -> Floats:
    """Two outputs for each token of any dimension."""
    own, total = x.sum(-1, keepdims=True), x.sum((-2, -1), keepdims=True)
    return np.concatenate([np.sin(own + total), np.cos(own - total) / 2], -1)


def distance(result: Approximation, f: Callable[[Floats], Floats], p: float) -> tuple[float, float]:
    """d_p(f, g) over the domain (eq. 1) by Monte Carlo, and what it is at most, at 5 sigma.

    A random point in each of many equal boxes, some times over. None falls on a ramp of F1. Ramps
    take up n d (D - 1) delta of the domain at most, and there |f - g| is at most the largest |f|
    and |g|, which is added in full.
    """
    grid = result.grid
    rng = np.random.default_rng(12345)
    axes = grid.n * grid.d
    sides = round(POINTS ** (1 / axes))
    boxes = np.stack(np.meshgrid(*[np.arange(sides)] * axes), -1).reshape(-1, axes)
    sums, largest = [], 1.0
    for _ in range(REPLICATES):
        z = (boxes + rng.random(boxes.shape)) / sides
        x = grid.low + grid.span * z.reshape(-1, grid.n, grid.d)
        y, g = f(x), result(x)
        sums.append((np.abs(y - g) ** p).sum((1, 2)).mean() * grid.volume_root(1))
        largest = max(largest, float(np.abs(y).max() + np.abs(g).max()))
    ramps = axes * (grid.cells - 1) * result.delta * grid.volume_root(1)
    mean = np.mean(sums) + ramps * y[0].size * (2 * largest) ** p
    error = 5 * np.std(sums, ddof=1) / np.sqrt(REPLICATES)
    return float(mean ** (1 / p)), float((mean + error) ** (1 / p))


def assert_shape(result: Approximation) -> None:
    """A feed-forward layer, attention with one head of rank 1, one more feed-forward layer."""
    network = result.network
    assert [name for name, _ in network.named_children()] == ["f1", "attention", "f2"]
    assert isinstance(network.attention, Rank1Attention)
    full = network.expand()
    kinds = {name: type(layer) for name, layer in full.named_children()}
    assert kinds == {"f1": FeedForward, "attention": SelfAttention, "f2": FeedForward}
    width = full.width
    attention = full.attention
    assert isinstance(attention, SelfAttention)
    assert attention.kind == "softmax"
    for weight in (attention.key, attention.query, attention.value):
        assert weight.shape == (1, 1, width)  # one head, of size 1
    assert attention.output.shape == (1, width, 1)
    names = {name for name, _ in full.named_parameters() if "." not in name}
    assert names == {"low", "span"}  # and nothing else


FUNCTIONS = [
    (centred, {"n": 2}),
    (pull, {"n": 2, "domain": (-1.0, 1.0), "p": 1.0}),
    (above_all, {"n": 2, "p": 3.0, "readout": "linear"}),
    (above_all, {"n": 3, "p": 1.0, "domain": (0.0, 0.5)}),
    (two_waves, {"n": 2, "readout": "linear"}),
    (two_waves, {"n": 1, "d": 2, "readout": "linear"}),
]
each_function = pytest.mark.parametrize(
    ("f", "settings"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)


@each_function
@pytest.mark.parametrize("epsilon", [0.1, 0.02])
def test_as_near_as_wanted(
    f: Callable[[Floats], Floats], settings: dict[str, float], epsilon: float
) -> None:
    result = approximate(f, epsilon=epsilon, samples=1 << 13, **settings)
    error, at_most = distance(result, f, result.p)
    assert at_most < epsilon
    low, high = result.interval
    assert high <= epsilon
    assert low - (at_most - error) <= error <= high + (at_most - error)
    assert_shape(result)


@pytest.mark.parametrize(("n", "d"), [(3, 1), (2, 2), (3, 2)])
def test_more_tokens_and_coordinates(n: int, d: int) -> None:
    result = approximate(pull, epsilon=0.1, n=n, d=d, samples=1 << 12)
    assert distance(result, pull, 2.0)[1] < 0.1
    assert_shape(result)
    x = np.random.default_rng(0).random((20, n, d))
    for order in permutations(range(n)):
        assert np.abs(result(x[:, order]) - result(x)[:, order]).max() < 1e-9


def step(z: Fraction, start: Fraction, delta: Fraction) -> Fraction:
    """relu(x) - relu(x - 1) with x = (z - start) / delta: eq. 56 without its 1/D."""
    x = (z - start) / delta
    return max(x, F(0)) - max(x - 1, F(0))


@pytest.mark.parametrize("D", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("delta", [None, 2.0**-8])
def test_eq_58_mended_is_the_first_layer(D: int, delta: float | None) -> None:
    """F1 counts the steps below z, at t/D for t = 1..D-1, ramps on [t/D, t/D + delta).

    That is quant(z) of eq. 57 less one, in units of 1/D. (t/D is rounded to a multiple of delta.)
    """
    result = approximate(centred, n=2, grid=D, delta=delta, samples=256)
    f1, wide = result.network.f1, F(result.delta)
    assert isinstance(f1, Stairs)
    starts = [F(x) for x in f1.start[0].tolist()]
    assert all(abs(s - F(t, D)) <= wide / 2 for t, s in enumerate(starts, 1))
    ends = np.array([float(s + share * wide) for s in starts for share in (0, 1)])
    ramps = [float(s + wide * k / 8) for s in starts for k in range(9)]
    z = np.concatenate(
        [ends, np.nextafter(ends, -9), np.nextafter(ends, 9), ramps, np.linspace(0, 1, 50)]
    )
    h = torch.zeros(len(z), result.network.width, dtype=torch.float64)
    h[:, 0] = torch.from_numpy(z)
    cell = f1(h)[:, 1].tolist()
    for at, found in zip(z.tolist(), cell, strict=True):
        wanted = sum((step(F(at), s, wide) for s in starts), F(0))
        if wanted.denominator == 1:
            assert found == wanted, at
        assert abs(F(found) - wanted) <= F(D, 2**50), at
        if not any(s <= F(at) < s + wide for s in starts) and 0 <= at < 1:
            near = abs(F(at) * D - round(at * D)) <= D * wide
            assert near or found == int(F(at) * D), at


@pytest.mark.parametrize(("n", "d", "D"), [(2, 1, 8), (3, 1, 5), (2, 2, 3)])
def test_eq_68_mended_is_the_second_layer(n: int, d: int, D: int) -> None:
    """F2 is f at every context id and around it, and between the values of f everywhere.

    The tents of eq. 67 on a line, with coefficient -2, would be 0 between the ids; the stairs are
    between the values of the two neighbours.
    """
    result = approximate(two_waves, n=n, d=d, grid=D, samples=256)
    network, grid = result.network, result.grid
    f2 = network.f2
    assert type(f2) is Stairs
    x = grid.centres(grid.all_sequences())
    with torch.no_grad():
        h = network.contexts(torch.from_numpy(x))
        s = (h @ f2.direction[0]).flatten()
        order = s.argsort()
        s, y = s[order], torch.from_numpy(two_waves(x)).reshape(-1, 2)[order]

        def second(at: torch.Tensor) -> torch.Tensor:
            """F2 of a token that is `at` on the line, which weighs the first cell number by 1."""
            tokens = torch.zeros(len(at), network.width, dtype=torch.float64)
            assert f2.direction[0, d] == 1
            tokens[:, d] = at
            return f2(tokens)[:, -2:]

        for share in (-0.3, 0.0, 0.3):  # of the gap: as far as rounding could never go
            assert (second(s + share * result.gap) - y).abs().max() < 1e-14
        levels = [(torch.minimum(a, b), torch.maximum(a, b)) for a, b in pairwise(y)]
        for t in (0.2, 0.4, 0.5, 0.6, 0.8):
            between = second(s[:-1] + t * s.diff())
            low, high = (torch.stack(part) for part in zip(*levels, strict=True))
            assert ((low - 1e-14 <= between) & (between <= high + 1e-14)).all()
        far = second(torch.tensor([-1e12, -1.0, s[-1] + 1, 1e12], dtype=torch.float64))
    assert torch.allclose(far, y[[0, 0, -1, -1]], rtol=0, atol=1e-14)


def test_a_linear_readout_is_a_layer_of_the_same_kind() -> None:
    result = approximate(two_waves, n=2, grid=4, readout="linear", samples=256)
    assert type(result.network.f2) is TiltedStairs
    assert_shape(result)


def differences(x: Floats) -> Floats:
    """Depends on the order: each token less the one before it."""
    return np.diff(x, axis=-2, prepend=0.0)


def by_place(x: Floats) -> Floats:
    """A different function at each place, of all tokens."""
    place = np.arange(1.0, x.shape[-2] + 1)[:, None]
    return np.asarray(np.sin(place * x + (x / place).sum(-2, keepdims=True)))


@pytest.mark.parametrize("f", [differences, by_place])
@pytest.mark.parametrize(("n", "epsilon"), [(2, 0.1), (2, 0.02), (3, 0.1)])
def test_with_positions_any_continuous_function(
    f: Callable[[Floats], Floats], n: int, epsilon: float
) -> None:
    """The remark after Proposition 1: positional encodings take the place of equivariance."""
    with pytest.raises(FunctionError, match="not permutation equivariant"):
        approximate(f, epsilon=epsilon, n=n)
    result = approximate(f, epsilon=epsilon, n=n, positions=True, samples=1 << 13)
    assert distance(result, f, 2.0)[1] < epsilon
    assert_shape(result)
    x = np.random.default_rng(0).random((20, n, 1))
    assert np.abs(result(x[:, ::-1].copy()) - result(x)[:, ::-1]).max() > 0.1
