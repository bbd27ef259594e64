"""Several runs at a time, each in a process and a directory of its own."""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypedDict, Unpack

import torch

from rankone.corpus import Corpus
from rankone.errors import RankOneError, SettingError, TrainingError
from rankone.files import make_directory
from rankone.progress import Progress
from rankone.training.document import EpochLine
from rankone.training.footprint import check_memory
from rankone.training.log import LOG
from rankone.training.settings import Settings
from rankone.training.start import SECONDS, check_seconds
from rankone.training.train import train
from rankone.training.trained import Trained

MOST = 1024  # processes at a time
# Of each run: more do not pay off for networks of this size, and the last bits must not depend on
# how many runs there are at a time.
THREADS = 1
OnEpoch = Callable[[str, EpochLine], None]  # gets the name of the run


def runs_at_a_time(runs: int, jobs: int | None) -> int:
    """One per core, unless `jobs` says how many."""
    sound = jobs is None or (type(jobs) is int and 1 <= jobs <= MOST)
    SettingError.unless(sound, "jobs", jobs, f"a whole number from 1 to {MOST}")
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # those that this process may use
        cores = len(os.sched_getaffinity(0))
    return max(1, min(runs, jobs or cores))


def machine(jobs: int) -> dict[str, Any]:
    """Where the runs were trained."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(x for x in lines if x.startswith("model name")).split(":")[1].strip()
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "jobs": jobs,
        "threads": THREADS,
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


class How(TypedDict, total=False):
    """How several runs are trained: ``jobs`` of them at a time (one per core), with a checkpoint
    every ``checkpoint_seconds`` (60). ``progress`` gets the stage and the share of the work that is
    done, ``on_epoch`` the name of a run and each line of its log."""

    jobs: int | None
    checkpoint_seconds: float
    progress: Progress
    on_epoch: OnEpoch


def train_all(
    corpus: Corpus, runs: Mapping[str, Settings], home: Path, **how: Unpack[How]
) -> tuple[dict[str, Trained], dict[str, Any]]:
    """Every run in ``home / name``, the longest first, and the machine they were trained on;
    existing runs are resumed."""
    jobs = runs_at_a_time(len(runs), how.get("jobs"))
    seconds = check_seconds(how.get("checkpoint_seconds", SECONDS))
    progress, on_epoch = how.get("progress", _nothing), how.get("on_epoch", _nothing)
    for run in runs.values():
        check_memory(corpus, run)
    cost = {name: run.epochs * run.depth for name, run in runs.items()}
    waiting = sorted(runs, key=lambda name: cost[name])
    running: dict[Connection, tuple[str, BaseProcess]] = {}
    trained: dict[str, Trained] = {}
    with _made(home), _ended(running):
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop()
                connection, process = _start((corpus, runs[name], home / name, seconds))
                running[connection] = name, process
            for ready in wait(list(running), timeout=0.2):
                assert isinstance(ready, Connection)
                name, process = running[ready]
                sent = _received(ready, home / name)
                if not isinstance(sent, Trained):
                    on_epoch(name, sent)
                    continue
                trained[name] = sent
                del running[ready]
                process.join()
            done = {name: _epochs(home / name) for name in runs}
            share = sum(done[name] * run.depth for name, run in runs.items()) / sum(cost.values())
            whole = sum(run.epochs for run in runs.values())
            progress(f"{sum(done.values()):,} of {whole:,} epochs", share)
    return {name: trained[name] for name in runs}, machine(jobs)


def _nothing(*_: Any) -> None:
    """Reports nothing."""


@contextlib.contextmanager
def _ended(running: Mapping[Connection, tuple[str, BaseProcess]]) -> Iterator[None]:
    """End all workers, whatever happens."""
    try:
        yield
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()


@contextlib.contextmanager
def _made(home: Path) -> Iterator[None]:
    """Make a directory; if the work fails, directories that are still empty are removed."""
    new = [path for path in (home, *home.parents) if not path.exists()]
    try:
        make_directory(home.parent)
        make_directory(home)
        yield
    except BaseException:
        for path in new:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def _start(given: tuple[Any, ...]) -> tuple[Connection, BaseProcess]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_train, args=(theirs,), daemon=True)
    # Ctrl-C is for the parent, which ends its workers. They inherit that it is blocked; starting
    # the resource tracker would let it through again, so that has to be done before.
    resource_tracker.ensure_running()
    blocks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
    try:
        process.start()
    finally:
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    with contextlib.suppress(ConnectionError):  # it has ended already: `_received` reports that
        ours.send(given)  # not as arguments: a worker that is killed early would hold us for ever
    return ours, process


def _train(parent_end: Connection) -> None:
    """What a worker does. It must not outlive the process that started it."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

    def tell(line: EpochLine) -> None:
        with contextlib.suppress(OSError):  # nobody is there: `watch` ends us
            parent_end.send_bytes(pickle.dumps(line))

    outcome: Trained | Exception
    corpus, run, out, seconds = parent_end.recv()
    try:
        outcome = train(
            corpus,
            run,
            out=out,
            resume=True,
            threads=THREADS,
            checkpoint_seconds=seconds,
            on_epoch=tell,
        )
    except RankOneError as error:
        named = str(out) in str(error.where)
        where = error.where if named else f"{out.name}, {error.where}"
        outcome = type(error)(error.what, where=where, remedy=error.remedy)
    except MemoryError as error:
        outcome = error
    # By value: `send` would share the memory of tensors, which is gone when this process ends.
    parent_end.send_bytes(pickle.dumps(outcome))


def _received(connection: Connection, out: Path) -> Trained | EpochLine:
    """What a worker has sent: an epoch, or the result of the run; an error is raised."""
    try:
        sent = pickle.loads(connection.recv_bytes())
    except (EOFError, ConnectionError):
        raise TrainingError(
            "this run was ended from outside",
            where=str(out),
            remedy="give the same command again: it continues from the checkpoints",
        ) from None
    if isinstance(sent, Exception):
        raise sent
    received: Trained | EpochLine = sent
    return received


def _epochs(out: Path) -> int:
    try:
        return (out / LOG).read_bytes().count(b"\n")
    except OSError:
        return 0
