"""The measured error against integrals in closed form, and against brute force on the ramps."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from math import gamma, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone import approximate
from rankone.approximation import Approximation
from rankone.approximation.build import build
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.measured_error import (
    SampledPoints,
    Steepest,
    _steepest,
    measure_error,
)
from rankone.approximation.target import Target

F = Fraction
POWERS = (1.0, 1.5, 2.0, 3.0, 4.0)


def uniform_moment(coefficients: list[float], p: float) -> float:
    """E |sum_j c_j u_j|^p for independent u_j, uniform on [-1/2, 1/2].

    The density of the sum is a difference, once per term, of what |t|^p integrates to J times.
    """
    c = [value for value in coefficients if value]
    J = len(c)
    total = 0.0
    for signs in itertools.product((1, -1), repeat=J):
        t = sum(sign * value / 2 for sign, value in zip(signs, c, strict=True))
        total += prod(signs) * np.sign(t) ** J * abs(t) ** (p + J)
    return float(total * gamma(p + 1) / gamma(p + J + 1) / prod(c)) if J else 0.0


@dataclass(frozen=True)
class Linear:
    """f(X)_k = A x_k + B sum_l x_l on a box, and its d_p to f at the centres of the cells."""

    n: int
    A: Any
    B: Any
    low: Any
    high: Any

    @property
    def d(self) -> int:
        return len(self.low)

    def __call__(self, x: Any) -> Any:
        return x @ self.A.T + (x @ self.B.T).sum(-2, keepdims=True)

    def power(self, p: float, cells: int) -> float:
        """d_p^p: f(X) - f(c) = f(X - c), and X - c is uniform on a cell around 0."""
        h = (self.high - self.low) / cells
        entries = 0.0
        for a, b in zip(self.A, self.B, strict=True):  # a row for each output
            own, others = ((a + b) * h).tolist(), (b * h).tolist() * (self.n - 1)
            entries += self.n * uniform_moment(own + others, p)
        return entries * float(np.prod(self.high - self.low)) ** self.n

    def approximate(self, **settings: Any) -> Approximation:
        return approximate(self, n=self.n, d=self.d, domain=(self.low, self.high), **settings)


@st.composite
def linear_maps(draw: st.DrawFn) -> Linear:
    """At most four numbers per sequence; halves, so that the closed form loses no digits."""
    n, d = draw(st.sampled_from([(n, d) for n in (1, 2, 3) for d in (1, 2) if n * d <= 4]))
    m = draw(st.integers(1, 2))
    half = st.integers(-4, 4).map(lambda number: number / 2)
    matrix = st.lists(half, min_size=m * d, max_size=m * d).map(
        lambda entries: np.reshape(entries, (m, d))
    )
    low = np.array(draw(st.lists(half, min_size=d, max_size=d)))
    span = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=d, max_size=d)))
    return Linear(n, draw(matrix), draw(matrix), low, low + span)


PAIR = Linear(2, np.array([[1.0]]), np.array([[-0.5]]), np.array([-2.0]), np.array([3.0]))


def agrees(result: Approximation, power: float, widths: float = 3.0) -> bool:
    """d_p^p = `power` lies within a few intervals around the measured one; ramps may add a bit."""
    p = result.p
    low, middle, high = (x**p for x in (result.interval[0], result.error, result.interval[1]))
    ramps = result.measured.sources["ramps"].error ** p
    return abs(middle - power) <= widths * max(high - middle, middle - low) + ramps + 1e-9 * power


def repeated_volume(grid: CellGrid) -> float:
    """1 - (1 - 1/V) (1 - 2/V) ... (1 - (n - 1)/V): the birthday problem."""
    return float(1 - prod(1 - F(i, grid.tokens) for i in range(grid.n)))


def on_ramps(result: Approximation, x: Any) -> Any:
    """By the network's own first layer, in the unit cube."""
    f1, grid = result.network.f1, result.grid
    start = f1.start[0].detach().numpy()
    z = ((x - grid.low) / grid.span)[..., None]
    return ((z >= start) & (z < start + result.delta)).any((-1, -2, -3))


