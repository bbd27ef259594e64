"""`approximate` with odd sizes, domains and errors asked for; and what its result can do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rankone import approximate, load_approximation
from rankone.approximation import FUNCTIONS, Approximation, converge, draw_plots
from rankone.approximation.approximate import find_grid, next_grid
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.convergence import Convergence
from rankone.approximation.problem import largest_grid
from rankone.approximation.target import Target
from rankone.arrays import Floats
from rankone.errors import FunctionError, PrecisionError, SizeError


def centred(x: Floats) -> Floats:
    return np.asarray(x - x.mean(-2, keepdims=True))


def small(f: Any = centred, **settings: Any) -> Approximation:
    return approximate(f, **{"n": 2, "samples": 1024, **settings})


@pytest.mark.parametrize("readout", ["constant", "linear"])
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "grid"),
    [(1, 1, 1), (1, 1, 33), (1, 3, 5), (2, 1, 1), (2, 1, 7), (2, 1, 33), (2, 2, 3), (3, 1, 7)],
)
def test_sizes(readout: Any, positions: bool, n: int, d: int, grid: int) -> None:
    result = small(n=n, d=d, grid=grid, readout=readout, positions=positions)
    assert result.ok
    assert result.error <= result.bound.total
    tokens = grid**d
    centres = result.grid.centres(np.random.default_rng(0).integers(tokens, size=(20, n)))
    np.testing.assert_allclose(result(centres), centred(centres), rtol=0, atol=1e-12)
    json.dumps(result.to_json(), allow_nan=False)


@pytest.mark.parametrize(("grid", "positions"), [(1, False), (2, True), (3, False)])
def test_twelve_tokens(grid: int, positions: bool) -> None:
    result = small(n=12, grid=grid, positions=positions)
    assert result.ok
    # Tokens are off by span / (2 sqrt(3) D) each, independently, and 11 of 12 dimensions count.
    assert result.error == pytest.approx(np.sqrt(11 / 12) / grid, rel=0.02)


@pytest.mark.parametrize("domain", [(-1e6, 1e6), (1, 1 + 1e-9), (1e6, 1e6 + 1), (0, 1e-140)])
def test_the_error_scales_with_the_domain(domain: tuple[float, float]) -> None:
    span = domain[1] - domain[0]
    unit, result = small(grid=8), small(grid=8, domain=domain)
    # n = 2, p = 2: d_p is span^(n d / p) times the span of f, that is span^2.
    assert result.error == pytest.approx(unit.error * span**2, rel=1e-4, abs=0)


def test_a_box_of_its_own_for_each_coordinate() -> None:
    result = small(n=1, f=lambda x: x, d=2, domain=((0, -1), (1, 5)), grid=4)
    sides = np.array([1, 6]) / 4
    assert result.error == pytest.approx(np.sqrt((sides**2).sum() / 12 * 6), rel=1e-2)


@pytest.mark.parametrize(("size", "p"), [(1e-170, 2.0), (1e160, 2.0), (1.0, 1000.0)])
def test_powers_that_leave_the_range_of_floats(size: float, p: float) -> None:
    result = small(lambda x: size * x, n=1, grid=8, p=p)
    assert np.isfinite(result.error)
    worst = size / 16
    assert result.measured.worst.deviation == pytest.approx(worst, rel=1e-6, abs=0)
    assert result.error == pytest.approx(worst * (1 / (p + 1)) ** (1 / p), rel=0.02, abs=0) or p > 2
    json.dumps(result.to_json(), allow_nan=False)


def test_epsilon_is_not_met_by_underflow() -> None:
    result = small(lambda x: 1e-170 * x, n=1, epsilon=1e-171)
    x = np.random.default_rng(0).random((4096, 1, 1))
    off = (result(x) - 1e-170 * x) * 1e170
    assert np.sqrt((off**2).mean()) <= 0.1


@pytest.mark.parametrize("epsilon", [10.0, 0.05, 0.011])
def test_epsilon_is_reached(epsilon: float) -> None:
    result = small("softmax", epsilon=epsilon)
    assert result.ok
    assert result.interval[1] <= epsilon
    assert all(error > epsilon or cells < result.grid.cells for cells, error in result.tried)


def test_epsilon_out_of_reach_is_said_early_with_what_was_reached() -> None:
    began = time.perf_counter()
    with pytest.raises(SizeError, match="out of reach") as refused:
        small(epsilon=1e-9, memory=1e-2)
    assert "the error is 0.14 with grid 2" in str(refused.value)
    assert time.perf_counter() - began < 10


def test_epsilon_out_of_reach_is_not_chased_over_large_grids() -> None:
    """No grid that fits can make 0.01 a billionth: the last of them need not be built to know."""
    asked = 0

    def counted(x: Floats) -> Floats:
        nonlocal asked
        asked += len(x)
        return centred(x)

    with pytest.raises(SizeError, match="out of reach"):
        small(counted, epsilon=1e-9, memory=0.3)
    assert asked < 100_000


def test_epsilon_tries_the_largest_grid_that_fits() -> None:
    """x^2 with planes is 0.0070 off on grid 4, 0.0017 on grid 8; what fits goes to 10 or more."""
    settings: dict[str, Any] = {"n": 1, "readout": "linear"}
    memory = next(
        size for size in range(500, 10**5, 50) if _fits(10, memory=size / 1e9, **settings)
    )
    result = small(np.square, epsilon=0.0019, memory=memory / 1e9, **settings)
    assert result.grid.cells <= 10


def _fits(cells: int, **settings: Any) -> bool:
    try:
        small(np.square, grid=cells, **{**settings, "samples": 256})
    except SizeError:
        return False
    return True


@dataclass(frozen=True)
class Told:
    """As much of a problem as the search for a grid looks at; errors come from a formula."""

    error: Callable[[int], float]
    readout: str = "constant"
    grid: CellGrid = field(default_factory=lambda: CellGrid(1, 2, np.zeros(1), np.ones(1)))
    target: Target = field(default_factory=lambda: Target(centred, "f", 1))
    memory: float = 1e6
    asked: list[int] = field(default_factory=list)

    @property
    def linear(self) -> bool:
        return self.readout == "linear"

    def solve(self, cells: int, _tried: object) -> SimpleNamespace:
        self.asked.append(cells)
        error = self.error(cells)
        return SimpleNamespace(error=error, interval=(0.9 * error, 1.1 * error), cells=cells)

    def search(self, epsilon: float) -> Any:
        return find_grid(self, epsilon)  # type: ignore[arg-type]

    @property
    def most(self) -> int:
        giant = replace(self.grid, cells=1 << 31)
        return largest_grid(giant, 1, linear=self.linear, memory=self.memory)


@pytest.mark.parametrize(("readout", "fastest"), [("constant", 1.2), ("linear", 3.0)])
def test_epsilon_is_given_up_where_no_rate_would_reach_it(readout: str, fastest: float) -> None:
    """After the first error, 1 on grid 2: it falls no faster than with this power of the grid."""
    most = Told(lambda _: 1.0, readout).most
    limit = (2 / most) ** fastest
    for epsilon, tries in ((0.999 * limit, 1), (1.001 * limit, 2)):
        told = Told(lambda cells: 2.0 / cells, readout)
        with pytest.raises(SizeError, match="out of reach: the error is 1 with grid 2"):
            told.search(epsilon)
        assert min(len(told.asked), 2) == tries


def test_an_error_that_no_longer_falls_is_given_up_beyond_grid_8() -> None:
    """Though it is within epsilon, the upper end of its interval is not."""
    told = Told(lambda _: 1.0)
    with pytest.raises(SizeError, match="out of reach"):
        told.search(1.05)
    assert told.asked == [2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("tried", "epsilon", "cells"),
    [
        ([(2, 0.4)], 0.1, 9),  # at rate 1: 8, and 3 percent more
        ([(2, 0.4), (8, 0.1)], 0.05, 17),  # 16, and 3 percent more
        ([(2, 0.4), (4, 0.1)], 0.025, 9),  # at rate 2: 8
        ([(2, 0.4), (4, 0.39)], 0.195, 17),  # never below rate 1/2: 16
        ([(2, 0.4), (4, 0.5)], 0.25, 17),
        ([(2, 0.4)], 1e-6, 32),  # 16 times as many at most
    ],
)
def test_the_next_grid_is_where_the_rate_leads(
    tried: list[tuple[int, float]], epsilon: float, cells: int
) -> None:
    assert next_grid(tried, epsilon) == cells


def test_the_largest_grid_is_tried_once() -> None:
    """There the error is within epsilon, but not the upper end of its interval."""
    most = Told(lambda _: 1.0).most
    told = Told(lambda cells: most / cells)
    with pytest.raises(SizeError, match=f"1 with grid {most}; the largest grid that"):
        told.search(1.05)
    assert told.asked.count(most) == 1
    assert told.search(1.2).cells < most


def test_epsilon_where_only_a_coarse_grid_fits() -> None:
    assert small(np.zeros_like, n=12, d=2, epsilon=0.1, memory=0.1).error == 0.0


def test_epsilon_beyond_precision_says_what_was_reached() -> None:
    with pytest.raises((SizeError, PrecisionError), match="out of reach") as refused:
        small(n=12, epsilon=1e-3, memory=0.2, samples=256)
    assert "the error is" in str(refused.value)


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_integers_of_numpy(kind: type) -> None:
    result = small(n=kind(2), d=kind(1), grid=kind(4), samples=kind(1024), seed=kind(0))
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["grid"] == 4
    with pytest.raises(SizeError):
        small(n=kind(5), grid=kind(30_000))


def test_the_same_seed_gives_the_same_figures() -> None:
    one, two = small("random-smooth", grid=4, seed=3), small("random-smooth", grid=4, seed=3)
    first, second = one.to_json(), two.to_json()
    del first["seconds"], second["seconds"]
    assert first == second
    assert small("random-smooth", grid=4, seed=4).error != one.error


@pytest.mark.parametrize("name", FUNCTIONS)
def test_built_in_functions(name: str) -> None:
    positions = FUNCTIONS[name].positions
    result = small(name, n=3, grid=4, domain=(-3.0, 2.0), positions=positions)
    assert result.ok
    assert result.bound.guaranteed


def test_progress_is_told() -> None:
    told: list[tuple[str, float]] = []
    small(grid=4, progress=lambda stage, share: told.append((stage, share)))
    assert len({stage for stage, _ in told}) > 4
    assert all(0 <= share <= 1 for _, share in told)


@pytest.fixture(scope="module")
def result() -> Approximation:
    return small(d=2, grid=4)


def test_it_is_called_like_f(result: Approximation) -> None:
    x = np.random.default_rng(0).random((5, 2, 2))
    wanted = result(x)
    assert wanted.shape == (5, 2, 2)
    assert np.abs(wanted - centred(x)).max() <= 0.25
    np.testing.assert_array_equal(result(x[0]), wanted[0])
    np.testing.assert_array_equal(result(x.tolist()), wanted)
    np.testing.assert_array_equal(result(torch.from_numpy(x)), wanted)
    np.testing.assert_array_equal(result(x.reshape(1, 5, 2, 2)), wanted[None])
    assert result(x[:0]).shape == (0, 2, 2)
    assert result([[0, 1], [1, 0]]).shape == (2, 2)


def test_it_takes_arrays_however_they_lie_in_memory(result: Approximation) -> None:
    x = np.random.default_rng(0).random((5, 2, 2))
    np.testing.assert_array_equal(result(x[:, ::-1]), result(x)[:, ::-1])
    np.testing.assert_array_equal(result(np.asfortranarray(x)), result(x))
    x.flags.writeable = False
    assert result(x).shape == (5, 2, 2)


@pytest.mark.parametrize("outside", [-1e-9, 1 + 1e-9, 7.0, float("nan"), float("inf")])
def test_it_refuses_what_is_outside_of_the_domain(result: Approximation, outside: float) -> None:
    """As the network does by itself; and takes the corners."""
    x = np.ones((4, 2, 2))
    assert result(x).shape == result(0 * x).shape == x.shape
    x[2, 1, 0] = outside
    for network in (result, result.network, result.network.expand()):
        with pytest.raises(FunctionError, match="outside of the domain") as refused:
            network(torch.from_numpy(x))
        assert f"[{outside}, 1.0]" in str(refused.value)
    with pytest.raises(FunctionError):
        result.network.contexts(torch.from_numpy(x))


@pytest.mark.parametrize("domain", [(0.1, 0.7), (-1 / 3, 1e-3), (1e6, 1e6 + 1 / 3)])
def test_rounding_does_not_lead_out_of_the_domain(domain: tuple[float, float]) -> None:
    """Neither are the ends refused, nor is f asked beyond them."""

    def f(x: Floats) -> Floats:
        assert (x >= domain[0]).all()
        assert (x <= domain[1]).all()
        return x

    result = small(f, grid=3, domain=domain, samples=256)
    assert np.isfinite(result(np.array([[domain[0]], [domain[1]]]))).all()


@pytest.mark.parametrize(
    "x",
    [
        *(1.0, None, "one", [[1, 2], [3]]),
        *(np.ones(2), np.ones((2, 1)), np.ones((2, 3)), np.ones((3, 2)), np.ones((4, 3, 2))),
        torch.ones(2, 2, requires_grad=True),
    ],
    ids=str,
)
def test_it_refuses_what_f_does_not_take(result: Approximation, x: Any) -> None:
    """Another n or d must not be broadcast to an answer."""
    with pytest.raises(FunctionError, match="2, 2"):
        result(x)


def test_defaults_are_those_of_the_command() -> None:
    result = approximate(centred, samples=256)
    assert (result.grid.n, result.grid.d, result.grid.cells) == (2, 1, 32)


def test_the_figures_of_a_table() -> None:
    """Slope by least squares of all rows with an error; ratios from row to row."""
    row = small(n=1, grid=2)

    def told(*errors: float) -> Convergence:
        cells = [2, 4, 16, 32][: len(errors)]
        return Convergence(
            tuple(
                replace(
                    row, grid=replace(row.grid, cells=D), measured=replace(row.measured, error=e)
                )
                for D, e in zip(cells, errors, strict=True)
            )
        )

    assert told(0.4, 0.1).slope == pytest.approx(-2.0)
    assert told(0.4, 0.2, 0.05).slope == pytest.approx(-1.0)
    assert told(0.0, 0.1, 0.025).slope == pytest.approx(-1.0)
    assert told(0.0, 0.1, 0.0).slope is None
    assert told(0.4, 0.1, 0.0, 0.2).ratios == [None, 4.0, None, 0.0]
    table = told(0.4, 0.1).to_json()
    names = {"grid", "error", "interval", "bound", "context_ids", "hidden_units", "sources"}
    assert [set(each) for each in table["rows"]] == [names | {"ratio"}] * 2
    assert [each["ratio"] for each in table["rows"]] == [None, 4.0]
    assert [each["grid"] for each in table["rows"]] == [2, 4]


def test_times_of_a_table_are_those_of_its_rows() -> None:
    table = converge(centred, [2, 4], n=1, samples=256)
    assert list(table.seconds) == ["build", "verify", "measure", "total"]
    for stage, seconds in table.seconds.items():
        assert seconds == sum(row.seconds[stage] for row in table.rows) > 0
    assert table.to_json()["seconds"] == table.seconds
    assert table.to_json()["ok"] is table.ok is True


def test_the_finest_grid_of_a_table_is_saved(tmp_path: Path) -> None:
    converge(centred, [2, 3, 5], n=1, samples=256).save(tmp_path / "home", plots=False)
    assert load_approximation(tmp_path / "home").grid.cells == 5


def test_pictures(tmp_path: Path) -> None:
    table = converge(centred, [2, 4], n=2, samples=256)
    saved = {"network.safetensors", "approximation.json"}
    plots = {f"{name}.{kind}" for name in ("convergence", "picture") for kind in KINDS}
    assert {path.name for path in table.save(tmp_path)} == saved | plots
    assert {path.name for path in table.save(tmp_path, plots=False)} == saved
    picture = {f"picture.{kind}" for kind in KINDS}
    assert {path.name for path in table.rows[-1].save(tmp_path)} == saved | picture
    assert draw_plots(tmp_path, small(n=3, grid=2)) == []
    # There is no line to draw on logarithmic axes if every error is 0.
    nothing = converge(np.zeros_like, [2, 4], n=3, samples=256)
    assert draw_plots(tmp_path, nothing.rows[-1], nothing) == []


KINDS = ("png", "svg")


@pytest.mark.parametrize("p", [1.5, 7.0])
def test_the_error_in_p(p: float) -> None:
    """x on [0, 1], n = 1, is off by u / D, u uniform on [-1/2, 1/2]."""
    result = small(lambda x: x, n=1, grid=8, p=p, lipschitz=1.0, samples=1 << 16)
    assert result.error == pytest.approx((1 / (p + 1)) ** (1 / p) / 16, rel=1e-3)
    assert result.ok


def test_a_bound_that_is_attained_with_positions_is_no_failure() -> None:
    """For an isometry error and bound are equal: chance must not put the one above the other."""
    assert small("reverse", grid=8, positions=True).ok


def test_log_mean_exp_is_finite_wherever_it_is_defined() -> None:
    assert small("log-mean-exp", grid=4, domain=(-1e4, 1e4)).ok
