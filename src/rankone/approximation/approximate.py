"""Build a network for a function, on a given grid or within a given error."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankone.approximation.build import ReadoutKind
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.problem import Problem, largest_grid, probes, resolve
from rankone.approximation.result import Approximation
from rankone.approximation.target import Function, check_function
from rankone.arrays import Floats
from rankone.errors import SettingError, SizeError
from rankone.progress import Progress

TOKENS, GRID, SAMPLES = 2, 32, 1 << 16  # defaults
FIRST = 2  # the first grid on which the error is measured
SLACK = 1.03  # factor by which a grid is finer than the last error suggests
FASTEST = {"constant": 1.2, "linear": 3.0}  # exponents above the rate at which an error can fall


def approximate(
    f: Function | str,
    *,
    n: int = TOKENS,
    d: int = 1,
    domain: ArrayLike = (0.0, 1.0),
    grid: int | None = None,
    epsilon: float | None = None,
    p: float = 2.0,
    readout: ReadoutKind = "constant",
    positions: bool = False,
    lipschitz: float | None = None,
    delta: float | None = None,
    samples: int = SAMPLES,
    memory: float | None = None,
    seed: int = 0,
    progress: Progress = lambda _stage, _share: None,
) -> Approximation:
    """A one-layer rank-1 Transformer with two feed-forward layers for f (Proposition 1).

    f maps an array (batch, n, d) to (batch, n, m), each sequence by itself, and is permutation
    equivariant; with `positions` the order of tokens may matter. Or f is the name of a built-in
    function. `domain` is (low, high), each a number or one number per coordinate. Give either
    `grid`, the number D of cells per coordinate (default: 32), or `epsilon`, to find a grid with
    d_p(f, network) <= epsilon. `readout` "linear" puts a plane on each cell instead of a constant.
    With a `lipschitz` constant of f (Euclidean norms) the bound is guaranteed; for built-in
    functions it is known. `delta` is the width of the quantiser's ramps in the unit cube, `samples`
    the number of points at which the error is measured, `memory` the memory limit in GB
    (default: half of RAM).

    >>> result = approximate(lambda x: x - x.mean(-2, keepdims=True), n=2, grid=8)
    >>> result.grid.context_ids, round(result.error, 3)
    (64, 0.036)
    """
    began = time.perf_counter()
    check_settings(n=n, d=d, grid=grid, epsilon=epsilon, p=p, readout=readout, samples=samples)
    check_settings(lipschitz=lipschitz, delta=delta, memory=memory, seed=seed)
    if grid is not None and epsilon is not None:
        raise SettingError("both grid and epsilon are given", remedy="give one of the two")
    low, high = read_domain(domain, n, d, p)
    box = CellGrid(1, int(n), low, high, positions)
    named = resolve(f, box, seed, lipschitz)
    progress("check f", 0.0)
    target = check_function(named.function, probes(box, seed), named.name, positions=positions)
    problem = Problem(
        target=target,
        modulus=named.modulus,
        grid=box,
        readout=readout,
        p=float(p),
        delta=delta,
        samples=int(samples),
        memory=None if memory is None else memory * 1e9,
        seed=int(seed),
        epsilon=epsilon,
        progress=progress,
    )
    if epsilon is not None:
        result = find_grid(problem, epsilon)
    else:
        result = problem.solve(GRID if grid is None else int(grid), ())
    return replace(result, seconds={**result.seconds, "total": time.perf_counter() - began})


def find_grid(problem: Problem, epsilon: float) -> Approximation:
    """Refine the grid until the upper end of the error's interval is within epsilon."""
    giant = replace(problem.grid, cells=1 << 31)
    most = largest_grid(giant, problem.target.outputs, linear=problem.linear, memory=problem.memory)
    tried: tuple[tuple[int, float], ...] = ()
    cells = min(FIRST, most)
    while cells > (tried[-1][0] if tried else 0):
        result = problem.solve(cells, tried)
        if result.interval[1] <= epsilon:
            return result
        tried = (*tried, (cells, result.error))
        if result.error * (cells / most) ** FASTEST[problem.readout] > epsilon:
            break
        if len(tried) > 1 and tried[-1][1] >= tried[-2][1] and cells > 4 * FIRST:
            break
        cells = min(most, max(cells + 1, next_grid(tried, epsilon)))
    so_far = ", ".join(f"{error:.2g} with grid {D}" for D, error in tried) or "unknown"
    raise SizeError(
        f"epsilon = {epsilon:g} is out of reach: the error is {so_far}; the largest grid that "
        f"fits in memory is {most:,}",
        where=problem.target.name,
        remedy="use a larger epsilon, more memory, or readout='linear' (--readout linear)",
    )