def test_the_closed_form_of_uniform_moments() -> None:
    """Where other formulas are known: variance, fourth moment, the triangle's first and third."""
    assert uniform_moment([2.0], 1.0) == pytest.approx(0.5)
    assert uniform_moment([1.0, -2.0, 0.5], 2.0) == pytest.approx((1 + 4 + 0.25) / 12)
    fourth = (1 + 16) / 80 + 6 * 4 / 144
    assert uniform_moment([1.0, 0.0, -2.0], 4.0) == pytest.approx(fourth)
    assert uniform_moment([1.0, -1.0], 1.0) == pytest.approx(1 / 3)
    assert uniform_moment([1.0, -1.0], 3.0) == pytest.approx(2 / (4 * 5))


@given(f=linear_maps(), p=st.sampled_from(POWERS), cells=st.integers(1, 5), seed=st.integers(0, 9))
def test_linear_maps_agree_with_the_closed_form(f: Linear, p: float, cells: int, seed: int) -> None:
    """On any box; every cell is as far off as every other, so sources have shares as volumes."""
    result = f.approximate(grid=cells, p=p, seed=seed, samples=4096)
    power = f.power(p, cells)
    assert agrees(result, power)
    sources, repeated = result.measured.sources, repeated_volume(result.grid)
    assert sum(source.volume for source in sources.values()) == pytest.approx(1, abs=1e-9)
    assert sources["repeated"].volume == pytest.approx(repeated, abs=0.01)
    if power:
        assert sum(source.share for source in sources.values()) == pytest.approx(1, abs=1e-9)
        assert sources["repeated"].share == pytest.approx(repeated, abs=0.05)
        added = sum(source.error**p for source in sources.values())
        assert added == pytest.approx(result.error**p, rel=1e-9)


@given(
    degree=st.integers(1, 4),
    p=st.integers(1, 4),
    n=st.integers(1, 3),
    cells=st.integers(1, 6),
    low=st.integers(0, 2),
)
def test_monomials_agree_with_the_closed_form(
    degree: int, p: int, n: int, cells: int, low: int
) -> None:
    """x_k^q grows on [low, low + 2]: the sign of x^q - c^q is that of x - c."""
    h = F(2, cells)
    power = F(0)
    for t in range(cells):
        a, b = low + t * h, low + (t + 1) * h
        c = (a + b) / 2
        for left, right, sign in ((a, c, (-1) ** p), (c, b, 1)):
            for i in range(p + 1):  # (x^q - c^q)^p, term by term
                e = degree * (p - i)
                binomial = F(prod(range(p - i + 1, p + 1)), prod(range(1, i + 1)))
                term = binomial * (-(c**degree)) ** i * (right ** (e + 1) - left ** (e + 1))
                power += sign * term / (e + 1)
    result = approximate(
        lambda x: x**degree, n=n, domain=(low, low + 2), grid=cells, p=p, samples=4096
    )
    assert agrees(result, float(n * power * 2 ** (n - 1)))


@pytest.mark.parametrize("p", [1.5, 4.0])
def test_planes_on_a_parabola(p: float) -> None:
    """Off by (x - c)^2 on every cell: E = h^(2p) / (4^p (2p + 1)), times the volume 5."""
    result = approximate(
        lambda x: x**2, n=1, domain=(-2, 3), grid=8, p=p, readout="linear", samples=4096
    )
    assert agrees(result, 5 * (5 / 8) ** (2 * p) / (4**p * (2 * p + 1)))


