"""Figure 1: training accuracy against epochs, with the ceilings as thin lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rankone.corpus import Ceiling
from rankone.drawing import BLUE, GREEN, GREY, ORANGE
from rankone.training.trained import Trained

LINES = ("-", "--", ":", "-.")  # solid, dashed and dotted, as in the paper; then again, wider
COLOURS = {"rank1": "black", "theorem2": ORANGE, "softmax": BLUE}
NAMES = {"rank1": "", "theorem2": ", v1 and v2 constructed", "softmax": ", standard attention"}
PAPER = 800, 0.9872  # the one number that the paper gives, for depth 1


@dataclass(frozen=True)
class Curve:
    """Loss and accuracy after 1, 2, ... epochs."""

    depth: int
    attention: str
    loss: list[float]
    accuracy: list[float]

    @classmethod
    def of(cls, result: Trained) -> Curve:
        return cls(
            result.settings["depth"],
            result.settings["attention"],
            [line["loss"] for line in result.curve],
            [line["accuracy"] for line in result.curve],
        )

    def first_above(self, accuracy: float) -> int | None:
        """The first epoch with a higher accuracy."""
        return next((i for i, a in enumerate(self.accuracy, start=1) if a > accuracy), None)


def as_csv(curves: Sequence[tuple[Sequence[object], Curve]], *names: str) -> str:
    """A row per epoch. Each curve comes with the contents of its first columns."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*names, "epoch", "loss", "accuracy"])
    for what, curve in curves:
        for epoch, (loss, accuracy) in enumerate(
            zip(curve.loss, curve.accuracy, strict=True), start=1
        ):
            rows.writerow([*what, epoch, f"{loss:.6g}", f"{accuracy:.6f}"])
    return text.getvalue()


def plot_curves(curves: Sequence[Curve], ceilings: dict[str, Ceiling]) -> Figure:
    """A plot like the paper's; its one number is marked if it is in range.

    The axis of accuracy begins a little below what the token alone can give, unless a curve ends
    there: all that attention does happens above.
    """
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    depths = sorted({curve.depth for curve in curves})
    for curve in curves:
        axes.plot(
            range(1, len(curve.accuracy) + 1),
            curve.accuracy,
            linestyle=LINES[depths.index(curve.depth) % len(LINES)],
            linewidth=1.4 + depths.index(curve.depth) // len(LINES),
            color=COLOURS[curve.attention],
            marker="" if len(curve.accuracy) > 1 else "o",
            label=f"{curve.depth} layer{'s' if curve.depth > 1 else ''}{NAMES[curve.attention]}",
        )
    last = max(len(curve.accuracy) for curve in curves)
    token, full = ceilings["token"].accuracy, ceilings["input"].accuracy
    named = {token: "the token alone", full: "any model"}  # one text if they are equal
    for height, text in named.items():
        axes.axhline(height, color=GREY, linewidth=0.6)
        axes.annotate(
            f"ceiling of {text}: {height:.5f}",
            (last, height),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=GREY,
        )
    if last >= PAPER[0] and token < PAPER[1]:
        axes.plot(
            *PAPER, "x", color=GREEN, label=f"the paper, on CoNLL-2003: {PAPER[1]} at {PAPER[0]}"
        )
    room = max(full - token, 0.01)
    least = min(token - room, *(curve.accuracy[-1] - room / 10 for curve in curves))
    axes.set_ylim(max(least, -0.02), full + 0.12 * room)
    axes.set_xlim(0, last * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epochs")
    axes.set_ylabel("training accuracy")
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    return figure
