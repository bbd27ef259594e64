"""What `rankone approximate` prints: the figures, where the error comes from, coarser grids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankone.cli import console

if TYPE_CHECKING:
    from rankone.approximation import Approximation, Convergence
    from rankone.approximation.measured_error import Worst


def _point(worst: Worst) -> str:
    return ", ".join("(" + ", ".join(f"{x:.4g}" for x in token) + ")" for token in worst.point)


def show_result(result: Approximation, convergence: Convergence | None) -> None:
    grid, measured, units = result.grid, result.measured, result.hidden_units
    low, high = result.interval
    kind = "guaranteed" if result.bound.guaranteed else "estimated from the steepest slope seen"
    dense = result.verified.dense_difference
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
