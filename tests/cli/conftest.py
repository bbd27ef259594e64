"""Running a command as a user does, on a small corpus and its model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rankone
from answers import CORPUS, Answer, Run
from rankone.cli import main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["rankone", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return Answer(int(left.value.code or 0), out, err)

    return call


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.conll"
    path.write_text(CORPUS)
    return path


@pytest.fixture
def model(tmp_path: Path, corpus: Path) -> Path:
    rankone.memorize(corpus).save(tmp_path / "model")
    return tmp_path / "model"
