"""rankone approximate NAME"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankone import choices
from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import flag, option

if TYPE_CHECKING:
    from rankone.approximation import Approximation, Convergence


@bundled
def approximate(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A built-in function."),
    ] = None,
    function: Annotated[
        str | None,
        option(
            "Your own function, from arrays (batch, n, d) to (batch, n, m); also MODULE:NAME.",
            "FILE.PY:NAME",
        ),
    ] = None,
    show: Annotated[bool, flag("Show the built-in functions.", "--list")] = False,
    n: Annotated[int, option("Number of tokens.", "N", "--n", min=1)] = 2,
    d: Annotated[int, option("Numbers per token.", "D", "--d", min=1)] = 1,
    low: Annotated[float, option("Lower end of the domain.", "X")] = 0.0,
    high: Annotated[float, option("Upper end of the domain.", "X")] = 1.0,
    grid: Annotated[int | None, option("Cells per coordinate (default: 32).", "D", min=1)] = None,
    epsilon: Annotated[float | None, option("Find a grid whose error is below this.", "E")] = None,
    p: Annotated[float, option("Exponent p of the error d_p.", "P", "--p")] = 2.0,
    readout: Annotated[
        choices.CellReadout, option("Fit a constant or a plane to each cell.")
    ] = "constant",
    positions: Annotated[
        bool,
        flag("Add positional encodings, so that f may depend on the order.", "--positions"),
    ] = False,
    lipschitz: Annotated[
        float | None,
        option("Lipschitz constant of --function; it makes the error bound guaranteed.", "L"),
    ] = None,
    delta: Annotated[
        float | None,
        option("Width of the ramps of F1, relative to the domain (default: narrowest).", "W"),
    ] = None,
    samples: Annotated[
        int, option("Number of points to measure the error at.", "N", min=256)
    ] = 65_536,
    memory: Annotated[
        float | None, option("Memory limit in GB (default: half of RAM).", "GB", min=0.0)
    ] = None,
    seed: options.Seed = 0,
    table: Annotated[bool, option("Also measure coarser grids and the slope of the error.")] = True,
    out: Annotated[
        Path | None, options.out("DIR", "Write weights, report and plots (PNG, SVG) here.")
    ] = None,
    *,
    output: options.Output,
) -> None:
    """Approximate a permutation equivariant function by a network, and measure the error.

    One feed-forward layer, one rank-1 attention layer, one more feed-forward layer (Proposition 1).
    """
    from rankone.cli import console

    if show:
        _show_functions(output)
        return
    if (name is None) == (function is None):
        raise typer.BadParameter("give the NAME of a built-in function (see --list), or --function")
    if grid is not None and epsilon is not None:
        raise typer.BadParameter("give --grid or --epsilon, not both")
    with console.working("start", output) as progress:
        from rankone.approximation import Convergence, approximate, converge
        from rankone.cli.own import own_function
        from rankone.files import check_directory

        if out is not None:
            check_directory(out)
        f = name if name is not None else own_function(str(function))
        settings: dict[str, Any] = {"n": n, "d": d, "domain": (low, high), "p": p}
        settings |= {"readout": readout, "positions": positions, "lipschitz": lipschitz}
        settings |= {"delta": delta, "samples": samples, "memory": memory, "seed": seed}
        settings["progress"] = progress
        result = approximate(f, grid=grid, epsilon=epsilon, **settings)
        convergence = None
        if table:
            coarser = [result.grid.cells >> halved for halved in range(6, 0, -1)]
            rows = converge(f, [cells for cells in coarser if cells > 1], **settings).rows
            convergence = Convergence((*rows, result))
        files = []
        if out is not None:
            progress("write", 0.0)
            files = (convergence or result).save(out)
    document = result.to_json()
    if convergence is not None:
        document["convergence"] = convergence.to_json()
    nothing = "--out DIR writes weights and plots."
    console.report(output, document, lambda: _show(result, convergence), files, otherwise=nothing)
    if not result.ok:
        raise typer.Exit(1)


def _show_functions(output: options.Output) -> None:
    from rankone.approximation.functions import FUNCTIONS
    from rankone.cli import console

    functions = [
        {
            "name": name,
            "formula": recipe.formula,
            "positions": recipe.positions,
            "lipschitz": recipe.exponent == 1.0,
        }
        for name, recipe in FUNCTIONS.items()
    ]
    width = max(map(len, FUNCTIONS))
    lines = [f"{name:{width}}  {recipe.formula}" for name, recipe in FUNCTIONS.items()]
    console.report(output, {"functions": functions}, lambda: console.print_lines(*lines))


def _show(result: Approximation, convergence: Convergence | None) -> None:
    from rankone.cli import console

    grid, measured, units = result.grid, result.measured, result.hidden_units
    low, high = result.interval
    kind = "guaranteed" if result.bound.guaranteed else "estimated from the steepest slope seen"
    dense, worst = result.verified.dense_difference, measured.worst
    point = ", ".join("(" + ", ".join(f"{x:.4g}" for x in token) + ")" for token in worst.point)
    rows = [
        (f"error d_{result.p:g}", f"{result.error:.4g}  (95 %: {low:.4g} to {high:.4g})"),
        ("bound", f"{result.bound.total:.4g}  ({kind})"),
        ("cells per coordinate", f"{grid.cells:,}"),
        ("context ids", f"{grid.context_ids:,}"),
        ("hidden units", f"{units['f1']:,} in F1, {units['f2']:,} in F2"),
        ("distance of context ids", f"{result.gap:.2g}"),
        ("width of ramps", f"{result.delta:.2g}"),
        ("largest error at centres of cells", f"{result.verified.grid_error:.2g}"),
        ("dense network differs by", "not run" if dense is None else f"{dense:.2g}"),
        ("worst point found", f"{worst.deviation:.4g} off at {point}"),
        ("seconds", f"{result.seconds['total']:.2f}"),
    ]
    title = f"{result.name}, n = {grid.n}, d = {grid.d}, m = {result.outputs}, {result.readout}"
    console.print_table(title + (", with positions" if grid.positions else ""), rows)
    names = {
        "steps": "cells",
        "repeated": "cells with a repeated token",
        "ramps": "ramps of F1",
    }
    parts = [
        (
            names[name],
            f"{source.volume:.3g}",
            f"{source.error:.4g}",
            f"{source.share:.2%}",
            f"{result.bound.parts[name]:.4g}",
        )
        for name, source in measured.sources.items()
    ]
    parts.append(("rounding", "1", "", "", f"{result.bound.parts['rounding']:.4g}"))
    console.print_table(
        "Where the error comes from", parts, ("", "of the domain", "error", "share", "bound")
    )
    if convergence is None or len(convergence.rows) < 2:
        return
    steps = [
        (
            str(row.grid.cells),
            f"{row.error:.4g}",
            "" if ratio is None else f"{ratio:.2f}",
            f"{row.bound.total:.4g}",
            f"{row.grid.context_ids:,}",
            f"{row.hidden_units['total']:,}",
        )
        for row, ratio in zip(convergence.rows, convergence.ratios, strict=True)
    ]
    slope = "" if convergence.slope is None else f" (slope {convergence.slope:.2f})"
    console.print_table(
        f"Error against the grid{slope}",
        steps,
        ("D", "error", "times smaller", "bound", "context ids", "hidden units"),
    )
