"""rankone approximate NAME"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankone import choices
from rankone.cli import options
from rankone.cli.bundles import bundled


@bundled
def approximate(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A built-in function."),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.PY:NAME",
            help="Your own function, from arrays (batch, n, d) to (batch, n, m); also MODULE:NAME.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the built-in functions.")] = False,
    n: Annotated[int, typer.Option("--n", metavar="N", min=1, help="Number of tokens.")] = 2,
    d: Annotated[int, typer.Option("--d", metavar="D", min=1, help="Numbers per token.")] = 1,
    low: Annotated[float, typer.Option(metavar="X", help="Lower end of the domain.")] = 0.0,
    high: Annotated[float, typer.Option(metavar="X", help="Upper end of the domain.")] = 1.0,
    grid: Annotated[
        int | None,
        typer.Option(
            metavar="D",
            min=1,
            help="Cells per coordinate (default: 32).",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(metavar="E", help="Find a grid whose error is below this."),
    ] = None,
    p: Annotated[
        float, typer.Option("--p", metavar="P", help="Exponent p of the error d_p.")
    ] = 2.0,
    readout: Annotated[
        choices.CellReadout,
        typer.Option(help="Fit a constant or a plane to each cell."),
    ] = "constant",
    positions: Annotated[
        bool,
        typer.Option(
            "--positions", help="Add positional encodings, so that f may depend on the order."
        ),
    ] = False,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            metavar="L",
            help="Lipschitz constant of --function; it makes the error bound guaranteed.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="W",
            help="Width of the ramps of F1, relative to the domain (default: narrowest).",
        ),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(metavar="N", min=256, help="Number of points to measure the error at."),
    ] = 1 << 16,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GB",
            min=0.0,
            help="Memory limit in GB (default: half of RAM).",
        ),
    ] = None,
    seed: options.Seed = 0,
    table: Annotated[
        bool, typer.Option(help="Also measure coarser grids and the slope of the error.")
    ] = True,
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
