"""The sweep: one choice changed at a time, every curve written and drawn."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rankone
from rankone import Corpus, Settings
from rankone.training import sweep as module
from rankone.training.sweep import CHOICES, EPOCHS, sweep
from rankone.training.train import Trained, train

CORPUS = rankone.read_corpus("toy")


def test_every_choice_is_beside_the_defaults_and_changes_what_it_says() -> None:
    defaults = Settings(epochs=EPOCHS)
    for choice, values in CHOICES.items():
        runs = [replace(defaults, **change) for change in values.values()]
        assert defaults in runs, choice
        assert len(set(runs)) == len(runs), choice
        for run, change in zip(runs, values.values(), strict=True):
            assert replace(run, **{name: getattr(defaults, name) for name in change}) == defaults
    swept = {name for values in CHOICES.values() for change in values.values() for name in change}
    assert {"dim", "optimizer", "positions", "depth"} <= swept


def test_all_runs_are_written_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: dict[str, Settings] = {}

    def train_all(corpus: Corpus, runs: Mapping[str, Settings], *_: Any, **__: Any) -> Any:
        begun.update(runs)
        found: dict[str, Trained] = {n: train(corpus, run) for n, run in runs.items()}
        return found, {}

    monkeypatch.setattr(module, "train_all", train_all)
    found = sweep(CORPUS, tmp_path, Settings(epochs=2))
    values = [(choice, value) for choice in CHOICES for value in CHOICES[choice]]
    assert found.ok
    files = found.save(tmp_path)
    others = [replace(Settings(), **change) for v in CHOICES.values() for change in v.values()]
    assert len(begun) == len(set(others))
    assert begun["defaults"] == Settings(epochs=2)
    with open(tmp_path / "sweep.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["choice"], row["value"], row["epoch"]) for row in rows] == [
        (*value, str(epoch)) for value in values for epoch in (1, 2)
    ]
    assert [(row["choice"], row["value"]) for row in found.to_json()["runs"]] == values
    assert all(row["epochs"] == 2 and 0 <= row["accuracy"] <= 1 for row in found.rows())
    assert {path.name for path in files} == {"sweep.csv", "sweep.png", "sweep.svg"}
    assert all(path.stat().st_size for path in files)


def test_one_choice_is_changed_and_the_rest_is_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where two settings go together: no table of positions, no length of it."""
    base = Settings(dim=5, optimizer="sgd", momentum=0.5, max_length=40, seed=3)
    changes = [change for values in CHOICES.values() for change in values.values()]

    def train_all(_: Corpus, runs: Mapping[str, Settings], *__: Any) -> Any:
        for run in runs.values():
            changed = {k for k, v in base.to_json().items() if getattr(run, k) != v}
            assert any(changed <= change.keys() for change in changes)
        raise KeyError("seen")

    monkeypatch.setattr(module, "train_all", train_all)
    with pytest.raises(KeyError, match="seen"):
        sweep(CORPUS, tmp_path, base)
