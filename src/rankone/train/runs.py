"""Several runs at a time, each in a process and a directory of its own."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import torch

from rankone.corpus import Corpus
from rankone.errors import TrainingError
from rankone.nn.store import make_directory
from rankone.progress import Progress
from rankone.train.log import LOG
from rankone.train.settings import Settings
from rankone.train.train import train_model
from rankone.train.trained import Trained


@dataclass(frozen=True)
class Workers:
    """``jobs`` runs at a time, each on ``threads`` threads."""

    jobs: int
    threads: int

    @classmethod
    def share(cls, runs: int, jobs: int | None) -> Workers:
        """As many as there are cores, if nothing is said, and all cores shared among them."""
        cores = os.cpu_count() or 1
        if hasattr(os, "sched_getaffinity"):  # those that this process may use
            cores = len(os.sched_getaffinity(0))
        jobs = max(1, min(runs, jobs or cores))
        return cls(jobs, max(1, cores // jobs))

    def to_json(self) -> dict[str, Any]:
        """And what machine they work on."""
        processor = platform.processor() or platform.machine()
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            processor = next(x for x in lines if x.startswith("model name")).split(":")[1].strip()
        except (OSError, StopIteration):
            pass
        return {
            "processor": processor,
            "cores": os.cpu_count(),
            "jobs": self.jobs,
            "threads": self.threads,
            "system": platform.system(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        }


def train_all(
    corpus: Corpus,
    runs: Mapping[str, Settings],
    home: Path,
    workers: Workers,
    *,
    checkpoint_seconds: float,
    progress: Progress,
) -> dict[str, Trained]:
    """Every run in ``home / name``, the longest first; what is there already is gone on with."""
    make_directory(home)
    cost = {name: run.epochs * run.depth for name, run in runs.items()}
    pool = ProcessPoolExecutor(workers.jobs, get_context("spawn"), _end_with_parent)
    try:
        futures = {
            name: pool.submit(
                _train, corpus, runs[name], home / name, workers.threads, checkpoint_seconds
            )
            for name in sorted(runs, key=lambda name: -cost[name])
        }
        while any(not future.done() for future in futures.values()):
            time.sleep(0.2)
            done = {name: _epochs(home / name) for name in runs}
            share = sum(done[name] * run.depth for name, run in runs.items()) / sum(cost.values())
            whole = sum(run.epochs for run in runs.values())
            progress(f"{sum(done.values()):,} of {whole:,} epochs", share)
            for future in futures.values():
                if future.done():
                    future.result()  # raises what the run raised
        return {name: futures[name].result() for name in runs}
    except BrokenProcessPool:
        raise TrainingError(
            "a run was ended from outside",
            where=str(home),
            remedy="give the same command again: it goes on from the checkpoints",
        ) from None
    finally:
        workers_left = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in workers_left:
            process.terminate()


def _train(corpus: Corpus, run: Settings, out: Path, threads: int, seconds: float) -> Trained:
    return train_model(
        corpus, run, out=out, resume=True, threads=threads, checkpoint_seconds=seconds
    )


def _end_with_parent() -> None:
    """Runs must not live on when the process that asked for them was killed."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _epochs(out: Path) -> int:
    try:
        return (out / LOG).read_bytes().count(b"\n")
    except OSError:
        return 0
