"""The paper's experiment: several depths at a time, crash-safe, and what they show."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from rankone.choices import TrainedAttention
from rankone.corpus import Ceiling, Corpus
from rankone.documents import dump, figures
from rankone.drawing import write_plots
from rankone.errors import SettingError
from rankone.files import make_directory, write_file
from rankone.training.curves import PAPER, Curve, as_csv, plot_curves
from rankone.training.runs import How, train_all
from rankone.training.settings import NAMES, Settings
from rankone.training.trained import Trained, attention_share

DEPTHS = 1, 3, 6  # the paper's
GOALS = PAPER[1], 0.995  # accuracies to be passed
KINDS: tuple[TrainedAttention, ...] = "rank1", "theorem2", "softmax"


@dataclass(frozen=True)
class Figure1:
    """The curves of all runs, their final figures and settings, and where they were made."""

    source: str
    curves: tuple[Curve, ...]
    finals: tuple[dict[str, Any], ...]
    ceilings: dict[str, Ceiling]
    scheme: str | None
    machine: dict[str, Any]
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        """Whether deeper networks of rank 1 pass the paper's number (or what the least depth ends
        with, if that is lower) no later than it does."""
        own = sorted((c for c in self.curves if c.attention == "rank1"), key=lambda c: c.depth)
        if not own:
            return False
        goal = min(PAPER[1], own[0].accuracy[-1] - 1e-9)
        first, *others = (curve.first_above(goal) or math.inf for curve in own)
        return first < math.inf and all(epoch <= first for epoch in others)

    def to_json(self) -> dict[str, Any]:
        """The figures; the curves are in the CSV."""
        return figures(self, "curves")

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write figure1.csv, .png, .svg and .json; returns the files."""
        home = make_directory(directory)
        rows = [((curve.depth, curve.attention), curve) for curve in self.curves]
        return [
            write_file(home / "figure1.csv", as_csv(rows, "depth", "attention")),
            *write_plots(home, {"figure1": lambda: plot_curves(self.curves, self.ceilings)}),
            write_file(home / "figure1.json", dump(self.to_json(), indent=2)),
        ]


def plan(
    settings: Settings, depths: Sequence[int], attentions: Sequence[TrainedAttention]
) -> dict[str, Settings]:
    """All depths with rank 1, the least one for twice as many epochs, as in the paper; and the
    least one with each other kind of attention."""
    if not depths or not attentions:
        raise SettingError("nothing to train", remedy="give at least one depth and one attention")
    least = min(depths)
    runs = [
        replace(settings, depth=d, attention="rank1", epochs=settings.epochs * (1 + (d == least)))
        for d in sorted(set(depths))
        if "rank1" in attentions
    ]
    others = [kind for kind in dict.fromkeys(attentions) if kind != "rank1"]
    runs += [replace(settings, depth=least, attention=kind) for kind in others]
    return {f"depth-{run.depth}-{run.attention}": run for run in runs}


def figure1(
    corpus: Corpus,
    directory: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    depths: Sequence[int] = DEPTHS,
    attentions: Sequence[TrainedAttention] = ("rank1", "theorem2"),
    **how: Unpack[How],
) -> Figure1:
    """Train all of them; `how` is documented at `How`, and ``save`` writes the figure.

    Each run has a directory of its own in ``directory/runs``. Existing runs are resumed, so the
    same call continues after a crash and is quick when all is done.
    """
    runs = plan(settings or Settings(), depths, attentions)
    trained, machine = train_all(corpus, runs, Path(directory, "runs"), **how)
    results = list(trained.values())
    curves = [Curve.of(result) for result in results]
    return Figure1(
        source=Path(corpus.source).name,
        curves=tuple(curves),
        finals=tuple(map(_final, curves, results)),
        ceilings=results[0].ceilings,
        scheme=corpus.scheme,
        machine=machine,
        seconds={"train": sum(result.seconds["train"] for result in results)},
    )


def _final(curve: Curve, result: Trained) -> dict[str, Any]:
    return {
        "depth": curve.depth,
        "attention": curve.attention,
        "settings": {name: result.settings[name] for name in NAMES},
        "epochs": result.epochs,
        "accuracy": curve.accuracy[-1],
        "best": max(curve.accuracy),
        "first_above": {str(goal): curve.first_above(goal) for goal in GOALS},
        "attention_share": attention_share(curve.accuracy[-1], result.ceilings),
        "model_accuracy": result.accuracy,
        "parameters": result.parameters,
        "seconds": {"train": round(result.seconds["train"], 1)},
        "tokens_per_second": round(result.tokens_per_second),
    }
