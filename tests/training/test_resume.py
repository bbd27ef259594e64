"""Runs that are killed, at any moment, and go on: real processes, real kills."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import corpora
import rankone
import runs
from rankone import Corpus, Settings, train
from rankone.cli import main
from rankone.errors import OutputError, TrainingError
from rankone.training.directory import locked
from runs import log, weights

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are those of POSIX")

SETTINGS = Settings(epochs=2, batch_size=6, dim=4)
CORPUS = runs.corpus(10)


def steps(home: Path) -> list[int]:
    return sorted(int(path.name.split("-")[1]) for path in home.glob("checkpoint-*"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an undisturbed run leaves."""
    home = tmp_path_factory.mktemp("whole") / "run"
    train(CORPUS, SETTINGS, out=home)
    return home


def same(home: Path, whole: Path) -> bool:
    model = all(
        (home / name).read_bytes() == (whole / name).read_bytes()
        for name in ("model.safetensors", "config.json", "vocabulary.json", "labels.json")
    )
    return model and log(home) == log(whole)


def sweep(tmp_path: Path, whole: Path, first: int, stride: int) -> None:
    """Kill a run at each of its touches of the disk, and let it go on; at last it comes through."""
    more: dict[str, Any] = {"checkpoint_seconds": 0, "resume": True}
    touch = first
    while True:
        home = tmp_path / str(touch)
        if not runs.train_and_die(touch, CORPUS, SETTINGS, out=home, **more):
            break
        result = train(CORPUS, SETTINGS, out=home, **more)
        assert same(home, whole), f"killed at touch {touch}"
        assert result.remarks == ()
        assert not list(home.glob(".*"))
        touch += stride
    assert same(home, whole)
    assert touch > 30


def test_killed_at_some_touches_of_the_disk(tmp_path: Path, whole: Path) -> None:
    sweep(tmp_path, whole, 1, 7)


@pytest.mark.slow
def test_killed_at_every_touch_of_the_disk(tmp_path: Path, whole: Path) -> None:
    sweep(tmp_path, whole, 1, 1)


@pytest.mark.parametrize("attention", ["theorem2", "softmax"])
def test_killed_many_times_in_one_run(tmp_path: Path, attention: Any) -> None:
    """Every life is a little longer than the one before."""
    settings = replace(SETTINGS, attention=attention, depth=2, epochs=3, optimizer="sgd", lr=0.01)
    settings = replace(settings, momentum=0.9, schedule="linear", accuracy="after", init_std=1.0)
    train(CORPUS, settings, out=tmp_path / "whole")
    home, lives = tmp_path / "run", 1
    while runs.train_and_die(
        10 + 4 * lives, CORPUS, settings, out=home, checkpoint_seconds=0, resume=True
    ):
        lives += 1
    assert lives > 5
    assert same(home, tmp_path / "whole")


def test_between_checkpoints_the_work_is_done_again(tmp_path: Path, whole: Path) -> None:
    """With none but the first checkpoint, a run that is killed late begins anew."""
    home = tmp_path / "run"
    assert runs.train_and_die(14, CORPUS, SETTINGS, out=home)
    assert steps(home) == [0]
    result = train(CORPUS, SETTINGS, out=home, resume=True)
    assert same(home, whole)
    assert [line["epoch"] for line in result.curve] == [1, 2]


TRAIN = "train", "toy", "--epochs", 40, "--batch-size", 3, "--dim", 4, "--checkpoint-seconds", 0


@pytest.mark.slow
def test_the_command_killed_at_its_start_and_in_the_midst(tmp_path: Path) -> None:
    home = tmp_path / "run"
    process = runs.start(*TRAIN, "--out", home)
    runs.until(home.is_dir, process)
    runs.kill(process)
    assert process.returncode == -9
    process = runs.start(*TRAIN, "--out", home, "--resume")
    runs.until(lambda: bool(steps(home)) and steps(home)[-1] > 20, process)
    runs.kill(process)
    assert process.returncode == -9, "was done before it could be killed"
    assert not (home / "model.safetensors").exists()
    status, out, err = runs.end(runs.start(*TRAIN, "--out", home, "--resume", "--json"))
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert (answer["epochs"], answer["steps"], answer["remarks"]) == (40, 160, [])
    settings = Settings(epochs=40, batch_size=3, dim=4)
    train(rankone.read_corpus("toy"), settings, out=tmp_path / "whole")
    assert same(home, tmp_path / "whole")


