"""The bound: never below the error, and every term of it used up by some function.

Each term has a function that comes close to it: without the term, or with half of it, the error
would be above the bound.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, ctx

from rankone import approximate
from rankone.approximation import FUNCTIONS, named_function
from rankone.approximation.build import ReadoutKind, build
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.error_bound import (
    error_bound,
    id_rounding,
    largest_stream,
    network_rounding,
    well_apart,
)
from rankone.approximation.functions import Modulus
from rankone.approximation.readouts import largest_plane
from rankone.approximation.target import EPSILON, Target
from rankone.approximation.verify import run
from rankone.errors import FunctionError, SettingError

POWERS = (1.0, 1.5, 2.0, 3.0, 6.0)
ORDERS: tuple[ReadoutKind, ...] = ("constant", "linear")
POINTS = 1000
HALF = float(np.finfo(np.float16).eps)


def points(grid: CellGrid, seed: int) -> Any:
    size = (POINTS, grid.n, grid.d)
    return np.random.default_rng(seed).uniform(grid.low, grid.high, size)


def made(
    f: Any, cells: int, n: int = 1, d: int = 1, *, readout: ReadoutKind = "constant", **more: Any
) -> tuple[Target, Any, CellGrid]:
    grid = CellGrid(cells, n, np.zeros(d), np.ones(d), more.pop("positions", False))
    target = Target(f, "f", f(np.zeros((1, n, d))).shape[2])
    return target, build(target, grid, readout, more.pop("delta", None), lambda *_: None), grid


@pytest.mark.parametrize(("order", "wide"), [("constant", True), ("linear", False)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bound_is_above_the_error(name: str, order: ReadoutKind, wide: bool) -> None:
    """n, d, grids, boxes, all p; ramps as narrow and as wide as they may be."""
    recipe = FUNCTIONS[name]
    box = (-2.0, 3.0) if wide else (0.0, 1.0)
    for seed, (n, d, cells) in enumerate(product((1, 2, 3), (1, 2), (1, 2, 5))):
        if n < recipe.least_n or (cells**d) ** n > 150:
            continue
        low, high = (np.full(d, end) for end in box)
        grid = CellGrid(cells, n, low, high, positions=recipe.positions)
        named = named_function(name, n=n, low=low, high=high, seed=seed)
        assert named.modulus is not None
        x = points(grid, seed)
        f = named.function(x)
        target = Target(named.function, name, f.shape[2])
        built = build(target, grid, order, 0.5 / cells if wide else None, lambda *_: None)
        off = np.abs(f - run(built, x))
        for p in POWERS:
            power = (off**p).sum((1, 2)) * grid.volume_root(1)
            noise = 4 * power.std() / np.sqrt(len(x))
            most = error_bound(target, built, grid, named.modulus, p=p, known=True)
            assert power.mean() - noise <= most.total**p, (p, grid)
            assert most.guaranteed


def test_the_largest_plane_of_a_single_cell() -> None:
    """At a corner: half a cell times all slopes of one output together."""

    def f(x: Any) -> Any:
        a, b = x[..., :1], x[..., 1:]
        return np.concatenate([a + 2 * b, 3 * a - 0.5 * b, -3.25 * b], -1)

    _, built, _ = made(f, 1, n=1, d=2, readout="linear")
    assert largest_plane(built.f2) == pytest.approx(0.5 * 3.5, rel=1e-8)
    assert built.height == pytest.approx(0.5 * 3.5, rel=1e-8)
    _, flat, _ = made(f, 1, n=1, d=2)
    assert (largest_plane(flat.f2), flat.height) == (0.0, 0.0)


# Cells.


@pytest.mark.parametrize(("p", "m"), [(1.0, 3), (1.5, 3), (2.0, 1), (2.0, 3)])
def test_cells_of_an_isometry_use_up_their_bound(p: float, m: int) -> None:
    """f(X) = X, three times over: all of it for p = 2, and nearly for p below."""
    low, high, D, n = np.array([-1.0, 0.0]), np.array([2.0, 3.0 if p < 2 else 0.5]), 3, 3
    root = 1 / np.sqrt(m)
    result = approximate(
        lambda x: root * np.concatenate([x] * m, -1),
        n=n,
        d=2,
        domain=(low, high),
        grid=D,
        p=p,
        lipschitz=1 + 1e-12,
        samples=1 << 12,
    )
    parts, sources = result.bound.parts, result.measured.sources
    distinct = (1 - 1 / 9) * (1 - 2 / 9)
    assert (parts["repeated"] / parts["steps"]) ** p == pytest.approx(1 / distinct - 1)
    for part in ("steps", "repeated"):
        assert 0.85 * parts[part] < sources[part].error < 1.02 * parts[part]
    assert result.error < result.bound.total * (1 + 1e-3)
    if p == 2:
        h = (high - low) / D
        exactly = np.sqrt(n / 12 * (h**2).sum() * (3 * 0.5) ** n)
        assert np.hypot(parts["steps"], parts["repeated"]) == pytest.approx(exactly, rel=1e-9)
        assert result.bound.total == pytest.approx(exactly, rel=1e-3)  # nothing is counted twice


@pytest.mark.parametrize("p", [3.0, 6.0, 20.0])
def test_cells_of_the_identity_use_up_their_bound(p: float) -> None:
    result = approximate(lambda x: x, n=1, grid=1, p=p, lipschitz=1 + 1e-12, samples=1 << 12)
    assert 0.85 * result.bound.total < result.error < result.bound.total


def test_positions_make_all_tokens_different() -> None:
    result = approximate("reverse", n=3, grid=2, positions=True, samples=1024)
    assert result.bound.parts["repeated"] == 0
    assert result.bound.parts["steps"] == pytest.approx(np.sqrt(3 / 12) / 2)


@pytest.mark.parametrize(("exponent", "p"), [(0.5, 2.0), (0.5, 4.0), (0.5, 8.0), (0.25, 4.0)])
def test_cells_of_a_root_use_up_their_bound(exponent: float, p: float) -> None:
    """f = |x - c|^alpha on every cell: not Lipschitz, and 0 at every centre."""
    D = 4

    def f(x: Any) -> Any:
        return np.abs(x - (np.floor(x * D).clip(0, D - 1) + 0.5) / D) ** exponent

    found = error_bound(*made(f, D), Modulus(1.0, exponent), p=p, known=True)
    r = (np.arange(10_000) + 0.5) / 10_000 * 0.5 / D
    error = (r ** (exponent * p)).mean() ** (1 / p)
    assert 0.85 * found.parts["steps"] < error < found.total * (1 + 1e-4)


# Ramps.


def teeth(x: Any, D: int) -> Any:
    """|x - c|: 0 at every centre, so that all levels are equal; largest on the ramps."""
    return np.abs(x * D % 1 - 0.5) / D


@pytest.mark.parametrize(
    ("n", "d", "p", "least"),
    [(1, 1, 1.0, 0.99), (1, 1, 3.0, 0.99), (2, 1, 1.0, 0.52), (1, 2, 1.0, 0.52)],
)
def test_ramps_between_equal_levels_are_off_by_the_modulus_at_the_radius(
    n: int, d: int, p: float, least: float
) -> None:
    """Where least is above a half, the bound needs the factors n and d of the volume."""
    D = 5
    result = approximate(
        lambda x: teeth(x[..., :1], D), n=n, d=d, grid=D, p=p, lipschitz=1, samples=1 << 12
    )
    most, error = result.bound.parts["ramps"], result.measured.sources["ramps"].error
    assert least * most < error < 1.01 * most
    assert result.bound.total >= result.interval[0]


def test_ramps_are_off_by_the_range_of_the_levels() -> None:
    """A token on a ramp passes all contexts on its way from cell to cell, for each of its outputs.

    An offset between outputs is no range.
    """
    D = 16
    result = approximate(
        lambda x: np.concatenate([x[:, ::-1], 1e3 + 0 * x], -1), grid=D, p=60, lipschitz=1
    )
    error, ramps = result.measured.sources["ramps"].error, result.bound.parts["ramps"]
    assert 0.8 * ramps < error <= ramps


# Planes.


def crossed(x: Any, D: int, slope: float) -> Any:
    """slope (r_1 + r_2) where differences are taken, a quarter cell from each centre, and beyond
    as low as a Lipschitz constant of 1 lets it be: d = 2, n = 1."""
    centres = (np.arange(D) + 0.5) / D
    q = 0.25 / D
    sites, values = [], []
    for c in product(centres, centres):
        for step, value in ((0, 0.0), (q, slope * q), (-q, -slope * q)):
            for axis in range(2):
                sites.append(np.array(c) + step * np.eye(2)[axis])
                values.append(value)
    far = np.linalg.norm(x[..., None, :] - np.array(sites), axis=-1)
    return (np.array(values) - far).max(-1, keepdims=True)


@pytest.mark.parametrize("D", [1, 2])
def test_a_plane_may_be_off_by_its_height_too(D: int) -> None:
    """|f(X) - f(c)| is at most |X - c|; the plane goes the other way, on cells and on ramps."""
    target, built, grid = made(lambda x: crossed(x, D, 0.5**0.5), D, d=2, readout="linear")
    assert built.height == pytest.approx(2 * 0.5**0.5 * 0.5 / D, rel=1e-6)
    found = error_bound(target, built, grid, Modulus(1.0), p=400.0, known=True)
    corner = 1 - 1e-9 if D == 1 else (0.5 - 1e-9)
    x = np.full((1, 1, 2), corner)
    off = float(np.abs(target(x) - run(built, x)).max())
    radius = 0.5**0.5 / D
    assert radius + built.height / 2 < off <= radius + built.height
    assert off <= found.parts["steps"] * 1.01
    if D == 1:
        return
    on = np.full((1, 1, 2), 0.5)  # both coordinates at the beginning of a ramp
    off = float(np.abs(target(on) - run(built, on)).max())
    plane = largest_plane(built.f2)
    assert radius + plane / 2 < off <= radius + plane
    volume = 2 * built.delta
    assert found.parts["ramps"] == pytest.approx((radius + plane) * volume ** (1 / 400), rel=1e-6)


def other(x: Any) -> Any:
    """The square of the sum of the others: as much as can come through attention."""
    return (x.sum(-2, keepdims=True) - x) ** 2


@pytest.mark.parametrize(("n", "D", "positions"), [(2, 3, False), (2, 3, True), (3, 2, True)])
def test_the_height_of_a_plane_is_attained_and_attention_bends_it(
    n: int, D: int, positions: bool
) -> None:
    _, built, grid = made(other, D, n, readout="linear", positions=positions)
    assert not isinstance(built.network.attention, torch.nn.Identity)
    corners = np.array(list(product((-1, 1), repeat=n)))[:, None, :, None] * (0.5 - 1e-6) / D
    centre = grid.centres(built.sequences)
    values = np.stack([run(built, centre + corner) for corner in corners])
    highest = float(np.abs(values - built.values).max())
    planes = built.planes
    assert planes is not None
    straight = planes.height(0.5 / D, 0.0)
    assert straight * (1 + 1e-4) < highest <= built.height


def test_ramps_know_how_far_planes_go_along_the_line() -> None:
    """All levels are 0, slopes of the token itself too: what is seen on ramps is tilt alone."""
    D = 3

    def f(x: Any) -> Any:
        wave = np.sin(2 * np.pi * (x * D - 0.5)) / D
        return np.where(x.shape[1] == 2, wave[:, ::-1], wave)

    _, built, grid = made(f, D, 2, readout="linear", delta=0.5 / D)
    x = np.random.default_rng(0).random((200_000, 2, 1))
    seen = float(np.abs(run(built, x)).max())
    level = float(built.f2.level.detach().abs().max())
    most = largest_plane(built.f2)
    slopes = float(built.f2.slope.detach().abs().max()) * 0.5 / D
    assert level < 1e-12
    assert slopes < 0.6 * seen < 0.6 * most * (1 + 1e-9)
    assert grid.cells == D


# Rounding.


def rounded(f: Any, cells: int, low: float, high: float) -> Any:
    """f as a function off by two units in the last place may compute it: up, but down at centres
    of cells; both its input and its output."""
    centres = (
        CellGrid(cells, 1, np.array([low]), np.array([high])).centres(np.arange(cells)).ravel()
    )
    return lambda x: f(x, np.where(np.isin(x, centres).all((1, 2), keepdims=True), -1, 1))


@pytest.mark.parametrize(
    ("n", "m", "p", "size"),
    [(1, 1, 2.0, 1.0), (2, 3, 1.0, 2.0**40), (2, 3, 2.0, 1.0), (2, 3, 5.0, 2.0**-40)],
)
def test_rounding_of_what_f_gives(n: int, m: int, p: float, size: float) -> None:
    """A constant, 2 units too large, at centres 2 units too small: the bound is the error."""

    def computed(units: int) -> Any:
        off = rounded(lambda _, sign: size * (1 + units * EPSILON * sign), 2, 0, 1)
        return lambda x: off(x) + np.zeros((*x.shape[:2], m))

    result = approximate(computed(2), n=n, grid=2, p=p, lipschitz=0, samples=256)
    assert result.bound.guaranteed
    assert result.error == pytest.approx(result.bound.total, rel=1e-9)
    assert result.error == pytest.approx(4 * EPSILON * size * (n * m) ** (1 / p), rel=1e-9)
    with pytest.raises(FunctionError, match="more than rounding explains"):
        approximate(computed(3), n=n, grid=2, p=p, lipschitz=0, samples=256)


def test_rounding_of_what_f_takes() -> None:
    """x - 1 in half precision, of an x that is 2 units off: they count, times the slope."""
    D, low, high = 256, 1.0, 1 + 1 / 32

    def f(x: Any, sign: Any) -> Any:
        return (x * (1 + 2 * HALF * sign) - 1).astype(np.float16)

    result = approximate(
        rounded(f, D, low, high), n=1, domain=(low, high), grid=D, lipschitz=1, samples=1024
    )
    scale = (high - low) ** 0.5  # d_2 is over the domain
    assert 4 * HALF * scale < result.error < result.bound.total < 4.6 * HALF * scale
    steps = np.hypot(result.bound.parts["steps"], result.bound.parts["ramps"])
    assert result.bound.total == pytest.approx(steps + result.bound.parts["rounding"])


def test_rounding_of_the_smallest_numbers() -> None:
    """2^-24 is the smallest in half precision: units of it, however small f is."""
    tiny = 2.0**-24
    f = rounded(lambda _, sign: (2 * tiny * sign).astype(np.float16), 4, 0, 1)
    result = approximate(f, n=1, grid=4, lipschitz=0, samples=256)
    assert result.error == pytest.approx(4 * tiny, rel=1e-9)
    assert result.error < result.bound.total < 1.01 * result.error


@pytest.mark.parametrize("readout", ORDERS)
@pytest.mark.parametrize("cells", [100, 4000])
def test_the_error_of_a_function_that_is_all_rounding_is_within_the_bound(
    cells: int, readout: ReadoutKind
) -> None:
    for f, slope in (
        (lambda x: (1000 + x / 1000).astype(np.float32), 1e-3),
        (lambda x: 1e6 + 1e-10 * x, 1e-10),
        (lambda x: torch.from_numpy(x).float().exp(), float(np.e)),
    ):
        result = approximate(f, n=1, grid=cells, readout=readout, lipschitz=slope, samples=1 << 12)
        assert result.bound.guaranteed
        assert result.interval[1] <= result.bound.total
        assert result.measured.worst.deviation <= bound_at_points(result)


def bound_at_points(result: Any) -> float:
    """For n = m = 1 and p = 2 on [0, 1]: what any single point may be off by."""
    parts = result.bound.parts
    planes = float(getattr(result.network.f2, "slope", torch.zeros(1)).detach().abs().max())
    return float(3**0.5 * parts["steps"] + planes / result.grid.cells + parts["rounding"])


def test_fewer_digits_than_the_type_says_are_not_taken_for_a_slope() -> None:
    with pytest.raises(FunctionError, match="return that type"):
        approximate(
            lambda x: (1000 + x / 1000).astype(np.float32).astype(float),
            n=1,
            grid=100,
            lipschitz=1e-3,
            samples=1024,
        )


def exact_ids(built: Any, x: Any) -> list[Any]:
    """s of each token of a sequence with these weights, in 200 bits; off the ramps."""
    network, layout = built.network, built.layout
    with torch.no_grad():  # F1 writes integers
        h = network.f1(network.embed(torch.from_numpy(x)))
    exact: list[list[Any]] = [[arb(float(entry)) for entry in token] for token in h]
    low, span = arb(float(network.low.detach())), arb(float(network.span.detach()))
    for token, value in zip(exact, x, strict=True):
        token[0] = (arb(float(value[0])) - low) / span
    v1, line = (
        [arb(float(w)) for w in vector]
        for vector in (network.attention.v1.detach(), built.f2.direction[0].detach())
    )
    y = arb(built.mapping.query)
    keys = [sum(a * b for a, b in zip(v1, token, strict=True)) for token in exact]
    weights = [(y * key).exp() for key in keys]
    average = sum(w * key for w, key in zip(weights, keys, strict=True)) / sum(weights)
    for token in exact:
        token[layout.context] = average
    return [sum(a * b for a, b in zip(line, token, strict=True)) for token in exact]


@pytest.mark.parametrize(
    ("n", "D", "positions"), [(2, 40, False), (3, 20, False), (3, 12, True), (5, 4, True)]
)
def test_rounding_of_context_ids_and_of_planes(n: int, D: int, positions: bool) -> None:
    """Against the same weights in 200 bits; a rounding of an id is not rare, and tilts magnify it.

    So without that term the bound on the rounding of the network would be far too small.
    """
    target, built, grid = made(other, D, n, readout="linear", positions=positions)
    allowed, worst, magnified = id_rounding(built, grid), 0.0, 0.0
    tilt = built.f2.tilt.detach()
    rng = np.random.default_rng(0)
    with ctx.workprec(200):
        for tokens in rng.permutation(built.sequences)[:40]:
            inside = rng.uniform(-0.4, 0.4, (n, 1)) / D
            x = grid.centres(tokens) + inside
            x = x if positions else np.sort(x, 0)
            with torch.no_grad():
                h = built.network.contexts(torch.from_numpy(x))
                computed = (h @ built.f2.direction[0]).tolist()
            for s, exactly in zip(computed, exact_ids(built, x), strict=True):
                off = abs(float(arb(s) - exactly))
                step = int(np.abs(built.f2.middle.detach().numpy() - s).argmin())
                worst = max(worst, off)
                magnified = max(magnified, off * float(tilt[step].abs().max()))
    assert allowed / 200 < worst <= allowed
    slopes = float(built.f2.slope.detach().abs().max())
    size = float(built.f2.level.detach().abs().max()) + built.height
    assert magnified > 8 * 2.0**-53 * (slopes + size)  # more than all the rest
    assert magnified <= network_rounding(built, grid)
    found = error_bound(target, built, grid, Modulus(2.0 * n**2), p=1.0, known=True)
    assert found.parts["rounding"] >= n * network_rounding(built, grid)  # in each of n entries
    assert found.guaranteed
    assert well_apart(built, grid)


@pytest.mark.parametrize(
    ("n", "D", "positions", "largest"),
    [
        # token, cell, key, one, context, place, output
        (2, 5, False, [1, 4, 0, 1, 1, 0]),
        (3, 4, False, [1, 3, "widest", 1, 1, 0]),
        (3, 4, True, [1, 3, 0, 1, "range", 2, 0]),
    ],
)
def test_rounding_of_context_ids_is_counted_out(
    n: int, D: int, positions: bool, largest: list[Any]
) -> None:
    """Every product of w entries is off by w units, scores by y M units more, and so on."""
    _, built, grid = made(lambda x: x, D, n, positions=positions)
    names = {"widest": built.mapping.widest, "range": built.mapping.range(n)}
    h = np.array([names.get(entry, entry) for entry in largest], float)
    assert largest_stream(built, grid).tolist() == h.tolist()
    v1 = np.abs(built.network.attention.v1.detach().numpy())
    line = np.abs(built.f2.direction[0].detach().numpy())
    w, M, y = np.count_nonzero(v1), v1 @ h, built.mapping.query
    average = M * (w + 2 * n + 8) + 2 * y * M * M * (w + 1)
    units = line[4] * average + np.count_nonzero(line) * (line @ h)
    assert id_rounding(built, grid) == pytest.approx(2.0**-53 * units, rel=1e-14, abs=0)


def test_where_rounding_could_mix_up_contexts_nothing_is_guaranteed() -> None:
    target, built, grid = made(other, 4, 2)
    object.__setattr__(built.mapping, "gap", 2.9 * id_rounding(built, grid))
    assert not error_bound(target, built, grid, Modulus(9.0), p=2.0, known=True).guaranteed
    object.__setattr__(built.mapping, "gap", 3.1 * id_rounding(built, grid))
    assert error_bound(target, built, grid, Modulus(9.0), p=2.0, known=True).guaranteed


# What is told.


@pytest.mark.parametrize(("seed", "samples"), [(0, 256), (42, 256), (3, 1 << 16)])
def test_a_bound_that_is_attained_is_no_failure(seed: int, samples: int) -> None:
    """f(x) = x on one cell: error and bound are the same number, and sampling is not exact.

    One seed in forty puts the bound just below the 95 percent interval; 42 is such a seed.
    """
    result = approximate(lambda x: x, n=1, grid=1, lipschitz=1, seed=seed, samples=samples)
    assert result.bound.guaranteed
    assert result.ok


def test_bound_is_guaranteed_only_with_a_constant() -> None:
    seen, known = (approximate(np.sin, grid=4, lipschitz=L, samples=256) for L in (None, 1.0))
    named = approximate("softmax", grid=4, samples=256)
    assert [r.to_json()["bound_guaranteed"] for r in (seen, known, named)] == [False, True, True]
    assert 0 < seen.bound.total <= known.bound.total  # what was seen is no more than what can be
    assert seen.ok


@pytest.mark.parametrize(
    ("n", "d", "readout"), [(1, 1, "constant"), (3, 1, "linear"), (2, 2, "linear")]
)
def test_a_constant_that_is_too_small_is_refused_with_the_input(
    n: int, d: int, readout: ReadoutKind
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


@pytest.mark.parametrize(("cells", "shift"), [(1000, 0.0), (10, 1000.0), (1000, 1000.0)])
def test_the_right_constant_is_not_refused_for_rounding(cells: int, shift: float) -> None:
    """f(x) = 3 x + b has slope 3 everywhere, in float64 a bit more between points close by."""
    result = approximate(lambda x: 3 * x + shift, n=1, grid=cells, lipschitz=3)
    assert result.bound.guaranteed


@pytest.mark.parametrize("constant", [-1.0, float("inf"), float("nan")])
def test_what_is_no_constant_is_refused(constant: float) -> None:
    with pytest.raises(SettingError):
        approximate(lambda x: x, n=1, grid=2, lipschitz=constant, samples=256)
