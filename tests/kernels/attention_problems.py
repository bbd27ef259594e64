"""Problems for rank1_attention that are hard on a fast method, and what a right answer is.

Accuracy is relative to the natural size of each quantity: that of the values for the result, for
gradients the sum of absolute values that a cancellation would leave rounding errors of.
"""

import importlib.util
import sys
from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np
import torch
from hypothesis import strategies as st

from rankone.kernels import rank1_attention
from rankone.kernels.compiled import batch

EXACT, SINGLE = 1e-14, 2e-7  # float64, and float32 against the same numbers in float64
LARGEST = 1.797e308  # as far as float64 goes


def _scattered(rng, n):
    return rng.normal(size=n)


def _lone(rng, n):
    x = rng.normal(size=n)
    x[rng.integers(n)] = 1e3
    return x


def _from_few(rng, n):
    return rng.normal(size=3)[rng.integers(0, 3, n)]


def _over_all_orders(rng, n):
    return 10.0 ** rng.uniform(-320, 300, n) * rng.choice([-1.0, 1.0], n)


SHAPES = {
    "scattered": _scattered,
    "zero": lambda _, n: np.zeros(n),
    "equal": lambda rng, n: np.full(n, rng.normal()),
    "rising": lambda rng, n: np.sort(rng.normal(size=n)),
    "falling": lambda rng, n: -np.sort(rng.normal(size=n)),
    "alternating": lambda _, n: np.where(np.arange(n) % 2, 1.0, -1.0),
    "positive": lambda rng, n: np.abs(rng.normal(size=n)),
    "negative": lambda rng, n: -np.abs(rng.normal(size=n)),
    "few different": _from_few,
    "ties at the ends": lambda rng, n: rng.integers(-2, 3, n).astype(float),
    "one dominant": _lone,
    "clustered": lambda rng, n: rng.integers(-1, 2, n) + 1e-9 * rng.normal(size=n),
    "far from 0": lambda rng, n: 1e8 + rng.normal(size=n),
    "over eight orders": lambda rng, n: 10.0 ** rng.uniform(-8, 8, n) * rng.choice([-1, 1], n),
    "over all orders": _over_all_orders,
}
SCALES = [1e-320, 1e-308, 1e-100, 1e-5, 1.0, 30.0, 1e3, 1e6, 1e12, 1e50, 1e100, 1e150, 1e290]
VALUES = {
    "scattered": _scattered,
    "equal": lambda _, n: np.ones(n),
    "far from 0": lambda rng, n: 1e6 + rng.normal(size=n),
    "tiny": lambda rng, n: 1e-200 * rng.normal(size=n),
    "huge": lambda rng, n: 1e5 * rng.normal(size=n),
}


class Problem(NamedTuple):
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    causal: bool = False
    mask: torch.Tensor | None = None

    def to(self, dtype):
        limit = torch.finfo(dtype).max
        numbers = (x.double().clamp(-limit, limit).to(dtype) for x in self[:3])
        return Problem(*numbers, *self[3:])


def row(*entries):
    return torch.tensor(entries, dtype=torch.float64)


def column(shape, scale, n, rng, limit=1e295):
    """Numbers of one of the SHAPES; `limit` keeps them where all methods must be exact."""
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.clip(SHAPES[shape](rng, n) * scale, -limit, limit))


@st.composite
def problems(draw, sizes=(1, 2, 3, 5, 17, 64, 200), causal=None):
    """Queries and keys of every shape and size, together or apart."""
    n = draw(st.sampled_from(sizes))
    q = draw(st.sampled_from([n, *sizes]))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    query, key = (
        column(draw(st.sampled_from(list(SHAPES))), draw(st.sampled_from(SCALES)), size, rng)
        for size in (q, n)
    )
    value = torch.from_numpy(VALUES[draw(st.sampled_from(list(VALUES)))](rng, n))
    kept = draw(st.sampled_from([None, 0.1, 0.5, 0.9]))
    mask = None if kept is None else torch.from_numpy(rng.random((1, n)) < kept)
    return Problem(query, key, value, draw(st.booleans()) if causal is None else causal, mask)


def random_problem(n, scale, *, q=None, causal=False, padded=False, seed=0):
    """Gaussian, with scores of about `scale`."""
    rng = np.random.default_rng(seed)
    q = n if q is None else q
    query, key, value = (torch.from_numpy(rng.normal(size=size)) for size in (q, n, n))
    mask = torch.from_numpy(rng.random((1, n)) < 0.7) if padded else None
    return Problem(scale * query, key, value, causal, mask)


