"""Plots: error against D; for n = 2 and d = 1 also f, the network and their difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, NullLocator

from rankone.approximation.convergence import Convergence
from rankone.approximation.result import Approximation
from rankone.approximation.target import Target
from rankone.drawing import BLUE, GREY, write_plots

PIXELS = 400


def draw_plots(
    directory: Path, result: Approximation, convergence: Convergence | None = None
) -> list[Path]:
    """Write the plots that can be drawn; returns the files."""
    plots = {}
    if convergence is not None and convergence.slope is not None:
        plots["convergence"] = lambda: plot_convergence(convergence)
    target = result.target
    if target is not None and result.grid.n == 2 and result.grid.d == 1:
        plots["picture"] = lambda: plot_picture(result, target)
    return write_plots(directory, plots)


def plot_convergence(convergence: Convergence) -> Figure:
    """Error, with its 95 % interval, and bound against D on logarithmic axes."""
    rows = convergence.rows
    last = rows[-1]
    cells = np.array([row.grid.cells for row in rows])
    errors = np.array([row.error for row in rows])
    low, high = np.array([row.interval for row in rows]).T
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.subplots()
    kind = "bound" if last.bound.guaranteed else "bound from the steepest slope seen"
    axes.loglog(cells, [row.bound.total for row in rows], "--", color=GREY, label=kind)
    slope = convergence.slope
    axes.errorbar(
        cells,
        errors,
        [errors - low, high - errors],
        fmt="o-",
        color=BLUE,
        capsize=3,
        label="measured" if slope is None else f"measured, slope {slope:.2f}",
    )
    axes.set_xticks(cells, [str(D) for D in cells])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(LogFormatterSciNotation(minor_thresholds=(1.5, 0.5)))
    axes.set_xlabel("D, cells per coordinate")
    axes.set_ylabel(f"$d_{{{last.p:g}}}$(f, network)")
    axes.set_title(f"{last.name}, n = {last.grid.n}, d = {last.grid.d}, {last.readout} readout")
    axes.legend(frameon=False)
    return figure


def plot_picture(result: Approximation, target: Target) -> Figure:
    """For n = 2, d = 1: output of the first token (with positions, of both) over (x_1, x_2)."""
    (low,), (high,) = result.grid.low, result.grid.high
    line = low + (np.arange(PIXELS) + 0.5) / PIXELS * (high - low)
    x = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2, 1)
    tokens = 2 if result.grid.positions else 1
    figure = Figure(figsize=(10.5, 3.4 * tokens), layout="constrained")
    truth, network = target(x), result(x)
    largest = np.abs(network - truth)[..., 0].max() or 1.0
    least, most = truth[..., 0].min(), truth[..., 0].max()
    for k, row in enumerate(figure.subplots(tokens, 3, squeeze=False)):
        views = ("f", truth), ("network", network), ("network - f", network - truth)
        for axes, (title, values) in zip(row, views, strict=True):
            difference = title == "network - f"
            image = axes.imshow(
                values[:, k, 0].reshape(PIXELS, PIXELS).T,
                origin="lower",
                extent=(low, high, low, high),
                cmap="RdBu_r" if difference else "viridis",
                vmin=-largest if difference else least,
                vmax=largest if difference else most,
                interpolation="nearest",
            )
            axes.set_title(f"{title}, token {k + 1}")
            axes.set_xlabel("$x_1$")
            axes.set_ylabel("$x_2$")
            axes.locator_params(nbins=3)
            axes.ticklabel_format(useOffset=False)
            figure.colorbar(image, ax=axes, shrink=0.85)
    which = f", output 1 of {result.outputs}" if result.outputs > 1 else ""
    figure.suptitle(f"{result.name}{which}, D = {result.grid.cells}, {result.readout} readout")
    return figure
