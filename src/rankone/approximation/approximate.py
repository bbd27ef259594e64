"""Build a network for a function, on a given grid or within a given error."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from rankone.approximation.build import ReadoutKind
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.grid_memory import largest_grid
from rankone.approximation.problem import Problem, probes, resolve
from rankone.approximation.result import Approximation
from rankone.approximation.setting_rules import check_settings, read_domain
from rankone.approximation.target import Function, check_function
from rankone.errors import SettingError, SizeError
from rankone.progress import Progress

TOKENS, GRID, SAMPLES = 2, 32, 1 << 16  # defaults
FIRST = 2  # the grid that an error is first measured on
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
