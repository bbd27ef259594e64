"""Training in processes of their own, which end by themselves, or by a real kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankone
from rankone import Corpus, Settings

PATIENCE = 120.0  # seconds until a process that hangs is taken for a failure
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0"}
TOUCHES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir"}


def corpus(sentences: int = 20) -> Corpus:
    """The first sentences of the built-in corpus."""
    return Corpus.from_sentences(rankone.read_corpus("builtin").sentences[:sentences])


def start(*arguments: object, processes: int = 1) -> subprocess.Popen[str]:
    """`rankone ...`, or the same under torchrun, which talks to this machine only."""
    torchrun = f"-m torch.distributed.run --standalone --nproc-per-node {processes}".split()
    return subprocess.Popen(
        [
            sys.executable,
            *(torchrun if processes > 1 else []),
            "-m",
            "rankone",
            *map(str, arguments),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1", **LOOPBACK},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Status and output of a command, which has to end by itself."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        kill(process)
    return process.returncode, out, err


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL for the command and all that it has started."""
    if process.poll() is None:
        for pid in (process.pid, *_below(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def _below(parent: int) -> list[int]:
    """The children of a process (torchrun gives them sessions of their own), and theirs."""
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True)
    pairs = [tuple(map(int, line.split())) for line in table.stdout.splitlines()]
    children = [pid for pid, above in pairs if above == parent]
    return [*children, *(pid for child in children for pid in _below(child))]


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that the process does, or for its end."""
    last = time.monotonic() + PATIENCE
    while process.poll() is None and not condition():
        assert time.monotonic() < last, "waited in vain"
        time.sleep(0.001)


def train_and_die(touch: int, corpus: Corpus, settings: Settings, **more: Any) -> bool:
    """`train` in a fork of this process, which SIGKILL ends when it is about to touch files
    in `out` for the `touch`-th time; whether that happened before it was done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside idle threads
        pid = os.fork()
    if pid == 0:
        try:
            _die_at(touch, str(more["out"]))
            rankone.train(corpus, settings, **more)
            os._exit(0)
        finally:
            os._exit(1)
    last = time.monotonic() + PATIENCE
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > last:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    status = os.waitstatus_to_exitcode(ended[1])
    assert status in (0, -signal.SIGKILL), "ended with an error"
    assert time.monotonic() < last, "did not end"
    return status != 0


def _die_at(touch: int, place: str) -> None:
    touches = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal touches
        if event in TOUCHES and str(arguments[0]).startswith(place):
            touches += 1
            if touches == touch:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def log(out: Path) -> list[dict[str, float]]:
    """The log of a run, without what no two runs have in common."""
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "tokens_per_second"} for line in lines]


def weights(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


def board(place: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows: of each figure, (epoch, value)."""
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    shown = events.EventAccumulator(str(place))
    shown.Reload()
    return {
        tag: [(event.step, event.value) for event in shown.Scalars(tag)]
        for tag in shown.Tags()["scalars"]
    }


def as_shown(curve: list[dict[str, float]], name: str) -> list[tuple[int, float]]:
    """What it should show, in single precision."""
    return [(int(line["epoch"]), float(np.float32(line[name]))) for line in curve]
