"""Which of the choices that the paper does not state make its curve slow: one changed at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rankone.corpus import Corpus
from rankone.drawing import BLUE, GREEN, GREY, ORANGE, write_plots
from rankone.files import write_file
from rankone.progress import Progress
from rankone.train.curves import PAPER, Curve, as_csv
from rankone.train.runs import OnEpoch, Workers, train_all
from rankone.train.settings import Settings

EPOCHS = 60
COLOURS = "black", ORANGE, BLUE, GREEN, "#7b4ea3"
PLAIN: dict[str, Any] = {}  # the defaults of `Settings`
CHOICES: dict[str, dict[str, dict[str, Any]]] = {
    "dimension": {"8": {"dim": 8}, "16": {"dim": 16}, "32": PLAIN, "64": {"dim": 64}},
    "optimizer": {
        "adam 1e-3": PLAIN,
        "adam 1e-4": {"lr": 1e-4},
        "sgd 0.1": {"optimizer": "sgd", "lr": 0.1},
        "sgd 0.1, momentum 0.9": {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9},
    },
    "positions": {"learned": PLAIN, "none": {"positions": False}},
    "token table at the start": {
        "std 0.02": PLAIN,
        "std 0.1": {"init_std": 0.1},
        "std 1": {"init_std": 1.0},
        "std 1, adam 1e-4": {"init_std": 1.0, "lr": 1e-4},
    },
    "depth": {"1": PLAIN, "3": {"depth": 3}, "6": {"depth": 6}},
}


@dataclass(frozen=True)
class Sweep:
    """The curve of every value of every choice."""

    source: str
    curves: dict[str, dict[str, Curve]]
    machine: dict[str, Any]
    seconds: float
    files: list[Path]

    def rows(self) -> list[dict[str, Any]]:
        """Of each run, its last accuracy and the first epoch above the paper's."""
        return [
            {
                "choice": choice,
                "value": value,
                "epochs": len(curve.accuracy),
                "accuracy": curve.accuracy[-1],
                "first_above_paper": curve.first_above(PAPER[1]),
            }
            for choice, curves in self.curves.items()
            for value, curve in curves.items()
        ]

    def to_json(self) -> dict[str, Any]:
        figures = {"source": self.source, "machine": self.machine, "seconds": self.seconds}
        return {**figures, "runs": self.rows()}


def sweep(
    corpus: Corpus,
    directory: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    jobs: int | None = None,
    checkpoint_seconds: float = 60.0,
    progress: Progress = lambda *_: None,
    on_epoch: OnEpoch = lambda *_: None,
) -> Sweep:
    """Train with every choice changed by itself; write sweep.csv, .png and .svg.

    Existing runs are resumed.
    """
    home = Path(directory)
    settings = settings or Settings(epochs=EPOCHS)
    runs = {
        _name(change): replace(settings, **change)
        for values in CHOICES.values()
        for change in values.values()
    }
    workers = Workers.share(len(runs), jobs)
    trained = train_all(
        corpus,
        runs,
        home / "runs",
        workers,
        checkpoint_seconds=checkpoint_seconds,
        progress=progress,
        on_epoch=on_epoch,
    )
    found = Sweep(
        source=Path(corpus.source).name,
        curves={
            choice: {value: Curve.of(trained[_name(change)]) for value, change in values.items()}
            for choice, values in CHOICES.items()
        },
        machine=workers.to_json(),
        seconds=sum(result.seconds for result in trained.values()),
        files=[],
    )
    token = trained[_name(PLAIN)].ceilings["token"].accuracy
    rows = [
        ((choice, value), curve)
        for choice, curves in found.curves.items()
        for value, curve in curves.items()
    ]
    found.files.append(write_file(home / "sweep.csv", as_csv(rows, "choice", "value")))
    found.files.extend(write_plots(home, {"sweep": lambda: plot_sweep(found, token)}))
    return found


def plot_sweep(found: Sweep, token: float) -> Figure:
    """A panel per choice; thin lines are the ceiling of the token alone and the paper's number."""
    figure = Figure(figsize=(10.5, 6.0), layout="constrained")
    ends = [curve.accuracy[-1] for curves in found.curves.values() for curve in curves.values()]
    least = min(token, *ends)
    *grid, last = figure.subplots(2, 3, sharex=True, sharey=True).flat
    for axes, (choice, curves) in zip(grid, found.curves.items(), strict=True):
        for colour, (value, curve) in zip(COLOURS, curves.items(), strict=False):
            epochs = range(1, len(curve.accuracy) + 1)
            axes.plot(epochs, curve.accuracy, color=colour, linewidth=1.2, label=value)
        axes.axhline(token, color=GREY, linewidth=0.6)
        axes.axhline(PAPER[1], color=GREY, linewidth=0.6, linestyle="--")
        axes.set_title(choice, fontsize=10)
        axes.legend(loc="center right", frameon=False, fontsize=8)
        axes.set_ylim(least - 0.05, 1.005)
    last.set_axis_off()
    told = f"solid: ceiling of the token alone, {token:.5f}\ndashed: the paper's {PAPER[1]}"
    last.text(0, 0.5, told, transform=last.transAxes, color=GREY, fontsize=9)
    figure.supxlabel("epochs", fontsize=10)
    figure.supylabel("training accuracy", fontsize=10)
    return figure


def _name(change: dict[str, Any]) -> str:
    return "-".join(f"{key}-{value}" for key, value in change.items()) or "defaults"
