"""Three plots: the Boltzmann operator, context ids on the line, the gap against the logit scale."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rankone.construct.setting import Setting
from rankone.corpus import Corpus
from rankone.drawing import BLUE, GREEN, GREY, ORANGE, write_plots
from rankone.explain.sample import (
    Sample,
    exact_log10_gap,
    float_gap,
    hardmax_average,
    sample,
    softmax_average,
)
from rankone.files import make_directory
from rankone.theory import boltzmann

LOGITS = 8.0  # spread of the scores in the plot of context ids: logits of order 1 to 10


def draw_plots(
    directory: str | os.PathLike[str], corpus: Corpus, where: Setting, *, seed: int = 0
) -> list[Path]:
    """Write boltzmann, context-ids and gap, each as PNG and SVG; returns the files.

    The last two need a token that stands in two contexts.
    """
    home = make_directory(directory)
    plots: dict[str, Callable[[], Figure]] = {"boltzmann": plot_boltzmann}
    found = sample(corpus, where, seed=seed)
    if found is not None:
        plots["context-ids"] = lambda: plot_context_ids(found)
        plots["gap"] = lambda: plot_gap(found)
    return write_plots(home, plots)


def plot_boltzmann() -> Figure:
    """boltz(0, x, -inf, ...) with the regions of Lemmas 4 and 5, and boltz(0, x, y)."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    n, low, high = 2, -9.0, 3.0
    x = np.linspace(low, high, 600)
    y = boltzmann(np.stack([np.zeros_like(x), x], axis=1))
    falls, bends = -math.log(n) - 1, -math.log(n) - 3
    left.axvspan(low, falls, color=BLUE, alpha=0.12, lw=0)
    left.axvspan(low, bends, color=BLUE, alpha=0.14, lw=0)
    left.plot(x, np.maximum(x, 0), color=GREY, lw=1, ls="--", label="max(0, x)")
    left.plot(x, y, color=BLUE, lw=2, label="boltz(0, x)")
    apart = -2 * math.log(n) - 3
    left.axvline(apart, color=ORANGE, lw=1.2)
    left.text(apart - 0.15, 1.3, "2 log n + 3 apart\n(Lemmas 1 and 7)", color=ORANGE, ha="right")
    left.text(falls - 0.1, 2.35, "decreasing\n(Lemma 4)", ha="right", va="top", color=BLUE)
    left.text(low + 0.15, 2.35, "and concave\n(Lemma 5)", ha="left", va="top", color=BLUE)
    left.set(xlim=(low, high), ylim=(-0.5, 2.4), xlabel="x", ylabel="value")
    left.set_title("The Boltzmann operator of two numbers", fontsize=11)
    left.legend(loc="lower right", frameon=False)

    grid = np.linspace(-10.0, 2.0, 241)
    a, b = np.meshgrid(grid, grid)
    value = boltzmann(np.stack([np.zeros_like(a), a, b], axis=-1))
    shades = right.contourf(
        a, b, value, levels=np.linspace(-0.6, 2.0, 27), cmap="viridis", extend="both"
    )
    right.contour(
        a, b, value, levels=[-0.3, -0.1, -0.03, -0.01, -0.003], colors="white", linewidths=0.7
    )
    for edge, name in ((-math.log(3) - 1, "Lemma 4"), (-math.log(3) - 3, "Lemma 5")):
        right.plot([-10, edge, edge], [edge, edge, -10], color=ORANGE, lw=1.2)
        right.text(edge - 0.15, -9.8, name, color=ORANGE, ha="right", va="bottom", rotation=90)
    right.set(xlabel="x", ylabel="y", aspect="equal")
    right.set_title("boltz(0, x, y): the lemmas hold towards the corner", fontsize=11)
    figure.colorbar(shades, ax=right, shrink=0.85)
    return figure


def plot_context_ids(found: Sample) -> Figure:
    """What each token gets from attention in its contexts, by hardmax and by softmax."""
    figure = Figure(figsize=(9.6, 1.6 + 0.55 * len(found.names)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    scale = LOGITS / found.spread
    for axis, average, color, title in (
        (axes[0], hardmax_average, ORANGE, "hardmax"),
        (axes[1], softmax_average, BLUE, f"softmax, scores up to {LOGITS:g} apart"),
    ):
        together = 0
        for row, (query, group) in enumerate(zip(found.queries, found.contexts, strict=True)):
            line = np.array([average(keys, scale * query) for keys in group])
            together += len(line) - len(np.unique(line))
            axis.axhline(row, color=GREY, lw=0.5, zorder=0)
            axis.plot(line, np.full(len(line), row), "|", color=color, ms=16, mew=1.6)
            for place, count in zip(*np.unique(line, return_counts=True), strict=True):
                if count > 1:
                    axis.annotate(
                        f"x{count}", (place, row), (0, 9), textcoords="offset points",
                        ha="center", fontsize=8,
                    )  # fmt: skip
        verdict = f"{together} contexts lost" if together else "all contexts apart"
        axis.set_title(f"{title}: {verdict}", fontsize=11)
        axis.set_xlabel("what attention adds to the token, along v")
        axis.margins(x=0.12)
    # a word with dollar signs is a word, not a formula
    axes[0].set_yticks(range(len(found.names)), found.names, parse_math=False)
    axes[0].set_ylim(len(found.names) - 0.4, -0.7)
    return figure


def plot_gap(found: Sample) -> Figure:
    """The digits it takes to tell two contexts of one token apart, against the scores' spread."""
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axis: Axes = figure.subplots()
    tight = (2 * math.log(found.longest) + 3) / found.least_gap
    last = min(max(4 * tight, 400 / found.spread), 4000 / found.spread)
    scales = np.geomspace(0.05 / found.spread, last, 60)
    spreads = scales * found.spread
    exact = -np.array([exact_log10_gap(found, float(c)) for c in scales])
    floats = np.array([float_gap(found, float(c)) for c in scales])
    top = float(exact.max()) * 1.3
    axis.axvspan(1, 10, color=GREEN, alpha=0.15, lw=0)
    axis.text(math.sqrt(10), top / 1.1, "practical", color=GREEN, ha="center", va="top")
    axis.axhline(16, color=GREY, lw=0.8, ls=":")
    axis.text(spreads[0], 17, "what float64 has", color=GREY, va="bottom", fontsize=9)
    axis.plot(spreads, exact, color=BLUE, lw=2, label="exact")
    seen = floats > 0
    axis.plot(spreads[seen], -np.log10(floats[seen]), "o", color=ORANGE, ms=3.5, label="float64")
    if not seen.all():
        lost = spreads[~seen]
        axis.plot(lost, np.full(len(lost), 16), "x", color=ORANGE, ms=5, label="float64: gap 0")
    if tight * found.spread <= spreads[-1]:
        axis.axvline(tight * found.spread, color=GREY, lw=1.2)
        where = (tight * found.spread, max(0.4, float(exact.min()) * 1.1))
        text = "Lemma 1 applies\n(grade tight)"
        axis.annotate(text, where, (5, 0), textcoords="offset points", color=GREY, fontsize=9)
    axis.set(xscale="log", yscale="log", ylim=(max(0.3, float(exact.min()) / 1.5), top))
    axis.set(xlabel="largest difference of two scores", ylabel="-log10 of the gap")
    axis.set_title("How small is the gap between two contexts of one token?", fontsize=11)
    axis.legend(loc="upper left", frameon=False)
    return figure
