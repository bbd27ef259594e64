"""The sweep: one choice changed at a time, every curve written and drawn."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import rankone
from rankone import Corpus, Settings
from rankone.train import sweep as module
from rankone.train.sweep import CHOICES, EPOCHS, PLAIN, sweep
from rankone.train.train import Trained, train_model

CORPUS = rankone.read_corpus("toy")


def test_every_choice_is_beside_the_defaults_and_changes_what_it_says() -> None:
    defaults = Settings(epochs=EPOCHS)
    for choice, values in CHOICES.items():
        assert PLAIN in values.values(), choice
        for change in values.values():
            run = asdict(Settings(**{"epochs": EPOCHS, **change}))
            other = {k for k, v in asdict(defaults).items() if run[k] != v}
            assert other == set(change), choice
    swept = {name for values in CHOICES.values() for change in values.values() for name in change}
    assert {"dim", "optimizer", "positions", "depth"} <= swept


def test_all_runs_are_written_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: dict[str, Settings] = {}

    def train_all(corpus: Corpus, runs: Mapping[str, Settings], *_: Any, **__: Any) -> Any:
        begun.update(runs)
        found: dict[str, Trained] = {n: train_model(corpus, run) for n, run in runs.items()}
        return found

    monkeypatch.setattr(module, "train_all", train_all)
    found = sweep(CORPUS, tmp_path, Settings(epochs=2))
    values = [(choice, value) for choice in CHOICES for value in CHOICES[choice]]
    assert len(begun) == 1 + sum(change != PLAIN for v in CHOICES.values() for change in v.values())
    with open(tmp_path / "sweep.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["choice"], row["value"], row["epoch"]) for row in rows] == [
        (*value, str(epoch)) for value in values for epoch in (1, 2)
    ]
    assert [(row["choice"], row["value"]) for row in found.to_json()["runs"]] == values
    assert all(row["epochs"] == 2 and 0 <= row["accuracy"] <= 1 for row in found.rows())
    assert {path.name for path in found.files} == {"sweep.csv", "sweep.png", "sweep.svg"}
    assert all(path.stat().st_size for path in found.files)
