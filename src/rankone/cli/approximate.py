"""rankone approximate NAME"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankone import choices
from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import flag, option


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
    from rankone.cli.approximation_tables import show_result

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
    console.report(
        output, document, lambda: show_result(result, convergence), files, otherwise=nothing
    )
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
