"""The bound: never below the error, attained by an isometry, guaranteed only if it is."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest

from rankone import approximate
from rankone.approximation import FUNCTIONS, named_function
from rankone.approximation.bound import bound
from rankone.approximation.build import Built, Kind, build
from rankone.approximation.function import Target
from rankone.approximation.functions import Modulus, Named
from rankone.approximation.grid import Grid
from rankone.approximation.verify import run
from rankone.errors import FunctionError, SettingError

POWERS = (1.0, 1.5, 2.0, 3.0, 6.0)
ORDERS: tuple[Kind, ...] = ("constant", "linear")
POINTS = 1000


def points(grid: Grid, seed: int) -> Any:
    size = (POINTS, grid.n, grid.d)
    return np.random.default_rng(seed).uniform(grid.low, grid.high, size)


def check_bound(named: Named, built: Built, grid: Grid, x: Any) -> None:
    """For every p, the mean of |f - g|_p^p over points is below the bound, up to its noise."""
    f, g = named.function(x), run(built, x)
    for p in POWERS:
        power = (np.abs(f - g) ** p).sum((1, 2)) * grid.volume_root(1)
        noise = 4 * power.std() / np.sqrt(len(x))
        most = bound(built, grid, named.modulus, outputs=f.shape[2], p=p, guaranteed=True)
        assert all(part >= 0 for part in most.parts.values())
        assert most.total == pytest.approx(sum(most.parts.values()))
        assert power.mean() - noise <= most.total**p, (p, grid)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bound_is_above_the_error(name: str, order: Kind, wide: bool) -> None:
    """Everywhere: n, d, grids, boxes, all p; with ramps as narrow and as wide as they may be."""
    recipe = FUNCTIONS[name]
    box = (-2.0, 3.0) if wide else (0.0, 1.0)
    for seed, (n, d, cells) in enumerate(product((1, 2, 3), (1, 2), (1, 2, 5))):
        if n < recipe.least_n or (cells**d) ** n > 700:
            continue
        low, high = (np.full(d, end) for end in box)
        grid = Grid(cells, n, low, high, positions=recipe.positions)
        named = named_function(name, n=n, low=low, high=high, seed=seed)
        x = points(grid, seed)
        target = Target(named.function, name, named.function(x).shape[2])
        built = build(target, grid, order, 0.5 / cells if wide else None, lambda *_: None)
        check_bound(named, built, grid, x)


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bound_is_above_what_is_measured(name: str, turn: int) -> None:
    """Also source by source; the lower end of the interval, as the bound may be attained."""
    case = 2 * list(FUNCTIONS).index(name) + turn
    n, d, cells = [(2, 1, 5), (3, 1, 4), (2, 2, 3), (3, 2, 2), (2, 1, 9)][case // 3 % 5]
    result = approximate(
        name,
        n=n,
        d=d,
        domain=[(0.0, 1.0), (-2.0, 3.0), (0.5, 0.75)][case % 3],
        grid=cells,
        p=POWERS[case % 5],
        readout=ORDERS[case % 2],
        positions=FUNCTIONS[name].positions or case % 7 == 0,
        delta=[None, None, 0.01, 0.01][case % 4],
        samples=1024,
        seed=case,
    )
    noise = result.interval[1] - result.interval[0]
    assert result.bound.guaranteed
    assert result.interval[0] <= result.bound.total
    for source, measured in result.measured.sources.items():
        assert measured.error <= result.bound.parts[source] + noise


@pytest.mark.parametrize("cells", [3, 5, 6, 11])
def test_bound_holds_for_teeth_as_wide_as_cells(cells: int) -> None:
    """f is 0 at every centre: all levels are equal, and nothing of the bound is the range of f."""
    grid = Grid(cells, 1, np.zeros(1), np.ones(1))
    named = Named("teeth", lambda x: np.abs(x * cells % 1 - 0.5) / cells, Modulus(1.0))
    for delta in (None, 0.5 / cells):
        built = build(Target(named.function, "teeth", 1), grid, "constant", delta, lambda *_: None)
        check_bound(named, built, grid, points(grid, cells))


def test_bound_of_an_isometry_is_its_error() -> None:
    """d_2 = sqrt(n/12 (h_1^2 + h_2^2) volume) for f(X) = X: nothing is given away."""
    low, high, D, n = np.array([-1.0, 0.0]), np.array([1.0, 0.5]), 4, 2
    result = approximate(lambda x: x, n=n, d=2, domain=(low, high), grid=D, lipschitz=1)
    exactly = np.sqrt(n / 12 * ((2 / D) ** 2 + (0.5 / D) ** 2) * (2 * 0.5) ** n)
    parts = result.bound.parts
    assert np.hypot(parts["steps"], parts["repeated"]) == pytest.approx(exactly, rel=1e-12)
    share = parts["repeated"] ** 2 / (parts["steps"] ** 2 + parts["repeated"] ** 2)
    assert share == pytest.approx(1 / D**2)
    assert parts["ramps"] < 1e-4 * exactly


@pytest.mark.parametrize(("seed", "samples"), [(0, 256), (42, 256), (0, 1 << 16), (3, 1 << 16)])
def test_a_bound_that_is_attained_is_no_failure(seed: int, samples: int) -> None:
    """f(x) = x on one cell: error and bound are the same number, and sampling is not exact.

    One seed in forty puts the bound just below the 95 percent interval; 42 is such a seed.
    """
    result = approximate(lambda x: x, n=1, grid=1, lipschitz=1, seed=seed, samples=samples)
    assert result.bound.guaranteed
    assert result.ok


def test_bound_is_guaranteed_only_with_a_constant() -> None:
    def f(x: Any) -> Any:
        return np.sin(x)

    seen, known = (approximate(f, n=2, grid=4, lipschitz=L, samples=1024) for L in (None, 1.0))
    named = approximate("softmax", n=2, grid=4, samples=1024)
    assert [r.to_json()["bound_guaranteed"] for r in (seen, known, named)] == [False, True, True]
    assert 0 < seen.bound.total <= known.bound.total  # what was seen is no more than what can be
    assert seen.ok


@pytest.mark.parametrize("readout", ORDERS)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (3, 1), (2, 2)])
def test_a_constant_that_is_too_small_is_refused_with_the_input(
    n: int, d: int, readout: Kind
) -> None:
    def f(x: Any) -> Any:
        return 3 * x + np.cos(x)  # slopes from 3 - sin 3 to 3 + sin 1

    least = 3.5
    with pytest.raises(FunctionError, match=r"Lipschitz constant 3\.5") as caught:
        approximate(
            f, n=n, d=d, domain=(-1, 3), grid=4, readout=readout, lipschitz=least, samples=4096
        )
    text = caught.value.what
    x = np.array(json.loads(text[text.index("[[") : text.index("]]") + 2]))
    assert x.shape == (n, d)
    assert (x >= -1).all()
    assert (x <= 3).all()
    centre = -1 + np.floor(x + 1) + 0.5  # cells have size 1
    ratio = np.linalg.norm(f(x) - f(centre)) / np.linalg.norm(x - centre)
    assert ratio > least
    assert f"{ratio:.6g} times" in text
    assert "larger constant" in str(caught.value.remedy)


@pytest.mark.parametrize("cells", [10, 1000])
@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_the_right_constant_is_not_refused_for_rounding(cells: int, shift: float) -> None:
    """f(x) = 3 x + b has slope 3 everywhere, in float64 a bit more between points close by."""
    result = approximate(lambda x: 3 * x + shift, n=1, grid=cells, lipschitz=3)
    assert result.bound.guaranteed


@pytest.mark.parametrize("constant", [-1.0, float("inf"), float("nan")])
def test_what_is_no_constant_is_refused(constant: float) -> None:
    with pytest.raises(SettingError):
        approximate(lambda x: x, n=1, grid=2, lipschitz=constant, samples=256)


def test_a_hoelder_bound_falls_like_the_root_of_the_grid() -> None:
    """For p = 2 up to how it is split: sqrt(steps^2 + repeated^2) is that of the whole domain."""
    coarse, fine = (
        approximate("root-distance", n=2, grid=cells, samples=256).bound.parts for cells in (4, 16)
    )
    ratio = np.hypot(coarse["steps"], coarse["repeated"]) / np.hypot(
        fine["steps"], fine["repeated"]
    )
    assert ratio == pytest.approx(2, rel=1e-12)
