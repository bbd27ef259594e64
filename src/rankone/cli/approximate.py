"""rankone approximate NAME"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rankone.cli import options


def approximate(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A built-in function.", show_default=False),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.PY:NAME",
            help="Your own function, from arrays (batch, n, d) to (batch, n, m); also MODULE:NAME.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the built-in functions.")] = False,
    n: Annotated[int, typer.Option("--n", metavar="N", min=1, help="Tokens.")] = 2,
    d: Annotated[int, typer.Option("--d", metavar="D", min=1, help="Numbers per token.")] = 1,
    low: Annotated[float, typer.Option(metavar="X", help="Lower end of the domain.")] = 0.0,
    high: Annotated[
        float, typer.Option(metavar="X", help="Upper end, the same in every coordinate.")
    ] = 1.0,
    grid: Annotated[
        int | None,
        typer.Option(
            metavar="D",
            min=1,
            help="Cells per coordinate (default: 32).",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(metavar="E", help="Find a grid with an error below this.", show_default=False),
    ] = None,
    p: Annotated[float, typer.Option("--p", metavar="P", help="The p of d_p.")] = 2.0,
    readout: Annotated[
        Literal["constant", "linear"],
        typer.Option(help="What each cell gets: a constant, or a plane."),
    ] = "constant",
    positions: Annotated[
        bool,
        typer.Option("--positions", help="Positional encodings: f may depend on the order."),
    ] = False,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            metavar="L",
            help="A Lipschitz constant of --function, for a bound that is guaranteed.",
            show_default=False,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="W",
            help="Width of the ramps of F1, as a share of the domain (default: narrowest).",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(metavar="N", min=256, help="Number of points at which the error is measured."),
    ] = 1 << 16,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GB",
            min=0.0,
            help="Memory limit in GB (default: half of RAM).",
            show_default=False,
        ),
    ] = None,
    seed: options.Seed = 0,
    table: Annotated[
        bool, typer.Option(help="Also measure coarser grids, and the slope of the error.")
    ] = True,
    out: Annotated[
        Path | None, options.out("DIR", "Where to write weights, report and plots (PNG, SVG).")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Build a network for a permutation equivariant function, and measure how far it is off.

    One feed-forward layer, one rank-1 attention layer, one more feed-forward layer (Proposition 1).
    """
    from rankone.cli import console
    from rankone.cli.approximation_tables import show_result

    if show:
        _show_functions(as_json=json)
        return
    if (name is None) == (function is None):
        raise typer.BadParameter("give the NAME of a built-in function (see --list), or --function")
    if grid is not None and epsilon is not None:
        raise typer.BadParameter("give --grid or --epsilon, not both")
    with console.working("start", quiet=quiet or json) as progress:
        from rankone.approximation import Convergence, approximate, converge, draw_plots
        from rankone.cli.own import own_function
        from rankone.files import check_directory, made

        if out is not None:
            check_directory(out)
        f = name if name is not None else own_function(str(function))
        settings: dict[str, Any] = {"n": n, "d": d, "domain": (low, high), "p": p}
        settings |= {"readout": readout, "positions": positions, "lipschitz": lipschitz}
        settings |= {"delta": delta, "samples": samples, "seed": seed, "progress": progress}
        settings["memory"] = None if memory is None else memory * 1e9
        result = approximate(f, grid=grid, epsilon=epsilon, **settings)
        convergence = None
        if table:
            coarser = [result.grid.cells >> halved for halved in range(6, 0, -1)]
            rows = converge(f, [cells for cells in coarser if cells > 1], **settings).rows
            convergence = Convergence([*rows, result])
        files = []
        if out is not None:
            progress("write", 0.0)
            with made(out) as home:
                files = [*result.save(home), *draw_plots(home, result, convergence)]
    if json:
        report = {**result.to_json(), "files": [str(path) for path in files]}
        console.print_json(
            report if convergence is None else {**report, "convergence": convergence.to_json()}
        )
    elif not quiet:
        show_result(result, convergence)
        console.print_lines(*(["Wrote"] if files else ["--out DIR writes weights and plots."]))
        console.print_lines(*(f"  {path}" for path in files))
    if not result.ok:
        raise typer.Exit(1)


def _show_functions(*, as_json: bool) -> None:
    from rankone.approximation.functions import FUNCTIONS
    from rankone.cli import console

    if as_json:
        functions = [
            {
                "name": name,
                "formula": recipe.formula,
                "positions": recipe.positions,
                "lipschitz": recipe.exponent == 1.0,
            }
            for name, recipe in FUNCTIONS.items()
        ]
        console.print_json({"functions": functions})
        return
    rows = [(name, recipe.formula) for name, recipe in FUNCTIONS.items()]
    width = max(len(name) for name, _ in rows)
    console.print_lines(*(f"{name:{width}}  {formula}" for name, formula in rows))
