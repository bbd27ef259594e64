"""A network for a function, within a given grid or a given error."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankone.approximation.bound import bound
from rankone.approximation.build import Order, build
from rankone.approximation.function import PROBES, Function, Target, check_function
from rankone.approximation.functions import Modulus, Named, named_function
from rankone.approximation.grid import Floats, Grid
from rankone.approximation.measure import Measured, measure
from rankone.approximation.memory import check_size
from rankone.approximation.result import Approximation
from rankone.approximation.verify import verify
from rankone.errors import FunctionError, SettingError, SizeError
from rankone.progress import Progress

SAMPLES = 1 << 16
FIRST = 2  # the grid that an error is first measured on
SLACK = 1.03  # how much finer a grid is taken than the last error says


def approximate(
    f: Function | str,
    *,
    n: int,
    d: int = 1,
    domain: ArrayLike = (0.0, 1.0),
    grid: int | None = None,
    epsilon: float | None = None,
    p: float = 2.0,
    readout: Order = "constant",
    positions: bool = False,
    lipschitz: float | None = None,
    delta: float | None = None,
    samples: int = SAMPLES,
    memory: float | None = None,
    seed: int = 0,
    progress: Progress = lambda _stage, _share: None,
) -> Approximation:
    """A one-layer rank-1 Transformer with two feed-forward layers for f (Proposition 1).

    f takes an array (batch, n, d) to (batch, n, m), for each sequence by itself and whatever the
    order of its tokens; with `positions` the order may matter. Or it is the name of a built-in
    function. `domain` is low and high, numbers or a number per coordinate. Give the `grid`, the
    number D of cells per coordinate, or the `epsilon` that d_p(f, network) must stay below; then a
    grid is found. `readout` "linear" puts a plane on each cell instead of a constant. With a
    `lipschitz` constant of f (Euclidean norms) the bound is guaranteed; it is known for built-in
    functions. `delta` is the width of the quantiser's ramps in the unit cube, `samples` the number
    of points that the error is measured on, `memory` how many bytes may be used (half of what
    there is).

    >>> result = approximate(lambda x: x - x.mean(-2, keepdims=True), n=2, grid=8)
    >>> result.grid.context_ids, round(result.error, 3)
    (64, 0.036)
    """
    check_settings(n=n, d=d, grid=grid, epsilon=epsilon, p=p, readout=readout, samples=samples)
    check_settings(lipschitz=lipschitz, delta=delta, memory=memory, seed=seed)
    if (grid is None) == (epsilon is None):
        raise SettingError("either a grid or an epsilon is needed", remedy="give one of the two")
    low, high = read_domain(domain, d)
    named = resolve(f, n, low, high, seed, lipschitz)
    settings: dict[str, Any] = {"readout": readout, "p": p, "delta": delta, "samples": samples}
    settings |= {"memory": memory, "seed": seed, "progress": progress, "epsilon": epsilon}
    coarse = Grid(1, n, low, high, positions)
    began = time.perf_counter()
    progress("check f", 0.0)
    target = check_function(named.function, probes(coarse, seed), named.name, positions=positions)
    checked = time.perf_counter() - began
    if grid is not None:
        return _on_grid(named, target, _with_cells(coarse, grid), checked, [], settings)
    assert epsilon is not None
    tried: list[tuple[int, float]] = []
    cells = FIRST
    while True:
        try:
            result = _on_grid(named, target, _with_cells(coarse, cells), checked, tried, settings)
        except SizeError as error:
            so_far = "; ".join(f"{error:.2g} with grid {D}" for D, error in tried)
            raise SizeError(
                f"epsilon = {epsilon:g} is out of reach: {error.what}",
                where=named.name,
                remedy=f"take a larger epsilon (reached: {so_far or 'nothing'})",
            ) from None
        if result.interval[1] <= epsilon:
            return result
        tried = [*tried, (cells, result.error)]
        cells = max(cells + 1, next_grid(tried, epsilon))


def next_grid(tried: list[tuple[int, float]], epsilon: float) -> int:
    """Where the line through the last two errors, on logarithmic axes, meets epsilon.

    >>> next_grid([(4, 0.2), (8, 0.1)], 0.01)
    83
    """
    rate: float = 1.0
    if len(tried) > 1:
        (before, old), (last, new) = tried[-2:]
        rate = max(0.5, math.log(old / new) / math.log(last / before)) if new < old else 0.5
    last, error = tried[-1]
    wanted: float = last * (error / epsilon) ** (1 / rate) * SLACK
    return math.ceil(min(wanted, last * 16))  # a guess from afar is not worth a giant grid


def _on_grid(
    named: Named,
    target: Target,
    grid: Grid,
    checked: float,
    tried: list[tuple[int, float]],
    settings: dict[str, Any],
) -> Approximation:
    readout, p, progress = settings["readout"], settings["p"], settings["progress"]
    check_size(grid, target.outputs, linear=readout == "linear", memory=settings["memory"])
    times = [time.perf_counter()]
    progress(f"{grid.context_ids:,} context ids", 0.0)
    built = build(target, grid, readout, settings["delta"], progress)
    times.append(time.perf_counter())
    verified = verify(target, built, grid, settings["seed"], progress)
    times.append(time.perf_counter())
    measured = measure(
        target,
        built,
        grid,
        p=p,
        samples=settings["samples"],
        seed=settings["seed"],
        progress=progress,
    )
    modulus, known = modulus_of(named, measured)
    times.append(time.perf_counter())
    spent = dict(zip(("build", "verify", "measure"), np.diff(times).tolist(), strict=True))
    return Approximation(
        target=target,
        network=built.network,
        grid=grid,
        readout=readout,
        p=p,
        epsilon=settings["epsilon"],
        measured=measured,
        bound=bound(built, grid, modulus, outputs=target.outputs, p=p, guaranteed=known),
        verified=verified,
        gap=built.mapping.gap,
        delta=built.delta,
        tried=tried,
        seed=settings["seed"],
        seconds={"check": checked, **spent, "total": checked + sum(spent.values())},
    )


def resolve(
    f: Function | str, n: int, low: Floats, high: Floats, seed: int, lipschitz: float | None
) -> Named:
    """A built-in function by its name, or the user's own."""
    given = None if lipschitz is None else Modulus(float(lipschitz))
    if isinstance(f, str):
        named = named_function(f, n=n, low=low, high=high, seed=seed)
        return replace(named, modulus=given or named.modulus)
    if not callable(f):
        raise FunctionError(f"{f!r} cannot be called", remedy="give a function, or a name")
    name = getattr(f, "__name__", type(f).__name__)
    return Named("f" if name == "<lambda>" else name, f, given)


