"""rankone approximate NAME"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rankone.cli import options

if TYPE_CHECKING:
    from rankone.approximation import Approximation, Convergence
    from rankone.approximation.function import Function
    from rankone.approximation.measure import Worst


def approximate(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A built-in function.", show_default=False),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Your own: from an array (batch, n, d) to (batch, n, m).",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the built-in functions.")] = False,
    n: Annotated[int, typer.Option("--n", metavar="N", min=1, help="Tokens.")] = 2,
    d: Annotated[int, typer.Option("--d", metavar="D", min=1, help="Numbers per token.")] = 1,
    low: Annotated[float, typer.Option(metavar="X", help="The domain: from here")] = 0.0,
    high: Annotated[float, typer.Option(metavar="X", help="to here, in every coordinate.")] = 1.0,
    grid: Annotated[
        int | None,
        typer.Option(
            metavar="D",
            min=1,
            help="Cells per coordinate; default 32.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="E", help="The error to stay below; finds the grid.", show_default=False
        ),
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
            help="Width of the ramps of F1, where the domain is 1; default as narrow as can be.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(metavar="N", min=256, help="Points that the error is measured on.")
    ] = 1 << 16,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GB", help="Memory to use at most; default half of it.", show_default=False
        ),
    ] = None,
    seed: options.Seed = 0,
    table: Annotated[
        bool, typer.Option(help="Also the error on coarser grids, and its slope.")
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

    if show:
        _show_functions(as_json=json)
        return
    if (name is None) == (function is None):
        raise typer.BadParameter("give the NAME of a built-in function (see --list), or --function")
    if grid is not None and epsilon is not None:
        raise typer.BadParameter("give --grid or --epsilon, not both")
    if grid is None and epsilon is None:
        grid = 32
    with console.working("start", quiet=quiet or json) as progress:
        from rankone.approximation import Convergence, approximate, converge, draw_plots
        from rankone.files import check_directory

        if out is not None:
            check_directory(out)
        f = name if name is not None else _imported(str(function))
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
            files = [*result.save(out), *draw_plots(out, result, convergence)]
    if json:
        report = {**result.to_json(), "files": [str(path) for path in files]}
        console.print_json(
            report if convergence is None else {**report, "convergence": convergence.to_json()}
        )
    elif not quiet:
        _show(result, convergence)
        console.print_lines(*(["Wrote"] if files else ["--out DIR writes weights and plots."]))
        console.print_lines(*(f"  {path}" for path in files))
    if not result.ok:
        raise typer.Exit(1)


def _imported(path: str) -> Function:
    """module:name, looked for where the user is too."""
    import contextlib
    import importlib
    import sys

    from rankone.approximation.function import told
    from rankone.errors import FunctionError

    module, _, name = path.partition(":")
    sys.path.insert(0, "")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            imported = importlib.import_module(module)
        found: Function = getattr(imported, name)
        if not callable(found):
            raise TypeError("it cannot be called")
    except (Exception, SystemExit) as error:  # whatever the user's module does
        raise FunctionError(
            f"cannot be imported ({told(error)})",
            where=path,
            remedy="give module:name, with the module here or installed",
        ) from None
    return found


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


def _point(worst: Worst) -> str:
    return ", ".join("(" + ", ".join(f"{x:.4g}" for x in token) + ")" for token in worst.point)


def _show(result: Approximation, convergence: Convergence | None) -> None:
    from rankone.cli import console

    grid, measured, units = result.grid, result.measured, result.hidden_units
    low, high = result.interval
    kind = "guaranteed" if result.bound.guaranteed else "from the steepest slope seen"
    dense = result.verified.dense_difference
    rows = [
        (f"error d_{result.p:g}", f"{result.error:.4g}  (95 %: {low:.4g} to {high:.4g})"),
        ("bound", f"{result.bound.total:.4g}  ({kind})"),
        ("cells per coordinate", f"{grid.cells:,}"),
        ("context ids", f"{grid.context_ids:,}"),
        ("hidden units", f"{units['f1']:,} in F1, {units['f2']:,} in F2"),
        ("context ids apart by", f"{result.gap:.2g}"),
        ("width of ramps", f"{result.delta:.2g}"),
        ("off at the centres of cells by", f"{result.verified.grid_error:.2g}"),
        ("network multiplied out is off by", "not run" if dense is None else f"{dense:.2g}"),
        ("worst point found", f"{measured.worst.deviation:.4g} off at {_point(measured.worst)}"),
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