def test_more_epochs_for_a_run_that_is_finished(tmp_path: Path, whole: Path) -> None:
    home = shutil.copytree(whole, tmp_path / "run")
    (home / "certificate.json").write_text("{}")  # of the weights as they were
    more = replace(SETTINGS, epochs=5)
    result = train(CORPUS, more, out=home, resume=True)
    train(CORPUS, more, out=tmp_path / "other")
    assert same(home, tmp_path / "other")
    assert (result.epochs, result.steps) == (5, 10)
    assert result.settings["epochs"] == 5
    assert log(home)[:2] == log(whole)
    assert not (home / "certificate.json").exists()


def test_a_finished_run_is_finished(tmp_path: Path, whole: Path) -> None:
    home = shutil.copytree(whole, tmp_path / "run")
    stages: list[str] = []
    result = train(
        CORPUS, SETTINGS, out=home, resume=True, progress=lambda stage, _: stages.append(stage)
    )
    assert stages == []
    assert same(home, whole)
    assert (home / "log.jsonl").read_text() == (whole / "log.jsonl").read_text()
    report = json.loads((whole / "report.json").read_text())
    assert result.to_json() == report
    assert steps(home) == steps(whole) == [0, 4]


def test_fewer_epochs_than_are_done(tmp_path: Path) -> None:
    """A model of 3 epochs and some batches more is not one of 2."""
    home = tmp_path / "run"
    settings = replace(SETTINGS, epochs=9)
    touch = 25
    while len(log(home)) < 3 if (home / "log.jsonl").exists() else True:
        shutil.rmtree(home, ignore_errors=True)
        assert runs.train_and_die(touch, CORPUS, settings, out=home, checkpoint_seconds=0)
        touch += 5
    with pytest.raises(TrainingError, match="epochs"):
        train(CORPUS, SETTINGS, out=home, resume=True)
    assert train(CORPUS, settings, out=home, resume=True).epochs == 9


