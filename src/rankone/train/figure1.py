"""The paper's experiment: the depths beside each other, crash-safe, and what they show."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rankone.corpus import Ceiling, Corpus
from rankone.drawing import write_plots
from rankone.errors import TrainingError
from rankone.files import write_file
from rankone.progress import Progress
from rankone.train.curves import PAPER, Curve, as_csv, plot_curves
from rankone.train.runs import OnEpoch, Workers, train_all
from rankone.train.settings import NAMES, Attention, Settings
from rankone.train.trained import Trained, attention_share

DEPTHS = 1, 3, 6  # the paper's
GOALS = PAPER[1], 0.995  # accuracies to be passed
KINDS: tuple[Attention, ...] = "rank1", "theorem2", "softmax"


@dataclass(frozen=True)
class Figure1:
    """The curves of all runs, their final figures and settings, and where they were made."""

    source: str
    curves: list[Curve]
    finals: list[dict[str, Any]]
    ceilings: dict[str, Ceiling]
    scheme: str | None
    machine: dict[str, Any]
    seconds: float
    files: list[Path]

    @property
    def ok(self) -> bool:
        """Whether deeper networks of rank 1 pass the paper's number (or what the least depth ends
        with, if that is lower) no later than it does."""
        own = [curve for curve in self.curves if curve.attention == "rank1"]
        shallow = min(own, key=lambda curve: curve.depth, default=None)
        if shallow is None:
            return False
        goal = min(PAPER[1], shallow.accuracy[-1] - 1e-9)
        reached = [curve.first_above(goal) for curve in own]
        return all(
            epoch is not None and epoch <= (shallow.first_above(goal) or 0) for epoch in reached
        )

    def to_json(self) -> dict[str, Any]:
        """The figures; the curves are in the CSV."""
        return {
            "ok": self.ok,
            "source": self.source,
            "finals": self.finals,
            "ceilings": {name: asdict(c) for name, c in self.ceilings.items()},
            "scheme": self.scheme,
            "machine": self.machine,
            "seconds": self.seconds,
        }


def plan(
    settings: Settings, depths: Sequence[int], attentions: Sequence[Attention]
) -> dict[str, Settings]:
    """All depths with rank 1, the least one for twice as many epochs, as in the paper; and the
    least one with each other kind of attention."""
    if not depths or not attentions:
        raise TrainingError("nothing to train", remedy="give at least one depth and one attention")
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
    attentions: Sequence[Attention] = ("rank1", "theorem2"),
    jobs: int | None = None,
    checkpoint_seconds: float = 60.0,
    progress: Progress = lambda *_: None,
    on_epoch: OnEpoch = lambda *_: None,
) -> Figure1:
    """Train all of them, `jobs` at a time, and write figure1.csv, .json, .png and .svg.

    Each run has a directory of its own below ``runs``; existing runs are resumed, so the same call
    continues after a crash and is quick when all is done.
    """
    home = Path(directory)
    runs = plan(settings or Settings(), depths, attentions)
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
    curves = {name: Curve.of(result) for name, result in trained.items()}
    first = next(iter(trained.values()))
    found = Figure1(
        source=Path(corpus.source).name,
        curves=list(curves.values()),
        finals=[_final(curves[name], result) for name, result in trained.items()],
        ceilings=first.ceilings,
        scheme=corpus.scheme,
        machine=workers.to_json(),
        seconds=sum(result.seconds for result in trained.values()),
        files=[],
    )
    rows = [((curve.depth, curve.attention), curve) for curve in found.curves]
    found.files.append(write_file(home / "figure1.csv", as_csv(rows, "depth", "attention")))
    found.files.extend(
        write_plots(home, {"figure1": lambda: plot_curves(found.curves, found.ceilings)})
    )
    found.files.append(home / "figure1.json")
    write_file(found.files[-1], json.dumps(found.to_json(), indent=2) + "\n")
    return found


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
        "seconds": round(result.seconds, 1),
        "tokens_per_second": round(result.tokens_per_second),
    }
