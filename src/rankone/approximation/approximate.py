"""A network for a function, within a given grid or a given error."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from numpy.typing import ArrayLike

from rankone.approximation.build import Kind
from rankone.approximation.function import Function, check_function
from rankone.approximation.grid import Grid
from rankone.approximation.memory import largest_grid
from rankone.approximation.problem import Problem, probes, resolve
from rankone.approximation.result import Approximation
from rankone.approximation.settings import check_settings, read_domain
from rankone.errors import SettingError, SizeError
from rankone.progress import Progress

TOKENS, GRID, SAMPLES = 2, 32, 1 << 16  # unless something else is asked for
FIRST = 2  # the grid that an error is first measured on
SLACK = 1.03  # how much finer a grid is taken than the last error says
FASTEST = {"constant": 1.2, "linear": 3.0}  # more than the rate at which an error can fall


def approximate(
    f: Function | str,
    *,
    n: int = TOKENS,
    d: int = 1,
    domain: ArrayLike = (0.0, 1.0),
    grid: int | None = None,
    epsilon: float | None = None,
    p: float = 2.0,
    readout: Kind = "constant",
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
    number D of cells per coordinate (32), or the `epsilon` that d_p(f, network) must stay below;
    then a grid is found. `readout` "linear" puts a plane on each cell instead of a constant. With a
    `lipschitz` constant of f (Euclidean norms) the bound is guaranteed; it is known for built-in
    functions. `delta` is the width of the quantiser's ramps in the unit cube, `samples` the number
    of points that the error is measured on, `memory` how many bytes may be used (half of what
    there is).

    >>> result = approximate(lambda x: x - x.mean(-2, keepdims=True), n=2, grid=8)
    >>> result.grid.context_ids, round(result.error, 3)
    (64, 0.036)
    """
    began = time.perf_counter()
    check_settings(n=n, d=d, grid=grid, epsilon=epsilon, p=p, readout=readout, samples=samples)
    check_settings(lipschitz=lipschitz, delta=delta, memory=memory, seed=seed)
    if grid is not None and epsilon is not None:
        raise SettingError("a grid and an epsilon are given", remedy="give one of the two")
    low, high = read_domain(domain, n, d, p)
    box = Grid(1, int(n), low, high, positions)
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
        memory=memory,
        seed=int(seed),
        epsilon=epsilon,
        progress=progress,
    )
    if epsilon is not None:
        result = find_grid(problem, epsilon)
    else:
        result = problem.solve(GRID if grid is None else int(grid), [])
    return replace(result, seconds={**result.seconds, "total": time.perf_counter() - began})


def find_grid(problem: Problem, epsilon: float) -> Approximation:
    """Finer and finer grids, until the upper end of the error's interval is within epsilon."""
    giant = replace(problem.grid, cells=1 << 31)
    most = largest_grid(giant, problem.target.outputs, linear=problem.linear, memory=problem.memory)
    tried: list[tuple[int, float]] = []
    cells = min(FIRST, most)
    while cells > (tried[-1][0] if tried else 0):
        result = problem.solve(cells, tried)
        if result.interval[1] <= epsilon:
            return result
        tried = [*tried, (cells, result.error)]
        if result.error * (cells / most) ** FASTEST[problem.readout] > epsilon:
            break
        if len(tried) > 1 and tried[-1][1] >= tried[-2][1] and cells > 4 * FIRST:
            break
        cells = min(most, max(cells + 1, next_grid(tried, epsilon)))
    so_far = ", ".join(f"{error:.2g} with grid {D}" for D, error in tried) or "nothing"
    raise SizeError(
        f"epsilon = {epsilon:g} is out of reach: reached {so_far}; the largest grid that fits in "
        f"memory is {most:,}",
        where=problem.target.name,
        remedy="take a larger epsilon, more memory, or readout='linear' (--readout linear)",
    )


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
