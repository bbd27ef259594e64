"""Which of the settings that the paper leaves open make its curve slow: change one at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from matplotlib.figure import Figure

from rankone.corpus import Ceiling, Corpus
from rankone.documents import figures
from rankone.drawing import BLUE, GREEN, GREY, ORANGE, write_plots
from rankone.files import make_directory, write_file
from rankone.training.curves import PAPER, Curve, as_csv
from rankone.training.runs import How, train_all
from rankone.training.settings import Settings

EPOCHS = 60
COLOURS = "black", ORANGE, BLUE, GREEN, "#7b4ea3"


def _optimizer(name: str, lr: float, momentum: float = 0.0) -> dict[str, Any]:
    return {"optimizer": name, "lr": lr, "momentum": momentum}


CHOICES: dict[str, dict[str, dict[str, Any]]] = {
    "dimension": {str(dim): {"dim": dim} for dim in (8, 16, 32, 64)},
    "optimizer": {
        "adam 1e-3": _optimizer("adam", 1e-3),
        "adam 1e-4": _optimizer("adam", 1e-4),
        "sgd 0.1": _optimizer("sgd", 0.1),
        "sgd 0.1, momentum 0.9": _optimizer("sgd", 0.1, 0.9),
    },
    "positions": {
        "learned": {"positions": True},
        "none": {"positions": False, "max_length": None},
    },
    "token table at the start": {
        "std 0.02": {"init_std": 0.02},
        "std 0.1": {"init_std": 0.1},
        "std 1": {"init_std": 1.0},
        "std 1, adam 1e-4": {"init_std": 1.0, **_optimizer("adam", 1e-4)},
    },
    "depth": {str(depth): {"depth": depth} for depth in (1, 3, 6)},
}


@dataclass(frozen=True)
class Sweep:
    """The curve of every value of every choice."""

    source: str
    curves: dict[str, dict[str, Curve]]
    ceilings: dict[str, Ceiling]
    machine: dict[str, Any]
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        """Whether no run ends with a larger loss than after its first epoch."""
        return all(curve.loss[-1] <= curve.loss[0] for _, curve in self._each())

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
            for (choice, value), curve in self._each()
        ]

    def _each(self) -> list[tuple[tuple[str, str], Curve]]:
        """Every curve with its choice and value."""
        both = self.curves.items()
        return [((choice, value), c) for choice, cs in both for value, c in cs.items()]

    def to_json(self) -> dict[str, Any]:
        return {**figures(self, "curves"), "runs": self.rows()}

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write sweep.csv, .png and .svg; returns the files."""
        home = make_directory(directory)
        return [
            write_file(home / "sweep.csv", as_csv(self._each(), "choice", "value")),
            *write_plots(home, {"sweep": lambda: plot_sweep(self)}),
        ]


def sweep(
    corpus: Corpus,
    directory: str | os.PathLike[str],
    settings: Settings | None = None,
    **how: Unpack[How],
) -> Sweep:
    """Train with one of the choices changed at a time; the rest is as in `settings`.

    `how` is documented at `How`. Runs are in ``directory/runs``; existing ones are resumed.
    """
    base = settings or Settings(epochs=EPOCHS)
    changed = {
        choice: {value: replace(base, **change) for value, change in values.items()}
        for choice, values in CHOICES.items()
    }
    runs = {_name(base, run): run for values in changed.values() for run in values.values()}
    trained, machine = train_all(corpus, runs, Path(directory, "runs"), **how)
    results = list(trained.values())
    return Sweep(
        source=Path(corpus.source).name,
        curves={
            choice: {value: Curve.of(trained[_name(base, run)]) for value, run in values.items()}
            for choice, values in changed.items()
        },
        ceilings=results[0].ceilings,
        machine=machine,
        seconds={"train": sum(result.seconds["train"] for result in results)},
    )


def plot_sweep(found: Sweep) -> Figure:
    """A panel per choice; thin lines are the ceiling of the token alone and the paper's number."""
    token = found.ceilings["token"].accuracy
    figure = Figure(figsize=(10.5, 6.0), layout="constrained")
    least = min(token, *(row["accuracy"] for row in found.rows()))
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
    legend = f"solid: ceiling of the token alone, {token:.5f}\ndashed: the paper's {PAPER[1]}"
    last.text(0, 0.5, legend, transform=last.transAxes, color=GREY, fontsize=9)
    figure.supxlabel("epochs", fontsize=10)
    figure.supylabel("training accuracy", fontsize=10)
    return figure


def _name(base: Settings, run: Settings) -> str:
    """What differs from the settings that all runs share."""
    before, now = base.to_json(), run.to_json()
    changed = [f"{key}-{value}" for key, value in now.items() if value != before[key]]
    return "-".join(changed) or "defaults"
