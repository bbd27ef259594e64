"""Proposition 1: how the error falls with the grid, what an epsilon takes, and how large it gets.

Sections: `converge` (every built-in function on doubled grids), `epsilon` (which grid reaches it),
`linear` (the slope of the error with planes on the cells), `million` (a million context ids, built
and verified), `evaluate` (time per token of the fast path, and of all hidden units).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

import common
import rankone
from rankone.approximation.functions import FUNCTIONS, Recipe

GRIDS = (2, 4, 8, 16, 32, 64)


def chosen(condition: Callable[[Recipe], bool]) -> list[str]:
    return [name for name, recipe in FUNCTIONS.items() if condition(recipe)]


def lipschitz(recipe: Recipe) -> bool:
    return recipe.exponent == 1.0 and not recipe.positions


def converge() -> None:
    """Errors on doubled grids; the least ratio of two, and the least bound beside an error."""
    targets = []
    for n in (2, 3):
        rows, ratios, bounds = [], [], []
        for name in [*chosen(lipschitz), *chosen(lambda r: not lipschitz(r))]:
            positions = FUNCTIONS[name].positions
            grids = GRIDS if not positions or n == 2 else GRIDS[:-1]
            found = rankone.converge(name, grids, n=n, positions=positions)
            errors = [row.error for row in found.rows]
            # the lower end of the interval, as a bound may be attained
            over = min(row.bound.total / row.interval[0] for row in found.rows)
            least = min(a / b for a, b in pairwise(errors))
            bounds.append(over)
            if lipschitz(FUNCTIONS[name]):
                ratios.append(least)
            shown = [f"{e:.4f}" for e in errors] + ["-"] * (len(GRIDS) - len(errors))
            rows.append([name, *shown, f"{least:.2f}", f"{found.slope:.2f}", f"{over:.2f}"])
        print(f"d_2 error, n = {n}, d = 1, constant on cells\n")
        header = ["function", *(f"D = {D}" for D in GRIDS)]
        common.table([*header, "least ratio", "slope", "least bound / error"], rows)
        targets += [
            (f"error halves, n = {n} (2 within 10 %)", "at least", 1.8, min(ratios)),
            (f"bound / error, n = {n}", "at least", 1.0, min(bounds)),
        ]
    common.against(*targets)


def epsilon() -> None:
    """The grid that `approximate(..., epsilon=...)` finds, for every Lipschitz function."""
    targets = []
    for n, d, epsilon in ((2, 1, 0.01), (3, 1, 0.05), (2, 2, 0.05)):
        rows = []
        for name in chosen(lipschitz):
            found = rankone.approximate(name, n=n, d=d, epsilon=epsilon)
            ids, units = found.grid.context_ids, found.hidden_units["total"]
            upper, seconds = found.interval[1], found.seconds["total"]
            figures = [f"{found.grid.cells}", f"{upper:.4f}", f"{ids:,}", f"{units:,}"]
            rows.append([name, *figures, f"{seconds:.2f}"])
        print(f"epsilon = {epsilon:g}, n = {n}, d = {d}\n")
        header = ["function", "D", "error, upper end", "context ids", "hidden units", "seconds"]
        common.table(header, rows)
        reached = sum(float(row[2]) <= epsilon for row in rows)
        targets.append((f"functions within {epsilon:g}, n = {n}, d = {d}", "at least", 6, reached))
    common.against(*targets)


def linear() -> None:
    """Constants against planes: slope of the error, and the error on the last grid."""
    rows = []
    cases = [("random-smooth", 1, 2), ("random-smooth", 2, 1), ("softmax", 2, 1)]
    cases += [("attention", 2, 1), ("nearest", 2, 1), ("mean-centring", 3, 1)]
    cases += [("softmax", 3, 1), ("random-smooth", 3, 1), ("attention", 2, 2)]
    for name, n, d in cases:
        grids = (4, 8, 16) if n * d > 3 else (4, 8, 16, 32)
        constant = rankone.converge(name, grids, n=n, d=d)
        planes = rankone.converge(name, grids, n=n, d=d, readout="linear")
        last, better = constant.rows[-1].error, planes.rows[-1].error
        figures = [f"{last:.2e}", f"{better:.2e}", f"{last / better:.0f}"]
        slopes = [f"{constant.slope:.2f}", f"{planes.slope:.2f}"]
        rows.append([name, str(n), str(d), *slopes, str(grids[-1]), *figures])
    header = ["function", "n", "d", "slope, constant", "slope, linear"]
    common.table([*header, "at D", "error, constant", "error, linear", "times smaller"], rows)


def million() -> None:
    """Ways to a million context ids."""
    rows, slowest = [], 0.0
    cases = [("mean-centring", 2, 1, 1000, False), ("nearest", 3, 1, 126, False)]
    cases += [("softmax", 2, 2, 32, False), ("soft-rank", 3, 2, 12, False)]
    for name, n, d, cells, positions in [*cases, ("running-mean", 3, 1, 70, True)]:
        found = rankone.approximate(name, n=n, d=d, grid=cells, positions=positions)
        build, verify = found.seconds["build"], found.seconds["verify"]
        slowest = max(slowest, build + verify)
        rows.append(
            [
                name + (", positions" if positions else ""),
                str(n),
                str(d),
                str(cells),
                f"{found.grid.context_ids:,}",
                f"{build:.1f}",
                f"{verify:.1f}",
                f"{found.error:.2g}",
                f"{found.measured.sources['ramps'].share:.1%}",
                f"{found.verified.grid_error:.0e}",
                "-"
                if found.verified.dense_difference is None
                else f"{found.verified.dense_difference:.0e}",
            ]
        )
    header = ["function", "n", "d", "D", "context ids", "build, s", "verify, s", "error", "ramps"]
    common.table([*header, "off at centres", "dense off by"], rows)
    common.against(("seconds to build and verify a million", "at most", 60, slowest))


def evaluate() -> None:
    """Time per token against the number of context ids, beside all hidden units and one bisection.

    The floor is np.searchsorted in as many sorted numbers.
    """
    rows = []
    x = torch.rand(1 << 17, 2, 1, dtype=torch.float64)
    numbers = np.random.default_rng(0).random(x.numel())
    for cells in (10, 32, 100, 316, 1000):
        network = rankone.approximate("softmax", n=2, grid=cells, samples=256).network
        sorted_numbers = np.linspace(0, 1, cells**2)
        with torch.no_grad():
            fast = common.best(lambda net=network: net(x), 5) / x.numel()
            floor = common.best(lambda s=sorted_numbers: np.searchsorted(s, numbers), 5)
            tokens = 4096 if cells <= 32 else 16
            full = network.expand()
            dense = common.best(lambda net=full, m=tokens: net(x[: m // 2]), 3) / tokens
        floor /= len(numbers)
        figures = [f"{fast * 1e9:.0f}", f"{floor * 1e9:.0f}", f"{dense * 1e9:,.0f}"]
        rows.append([f"{cells**2:,}", *figures, f"{dense / fast:,.0f}"])
    header = ["context ids", "ns per token", "one bisection", "all units", "times slower"]
    common.table(header, rows)


SECTIONS = {f.__name__: f for f in (converge, epsilon, linear, million, evaluate)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="all unless named")
    for section in parser.parse_args().sections or SECTIONS:
        SECTIONS[section]()