@pytest.mark.parametrize("samples", [256, 5000])
def test_any_number_of_samples_measures_the_same(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts of 128 points."""
    monkeypatch.setattr("rankone.approximation.cell_grid.CellGrid.at_once", 128)
    result = PAIR.approximate(grid=4, samples=samples)
    assert agrees(result, PAIR.power(2, 4))
    volumes = [source.volume for source in result.measured.sources.values()]
    assert sum(volumes) == pytest.approx(1, abs=1e-9)


def test_the_interval_covers_as_often_as_it_says() -> None:
    """95 percent of seeds or nearly; a quarter of the interval would cover 40."""
    grid, target = CellGrid(3, 2, PAIR.low, PAIR.high), Target(PAIR, "f", 1)
    built = build(target, grid, "constant", None, lambda *_: None)
    truth, seeds = PAIR.power(3, 3), 24
    inside = np.zeros(2)
    for seed in range(seeds):
        found = measure_error(
            target, built, grid, p=3, samples=512, seed=seed, progress=lambda *_: None
        )
        off, half = abs(found.error**3 - truth), found.interval[1] ** 3 - found.error**3
        inside += off <= half, off <= half / 4
    assert 0.88 * seeds <= inside[0]
    assert 0.2 * seeds <= inside[1] <= 0.6 * seeds


def flat(x: Any) -> Any:
    return np.cos(3 * x) + x.sum(-2, keepdims=True)


@pytest.mark.parametrize(
    ("n", "d", "cells", "p", "readout"),
    [
        (1, 1, 8, 1, "linear"),
        (2, 1, 8, 2, "constant"),
        (3, 1, 4, 3, "linear"),
        (2, 2, 4, 2, "constant"),
    ],
)
def test_wide_ramps_agree_with_brute_force(
    n: int, d: int, cells: int, p: float, readout: Any
) -> None:
    low, high = -np.ones(d), np.arange(1.0, d + 1)
    result = approximate(
        flat, n=n, d=d, domain=(low, high), grid=cells, p=p, readout=readout, delta=0.01
    )
    assert 0.005 <= result.delta <= 0.01
    x = np.random.default_rng(5).uniform(low, high, (1 << 16, n, d))
    power = (np.abs(flat(x) - result(x)) ** p).sum((1, 2)) * result.grid.volume_root(1)
    ramps = on_ramps(result, x)
    sources = result.measured.sources
    exactly = 1 - (1 - (cells - 1) * result.delta) ** (n * d)
    assert sources["ramps"].volume == pytest.approx(exactly, rel=0.02)
    assert sources["ramps"].share > 0.02
    for measured, part in (
        (result.error, power),
        (sources["ramps"].error, np.where(ramps, power, 0.0)),
        (sources["steps"].error, np.where(ramps | repeated(result, x), 0.0, power)),
        (sources["repeated"].error, np.where(~ramps & repeated(result, x), power, 0.0)),
    ):
        noise = part.std() / np.sqrt(len(x))
        assert abs(measured**p - part.mean()) <= 4 * noise + 0.02 * part.mean()


def repeated(result: Approximation, x: Any) -> Any:
    """Two tokens in one cell; a cell goes from the end of a ramp to the start of the next."""
    grid, start = result.grid, result.network.f1.start[0].detach().numpy()
    cell = ((((x - grid.low) / grid.span)[..., None]) >= start).sum(-1)
    pairs = itertools.combinations(range(grid.n), 2)
    return np.any(
        [np.zeros(len(x), bool), *((cell[:, k] == cell[:, j]).all(-1) for k, j in pairs)], 0
    )


@pytest.mark.parametrize(("p", "delta"), [(1, None), (2, 0.05), (400, None)])
def test_the_worst_point_is_that_far_off(p: float, delta: float | None) -> None:
    """Inside the domain, off the ramps, no better than random points; |f - g|_p as it says."""
    result = approximate(flat, n=3, d=1, domain=(-1, 2), grid=4, p=p, delta=delta, samples=256)
    worst = result.measured.worst
    point = np.array([worst.point])
    assert (point >= -1).all()
    assert (point <= 2).all()
    assert not on_ramps(result, point).any()
    np.testing.assert_allclose(worst.f, flat(point)[0], rtol=1e-14)
    np.testing.assert_array_equal(worst.network, result(point)[0])
    off = (flat(point) - result(point)).ravel()
    assert worst.deviation == pytest.approx(np.linalg.norm(off, p), rel=1e-9)
    x = np.random.default_rng(6).uniform(-1, 2, (20_000, 3, 1))
    x = x[~on_ramps(result, x)]
    others = np.linalg.norm((flat(x) - result(x))[..., 0], p, axis=1)
    assert worst.deviation >= 0.99 * others.max()


def waves(x: Any) -> Any:
    """0 at the centres of 3 x 3 cells; 1 or -1 in the middle of the last cell of the first
    coordinate, at any edge of the other."""
    a, b = x[..., :1], x[..., 1:]
    return np.where(a > 2 / 3, np.sin(3 * np.pi * a) ** 2 * np.cos(3 * np.pi * b), 0.0)


def lopsided(x: Any) -> Any:
    """1 at 2/3; it falls slowly to the left of it, fast to the right."""
    return np.where(x < 2 / 3, np.exp(3 * (x - 2 / 3)), np.exp(-20 * (x - 2 / 3)))


@pytest.mark.parametrize(
    ("f", "place", "deviation"),
    [
        (lambda x: np.exp(-20 * x), [0.0], 1 - np.exp(-20 / 6)),  # the lower end of the domain
        (lambda x: np.exp(20 * (x - 1)), [1.0], 1 - np.exp(-20 / 6)),  # the upper end
        (lopsided, [2 / 3], 1 - np.exp(-20 / 6)),  # the lower end of a cell
        (lambda x: lopsided(1 - x), [1 / 3], 1 - np.exp(-20 / 6)),  # the upper end
        (waves, [5 / 6, 0.0], 1.0),
    ],
)
def test_the_worst_point_is_at_the_edge_or_in_the_middle_of_a_cell(
    f: Any, place: list[float], deviation: float
) -> None:
    worst = approximate(f, n=1, d=len(place), grid=3, samples=256).measured.worst
    assert worst.deviation == pytest.approx(deviation, rel=1e-7)
    found = np.array(worst.point[0])
    if f is waves:
        found[1] -= np.round(3 * found[1]) / 3
    np.testing.assert_allclose(found, place, atol=1e-8)


def test_a_point_at_the_centre_has_no_slope() -> None:
    """0 in the domain from -1 to 1: nothing moved, not even by rounding."""
    grid = CellGrid(1, 1, np.full(1, -1.0), np.ones(1))
    target = Target(lambda x: x, "f", 1)
    built = build(target, grid, "constant", None, lambda *_: None)
    centre = SampledPoints(target, built, grid, np.zeros((1, 1, 1)), 2.0)
    assert _steepest(target, grid, centre) == Steepest(0.0, [[0.0]])


@given(
    weights=st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    n=st.integers(1, 2),
    cells=st.integers(1, 6),
)
def test_twice_the_grid_is_better_for_growing_functions(
    weights: list[int], n: int, cells: int
) -> None:
    """In d_1, for every step function and so for every mixture of them: monotone functions."""

    def f(x: Any) -> Any:
        terms = x, x**3, np.tanh(9 * x), np.exp(x)
        return sum(weight * term for weight, term in zip(weights, terms, strict=True))

    coarse, fine = (
        approximate(f, n=n, domain=(-2, 3), grid=D, p=1, samples=4096) for D in (cells, 2 * cells)
    )
    assert fine.interval[1] < coarse.interval[0]


@pytest.mark.parametrize("scale", [2.0**-110, 2.0**110])
def test_the_error_grows_with_f(scale: float) -> None:
    """Whatever its unit: 2^-110 is about the constant of Planck."""
    one = approximate(flat, n=2, grid=4, p=10, samples=1024)
    scaled = approximate(lambda x: scale * flat(x), n=2, grid=4, p=10, samples=1024)
    assert scaled.error / scale == pytest.approx(one.error, rel=1e-9)
    assert scaled.bound.total / scale == pytest.approx(one.bound.total, rel=1e-9)
