"""Two plots of a memorised model: the staircase of its readout, and a traced sentence."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rankone.arrays import Floats
from rankone.drawing import BLUE, GREEN, GREY, ORANGE
from rankone.explanation.trace import Staircase, Trace

SHOWN = 40  # context ids in the upper half
FLAT = 8  # tokens whose names have room side by side
COLORS = (BLUE, ORANGE, GREEN, "#cc79a7", "#e69f00", "#56b4e9")


def plot_staircase(found: Staircase) -> Figure:
    """Output of the readout along the line of context ids: a busy stretch, and one token of it."""
    figure = Figure(figsize=(9.6, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1)
    first, last = busiest(found, SHOWN)
    _in_order(above, found, first, last)
    few = [len(list(group)) for _, group in groupby(found.tokens[first:last])]
    starts = np.cumsum([0, *few])
    changes = [
        int((np.diff(found.labels[first + a : first + a + n]) != 0).sum())
        for a, n in zip(starts, few, strict=False)
    ]
    chosen = int(np.argmax(changes))
    a = first + int(starts[chosen])
    _to_scale(below, found, a, max(a + few[chosen], min(a + 2, last)))
    return figure


def busiest(found: Staircase, count: int) -> tuple[int, int]:
    """The stretch of `count` neighbouring ids with the most label changes."""
    size = len(found.ids)
    if size <= count:
        return 0, size
    changes = np.concatenate([[0], np.cumsum(np.diff(found.labels) != 0)])
    start = int((changes[count - 1 :] - changes[: size - count + 1]).argmax())
    return start, start + count


def _in_order(axis: Axes, found: Staircase, first: int, last: int) -> None:
    """Ids at equal distances, so that every step is visible."""
    ids, share = found.ids[first:last], np.linspace(0, 1, 41)
    line = (ids[:-1, None] + np.diff(ids)[:, None] * share).ravel()
    place = (np.arange(len(ids) - 1)[:, None] + share).ravel()
    axis.plot(place, found(line), color=GREY, lw=1.5, zorder=1)
    _points(axis, np.arange(float(len(ids))), found, first, last)
    groups = [(token, len(list(group))) for token, group in groupby(found.tokens[first:last])]
    edge = 0
    for i, (token, size) in enumerate(groups):
        if i % 2:
            axis.axvspan(edge - 0.5, edge + size - 0.5, color=GREY, alpha=0.1, lw=0, zorder=0)
        axis.text(
            edge + (size - 1) / 2,
            1.02,
            token,
            transform=axis.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=8,
            rotation=0 if len(groups) <= FLAT else 90,
            parse_math=False,
        )
        edge += size
    axis.set_xlim(-0.7, len(ids) - 0.3)
    axis.set_xlabel("context ids in their order on the line, evenly spaced")
    steps = int((np.diff(found.labels[first:last]) != 0).sum())
    every = "" if last - first == len(found.ids) else f" of {len(found.ids):,}"
    axis.figure.suptitle(
        f"The readout: {len(ids)}{every} context ids, a step where the label changes ({steps})",
        fontsize=11,
    )


def _to_scale(axis: Axes, found: Staircase, first: int, last: int) -> None:
    """The contexts of one token, as far apart as they are."""
    ids = found.ids[first:last]
    margin = 0.06 * (ids[-1] - ids[0])
    line = np.linspace(ids[0] - margin, ids[-1] + margin, 4001)
    knots = found.piecewise.knots
    line = np.sort(np.append(line, knots[(knots > line[0]) & (knots < line[-1])]))
    axis.plot(line, found(line), color=GREY, lw=1.5, zorder=1)
    _points(axis, ids, found, first, last)
    axis.set_xlabel("s, to scale")
    axis.ticklabel_format(axis="x", useOffset=False)
    names = sorted(set(found.tokens[first:last]))
    axis.set_title(
        f"The contexts of {' and '.join(names)}, to scale", fontsize=11, parse_math=False
    )


def _points(axis: Axes, place: Floats, found: Staircase, first: int, last: int) -> None:
    labels = found.labels[first:last]
    used = [i for i, number in enumerate(found.numbers) if (labels == number).any()]
    for i in used:
        at = labels == found.numbers[i]
        color = COLORS[i % len(COLORS)]
        axis.plot(place[at], labels[at], "o", color=color, ms=5, zorder=2)
    axis.set_yticks(found.numbers[used], [found.names[i] for i in used], parse_math=False)
    low, high = labels.min(), labels.max()
    axis.set_ylim(low - 0.35, high + 0.35)
    axis.set_ylabel("output and nearest label")


def plot_sentence(found: Trace, numbers: dict[str, float]) -> Figure:
    """Keys, attention, context ids, outputs: a row for each token."""
    n = len(found.words)
    figure = Figure(figsize=(11.5, 1.9 + 0.5 * n), layout="constrained")
    key, weights, ids, out = figure.subplots(
        1, 4, sharey=True, gridspec_kw={"width_ratios": [1.2, 1.3, 1.3, 1.5]}
    )
    rows = np.arange(n)
    key.barh(rows, found.keys, color=BLUE, height=0.5)
    key.axvline(0, color=GREY, lw=0.8)
    key.set_title("1  key of the token", fontsize=10)
    key.set_xlabel("$v_1^T x$")
    key.margins(x=0.1)
    key.set_yticks(rows, found.words, parse_math=False)
    weights.imshow(found.weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for k, each in enumerate(found.weights):
        for j, w in enumerate(each):
            dark = "white" if w > 0.55 else "black"
            weights.text(j, k, f"{w:.2f}", ha="center", va="center", fontsize=8, color=dark)
    tilted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if n > 4 else {}
    weights.set_xticks(rows, found.words, parse_math=False, **tilted)
    weights.set_title("2  attention: who looks at whom", fontsize=10)
    weights.set_xlabel("weight of")
    moved = zip(found.alone, found.ids - found.alone, strict=True)
    sums = [f"{own:.4g} {'-' if by < 0 else '+'} {abs(by):.4g}" for own, by in moved]
    _numbers(ids, found.ids, sums)
    ids.set_title("3  context id: own place + average", fontsize=10)
    ids.set_xlabel("s")
    _numbers(out, found.outputs, [f"{y:.4f}" for y in found.outputs])
    out.set_title("4  output of the readout, and label", fontsize=10)
    used = sorted({(numbers[name], name) for name in found.labels})
    out.set_xticks([c for c, _ in used], [name for _, name in used], parse_math=False)
    for c, _ in used:
        out.axvline(c, color=GREY, lw=0.6, ls=":", zorder=0)
    low, high = used[0][0], used[-1][0]
    out.set_xlim(low - 0.6, high + 0.6)
    key.set_ylim(n - 0.5, -0.6)
    return figure


def _numbers(axis: Axes, values: Floats, texts: list[str]) -> None:
    axis.plot(values, range(len(values)), "o", color=ORANGE, ms=6)
    for k, (value, text) in enumerate(zip(values, texts, strict=True)):
        axis.axhline(k, color=GREY, lw=0.4, zorder=0)
        axis.annotate(text, (value, k), (0, 6), textcoords="offset points", ha="center", fontsize=8)
    axis.margins(x=0.35)