def test_a_new_directory_is_begun_with_resume_too(tmp_path: Path, whole: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new"):
        train(CORPUS, SETTINGS, out=tmp_path / name, resume=True)
        assert same(tmp_path / name, whole)


CHANGES: dict[str, Any] = {
    "depth": 2,
    "batch_size": 5,
    "attention": "softmax",
    "dim": 8,
    "hidden": 7,
    "positions": False,
    "optimizer": "sgd",
    "lr": 0.5,
    "schedule": "linear",
    "init_std": 0.5,
    "accuracy": "after",
    "dtype": "float64",
    "seed": 1,
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_settings_are_refused_and_named(tmp_path: Path, whole: Path, name: str) -> None:
    home = shutil.copytree(whole, tmp_path / "run")
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    wanted = rf"another run: {name} {CHANGES[name]}, not {getattr(SETTINGS, name)}\n"
    with pytest.raises(TrainingError, match=wanted) as error:
        train(CORPUS, replace(SETTINGS, **{name: CHANGES[name]}), out=home, resume=True)
    assert error.value.where == str(home)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before


def test_epochs_of_a_linear_schedule_are_settings_too(tmp_path: Path) -> None:
    linear = replace(SETTINGS, schedule="linear")
    train(CORPUS, linear, out=tmp_path / "run")
    with pytest.raises(TrainingError, match="another run: epochs 3, not 2\n"):
        train(CORPUS, replace(linear, epochs=3), out=tmp_path / "run", resume=True)
    train(CORPUS, linear, out=tmp_path / "run", resume=True)


FEW = corpora.spelled("ab xy", "c x")
OTHERS = {
    "a label": corpora.spelled("ab yx", "c x"),
    "a word": corpora.spelled("ad xy", "c x"),
    "the name of a label": corpora.spelled("ab zy", "c z"),
    "the order": corpora.spelled("c x", "ab xy"),
    "the ends of sentences": corpora.spelled("a x", "bc yx"),
    "one more": [*FEW, *FEW],
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_corpus_is_refused(tmp_path: Path, other: corpora.Sentences) -> None:
    train(FEW, SETTINGS, out=tmp_path / "run")
    with pytest.raises(TrainingError, match=r"another run: .*the corpus is another one"):
        train(other, SETTINGS, out=tmp_path / "run", resume=True)
    train(FEW, SETTINGS, out=tmp_path / "run", resume=True)


def test_words_and_labels_are_not_taken_for_each_other() -> None:
    first = Corpus.from_sentences([(["a", "bc"], ["d", "d"])])
    second = Corpus.from_sentences([(["a", "b"], ["cd", "cd"])])
    assert first.sha256 != second.sha256


def test_a_corpus_may_have_moved(tmp_path: Path, whole: Path) -> None:
    """What counts is what it holds, not its name."""
    home = shutil.copytree(whole, tmp_path / "run")
    moved = replace(CORPUS, source="elsewhere")
    assert train(moved, SETTINGS, out=home, resume=True).source == "elsewhere"


def test_a_run_is_not_written_over(tmp_path: Path, whole: Path) -> None:
    home = shutil.copytree(whole, tmp_path / "run")
    for missing in ((), ("model.safetensors", "log.jsonl")):
        for name in missing:
            (home / name).unlink()
        with pytest.raises(OutputError, match="holds a run already") as error:
            train(CORPUS, SETTINGS, out=home)
        assert "--resume" in str(error.value.remedy)


@pytest.mark.parametrize("resume", [True, False])
def test_other_directories_are_left_alone(tmp_path: Path, resume: bool) -> None:
    model, file = tmp_path / "model", tmp_path / "file"
    rankone.memorize(CORPUS).save(model)
    strange = tmp_path / "strange"
    (strange / "data").mkdir(parents=True)
    file.write_text("mine")
    for home, why in (
        (model, "other files"),
        (strange, "data"),
        (file, "made"),
    ):
        before = sorted(home.iterdir()) if home.is_dir() else None
        with pytest.raises(OutputError, match=why):
            train(CORPUS, SETTINGS, out=home, resume=resume)
        assert (sorted(home.iterdir()) if home.is_dir() else None) == before
    assert file.read_text() == "mine"


def test_a_run_goes_on_beside_what_somebody_has_put_there(tmp_path: Path, whole: Path) -> None:
    home = shutil.copytree(whole, tmp_path / "run")
    (home / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"other files \(notes\.txt\)"):
        train(CORPUS, SETTINGS, out=home)
    result = train(CORPUS, replace(SETTINGS, epochs=SETTINGS.epochs + 1), out=home, resume=True)
    assert result.epochs == SETTINGS.epochs + 1
    assert (home / "notes.txt").read_text() == "mine"


def test_a_log_without_a_checkpoint(tmp_path: Path, whole: Path) -> None:
    home = shutil.copytree(whole, tmp_path / "run")
    for path in home.glob("checkpoint-*"):
        path.unlink()
    with pytest.raises(TrainingError, match="a log, but no checkpoint"):
        train(CORPUS, SETTINGS, out=home, resume=True)
    assert weights(home) == weights(whole)


def test_killed_between_the_event_files_and_the_first_checkpoint(tmp_path: Path) -> None:
    home = tmp_path / "run"
    touch = 1
    while not (home / "tensorboard").exists():
        assert runs.train_and_die(
            touch, CORPUS, SETTINGS, out=home, resume=True, tensorboard=home / "tensorboard"
        )
        touch += 1
    train(CORPUS, SETTINGS, out=home, resume=True, tensorboard=home / "tensorboard")


def test_tensorboard_shows_no_epoch_twice(tmp_path: Path) -> None:
    """Those behind the last checkpoint are trained, and shown, anew."""
    home, settings = tmp_path / "run", replace(SETTINGS, epochs=9)
    more: dict[str, Any] = {"out": home, "resume": True, "tensorboard": tmp_path / "board"}
    assert runs.train_and_die(20, CORPUS, settings, **more)
    assert steps(home) == [0]
    assert len(log(home)) > 1
    time.sleep(1)  # event files are read in the order of their seconds
    result = train(CORPUS, settings, **more)
    assert runs.board(tmp_path / "board")["loss"] == runs.as_shown(result.curve, "loss")


def test_a_second_process_in_the_same_directory_is_refused(tmp_path: Path, whole: Path) -> None:
    home = shutil.copytree(whole, tmp_path / "run")
    more = replace(SETTINGS, epochs=3)
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    with locked(home):
        for _ in range(2):  # being refused does not let go of the first one's hold
            with pytest.raises(OutputError, match="another process trains here"):
                train(CORPUS, more, out=home, resume=True)
        assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    assert train(CORPUS, more, out=home, resume=True).epochs == 3


def test_more_threads_are_remarked(tmp_path: Path, whole: Path) -> None:
    home, before = shutil.copytree(whole, tmp_path / "run"), torch.get_num_threads()
    result = train(CORPUS, SETTINGS, out=home, resume=True, threads=2)
    assert len(result.remarks) == 1
    assert "threads: 1 when this run was started, now 2" in result.remarks[0]
    assert torch.get_num_threads() == before
    assert json.loads((home / "report.json").read_text())["remarks"] == list(result.remarks)


def test_the_command_says_what_is_wrong_in_a_few_lines(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = shutil.copytree(whole, tmp_path / "run")
    monkeypatch.setattr("sys.argv", ["rankone", "train", "toy", "--out", str(home), "--resume"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"rankone: {home}: this is another run: ")
    assert "remedy: " in err
