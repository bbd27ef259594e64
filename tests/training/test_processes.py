"""Two processes under torchrun do what one does, and write and print it once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import rankone
import runs
from rankone import Settings, train

# 13 sentences in batches of 4: the last batch has one sentence, so that one process has none.
SENTENCES = runs.corpus(13).sentences
SETTINGS = Settings(epochs=4, batch_size=4, dim=8, lr=0.01, dtype="float64")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    rows = ["\n".join(map("\t".join, zip(s.tokens, s.labels, strict=True))) for s in SENTENCES]
    path.write_text("\n\n".join(rows) + "\n")
    return path


def command(file: Path, out: Path, settings: Settings, *more: object) -> list[object]:
    changed = {
        name: value
        for name, value in settings.to_json().items()
        if value != getattr(Settings(), name)
    }
    options = [(f"--{name.replace('_', '-')}", value) for name, value in changed.items()]
    return ["train", file, "--out", out, *(part for option in options for part in option), *more]


def close(two: Path, one: Path, tolerance: float) -> None:
    """The same curve and the same weights, but for rounding."""
    for mine, other in zip(runs.log(two), runs.log(one), strict=True):
        assert mine["epoch"] == other["epoch"]
        assert mine["loss"] == pytest.approx(other["loss"], rel=tolerance)
        assert mine["accuracy"] == other["accuracy"]
    found, wanted = (load_file(home / "model.safetensors") for home in (two, one))
    assert found.keys() == wanted.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, wanted[name], rtol=0, atol=tolerance)


def test_two_processes_train_like_one(tmp_path: Path, file: Path) -> None:
    train(rankone.read_corpus(file), SETTINGS, out=tmp_path / "one")
    arguments = command(file, tmp_path / "two", SETTINGS, "--json", "--evaluate", file)
    status, out, err = runs.end(runs.start(*arguments, processes=2))
    assert status == 0, err
    answer = json.loads(out)  # one object: printed once
    assert [line["epoch"] for line in answer["curve"]] == [1, 2, 3, 4]  # and logged once
    assert answer["evaluations"][0]["right"] == answer["tokens"] - answer["wrong"]
    names = {path.name for path in (tmp_path / "two").iterdir() if "checkpoint" not in path.name}
    assert names == {
        path.name for path in (tmp_path / "one").iterdir() if "checkpoint" not in path.name
    }
    assert len(list((tmp_path / "two").glob("checkpoint-*"))) == 2
    close(tmp_path / "two", tmp_path / "one", 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["rank1", "theorem2", "softmax"])
def test_three_processes_of_every_attention(tmp_path: Path, file: Path, attention: Any) -> None:
    settings = Settings(epochs=3, batch_size=4, dim=4, dtype="float64", attention=attention)
    train(rankone.read_corpus(file), settings, out=tmp_path / "one")
    arguments = command(file, tmp_path / "three", settings, "--quiet")
    status, out, err = runs.end(runs.start(*arguments, processes=3))
    assert (status, out) == (0, ""), err
    close(tmp_path / "three", tmp_path / "one", 1e-9)


@pytest.mark.slow
def test_two_processes_in_single_precision(tmp_path: Path, file: Path) -> None:
    settings = Settings(epochs=4, batch_size=4, dim=8, optimizer="sgd", lr=0.05, momentum=0.5)
    train(rankone.read_corpus(file), settings, out=tmp_path / "one")
    arguments = command(file, tmp_path / "two", settings, "--quiet")
    status, out, err = runs.end(runs.start(*arguments, processes=2))
    assert (status, out) == (0, ""), err
    close(tmp_path / "two", tmp_path / "one", 1e-5)


@pytest.mark.slow
def test_two_processes_that_are_killed_go_on(tmp_path: Path, file: Path) -> None:
    """On the same number of processes, with the same bits."""
    settings = Settings(epochs=60, batch_size=4, dim=8)
    home, whole = tmp_path / "run", tmp_path / "whole"
    arguments = command(file, home, settings, "--checkpoint-seconds", 0, "--quiet", "--resume")
    process = runs.start(*arguments, processes=2)
    runs.until(lambda: bool(list(home.glob("checkpoint-0000000[2-9]*"))), process)
    runs.kill(process)
    assert not (home / "model.safetensors").exists()
    status, out, err = runs.end(runs.start(*arguments, processes=2))
    assert (status, out) == (0, ""), err
    arguments = command(file, whole, settings, "--quiet")
    status, out, err = runs.end(runs.start(*arguments, processes=2))
    assert (status, out) == (0, ""), err
    assert runs.weights(home) == runs.weights(whole)
    assert runs.log(home) == runs.log(whole)
    assert not list(home.glob(".*"))


@pytest.mark.slow
def test_a_refusal_ends_all_processes(tmp_path: Path, file: Path) -> None:
    home = tmp_path / "run"
    home.mkdir()
    (home / "notes.txt").write_text("mine")
    status, out, err = runs.end(runs.start(*command(file, home, SETTINGS), processes=2))
    assert status != 0
    assert out == ""
    assert err.count("holds other files (notes.txt)") == 1
    assert [path.name for path in home.iterdir()] == ["notes.txt"]


@pytest.mark.slow
def test_divergence_ends_all_processes(tmp_path: Path, file: Path) -> None:
    settings = Settings(epochs=5, batch_size=4, dim=4, attention="softmax", lr=1e30)
    arguments = command(file, tmp_path / "run", settings)
    status, out, err = runs.end(runs.start(*arguments, processes=2))
    assert status != 0
    assert out == ""
    assert "training diverged" in err
    assert not (tmp_path / "run/model.safetensors").exists()