def modulus_of(named: Named, measured: Measured) -> tuple[Modulus, bool]:
    """The known modulus, or the steepest slope seen; a constant that was given is checked."""
    given = named.modulus
    if given is None:
        return Modulus(measured.steepest), False
    if given.exponent == 1.0 and measured.steepest > given.constant * (1 + 1e-9):
        raise FunctionError(
            f"changes by {measured.steepest:.6g} times the distance between "
            f"{measured.steepest_at.tolist()} and the centre of its cell: more than the Lipschitz "
            f"constant {given.constant:g}",
            where=named.name,
            remedy="give a larger constant, or none",
        )
    return given, True


def probes(grid: Grid, seed: int) -> Floats:
    """Inputs to try f on: random ones, equal tokens, and the corners of the box."""
    rng = np.random.default_rng(seed)
    z = rng.random((PROBES, grid.n, grid.d))
    z[-8:] = z[-8:, :1]
    z[-12:-8] = np.round(z[-12:-8])
    z[-14:-12] = np.array([0.0, 1.0])[:, None, None]
    return np.asarray(grid.low + grid.span * z)


def read_domain(domain: ArrayLike, d: int) -> tuple[Floats, Floats]:
    """Low and high of each coordinate."""
    try:
        low, high = (np.broadcast_to(np.asarray(end, np.float64), (d,)).copy() for end in domain)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise SettingError(
            f"{domain!r} is no domain", remedy=f"give (low, high), each a number or {d} numbers"
        ) from None
    with np.errstate(over="ignore"):
        if not (np.isfinite(high - low).all() and (low < high).all()):
            raise SettingError(
                f"the domain from {low.tolist()} to {high.tolist()} is empty or not finite",
                remedy="give (low, high) with low < high",
            )
    return low, high


def _with_cells(grid: Grid, cells: int) -> Grid:
    return replace(grid, cells=cells)


WHOLE, NUMBER = (int, np.integer), (int, float, np.integer, np.floating)
RULES: dict[str, tuple[tuple[type, ...], Callable[[Any], bool], str]] = {
    "n": (WHOLE, lambda n: n >= 1, "a whole number from 1"),
    "d": (WHOLE, lambda d: d >= 1, "a whole number from 1"),
    "grid": (WHOLE, lambda cells: cells >= 1, "a whole number from 1"),
    "epsilon": (NUMBER, lambda e: 0 < e < math.inf, "a positive number"),
    "p": (NUMBER, lambda p: 1 <= p < math.inf, "a number from 1"),
    "readout": ((str,), lambda kind: kind in ("constant", "linear"), "constant or linear"),
    "samples": (WHOLE, lambda samples: samples >= 256, "a whole number from 256"),
    "lipschitz": (NUMBER, lambda L: 0 <= L < math.inf, "a number from 0"),
    "delta": (NUMBER, lambda delta: 0 < delta < math.inf, "a positive number"),
    "memory": (NUMBER, lambda memory: memory >= 0, "a number of bytes"),
    "seed": (WHOLE, lambda seed: seed >= 0, "a whole number from 0"),
}
OPTIONAL = {"grid", "epsilon", "lipschitz", "delta", "memory"}


def check_settings(**settings: Any) -> None:
    """Refuse a setting of the wrong type or out of range."""
    for name, value in settings.items():
        types, sound, wanted = RULES[name]
        if value is None and name in OPTIONAL:
            continue
        if not isinstance(value, types) or isinstance(value, bool) or not sound(value):
            raise SettingError(f"{name} = {value!r}", remedy=f"take {wanted}")
