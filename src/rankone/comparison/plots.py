"""Pictures of a comparison, and of how constructions grow."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, log2, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rankone.comparison.sizes import FLOAT_BITS
from rankone.drawing import BLUE, GREEN, GREY, ORANGE, write_plots

if TYPE_CHECKING:
    from rankone.comparison.growth import Curve, Growth
    from rankone.comparison.result import Comparison

BARS = {
    "nonzero": "parameters other than 0",
    "bits": "bits of the longest parameter",
    "layers": "layers",
}
MORE = {"bits": BARS["bits"], "layers": "layers", "seconds": "seconds"}
COLOURS = (GREY, BLUE, ORANGE, GREEN, "#cc79a7", "#e69f00", "#56b4e9", "#5b4a9c", "#b8a000")
LINES = ("-", "--", "-.", ":")
DEEP = ("kim2023", "kajitsuka2024-deep", "kajitsuka2025")


def draw_comparison(home: Path, found: Comparison) -> list[Path]:
    """Bars for every construction that was built; returns the files."""
    return write_plots(home, {"comparison": lambda: _bars(found)})


def draw_growth(home: Path, found: Growth) -> list[Path]:
    """Parameters against nN, with the bounds; and bits, layers and seconds. Returns the files."""
    plots = {"growth": lambda: _parameters(found), "growth-more": lambda: _more(found)}
    return write_plots(home, plots)


def _bars(found: Comparison) -> Figure:
    rows = [row for row in found.rows if row.parameters is not None][::-1]
    figure = Figure(figsize=(11, 1.4 + 0.34 * len(rows)), layout="constrained")
    axes = figure.subplots(1, len(BARS), sharey=True)
    colours = _colours([row.construction for row in found.rows])
    names = [row.name for row in rows]
    for axis, (what, title) in zip(axes, BARS.items(), strict=True):
        values = [max(1, getattr(row, what)) for row in rows]
        bars = axis.barh(names, values, color=[colours[row.construction] for row in rows])
        axis.bar_label(bars, labels=[f"{value:,}" for value in values], padding=3, fontsize=8)
        axis.set(xscale="log", xlim=(0.8, 60 * max(values, default=1)), title=title)
    figure.suptitle(f"{found.source}: {found.tokens:,} tokens")
    return figure


def _parameters(found: Growth) -> Figure:
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    axis = figure.subplots()
    curves = [curve for curve in found.curves if curve.contexts]
    colours = _colours([curve.construction for curve in found.curves])
    for curve in curves:
        if curve.construction in DEEP and len(curve.contexts) > 1:
            colour, rows = colours[curve.construction], curve.rows[: len(curve.contexts)]
            axis.plot(curve.contexts, statement(curve, found.labels), color=colour, lw=7, alpha=0.2)
            pairs = zip(curve.contexts, rows, strict=True)
            held = [x * log2(max(2, found.labels)) / (row.bits or 1) for x, row in pairs]
            axis.plot(curve.contexts, held, color=colour, lw=1, ls="--")
    _draw_curves(axis, curves, colours, "nonzero", told=True)
    sizes = sorted({x for curve in curves for x in curve.contexts})
    bound = [sqrt(x) for x in sizes]
    axis.plot(sizes, bound, color="black", lw=1, label="lower bound sqrt(nN)")
    held = [x * log2(max(2, found.labels)) / FLOAT_BITS for x in sizes]
    told = f"information: nN log2({found.labels}) / {FLOAT_BITS} bits"
    axis.plot(sizes, held, color="black", lw=1, ls="--", label=told)
    axis.set(xlabel="contexts nN", ylabel=BARS["nonzero"])
    axis.set_title(
        f"{found.source}. Broad: the statement's formula, through the last point. "
        "Dashed, thin: information at the bits in use",
        fontsize=9,
    )
    figure.legend(fontsize=8, frameon=False, loc="outside right upper")
    return figure


def _more(found: Growth) -> Figure:
    figure = Figure(figsize=(16, 4.8), layout="constrained")
    curves = [curve for curve in found.curves if curve.contexts]
    colours = _colours([curve.construction for curve in found.curves])
    for axis, (what, title) in zip(figure.subplots(1, len(MORE)), MORE.items(), strict=True):
        _draw_curves(axis, curves, colours, what)
        axis.set(xlabel="contexts nN", title=title)
    figure.legend(
        *axis.get_legend_handles_labels(), fontsize=8, frameon=False, loc="outside right center"
    )
    return figure


def statement(curve: Curve, labels: int) -> list[float]:
    """sqrt(M log M) + sqrt(M / log M) max(log R, log C), times a constant that fits the last point.

    This is the size of the deep readouts for M contexts (Vardi et al. 2022); R, how far apart their
    numbers may lie, is M^5 up to a constant (Kajitsuka and Sato 2025, Theorem 4.1).
    """
    sizes = []
    for contexts in curve.contexts:
        size = max(1.0, log(contexts))
        sizes.append(
            sqrt(contexts * size) + sqrt(contexts / size) * max(5 * size, log(max(2, labels)))
        )
    last = curve.rows[len(curve.contexts) - 1].nonzero
    assert last is not None
    return [last * size / sizes[-1] for size in sizes]


def _draw_curves(
    axis: Axes, curves: Sequence[Curve], colours: dict[str, str], what: str, *, told: bool = False
) -> None:
    """The curves of a figure, with their exponents in the legend if these are to be `told`."""
    seen = dict.fromkeys(colours, 0)
    for curve in curves:
        style = LINES[seen[curve.construction] % len(LINES)]
        seen[curve.construction] += 1
        values = [getattr(row, what) for row in curve.rows[: len(curve.contexts)]]
        slope = curve.exponents[what]
        exponent = "" if slope is None or not told else f": exponent {slope:.2f}"
        colour = colours[curve.construction]
        axis.plot(
            curve.contexts,
            values,
            style,
            color=colour,
            marker="o",
            ms=3,
            label=curve.name + exponent,
        )
    axis.set(xscale="log", yscale="log")


def _colours(names: Sequence[str]) -> dict[str, str]:
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(names))}
