"""Stairs and tilted stairs against their definition in exact fractions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import dense_truth as truth
from rankone.nn import FeedForward, Stairs, TiltedStairs
from rankone.nn.stairs import in_turn

F = Fraction
EPS = 2.0**-53


def relu(x):
    return max(x, F(0))


def exact(x):
    return np.vectorize(F, otypes=[object])(x)


def climb(s, start, width, level):
    """level_0 + sum_j (level_(j+1) - level_j) (relu(x_j) - relu(x_j - 1))."""
    x = [(s - a) / w for a, w in zip(start, width, strict=True)]
    share = [relu(t) - relu(t - 1) for t in x]
    return level[0] + sum((b - a) * t for (a, b), t in zip(pairwise(level), share, strict=True))


def on_ramp(s, start, width):
    return any(a < s < a + w for a, w in zip(start, width, strict=True))


def test_units_stand_in_the_order_of_thue_and_morse():
    """Those of all flights in one row, also where there are so many that the numbers of their pairs
    have 18 bits."""
    first = torch.arange(140_000).view(2, 70_000)
    row = in_turn(first, -1 - first)
    pair = np.arange(140_000)
    odd = np.unpackbits(pair[:, None].view(np.uint8), axis=1).sum(1) % 2 == 1
    assert row[::2].tolist() == np.where(odd, -1 - pair, pair).tolist()
    assert row[1::2].tolist() == np.where(odd, pair, -1 - pair).tolist()


@st.composite
def flights(draw, most=5, channels=None):
    """Any floats for starts, widths and levels, so long as no two ramps overlap."""
    steps, channels = draw(st.integers(0, most)), channels or draw(st.integers(1, 3))
    numbers = st.floats(-8, 8, allow_subnormal=False)
    start = sorted(draw(st.lists(numbers, min_size=steps, max_size=steps, unique=True)))
    shares = st.sampled_from([1e-9, 0.1, 1 / 3, 0.75, 1.0])
    room = [float(b) - float(a) for a, b in pairwise([*start, 9.0])]
    width = [r * draw(shares) for r in room]
    while any(F(a) + F(w) > F(b) for a, w, b in zip(start, width, start[1:], strict=False)):
        width = [w * (1 - 2 * EPS) for w in width]
    level = draw(st.lists(st.floats(-5, 5), min_size=(steps + 1) * channels, max_size=99))
    level = np.array(level[: (steps + 1) * channels]).reshape(steps + 1, channels)
    return np.array(start), np.array(width), level


def around(start, width):
    """One ulp below, at and above every start and end; between; far outside."""
    ends = np.concatenate([start, start + width])
    near = [ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)]
    between = [start + width * share for share in (0.1, 0.5, 0.9)]
    gaps = (ends[: len(start)][1:] + (start + width)[:-1]) / 2
    return np.concatenate([*near, *between, gaps, [-1e9, -20.0, 0.0, 20.0, 1e9]])


def stairs(*flown, spare=0):
    """Flight i looks at coordinate i; channel c goes to coordinate flights + spare + c."""
    starts, widths, levels = (np.stack(part) for part in zip(*flown, strict=True))
    count, channels = len(starts), levels.shape[-1]
    eye = torch.eye(count + spare + channels, dtype=torch.float64)
    return Stairs.assemble(
        direction=eye[:count].clone(),
        start=torch.from_numpy(starts),
        width=torch.from_numpy(widths),
        level=torch.from_numpy(levels),
        output=eye[:, count + spare :].clone(),
    )


def tokens(layer, *s):
    """Tokens that are s on the coordinates the flights look at, and 0 elsewhere."""
    h = torch.zeros(len(s[0]), len(layer.output), dtype=torch.float64)
    h[:, : len(s)] = torch.from_numpy(np.stack(s, 1))
    return h


@given(flight=flights())
def test_one_flight_is_its_definition(flight):
    """Off the ramps it is a level without rounding; on them it is off by a few roundings."""
    start, width, level = flight
    layer, s = stairs(flight), around(start, width)
    out = layer(tokens(layer, s))[:, 1:].detach().numpy()
    fractions = exact(start), exact(width), exact(level)
    size = 8 * EPS * np.abs(level).max(initial=0.0)
    for number, got in zip(s, out, strict=True):
        wanted = climb(F(float(number)), *fractions)
        if on_ramp(F(float(number)), *fractions[:2]):
            assert all(abs(F(g) - w) <= size for g, w in zip(got, wanted, strict=True))
        else:
            assert [F(g) for g in got] == list(wanted), number


@given(data=st.data(), count=st.integers(1, 3))
def test_several_flights_add_up(data, count):
    steps = data.draw(st.integers(0, 3))
    flown = []
    while len(flown) < count:
        start = np.cumsum(data.draw(st.lists(st.integers(2, 4), min_size=steps, max_size=steps)))
        width = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=steps)))
        level = data.draw(st.lists(st.integers(-9, 9), min_size=2 * steps + 2))
        level = np.array(level[: 2 * steps + 2], dtype=float).reshape(steps + 1, 2)
        flown.append((start.astype(float), width[:steps], level))
    rng = np.random.default_rng(steps)
    s = np.round(rng.uniform(-1, 14, (count, 40)) * 8) / 8
    layer = stairs(*flown)
    out = layer(tokens(layer, *s))[:, count:].detach().numpy()
    for k in range(40):  # small binary fractions: nothing is rounded
        parts = [climb(F(s[i, k]), *map(exact, flown[i])) for i in range(count)]
        assert [F(g) for g in out[k]] == list(sum(parts)), s[:, k]


def test_zero_steps_are_one_level():
    layer = stairs((np.zeros(0), np.zeros(0), np.array([[3.0, -1.0]])))
    h = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    wanted = h + torch.tensor([0.0, 3.0, -1.0])
    assert torch.equal(layer(h), wanted)
    assert layer.hidden == layer.expand().hidden == 0
    assert torch.equal(layer.expand()(h), wanted)


def random_stairs(seed, dim=5, count=2, steps=6, channels=3):
    rng = np.random.default_rng(seed)
    layer = truth.randomize(Stairs(dim, count, steps, channels), seed)
    with torch.no_grad():
        layer.start.copy_(torch.from_numpy(np.cumsum(rng.uniform(0.3, 0.6, (count, steps)), 1) - 1))
        layer.width.copy_(torch.from_numpy(rng.uniform(0.05, 0.3, (count, steps))))
    return layer


REACH = 0.25


def random_tilted(seed, steps=6, channels=3, residuals=2):
    """s is coordinate 0, r the next ones: so |r_i| <= reach and s on a ramp can be asked for."""
    dim = 1 + residuals + channels
    layer = truth.randomize(TiltedStairs(dim, steps, channels, residuals), seed)
    climbing = random_stairs(seed, dim, 1, steps, channels)
    eye = torch.eye(dim, dtype=torch.float64)
    with torch.no_grad():
        layer.start.copy_(climbing.start)
        layer.width.copy_(climbing.width)
        layer.direction.copy_(eye[:1])
        layer.residual.copy_(eye[1 : 1 + residuals])
        layer.output.copy_(eye[:, 1 + residuals :])
        layer.reach.fill_(REACH)
    return layer


def tilted_tokens(layer, seed, *, bends=True):
    """s at and around all bends and between; r within reach, some of it at the very edge."""
    rng = np.random.default_rng(seed)
    start, width = (p.detach().numpy()[0] for p in (layer.start, layer.width))
    s = around(start, width) if bends else start + width * 0.4
    s = s[np.abs(s) < 1e6]
    s = np.concatenate([s[s > -1], rng.uniform(-1, 5, 30)])
    r = rng.uniform(-REACH, REACH, (len(s), len(layer.residual)))
    r[::3] = np.sign(r[::3]) * REACH
    h = torch.zeros(len(s), len(layer.output), dtype=torch.float64)
    h[:, 0], h[:, 1 : 1 + r.shape[1]] = torch.from_numpy(s), torch.from_numpy(r)
    return h


def plane(p, j, s, r):
    """level_j + tilt_j (s - middle_j) + slope_j r."""
    return p["level"][0, j] + p["tilt"][j] * (s - p["middle"][j]) + p["slope"][j] @ r


def tilted_climb(p, s, r):
    """Planes off the ramps; on a ramp straight in s, and the slope turns by saturating units."""
    reach = p["reach"].item()
    start, width = p["start"][0], p["width"][0]
    j = sum(bool(s >= a + w) for a, w in zip(start, width, strict=True))
    if j == len(start) or s <= start[j]:
        return plane(p, j, s, r)
    none, end = np.zeros_like(r), start[j] + width[j]
    x = (s - start[j]) / width[j]
    before, after = plane(p, j, start[j], none), plane(p, j + 1, end, none)
    y = 2 * x - 1
    turned = np.array([reach * (relu(y + a / reach) - relu(y)) for a in r])
    old, new = p["slope"][j], p["slope"][j + 1]
    return before + (after - before) * x + old @ r + (new - old) @ turned


@pytest.mark.parametrize("steps", [0, 1, 6])
@pytest.mark.parametrize("residuals", [1, 2])
def test_tilted_stairs_are_their_definition(steps, residuals):
    for seed in range(6):
        layer = random_tilted(seed, steps, 2, residuals)
        h = tilted_tokens(layer, seed)
        out = layer(h)[:, 1 + residuals :].detach().numpy()
        p = {name: exact(part) for name, part in truth.parameters(layer).items()}
        for token, got in zip(exact(h.numpy()), out, strict=True):
            wanted = tilted_climb(p, token[0], token[1 : 1 + residuals])
            assert all(abs(F(g) - w) < 40 * EPS for g, w in zip(got, wanted, strict=True)), token


@given(flight=flights(channels=2))
def test_stairs_without_tilt_are_level_to_the_bit(flight):
    """Tilted stairs with no tilt and no slope are stairs."""
    plain, (start, width, _) = stairs(flight, spare=1), flight
    layer = TiltedStairs(4, len(start), 2, 1)
    layer.load_state_dict({**layer.state_dict(), **plain.state_dict()})
    h = tokens(plain, around(start, width))
    assert torch.equal(layer(h), plain(h))


@pytest.mark.parametrize("steps", [0, 1, 6, 33])
@pytest.mark.parametrize("count", [1, 3])
def test_expanded_stairs_are_the_same(count, steps):
    layer = random_stairs(steps, count=count, steps=steps)
    full, h = layer.expand(), 2 * torch.randn(50, 5, dtype=torch.float64)
    assert type(full) is FeedForward
    assert full.hidden == layer.hidden == 2 * count * steps
    truth.assert_close(full(h), layer(h))
    truth.assert_close(layer(h), truth.feedforward_of(full, h.numpy().T).T)


@given(flight=flights())
def test_expanded_stairs_are_the_same_around_every_bend(flight):
    start, width, _ = flight
    layer = stairs(flight)
    h = tokens(layer, s := around(start, width))
    near, full = np.abs(s) < 100, layer.expand()
    units = full.weight1.abs() @ h[near].abs().T + full.bias1.abs()[:, None]
    size = (full.weight2.abs() @ units).amax(0).detach().numpy()  # what is added up, per token
    off = (full(h) - layer(h))[near].abs().amax(1).detach().numpy()
    assert (off <= (4 + len(start)) * 2 * EPS * (size + 40)).all()


@pytest.mark.parametrize("steps", [0, 1, 6, 33])
@pytest.mark.parametrize("residuals", [1, 3])
def test_expanded_tilted_stairs_are_the_same(residuals, steps):
    """Also on the ramps, and with r at the edge of its reach."""
    layer = random_tilted(steps, steps, 2, residuals)
    full, h = layer.expand(), tilted_tokens(layer, steps)
    assert full.hidden == layer.hidden == (1 + residuals) * (2 * steps + 1)
    truth.assert_close(full(h), layer(h))


@pytest.mark.parametrize("tilted", [False, True])
def test_gradients_are_those_of_finite_differences(tilted):
    """In the middle of treads and of ramps, away from every bend."""
    layer = random_tilted(5) if tilted else random_stairs(5)
    h = tilted_tokens(layer, 5, bends=False) if tilted else torch.randn(40, 5, dtype=torch.float64)
    s = h @ layer.direction.T.detach()
    bends = torch.cat([layer.start, layer.start + layer.width, layer.start + layer.width / 2], 1)
    off = (s.unsqueeze(-1) - bends).abs().amin((1, 2)) > 0.02
    if tilted:  # relu(y + r / reach) bends too
        y = 2 * (s - layer.start) / layer.width - 1
        h[:, 1:3] *= 0.9
        off &= (y.unsqueeze(-1) + h[:, None, 1:3] / REACH).abs().amin((1, 2)) > 0.05
    x = (s.unsqueeze(-1) - layer.start) / layer.width
    ramp = ((x > 0) & (x < 1)).flatten(1).any(1)
    some = torch.cat([torch.nonzero(off & ramp)[:2], torch.nonzero(off & ~ramp)[:2]]).flatten()
    assert len(some) == 4  # half of them on a ramp, half on none
    assert gradcheck(layer, (h[some].clone().requires_grad_(),))


@pytest.mark.parametrize("tilted", [False, True])
def test_gradients_reach_every_parameter(tilted):
    layer = random_tilted(7) if tilted else random_stairs(7)
    h = tilted_tokens(layer, 7) if tilted else torch.randn(99, 5, dtype=torch.float64)
    layer(h).square().sum().backward()
    for name, p in layer.named_parameters():
        assert p.grad is not None, name
        assert p.grad.isfinite().all(), name
        assert p.grad.abs().sum() > 0, name


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4)])
def test_any_batch_shape(shape):
    for layer in (random_stairs(1), random_tilted(1)):
        h = torch.randn(*shape, len(layer.output), dtype=torch.float64)
        out = layer(h)
        assert out.shape == h.shape
        assert out.dtype == torch.float64
        for at in np.ndindex(*shape):
            truth.assert_close(out[at], layer(h[at]))


@pytest.mark.parametrize("tilted", [False, True])
def test_a_state_dict_goes_round(tilted):
    layer = random_tilted(2) if tilted else random_stairs(2)
    other = TiltedStairs(6, 6, 3, 2) if tilted else Stairs(5, 2, 6, 3)
    assert other.hidden == layer.hidden
    other.load_state_dict(layer.state_dict())
    again = type(layer).assemble(**{name: p.detach() for name, p in layer.named_parameters()})
    h = torch.randn(30, len(layer.output), dtype=torch.float64)
    assert torch.equal(other(h), layer(h))
    assert torch.equal(again(h), layer(h))
    assert set(again.state_dict()) == set(other.state_dict()) == set(layer.state_dict())
