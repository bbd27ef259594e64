"""The paper's experiment: the depths beside each other, crash-safe, and what they show."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import torch

from rankone.corpus import Ceiling, Corpus
from rankone.drawing import write_plots
from rankone.errors import TrainingError
from rankone.nn.store import make_directory, write_file
from rankone.progress import Progress
from rankone.train.curves import PAPER, Curve, as_csv, plot_curves
from rankone.train.log import LOG
from rankone.train.settings import Attention, Settings
from rankone.train.train import train_model
from rankone.train.trained import Trained, attention_share

DEPTHS = 1, 3, 6  # the paper's
KINDS: tuple[Attention, ...] = "rank1", "theorem2", "softmax"


@dataclass(frozen=True)
class Figure1:
    """The curves of all runs, their final figures, and where and how they were made."""

    source: str
    curves: list[Curve]
    finals: list[dict[str, Any]]
    ceilings: dict[str, Ceiling]
    settings: dict[str, Any]
    machine: dict[str, Any]
    seconds: float
    files: list[Path]

    @property
    def ok(self) -> bool:
        """Whether deeper networks of rank 1 pass what depth 1 ends with sooner than it does."""
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
        """The figures, without the curves, which are in the CSV."""
        return {
            "ok": self.ok,
            "source": self.source,
            "finals": self.finals,
            "ceilings": {name: asdict(c) for name, c in self.ceilings.items()},
            "settings": self.settings,
            "machine": self.machine,
            "seconds": self.seconds,
            "files": [str(path) for path in self.files],
        }


def plan(
    settings: Settings, depths: Sequence[int], attentions: Sequence[Attention]
) -> list[Settings]:
    """All depths with rank 1, the least one for twice as many epochs, as in the paper; and the
    least one with each other kind of attention."""
    least = min(depths)
    runs = [
        replace(settings, depth=d, attention="rank1", epochs=settings.epochs * (1 + (d == least)))
        for d in sorted(set(depths))
        if "rank1" in attentions
    ]
    others = [kind for kind in dict.fromkeys(attentions) if kind != "rank1"]
    return runs + [replace(settings, depth=least, attention=kind) for kind in others]


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
) -> Figure1:
    """Train all of them, `jobs` at a time, and write figure1.csv, .json, .png and .svg.

    Each run has a directory of its own below ``runs``; what is there already is gone on with, so
    the same call continues after a crash and is quick when all is done.
    """
    home = make_directory(directory)
    runs = plan(settings or Settings(), depths, attentions)
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    jobs = max(1, min(len(runs), jobs or cores))
    threads = max(1, cores // jobs)
    places = [home / "runs" / f"depth-{run.depth}-{run.attention}" for run in runs]
    make_directory(home / "runs")
    trained = _train_all(corpus, runs, places, jobs, threads, checkpoint_seconds, progress)
    ceilings = trained[0].ceilings
    curves = [
        Curve(
            run.depth,
            run.attention,
            [line["loss"] for line in result.curve],
            [line["accuracy"] for line in result.curve],
        )
        for run, result in zip(runs, trained, strict=True)
    ]
    found = Figure1(
        source=Path(corpus.source).name,
        curves=curves,
        finals=[
            _final(run, curve, result)
            for run, curve, result in zip(runs, curves, trained, strict=True)
        ],
        ceilings=ceilings,
        settings={**runs[0].to_json(), "scheme": corpus.scheme},
        machine=machine(threads, jobs),
        seconds=sum(result.seconds for result in trained),
        files=[],
    )
    on_paper = corpus.scheme is not None and runs[0].epochs >= PAPER[0]
    found.files.append(write_file(home / "figure1.csv", as_csv(curves)))
    found.files.extend(
        write_plots(home, {"figure1": lambda: plot_curves(curves, ceilings, paper=on_paper)})
    )
    found.files.append(home / "figure1.json")
    write_file(found.files[-1], json.dumps(found.to_json(), indent=2) + "\n")
    return found


def _final(run: Settings, curve: Curve, result: Trained) -> dict[str, Any]:
    return {
        "depth": run.depth,
        "attention": run.attention,
        "epochs": run.epochs,
        "accuracy": curve.accuracy[-1],
        "best": max(curve.accuracy),
        "first_above_paper": curve.first_above(PAPER[1]),
        "attention_share": attention_share(curve.accuracy[-1], result.ceilings),
        "model_accuracy": result.accuracy,
        "parameters": result.parameters,
        "seconds": round(result.seconds, 1),
        "tokens_per_second": round(result.tokens_per_second),
    }


def machine(threads: int, jobs: int) -> dict[str, Any]:
    """What the figures were made on."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(x for x in lines if x.startswith("model name")).split(":")[1].strip()
    except (OSError, StopIteration):
        pass
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": threads,
        "jobs": jobs,
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _train_all(
    corpus: Corpus,
    runs: Sequence[Settings],
    places: Sequence[Path],
    jobs: int,
    threads: int,
    seconds: float,
    progress: Progress,
) -> list[Trained]:
    """In processes of their own, the longest first."""
    total = sum(run.epochs * run.depth for run in runs)
    order = sorted(range(len(runs)), key=lambda i: -runs[i].epochs * runs[i].depth)
    futures: dict[int, Future[Trained]] = {}
    with ProcessPoolExecutor(jobs, get_context("spawn"), _end_with_parent) as pool:
        for i in order:
            futures[i] = pool.submit(_train_one, corpus, runs[i], places[i], threads, seconds)
        try:
            while not all(future.done() for future in futures.values()):
                time.sleep(0.2)
                done = [_epochs(place) for place in places]
                share = sum(n * run.depth for n, run in zip(done, runs, strict=True)) / total
                progress(f"{sum(done)} of {sum(run.epochs for run in runs)} epochs", share)
                for future in futures.values():
                    if future.done():
                        future.result()
            return [futures[i].result() for i in range(len(runs))]
        except BrokenProcessPool:
            raise TrainingError(
                "a run was ended from outside",
                where=str(places[0].parent),
                remedy="give the same command again: it goes on from the checkpoints",
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((pool._processes or {}).values()):
                process.terminate()


def _train_one(corpus: Corpus, run: Settings, place: Path, threads: int, seconds: float) -> Trained:
    return train_model(
        corpus, run, out=place, resume=True, threads=threads, checkpoint_seconds=seconds
    )


def _end_with_parent() -> None:
    """Runs must not live on when the process that asked for them was killed."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _epochs(place: Path) -> int:
    try:
        return (place / LOG).read_bytes().count(b"\n")
    except OSError:
        return 0
