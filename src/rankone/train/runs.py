"""Several runs at a time, each in a process and a directory of its own."""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from rankone.corpus import Corpus
from rankone.errors import RankOneError, TrainingError
from rankone.files import make_directory
from rankone.progress import Progress
from rankone.train.document import Line
from rankone.train.log import LOG
from rankone.train.memory import check_memory
from rankone.train.settings import Settings, short
from rankone.train.start import check_seconds
from rankone.train.train import train_model
from rankone.train.trained import Trained

MOST = 1024  # processes at a time
OnEpoch = Callable[[str, Line], None]  # gets the name of the run


@dataclass(frozen=True)
class Workers:
    """``jobs`` runs at a time, each on one thread: more do not pay for networks of this size, and
    the last bits must not depend on how many runs there are at a time."""

    jobs: int
    threads: int = 1

    @classmethod
    def share(cls, runs: int, jobs: int | None) -> Workers:
        """As many as there are cores, if nothing is said."""
        if jobs is not None and (type(jobs) is not int or not 1 <= jobs <= MOST):
            raise TrainingError(
                f"jobs cannot be {short(jobs)}", remedy=f"give a whole number from 1 to {MOST}"
            )
        cores = os.cpu_count() or 1
        if hasattr(os, "sched_getaffinity"):  # those that this process may use
            cores = len(os.sched_getaffinity(0))
        return cls(max(1, min(runs, jobs or cores)))

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
    on_epoch: OnEpoch,
) -> dict[str, Trained]:
    """Every run in ``home / name``, the longest first; existing runs are resumed."""
    check_seconds(checkpoint_seconds)
    for run in runs.values():
        check_memory(corpus, run)
    with _made(home):
        return _train_all(corpus, runs, home, workers, checkpoint_seconds, progress, on_epoch)


@contextlib.contextmanager
def _made(home: Path) -> Iterator[None]:
    """A directory; if the work fails, what is still empty of it is removed."""
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


def _train_all(
    corpus: Corpus,
    runs: Mapping[str, Settings],
    home: Path,
    workers: Workers,
    checkpoint_seconds: float,
    progress: Progress,
    on_epoch: OnEpoch,
) -> dict[str, Trained]:
    cost = {name: run.epochs * run.depth for name, run in runs.items()}
    waiting = sorted(runs, key=lambda name: cost[name])
    running: dict[Connection, tuple[str, BaseProcess]] = {}
    trained: dict[str, Trained] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers.jobs:
                name = waiting.pop()
                given = corpus, runs[name], home / name, workers.threads, checkpoint_seconds
                connection, process = _start(given)
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
        return {name: trained[name] for name in runs}
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()


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
    with contextlib.suppress(ConnectionError):  # it is gone already: `_received` will tell
        ours.send(given)  # not as arguments: a worker that is killed early would hold us for ever
    return ours, process


def _train(parent_end: Connection) -> None:
    """What a worker does. It must not live on when the process that started it was killed."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

    def tell(line: Line) -> None:
        with contextlib.suppress(OSError):  # nobody is there: `watch` ends us
            parent_end.send_bytes(pickle.dumps(line))

    outcome: Trained | Exception
    corpus, run, out, threads, seconds = parent_end.recv()
    try:
        outcome = train_model(
            corpus,
            run,
            out=out,
            resume=True,
            threads=threads,
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


def _received(connection: Connection, out: Path) -> Trained | Line:
    """What a worker has sent: an epoch, or what came of the run, be it an error."""
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
    received: Trained | Line = sent
    return received


def _epochs(out: Path) -> int:
    try:
        return (out / LOG).read_bytes().count(b"\n")
    except OSError:
        return 0