def attend(problem, method, **more):
    query, key, value, causal, mask = problem
    return rank1_attention(query, key, value, causal=causal, mask=mask, method=method, **more)


def largest(x):
    return x.detach().abs().max().item() if x.numel() else 0.0


def gradients(problem, grad, method):
    """The result, then the gradients of query, key and value."""
    inputs = tuple(x.detach().clone().requires_grad_() for x in problem[:3])
    out = attend(Problem(*inputs, *problem[3:]), method)
    return out, *torch.autograd.grad(out, inputs, grad.to(out.dtype))


def assert_within(found, expected, allowed):
    assert found.shape == expected.shape
    off = largest(found.double() - expected.double())
    assert off <= allowed, f"off by {off:g}, allowed are {allowed:g}"  # NaN is not <=


def assert_as_direct(problem, tolerance=EXACT):
    """The linear method agrees with the direct one, which is given the numbers in float64."""
    found = attend(problem, "linear")
    assert found.dtype == problem.query.dtype
    expected = attend(problem.to(torch.float64), "direct")
    assert_within(found, expected, tolerance * largest(problem.value) + floor(problem))


def assert_gradients_as_direct(problem, tolerance=EXACT, seed=0):
    shape = attend(problem, "direct").shape
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    grad = grad.to(problem.query.dtype)
    found = gradients(problem, grad, "linear")
    expected = gradients(problem.to(torch.float64), grad, "direct")
    query, key, value = problem.to(torch.float64)[:3]
    total = grad.double().abs().sum().item()
    distance = largest(key.amax(-1) - key.amin(-1))
    sizes = (1.0, distance * largest(grad), largest(query) * total)  # times the values
    sizes = (*(size * largest(value) for size in sizes), total)
    for part, truth, size in zip(found, expected, sizes, strict=True):
        assert part.dtype == problem.query.dtype
        assert_within(part, truth, tolerance * size + max(1.0, total) * floor(problem))


def floor(problem):
    """Below, numbers have few digits or none."""
    return 1e8 * torch.finfo(problem.query.dtype).tiny * max(1.0, largest(problem.value))


def exact_mean(problem):
    """The fraction itself: exponents as fractions of integers, their exponentials to 50 digits."""
    y, x, u = ([Fraction(number) for number in part.tolist()] for part in problem[:3])
    out = []
    with mpmath.workdps(50):
        for k, slope in enumerate(y):
            seen = [
                i
                for i in range(len(x))
                if (not problem.causal or i <= k) and (problem.mask is None or problem.mask[0, i])
            ]
            best = max((slope * x[i] for i in seen), default=Fraction(0))
            weights = [_exponential(slope * x[i] - best) for i in seen]
            above = mpmath.fsum(
                w * mpmath.mpf(u[i].numerator) / u[i].denominator
                for w, i in zip(weights, seen, strict=True)
            )
            out.append(float(above / mpmath.fsum(weights)) if seen else 0.0)
    return row(*out)


def _exponential(z):
    return mpmath.exp(mpmath.mpf(z.numerator) / z.denominator) if z > -2000 else mpmath.mpf(0)


def small_blocks(monkeypatch, leaf=4):
    """Causal attention of many levels, with few tokens."""
    monkeypatch.setattr(batch, "LEAF", leaf)


def unchecked():
    """rank1_attention as a user gets it, without the shape checks that tests switch on."""
    fresh = []
    for name in ("direct", "batched"):
        found = importlib.util.find_spec(f"rankone.kernels.{name}")
        spec = importlib.util.spec_from_file_location(f"unchecked_{name}", found.origin)
        fresh.append(importlib.util.module_from_spec(spec))
        sys.modules[spec.name] = fresh[-1]  # the compiler looks there
        spec.loader.exec_module(fresh[-1])
    direct, batched = fresh
    batched.direct_attention = direct.direct_attention
    return batched.rank1_attention


def operator_inputs(dtype=torch.float64, *, requires_grad=True, seed=0):
    """Query (rows, q), key (rows, n) and value (rows, c, n), as the torch operators take them."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(shape, generator=generator, dtype=torch.float64)
        .to(dtype)
        .requires_grad_(requires_grad)
        for shape in ((2, 6), (2, 5), (2, 3, 5))
    )


def sizes_around(block):
    return sorted({1, block - 1, block, block + 1, 2 * block, 2 * block + 1, 5 * block + 3})
