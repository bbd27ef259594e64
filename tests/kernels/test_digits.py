"""How many digits: against sums in extended precision, with no more slack than rounding needs."""

import math

import numpy as np
import pytest
import torch
from numba import njit

from kernels import attention_problems as hard
from kernels.attention_problems import Problem, attend, row
from rankone.kernels.compiled.exponential import exponential

UNIT = 2.0**-52
CUTOFF = 40.0  # as docs/attention.md promises
LONG = np.longdouble  # 64 bits of mantissa: eleven more
pytestmark = pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="no extended precision here")

whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


def extended(problem, grad):
    """The result and the three gradients, each with the sum of the sizes of its terms."""
    y, x, u = (part.numpy().astype(LONG) for part in problem[:3])
    g, largest = grad.numpy().astype(LONG), np.abs(u).max()
    seen = np.tri(len(y), len(x), 0 if problem.causal else len(x), dtype=bool)
    if problem.mask is not None:
        seen = seen & problem.mask.numpy()
    some = seen.any(1, keepdims=True)
    high, low = np.where(seen, x, -np.inf).max(1), np.where(seen, x, np.inf).min(1)
    end = np.where(some, np.where(y >= 0, high, low)[:, None], 0)
    distance = np.where(seen, x - end, 0)
    weights = np.where(seen, np.exp(y[:, None] * distance), 0)
    p = weights / np.where(some, weights.sum(1, keepdims=True), 1)
    out = p @ u
    off, gy = u - out[:, None], (g * y)[:, None]
    return {
        "result": (out, largest),
        "query": (g * (p * off * distance).sum(1), abs(g) * (p * abs(distance)).sum(1) * largest),
        "key": ((gy * p * off).sum(0), (abs(gy) * p).sum(0) * largest),
        "value": (g @ p, abs(g) @ p),
    }


def assert_to_the_last_digits(problem, units):
    generator = torch.Generator().manual_seed(9)
    grad = torch.randn(len(problem.query), generator=generator, dtype=torch.float64)
    found = hard.gradients(problem, grad, "linear")
    for part, (name, (truth, size)) in zip(found, extended(problem, grad).items(), strict=True):
        off = np.abs(part.detach().numpy().astype(LONG) - truth)
        size = np.maximum(size, 1e-6 * np.max(size))  # no weight is known to less
        worst = float((off / size).max()) / UNIT
        assert worst <= units, f"{name} is off by {worst:.1f} units in the last place"


@whether_causal
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("scale", [0.1, 8.0, 40.0, 1e4], ids="{:g}".format)
def test_results_and_gradients_are_right_to_a_few_units(scale, padded, causal, monkeypatch):
    """A term less in a cell, or a node less in a group, would cost a hundred."""
    hard.small_blocks(monkeypatch, 32)
    rng = np.random.default_rng(4)
    y, x, u = (torch.from_numpy(rng.uniform(-1, 1, 400)) for _ in range(3))
    mask = torch.from_numpy(rng.random((1, 400)) < 0.7) if padded else None
    assert_to_the_last_digits(Problem(scale * y, x, u, causal, mask), 8 if scale < 100 else 16)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_octaves_that_are_left_out_change_nothing(sign):
    """Keys and queries in a few of very many octaves, so that cells are looked up, not computed."""
    rng = np.random.default_rng(5)
    x = -np.exp2(rng.choice([-40.0, -20.0, 0.0, 3.0], 300)) * rng.uniform(1, 2, 300)
    y = np.exp2(rng.choice([-6.0, 10.0, 25.0, 40.0], 300)) * rng.uniform(1, 2, 300)
    parts = (sign * y, sign * x, rng.uniform(-1, 1, 300))
    assert_to_the_last_digits(Problem(*map(torch.from_numpy, parts)), 16)


@whether_causal
def test_single_numbers_are_computed_in_double(causal):
    rng = np.random.default_rng(6)
    parts = (torch.from_numpy(rng.normal(size=300).astype(np.float32)) for _ in range(3))
    single = Problem(*parts, causal)
    exact = attend(single.to(torch.float64), "linear").float()
    assert torch.equal(attend(single, "linear"), exact)


@pytest.mark.parametrize("n", [3, 1000, 100_000])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_keys_count_until_all_of_them_together_are_beyond_rounding(n, sign):
    """The value of the extreme key is 0, all others lie where an octave begins, with scores of
    CUTOFF + log n - 1: together they weigh e^(1 - CUTOFF), and may not be left out."""
    distance = 48.0  # 16 is the origin for queries of 1/2 to 1, and 16 + 48 a power of two
    y = (CUTOFF + math.log(n) - 1) / distance
    scale = 2.0 ** math.frexp(y)[1]
    key = torch.full((n,), -distance / scale, dtype=torch.float64)
    key[0], key[1] = 0.0, -4 * distance / scale
    value = torch.ones(n, dtype=torch.float64)
    value[:2] = 0.0
    found = attend(Problem(row(sign * y * scale), sign * key, value), "linear").item()
    expected = (n - 2) * math.exp(-y * distance)
    assert abs(found - expected) <= math.exp(-CUTOFF)
    assert expected > 0.8 * math.exp(1 - CUTOFF) * (n - 2) / n


@pytest.mark.parametrize("q", [3, 1000, 100_000])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_queries_count_until_all_of_them_together_are_beyond_rounding(q, sign):
    """The same for a gradient, which is a sum over queries: those that lie where an octave begins
    have scores of CUTOFF + log q - 1 with the key that is neither the extreme nor the other end."""
    y = 48.0  # 16 is the origin for keys that are 1/2 to 1 apart
    distance = (CUTOFF + math.log(q) - 1) / y
    scale = 2.0 ** math.frexp(2.5 * distance)[1]
    key = sign * row(0.0, -distance, -2.5 * distance) * scale
    value = torch.zeros(3, dtype=torch.float64)
    query = torch.full((q,), sign * y / scale, dtype=torch.float64)
    found = hard.gradients(Problem(query, key, value), torch.ones(q), "linear")[3][1].item()
    expected = q * math.exp(-y * distance)
    assert abs(found - expected) <= math.exp(-CUTOFF)
    assert expected > 0.8 * math.exp(1 - CUTOFF)


@njit
def exponentials(z):
    out = np.empty_like(z)
    for i in range(len(z)):
        out[i] = exponential(z[i])
    return out


def test_the_exponential_is_right_to_a_unit_in_the_last_place():
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.uniform(-707, 0, 3000), rng.uniform(-3, 3, 3000), [0.0, -1e-300]])
    off = np.abs(exponentials(z) / np.exp(z.astype(LONG)) - 1)
    assert off.max() <= 1.4 * UNIT


@pytest.mark.parametrize("side", [-1e-4, 1e-4])
def test_the_exponential_is_not_biased_where_its_series_is_longest(side):
    """Half way between multiples of log 2; the last term makes three quarters of a unit there."""
    z = (np.arange(-1020, 0) + 0.5 + side) * math.log(2)
    off = exponentials(z) / np.exp(z.astype(LONG)) - 1
    assert abs(off.mean()) <= 0.2 * UNIT


def test_the_exponential_of_what_is_far_below_is_zero():
    assert exponentials(np.array([-708.0, -1e6, -1e300, -math.inf])).tolist() == [0.0] * 4
    assert exponentials(np.array([math.nextafter(-708.0, 0.0)]))[0] == pytest.approx(math.exp(-708))