def next_grid(tried: Sequence[tuple[int, float]], epsilon: float) -> int:
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
    return math.ceil(min(wanted, last * 16))  # a rough guess is not worth a giant grid


MANY = 1 << 26  # points: more do not fit in memory
WHOLE, NUMBER = (int, np.integer), (int, float, np.integer, np.floating)
RULES: dict[str, tuple[tuple[type, ...], Callable[[Any], bool], str]] = {
    "n": (WHOLE, lambda n: n >= 1, "a whole number of 1 or more"),
    "d": (WHOLE, lambda d: d >= 1, "a whole number of 1 or more"),
    "grid": (WHOLE, lambda cells: cells >= 1, "a whole number of 1 or more"),
    "epsilon": (NUMBER, lambda e: 0 < e < math.inf, "a positive number"),
    "p": (NUMBER, lambda p: 1 <= p < math.inf, "a finite number of 1 or more"),
    "readout": ((str,), lambda kind: kind in ("constant", "linear"), "constant or linear"),
    "samples": (WHOLE, lambda samples: 256 <= samples <= MANY, f"a whole number, 256 to {MANY}"),
    "lipschitz": (NUMBER, lambda L: 0 <= L < math.inf, "a number of 0 or more"),
    "delta": (NUMBER, lambda delta: 0 < delta < math.inf, "a positive number"),
    "memory": (NUMBER, lambda memory: 0 <= memory < math.inf, "a number of GB"),
    "seed": (WHOLE, lambda seed: 0 <= seed < 1 << 63, "a whole number from 0 to 2^63 - 1"),
}
OPTIONAL = {"grid", "epsilon", "lipschitz", "delta", "memory"}


def check_settings(**settings: Any) -> None:
    """Raise `SettingError` for a setting of the wrong type or out of range."""
    for name, value in settings.items():
        types, sound, wanted = RULES[name]
        if value is None and name in OPTIONAL:
            continue
        if not isinstance(value, types) or isinstance(value, bool) or not sound(value):
            raise SettingError(f"{name} = {value!r} cannot be used", remedy=f"give {wanted}")


MOST = 21_201  # most coordinates of a Sobol point in torch


def read_domain(domain: ArrayLike, n: int, d: int, p: float) -> tuple[Floats, Floats]:
    """Low and high of each coordinate."""
    if n * d > MOST:
        raise SettingError(
            f"sequences of n d = {n * d:,} numbers cannot be measured",
            remedy=f"use n d up to {MOST:,}",
        )
    try:
        low, high = (np.broadcast_to(np.asarray(end, np.float64), (d,)).copy() for end in domain)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise SettingError(
            f"{domain!r} is not a domain", remedy=f"give (low, high), each a number or {d} numbers"
        ) from None
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
        sound = np.isfinite(span).all() and (span > 0).all()
    what = f"the domain from {low.tolist()} to {high.tolist()}"
    if not sound:
        raise SettingError(
            f"{what} is empty or not finite",
            remedy="give (low, high) with low < high and a finite difference",
        )
    spacing = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    if (spacing > 2.0**-20 * span).any():
        raise SettingError(f"{what} contains too few floats", remedy="move it towards 0")
    # Squared distances must not overflow either.
    if abs(n * float(np.log10(span).sum())) / p > 300 or (np.abs(np.log10(span)) > 150).any():
        raise SettingError(
            f"the volume of {what}, or a squared distance in it, is out of range for float64",
            remedy="rescale the domain",
        )
    return low, high
