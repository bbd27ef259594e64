"""rankone reproduce, with good and bad input, as a user meets it; processes are real."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import runs
from answers import Run
from rankone.errors import TrainingError
from rankone.training.runs import OnEpoch

FIGURE = ("reproduce", "figure1", "toy", "--dim", 4)
SMALL = (*FIGURE, "--epochs", 2, "--depth", 1, "--no-theorem2")
LONG = ("reproduce", "figure1", "builtin", "--epochs", 100_000)
FILES = ["figure1.csv", "figure1.png", "figure1.svg", "figure1.json"]


def start(*words: object) -> subprocess.Popen[str]:
    """The command in a session of its own, as in a terminal of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "rankone", *map(str, words)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def session(process: subprocess.Popen[str]) -> list[int]:
    """What lives of the command and of all that it has started, in that order."""
    fields = ["ps", "-A", "-o", "pid=,sid=,stat="]
    table = subprocess.run(fields, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines()]
    return sorted(
        int(pid) for pid, own, state in rows if int(own) == process.pid and "Z" not in state
    )


def gone(process: subprocess.Popen[str]) -> bool:
    """Whether all of them have ended, at the latest a little after the command."""
    last = time.monotonic() + 20
    while session(process) and time.monotonic() < last:
        time.sleep(0.05)
    return not session(process)


def only_epochs(out: str) -> bool:
    return all(re.match(r"depth-\d-\w+, epoch \d+: loss ", line) for line in out.splitlines())


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A figure that would take hours, with its first run in the midst of an epoch."""
    process = start(*LONG, "--out", tmp_path / "f")
    home = tmp_path / "f" / "runs"
    try:
        runs.until(lambda: any(home.glob("*/log.jsonl")), process)
        assert process.poll() is None
        yield process
    finally:
        for pid in session(process):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


# Good.


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A figure of the toy of two kinds of attention, and what was printed."""
    home = tmp_path_factory.mktemp("figure") / "f"
    code, out, err = runs.end(runs.start(*SMALL, "--standard", "--out", home, "--json"))
    assert (code, err) == (0, "")
    return home, json.loads(out)


def test_files_and_json(drawn: tuple[Path, dict[str, Any]]) -> None:
    home, printed = drawn
    written = json.loads((home / "figure1.json").read_text())
    assert printed == {**written, "files": [str(home / name) for name in FILES]}
    assert {"ok", "source", "finals", "ceilings", "scheme", "machine"} <= printed.keys()
    assert {entry.name for entry in home.iterdir()} == {*FILES, "runs"}


def test_a_row_per_epoch(drawn: tuple[Path, dict[str, Any]]) -> None:
    text = (drawn[0] / "figure1.csv").read_text()
    assert text.splitlines()[0] == "depth,attention,epoch,loss,accuracy"
    rows = list(csv.DictReader(text.splitlines()))
    assert Counter((row["depth"], row["attention"]) for row in rows) == {
        ("1", "rank1"): 4,
        ("1", "softmax"): 2,
    }
    for row in rows:
        assert 0 <= float(row["accuracy"]) <= 1
        assert 0 < float(row["loss"]) < 10


@pytest.mark.slow
def test_the_same_command_again_gives_the_same_bytes_and_trains_nothing(
    drawn: tuple[Path, dict[str, Any]],
) -> None:
    home, _ = drawn
    before = {name: (home / name).read_bytes() for name in FILES[:-1]}
    figures = json.loads((home / FILES[-1]).read_text())
    kept = {path: path.stat().st_mtime_ns for path in home.glob("runs/*/checkpoint-*")}
    code, out, err = runs.end(runs.start(*SMALL, "--standard", "--out", home))
    assert (code, err) == (0, "")
    assert out.startswith("toy: training accuracy\n")
    assert out.endswith("".join(f"  {home / name}\n" for name in FILES))
    assert {name: (home / name).read_bytes() for name in FILES[:-1]} == before
    for name, value in json.loads((home / FILES[-1]).read_text()).items():
        assert value == figures[name]
    assert kept.keys() >= set(home.glob("runs/*/checkpoint-*"))


def test_runs_are_models(run: Run, drawn: tuple[Path, dict[str, Any]]) -> None:
    home, printed = drawn
    for final in printed["finals"]:
        model = home / "runs" / f"depth-{final['depth']}-{final['attention']}"
        assert run("predict", model, "toy", "--json").json["accuracy"] == final["model_accuracy"]


def test_a_line_per_epoch_of_every_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """At once, where nobody sees a progress bar; of what workers tell."""

    def train_all(*_: Any, on_epoch: OnEpoch, **__: Any) -> NoReturn:
        on_epoch("a", {"epoch": 3, "loss": 0.25, "accuracy": 0.5, "tokens_per_second": 1.0})
        raise TrainingError("enough", remedy="none")

    monkeypatch.setattr("rankone.training.figure1.train_all", train_all)
    told = "a, epoch 3: loss 0.25000, accuracy 50.0000%\n"
    words = (*SMALL, "--out", tmp_path / "f")
    assert run(*words).out == told
    assert run(*words, "--quiet").out == run(*words, "--json").out == ""


