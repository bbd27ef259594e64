"""A resumed run has what it was started with; what is named changes, and nothing else."""

from __future__ import annotations

import json
import logging
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rankone
import runs
from rankone import Settings, train
from rankone.errors import CorpusError, SettingError, TrainingError

# No setting, no way of reading and no number of threads is the default.
SETTINGS = Settings(
    depth=2,
    epochs=2,
    batch_size=2,
    attention="softmax",
    dim=6,
    hidden=5,
    heads=2,
    head_size=4,
    max_length=40,
    optimizer="sgd",
    lr=0.01,
    momentum=0.5,
    schedule="constant",
    init_std=0.3,
    accuracy="after",
    dtype="float64",
    seed=5,
)
ROWS = "Y 1 Pim I-P\nZ 2 sang O\n\nY 3 Pam I-P\nY 1 Lop I-P\nZ 2 slept O\n\nZ 1 hush O\n"
READING = {"format": "conll", "token_column": 3, "scheme": "iob2", "lower": True}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "rows.tsv").write_text(ROWS)
    return tmp_path / "rows.tsv"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with nothing but unusual settings."""
    place = tmp_path_factory.mktemp("trained")
    (place / "rows.tsv").write_text(ROWS)
    how: dict[str, Any] = {"reading": READING, "threads": 2, "checkpoint_seconds": 7.5}
    train(place / "rows.tsv", SETTINGS, out=place / "run", **how)
    return place / "run"


@pytest.fixture
def home(tmp_path: Path, trained: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


def test_nothing_has_to_be_typed_again(trained: Path, home: Path, tmp_path: Path) -> None:
    file = trained.parent / "rows.tsv"
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    result = train(file, out=home, resume=True)
    assert result.epochs == 2
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    assert result.remarks == ()
    more = train(file, {"epochs": 4}, out=home, resume=True)
    whole = train(
        file,
        replace(SETTINGS, epochs=4),
        reading=READING,
        threads=2,
        checkpoint_seconds=7.5,
        out=tmp_path / "whole",
    )
    assert runs.weights(home) == runs.weights(tmp_path / "whole")
    assert runs.log(home) == runs.log(tmp_path / "whole")
    assert more.settings == whole.settings
    assert more.reading == whole.reading == READING
    assert more.remarks == ()  # more epochs are no other training


def test_evaluation_files_are_read_as_the_run_was(file: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "dev").write_text(ROWS.replace("Pim", "PAM"))
    result = train(file, out=home, resume=True, evaluate=[tmp_path / "dev", "builtin"])
    dev, builtin = result.evaluations
    assert (dev.tokens, dev.unknown, dev.f1 is None) == (6, 0, False)
    assert builtin.tokens == 16_525


CHANGES: dict[str, Any] = {"lr": 0.5, "schedule": "linear", "accuracy": "running", "epochs": 3}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named_takes_effect_and_stays(
    file: Path, home: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="rankone")
    old = getattr(SETTINGS, name)
    result = train(file, {"epochs": 3, name: CHANGES[name]}, out=home, resume=True)
    assert result.settings[name] == CHANGES[name]
    said = f"{name} {CHANGES[name]} (was {old})"
    (once,) = (message for message in caplog.messages if said in message)
    assert "resumed after epoch 2; changed: " in once
    again = train(file, out=home, resume=True)
    assert again.settings == result.settings
    told = [] if name == "epochs" else [f"After epoch 2: {said}."]
    assert [remark for remark in result.remarks if name in remark] == told
    assert [remark for remark in again.remarks if name in remark] == told
    report = json.loads((home / "report.json").read_text())
    assert report["remarks"] == list(again.remarks)


def test_another_learning_rate_is_used_from_there_on(file: Path, home: Path) -> None:
    one = shutil.copytree(home, home.parent / "one")
    two = shutil.copytree(home, home.parent / "two")
    plain = train(file, {"epochs": 4}, out=one, resume=True)
    other = train(file, {"epochs": 4, "lr": 0.5}, out=two, resume=True)
    assert plain.curve[:2] == other.curve[:2]
    assert plain.curve[3]["loss"] != other.curve[3]["loss"]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"dim": 8}, "this is another run: dim 8, not 6"),
        ({"momentum": 0.25}, "this is another run: momentum 0.25, not 0.5"),
        ({"epochs": 1}, "1 epoch asked for, but more are done"),
        ({"epochs": 0}, "epochs cannot be 0"),
        ({"layers": 3}, "no setting is called 'layers'"),
        (replace(SETTINGS, lr=0.5), "this is another run: lr 0.5, not 0.01"),  # a whole run
        (Settings(), "this is another run: depth 1, not 2; "),
    ],
)
def test_what_cannot_be_changed_is_refused_and_named(
    file: Path, home: Path, settings: Any, what: str
) -> None:
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    another = what.startswith("this is another run") or what.endswith("more are done")
    with pytest.raises(TrainingError if another else SettingError) as error:
        train(file, settings, out=home, resume=True)
    assert error.value.what.startswith(what)
    assert error.value.remedy
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before


def test_the_number_of_threads_is_that_of_the_run_or_remarked(file: Path, home: Path) -> None:
    assert train(file, out=home, resume=True, threads=2).remarks == ()
    (remark,) = train(file, out=home, resume=True, threads=1).remarks
    assert remark.startswith("threads: 2 when this run was started, now 1; ")


def test_read_in_another_way_it_is_another_corpus(file: Path, home: Path) -> None:
    with pytest.raises(TrainingError, match="the corpus is another one, or read in another way"):
        train(file, out=home, resume=True, reading={"label_column": 1, "scheme": "keep"})


def test_a_run_of_a_corpus_knows_how_that_was_read(file: Path, tmp_path: Path) -> None:
    """So that its file can be named later on."""
    how: dict[str, Any] = {"token_column": 3, "scheme": "iob2", "lower": True, "format": "conll"}
    corpus = rankone.read_corpus(file, **how)
    train(corpus, {"epochs": 1, "dim": 4}, out=tmp_path / "run")
    renamed = file.rename(tmp_path / "rows.conll")
    assert train(renamed, {"epochs": 2}, out=tmp_path / "run", resume=True).epochs == 2


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"threads": 0}, "threads cannot be 0"),
        ({"threads": 100_000_000}, "threads cannot be 100000000"),
        ({"threads": 1.5}, "threads cannot be 1.5"),
        ({"checkpoint_seconds": math.nan, "out": "here"}, "checkpoint_seconds cannot be nan"),
        ({"checkpoint_seconds": -1, "out": "here"}, "checkpoint_seconds cannot be -1"),
        ({"checkpoint_seconds": math.inf, "out": "here"}, "checkpoint_seconds cannot be inf"),
        ({"checkpoint_seconds": 1.0}, "checkpoint_seconds has no effect without a directory"),
        ({"resume": True}, "no directory to resume from"),
        ({"reading": {"format": "tsv"}}, "a built-in corpus has no layout and no columns"),
        ({"reading": {"tokens": 1}, "evaluate": ["no file"]}, "files are not read with 'tokens'"),
    ],
)
def test_numbers_that_make_no_sense(
    more: dict[str, Any], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((SettingError, CorpusError)) as error:
        train("toy", {"epochs": 1}, **more)
    assert error.value.what == what
    assert error.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_how_to_read_has_no_effect_on_what_was_read() -> None:
    with pytest.raises(SettingError, match="no file to read"):
        train(rankone.read_corpus("toy"), {"epochs": 1}, reading={"lower": True})


def test_more_epochs_of_a_falling_learning_rate_are_another_training(tmp_path: Path) -> None:
    train("toy", {"epochs": 1, "dim": 4, "schedule": "linear"}, out=tmp_path / "run")
    result = train("toy", {"epochs": 2}, out=tmp_path / "run", resume=True)
    assert result.remarks == ("After epoch 1: epochs 2 (was 1).",)
