"""Plots of the theorem: the Boltzmann operator, context ids, the gap against the logit scale."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from rankone.arrays import Floats
from rankone.drawing import BLUE, GREEN, GREY, ORANGE, write_plots
from rankone.explanation.context_sample import (
    ContextSample,
    context_sample,
    exact_log10_gap,
    float_gap,
    hardmax_average,
    softmax_average,
)
from rankone.explanation.grades import Explanation
from rankone.explanation.readout_plots import plot_sentence, plot_staircase
from rankone.explanation.trace import staircase, trace
from rankone.files import made
from rankone.theory import boltzmann

LOGITS = 8.0  # spread of the scores in the plot of context ids: logits of order 1 to 10


def draw_plots(directory: str | os.PathLike[str], explanation: Explanation) -> list[Path]:
    """Write five plots, each as PNG and SVG; returns the files.

    "context-ids" and "gap" need a token with two contexts, "staircase" needs two context ids,
    "sentence" a short sentence; the last two also need a model of grade "practical".
    """
    plots: dict[str, Callable[[], Figure]] = {"boltzmann": plot_boltzmann}
    corpus = explanation.corpus
    found = context_sample(corpus, explanation.embedded, seed=explanation.seed)
    if found is not None:
        plots["context-ids"] = lambda: plot_context_ids(found)
        plots["gap"] = lambda: plot_gap(found)
    model = explanation.grades[-1].model
    steps = None if model is None else staircase(model, corpus)
    way = None if model is None else trace(model, corpus)
    if steps is not None:
        plots["staircase"] = lambda: plot_staircase(steps)
        if way is not None:
            numbers = dict(zip(steps.names, steps.numbers.tolist(), strict=True))
            plots["sentence"] = lambda: plot_sentence(way, numbers)
    with made(directory) as home:
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


def plot_context_ids(found: ContextSample) -> Figure:
    """What attention adds to each token in its contexts, with hardmax and with softmax."""
    figure = Figure(figsize=(11.5, 1.7 + 0.55 * len(found.names)), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    scale = LOGITS / found.spread
    contexts = sum(map(len, found.contexts))
    for axis, average, color, title in (
        (axes[0], hardmax_average, ORANGE, "hardmax"),
        (axes[1], softmax_average, BLUE, f"softmax, scores up to {LOGITS:g} apart"),
    ):
        seen = 0
        for row, (query, group) in enumerate(zip(found.queries, found.contexts, strict=True)):
            line = np.unique([average(keys, scale * query) for keys in group])
            seen += len(line)
            axis.axhline(row, color=GREY, lw=0.5, zorder=0)
            axis.plot(line, np.full(len(line), row), "|", color=color, ms=16, mew=1.6)
            axis.text(
                1.0, row, f"{len(line)} of {len(group)}", transform=axis.get_yaxis_transform(),
                ha="right", va="bottom", fontsize=8, color=color,
            )  # fmt: skip
            if axis is axes[1]:
                axes[2].axhline(row, color=GREY, lw=0.5, zorder=0)
                apart = np.diff(line)
                axes[2].plot(apart, np.full(len(apart), row), "o", color=color, ms=5, alpha=0.7)
        axis.set_title(f"{title}:\n{seen} of {contexts} contexts apart", fontsize=11)
        axis.set_xlabel("what attention adds to the token, along v")
        axis.margins(x=0.24)
    axes[2].set(xscale="log", xlabel="distance to the next context")
    low, high = axes[2].get_xlim()
    axes[2].set_xlim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
    axes[2].xaxis.set_minor_formatter(NullFormatter())
    axes[2].set_title("softmax: the distances\nof neighbouring contexts", fontsize=11)
    # words may contain dollar signs, but are not formulas
    axes[0].set_yticks(range(len(found.names)), found.names, parse_math=False)
    axes[0].set_ylim(len(found.names) - 0.4, -0.7)
    return figure


def plot_gap(found: ContextSample) -> Figure:
    """Digits needed to tell two contexts of one token apart, against the spread of scores."""
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
    axis.axhline(16, color=GREY, lw=1.0, ls=":", label="digits of float64")
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
    _explain_zigzag(axis, spreads, exact)
    axis.yaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("largest difference of two scores (logarithmic)")
    axis.set_ylabel("digits: -log10 of the gap (logarithmic)")
    axis.set_title(
        "How many digits does it take to tell two contexts of one token apart?", fontsize=11
    )
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def _explain_zigzag(axis: Axes, spreads: Floats, digits: Floats) -> None:
    """Annotate the highest peak before the straight part."""
    inner = np.arange(1, len(digits) - 1)
    peaks = inner[(digits[inner] > digits[inner - 1]) & (digits[inner] > digits[inner + 1])]
    if not len(peaks):
        return
    peak = peaks[digits[peaks].argmax()]
    axis.annotate(
        "peaks: as scores grow, two context ids\ncross, and the gap is 0 at one scale",
        (float(spreads[peak]), float(digits[peak])),
        (0.3, 0.64),
        textcoords="axes fraction",
        ha="center",
        fontsize=9,
        color=BLUE,
        arrowprops={"arrowstyle": "->", "color": BLUE},
    )