@pytest.mark.slow
def test_one_run_at_a_time_and_no_other_attention(tmp_path: Path) -> None:
    words = (*SMALL, "--depth", 2, "--jobs", 1, "--out", tmp_path / "f")
    code, out, err = runs.end(runs.start(*words))
    assert (code, err) == (0, "")
    told, _, rest = out.partition("toy: training accuracy\n")
    assert Counter(line.split(":")[0] for line in told.splitlines()) == {
        **{f"depth-1-rank1, epoch {epoch}": 1 for epoch in range(1, 5)},
        **{f"depth-2-rank1, epoch {epoch}": 1 for epoch in range(1, 3)},
    }
    assert rest
    names = {entry.name for entry in (tmp_path / "f" / "runs").iterdir()}
    assert names == {"depth-1-rank1", "depth-2-rank1"}
    assert json.loads((tmp_path / "f" / "figure1.json").read_text())["machine"]["jobs"] == 1


# Bad.


@pytest.mark.slow
def test_other_settings_in_the_same_directory(drawn: tuple[Path, dict[str, Any]]) -> None:
    home, _ = drawn
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    code, out, err = runs.end(runs.start(*SMALL, "--lr", 0.5, "--out", home, "--json"))
    assert (code, out) == (2, "")
    first, second = err.splitlines()
    assert first.startswith(f"rankone: {home / 'runs'}")
    assert first.endswith("this is another run: lr 0.5, not 0.001")
    assert second.startswith("  remedy: ")
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_divergence_is_one_message(tmp_path: Path) -> None:
    """Although other runs wait in the queue, with more than a pipe holds."""
    words = ("reproduce", "figure1", "builtin", "--epochs", 2, "--lr", 1e9)
    process = start(*words, "--depth", 1, "--standard", "--jobs", 1, "--out", tmp_path / "f")
    code, out, err = runs.end(process)
    assert (code, out) == (2, "")
    first, second = err.splitlines()
    assert "training diverged" in first
    assert "remedy: give a smaller --lr" in second
    assert gone(process)


@pytest.mark.slow
def test_killed_and_begun_again(tmp_path: Path) -> None:
    """Every run ends as if nothing had happened, and no process lives on."""
    words = ("reproduce", "figure1", "builtin", "--epochs", 3, "--depth", 2, "--dim", 4)
    more = ("--checkpoint-seconds", 0)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start(*words, *more, "--out", killed)
    log = killed / "runs" / "depth-2-rank1" / "log.jsonl"
    runs.until(lambda: log.exists() and log.read_bytes().count(b"\n") > 0, process)
    assert len(session(process)) > 1
    process.kill()
    process.communicate()
    assert gone(process)
    assert not (killed / "figure1.csv").exists()
    assert log.read_bytes().count(b"\n") < 6
    for home in (killed, whole):
        assert runs.end(runs.start(*words, "--out", home, "--quiet")) == (0, "", "")
    assert (killed / "figure1.csv").read_bytes() == (whole / "figure1.csv").read_bytes()


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_and_no_noise(begun: subprocess.Popen[str]) -> None:
    os.killpg(begun.pid, signal.SIGINT)  # as a terminal does: every process gets it
    code, out, err = runs.end(begun)
    assert gone(begun)
    again = "rankone: stopped; the same command continues from the checkpoints\n"
    assert (code, err) == (130, again)
    assert only_epochs(out)


@pytest.mark.slow
def test_a_run_that_was_ended_from_outside(begun: subprocess.Popen[str]) -> None:
    newest = max(session(begun))
    os.kill(newest, signal.SIGKILL)
    code, out, err = runs.end(begun)
    assert gone(begun)
    assert code == 2
    assert only_epochs(out)
    assert "run was ended from outside" in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("{tmp}/none",), "none: no such file"),
        (("{tmp}",), "is a directory"),
        (("{bare}",), "there are no labels"),
        (("toy", "--out", "{bare}"), "bare: cannot be made"),
        (("toy", "--out", "{bare}/f"), "f: cannot be made"),
        (("toy", "--lr", "nan"), "lr cannot be nan"),
        (("toy", "--label-column", "2"), "a built-in corpus has no layout"),
    ],
)
def test_refusals_come_before_any_work(
    run: Run, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "bare").write_text("a\nb\n")
    out = () if "--out" in words else ("--out", tmp_path / "f")
    given = (word.format(tmp=tmp_path, bare=tmp_path / "bare") for word in words)
    answer = run("reproduce", "figure1", *given, *out)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert len(answer.err.splitlines()) == 2
    assert {entry.name for entry in tmp_path.iterdir()} == {"bare"}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("toy", "--depth", 0),
        ("toy", "--jobs", 0),
        ("toy", "--epochs", 0),
        ("toy", "--attention", "rank1"),
    ],
)
def test_wrong_usage_ends_with_status_2(run: Run, words: tuple[object, ...]) -> None:
    answer = run("reproduce", "figure1", *words)
    assert (answer.code, answer.out) == (2, "")
    assert "Traceback" not in answer.err


def test_without_a_command_the_commands_are_listed(run: Run) -> None:
    answer = run("reproduce")
    assert answer.code == 2
    assert "figure1" in answer.out
    assert "No such command 'figure2'" in run("reproduce", "figure2").err
