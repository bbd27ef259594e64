"""The network of Proposition 1 against eq. 2 and 3, and its equivariance to the last bit."""

from itertools import permutations

import numpy as np
import pytest
import torch

import dense_truth as truth
from rankone.approximation.build import build
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.target import Target
from rankone.nn import Approximator, FeedForward, Rank1Attention, SelfAttention, Stairs

LOW, HIGH = -0.5, 1.5
D = 3


def smooth(outputs):
    """An equivariant function with any number of outputs that depends on all of its input."""

    def f(x):
        s, mean = x.sum(-1, keepdims=True), np.sin(2 * x).mean((-2, -1), keepdims=True)
        return np.concatenate([np.sin(s + k) * (1 + mean) for k in range(outputs)], -1)

    return f


def built(n, d, m=1, readout="constant", *, positions=False, delta=None):
    grid = CellGrid(D, n, np.full(d, LOW), np.full(d, HIGH), positions)
    target = Target(smooth(m), "f", m)
    return build(target, grid, readout, delta, lambda _stage, _share: None)


def points(n, d, batch, kind, seed=0, delta=0.0):
    """Inputs: anywhere, with tokens or coordinates repeated, or on the ramps of F1."""
    rng = np.random.default_rng(seed)
    z = rng.random((*batch, n, d))
    if kind == "repeated":
        z[..., n // 2 :, :] = z[..., : n - n // 2, :]
        z[..., 0] = z[..., :1, 0]
    if kind == "ramps":
        edge = rng.integers(1, D, z.shape) / D
        z = np.where(rng.random(z.shape) < 0.7, edge + delta * rng.uniform(-0.2, 1.2, z.shape), z)
    return torch.from_numpy(LOW + (HIGH - LOW) * z)


each_readout = pytest.mark.parametrize("readout", ["constant", "linear"])
each_kind = pytest.mark.parametrize("kind", ["anywhere", "repeated", "ramps"])
SIZES = [(2, 1, 1), (2, 2, 3), (3, 1, 2), (3, 2, 1), (2, 3, 2), (4, 1, 1)]
each_size = pytest.mark.parametrize(("n", "d", "m"), SIZES)


def test_embedding_takes_the_domain_to_the_unit_cube():
    network = built(2, 2).network
    x = torch.tensor([[[LOW, HIGH], [0.5, 0.0]]], dtype=torch.float64)
    h = network.embed(x)
    assert h.shape == (1, 2, network.width)
    assert h[..., :2].tolist() == [[[0.0, 1.0], [0.5, 0.25]]]
    assert not h[..., 2:].any()


def test_there_are_no_positions_unless_they_are_asked_for():
    network = built(3, 1).network
    parts = {name: getattr(network, name) for name in ("n", "f1", "attention", "f2", "outputs")}
    again = Approximator(**parts, low=network.low.detach(), span=network.span.detach())
    x = points(3, 1, (4,), "anywhere")
    assert torch.equal(again(x), network(x))


@pytest.mark.parametrize("m", [1, 3])
def test_positions_stand_before_the_output(m):
    """0, 1, ..., n - 1 on one coordinate, the same in every sequence of a batch; 0 elsewhere."""
    network = built(3, 1, m, positions=True).network
    x = points(3, 1, (2, 4), "anywhere")
    h = network.embed(x)
    assert torch.equal(h[..., :1], (x - LOW) / (HIGH - LOW))
    assert torch.equal(h[..., -m - 1], torch.arange(3.0, dtype=torch.float64).expand(2, 4, 3))
    assert not h[..., -m:].any()
    assert not h[..., 1 : -m - 1].any()


def test_a_domain_may_differ_between_coordinates():
    grid = CellGrid(D, 2, np.array([0.0, -4.0]), np.array([1.0, 4.0]))
    target = Target(smooth(1), "f", 1)
    network = build(target, grid, "constant", None, lambda _stage, _share: None).network
    h = network.embed(torch.tensor([[0.25, 2.0], [1.0, -4.0]], dtype=torch.float64))
    assert h[:, :2].tolist() == [[0.25, 0.75], [1.0, 0.0]]


@each_readout
@each_size
@each_kind
def test_equivariance_to_the_last_bit(n, d, m, readout, kind):
    for delta in (None, 1 / 32):
        made = built(n, d, m, readout, delta=delta)
        network = made.network
        for batch in (1, 2, 7):  # a product may round differently from row to row
            x = points(n, d, (batch,), kind, batch, made.delta)
            with torch.no_grad():
                contexts, out = network.contexts(x), network(x)
                for order in [*list(permutations(range(n)))[::4], tuple(range(n))[::-1]]:
                    moved = x[:, order]
                    assert torch.equal(network.contexts(moved), contexts[:, order]), (batch, order)
                    assert torch.equal(network(moved), out[:, order]), (batch, order)


@each_readout
def test_equal_tokens_get_equal_values(readout):
    network = built(3, 2, 2, readout).network
    x = points(3, 2, (9,), "anywhere")
    x[:, 2] = x[:, 0]
    out = network(x)
    assert torch.equal(out[:, 2], out[:, 0])


def test_positions_tell_the_order():
    """Not equivariant any more: equal tokens at different places have context ids apart."""
    made = built(3, 1, positions=True)
    line = made.f2.direction[0]
    h = made.network.contexts(torch.full((3, 1), 0.3, dtype=torch.float64))
    assert (h @ line).diff().min() > 0.5


def slack(made):
    """A rounding of a context id times the steepest plane: what another order of sums may change.

    Nothing for a constant readout, whose value off the ramps is a level.
    """
    tilt = getattr(made.f2, "tilt", torch.zeros(1)).detach().abs().max()
    return 16 * 2.0**-53 * float(tilt) * D ** made.f1.start.shape[0]


@each_readout
@each_size
@pytest.mark.parametrize("positions", [False, True])
def test_its_parts_one_after_the_other(n, d, m, readout, positions):
    made = built(n, d, m, readout, positions=positions)
    network = made.network
    assert (type(network.attention), network.f1, network.f2) == (Rank1Attention, made.f1, made.f2)
    x = points(n, d, (20,), "anywhere")
    with torch.no_grad():
        h = network.attention(network.f1(network.embed(x)))
        truth.assert_close(network.contexts(x), h)
        out = network.f2(h)[..., -m:]
        assert out.shape == (20, n, m)
        assert (network(x) - out).abs().max() <= slack(made)


@each_readout
@pytest.mark.parametrize(("n", "d", "m"), [(2, 1, 1), (3, 1, 2), (2, 2, 1)])
def test_attention_and_f1_are_the_equations(n, d, m, readout):
    """Eq. 20 on what eq. 3 gives, tokens as columns."""
    made = built(n, d, m, readout, delta=1 / 32)
    network, full = made.network, made.network.expand()
    x = points(n, d, (12,), "ramps", 3, made.delta)
    h = truth.by_sentence(truth.feedforward_of, full.f1, network.embed(x))
    truth.assert_close(network.f1(network.embed(x)), h)
    after = truth.by_sentence(truth.attention_of, network.attention, torch.from_numpy(h))
    truth.assert_close(network.contexts(x), after)


@each_readout
@pytest.mark.parametrize("positions", [False, True])
def test_expanding_leaves_plain_matrices(readout, positions):
    made = built(2, 2, 2, readout, positions=positions)
    full = made.network.expand()
    assert type(full.f1) is type(full.f2) is FeedForward
    assert type(full.attention) is SelfAttention
    heads, size, width = full.attention.key.shape
    assert (heads, size, width) == (1, 1, made.network.width)
    assert (full.f1.hidden, full.f2.hidden) == (made.f1.hidden, made.f2.hidden)
    assert full.expand().f2 is full.f2
    assert isinstance(made.network.f1, Stairs)  # the network itself is left as it was
    assert (full.outputs, full.positions) == (2, positions)


@each_readout
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (0,)])
def test_batches_of_any_shape(readout, positions, batch):
    made = built(3, 1, 2, readout, positions=positions)
    network, full = made.network, made.network.expand()
    x = points(3, 1, batch, "anywhere")
    out = network(x)
    assert out.dtype == full(x).dtype == torch.float64
    assert out.shape == full(x).shape == (*batch, 3, 2)
    for at in np.ndindex(*batch):
        assert (network(x[at]) - out[at]).abs().max() <= slack(made)


def test_gradients_reach_the_input_through_a_linear_readout():
    made = built(2, 1, 1, "linear")
    x = points(2, 1, (6,), "anywhere").requires_grad_()
    made.network(x).sum().backward()
    step = 1e-6
    with torch.no_grad():
        up, down = made.network(x + step), made.network(x - step)
    slope = (up - down).sum((1, 2)) / (2 * step)
    np.testing.assert_allclose(x.grad.sum((1, 2)), slope, rtol=1e-4, atol=1e-4)


def test_a_state_dict_goes_round():
    made, other = built(2, 1, 1, "linear"), built(2, 1, 1, "linear")
    with torch.no_grad():
        for p in other.network.parameters():
            p.zero_()
    other.network.load_state_dict(made.network.state_dict())
    x = points(2, 1, (9,), "anywhere")
    assert torch.equal(other.network(x), made.network(x))
    assert isinstance(other.network, Approximator)
