"""rankone train: what it says while it runs and when it is resumed, and what it leaves behind."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from answers import Run
from rankone.cli import main, running
from rankone.training import checkpoint
from rankone.training.document import EpochLine

SHORT = ("toy", "--epochs", 2, "--dim", 4)


@pytest.fixture
def train(run: Run) -> Run:
    return partial(run, "train")


def test_a_line_per_epoch_is_written_at_once(
    train: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Into a file, a line is there before the next epoch begins."""
    path = tmp_path / "output"
    seen: list[str] = []
    text = running.epoch_text

    def look(line: EpochLine) -> str:
        seen.append(path.read_text())
        return text(line)

    monkeypatch.setattr(running, "epoch_text", look)
    with open(path, "w") as file, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", file)
        assert train(*SHORT, "--evaluate", "toy").code == 0
    assert [part.count("\n") for part in seen] == [0, 1]
    first, second = path.read_text().splitlines()[:2]
    assert first.startswith("epoch 1: loss 0.")
    assert "; toy: accuracy " in first
    assert second.startswith("epoch 2: ")


def test_an_epoch_in_words() -> None:
    line: EpochLine = {"epoch": 3, "loss": 0.25, "accuracy": 0.5, "tokens_per_second": 1.0}
    assert running.epoch_text(line) == "epoch 3: loss 0.25000, accuracy 50.0000%"
    line["evaluations"] = [
        {"source": "a", "accuracy": 0.25, "f1": 0.75},
        {"source": "b", "accuracy": 1.0, "f1": None},
    ]
    assert running.epoch_text(line) == (
        "epoch 3: loss 0.25000, accuracy 50.0000%; a: accuracy 25.0000%, F1 75.00%; "
        "b: accuracy 100.0000%"
    )


def test_resuming_says_what_was_changed(train: Run, tmp_path: Path) -> None:
    home = tmp_path / "m"
    first = train(*SHORT, "--out", home, "--resume")
    assert first.err == f"rankone: {home}: nothing to resume, so this is a new run\n"
    answer = train("toy", "--out", home, "--resume", "--epochs", 3, "--lr", 0.5)
    assert answer.code == 0
    change = "lr 0.5 (was 0.001)"
    assert answer.err.splitlines() == [
        f"rankone: {home}: resumed after epoch 2; changed: epochs 3 (was 2), {change}",
    ]
    assert f"After epoch 2: {change}." in answer.out
    again = train("toy", "--out", home, "--resume", "--json")
    assert again.json["settings"] == {**again.json["settings"], "epochs": 3, "lr": 0.5, "dim": 4}
    assert again.json["remarks"] == [f"After epoch 2: {change}."]
    plain = train("toy", "--out", home, "--resume").err.splitlines()
    assert plain[-1] == f"rankone: {home}: resumed after epoch 3"


def test_columns_are_those_the_run_was_started_with(train: Run, tmp_path: Path) -> None:
    path, home = tmp_path / "c.txt", tmp_path / "m"
    path.write_text("x A I-P Q\ny b O Q\n\nz a I-P Q\n")
    how = ("--token-column", 2, "--label-column", 3, "--scheme", "iob2", "--lower")
    train(path, "--epochs", 1, *how, "--out", home, "--quiet")
    answer = train(path, "--epochs", 2, "--out", home, "--resume")
    assert (answer.code, "2 epochs" in answer.out) == (0, True)
    assert "Entity tags are read as IOB2 (--scheme iob2)." in answer.out
    assert json.loads((home / "vocabulary.json").read_text()) == ["a", "b"]


@pytest.mark.parametrize("file", ["rows", "builtin"])
def test_built_in_corpora_next_to_files_with_columns(train: Run, tmp_path: Path, file: str) -> None:
    """The options are for the files."""
    path = tmp_path / "rows"
    path.write_text("O Ada B-PER\nO left O\n")
    given = {"rows": path, "builtin": "builtin"}
    other = given["builtin" if file == "rows" else "rows"]
    how = ("--token-column", 2, "--no-positions", "--epochs", 1, "--dim", 4)
    answer = train(given[file], *how, "--evaluate", other, "--json")
    assert answer.code == 0
    tokens = {answer.json["tokens"], answer.json["evaluations"][0]["tokens"]}
    assert tokens == {2, 16_525}


def test_patience_is_told(train: Run, tmp_path: Path) -> None:
    how = ("--epochs", 50, "--lr", 0.1, "--evaluate", "toy", "--patience", 1)
    answer = train("toy", *how, "--out", tmp_path / "m")
    assert answer.code == 0
    report = json.loads((tmp_path / "m" / "report.json").read_text())
    assert report["epochs"] == report["best_epoch"] + 1 < 50
    assert f"epoch {report['best_epoch']}, the best" in answer.out
    again = train("toy", "--out", tmp_path / "m", "--resume")
    assert again.code == 2
    assert "--evaluate (it was toy), or give --patience 0" in again.err


def test_quiet_is_quiet_even_about_a_damaged_checkpoint(train: Run, tmp_path: Path) -> None:
    home = tmp_path / "m"
    train(*SHORT, "--out", home, "--checkpoint-seconds", 0, "--quiet")
    damaged = max(home.glob("checkpoint-*"))
    for words, expected in (((), "damaged"), (("--quiet",), ""), (("--json",), "damaged")):
        damaged.write_bytes(b"")
        answer = train("toy", "--out", home, "--resume", *words)
        assert answer.code == 0
        assert expected in answer.err
        assert bool(answer.err) == bool(expected)
        damaged = max(home.glob("checkpoint-*"))
    assert logging.getLogger("rankone").handlers == []


@pytest.mark.parametrize("stopped", ["without a directory", "before the first checkpoint"])
def test_ctrl_c_with_nothing_to_resume(
    train: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stopped: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    if stopped == "without a directory":
        monkeypatch.setattr(sys.modules["rankone.training.train"], "fit", interrupt)
        answer = train(*SHORT)
        assert answer.err == "rankone: stopped; nothing was written (no --out DIR)\n"
    else:
        monkeypatch.setattr(checkpoint, "write", interrupt)
        answer = train(*SHORT, "--out", tmp_path / "deep" / "m")
        assert answer.err == "rankone: stopped; nothing was written\n"
    assert list(tmp_path.iterdir()) == []
    assert answer.code == 130


def full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("moment", ["os.fsync", "os.replace", "tempfile.TemporaryDirectory"])
@pytest.mark.parametrize("before", ["new", "empty"])
def test_a_full_disk_leaves_nothing(
    train: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: str, before: str
) -> None:
    home = tmp_path / "deep" / "m"
    if before == "empty":
        home.mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(moment, full)
        answer = train(*SHORT, "--out", home, "--tensorboard", tmp_path / "board")
    assert answer.code == 2
    assert "No space left on device" in answer.err
    assert len(answer.err.splitlines()) == 2
    left = {path.name for path in tmp_path.rglob("*")}
    assert left == ({"deep", "m"} if before == "empty" else set())


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A place that an ordinary user can reach; this process is one while the test lasts."""
    if not hasattr(os, "seteuid"):
        pytest.skip("there are no users here")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o777)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield place
    finally:
        if root:
            os.seteuid(0)
        for path in place.rglob("*"):
            path.chmod(0o700)
        shutil.rmtree(place)


def test_what_an_ordinary_user_may_not_write_or_read(
    ordinary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*words: object, what: str) -> None:
        monkeypatch.setattr(sys, "argv", ["rankone", "train", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert (left.value.code, out) == (2, "")
        assert what in err
        assert len(err.splitlines()) == 2

    from rankone import train

    home, locked = ordinary / "run", ordinary / "locked"
    train("toy", {"epochs": 1, "dim": 4}, out=home)
    files = {path.name: path.read_bytes() for path in home.iterdir()}
    locked.mkdir()
    for path, mode in ((locked, 0o500), (home, 0o500)):
        path.chmod(mode)
    refused("toy", "--out", locked, what="locked")
    refused("toy", "--out", locked / "deep" / "m", what="Permission denied")
    refused("toy", "--epochs", 2, "--out", home, "--resume", "-q", what="Permission denied")
    home.chmod(0o000)
    refused("toy", "--out", home, "--resume", what="Permission denied")
    home.chmod(0o500)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == files
    assert list(locked.iterdir()) == []
