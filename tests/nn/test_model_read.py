"""A model reads other files as its own corpus was read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rankone
from rankone.errors import CorpusError


@pytest.fixture
def model(tmp_path: Path) -> rankone.Model:
    path = tmp_path / "train.conll"
    path.write_text("X a A\nY b B\n\nY b B\n")
    corpus = rankone.read_corpus(path, token_column=2, label_column=1, lower=True)
    return rankone.memorize(corpus).model


def test_columns_and_case_are_those_of_the_corpus(model: rankone.Model, tmp_path: Path) -> None:
    path = tmp_path / "other.conll"
    path.write_text("Y A 1\nX B 2\n")
    corpus = model.read(path)
    assert (corpus.vocabulary, corpus.label_names) == (("a", "b"), ("Y", "X"))
    assert model.read(path, label_column=3).label_names == ("1", "2")
    assert model.predict(corpus) == [["X", "Y"]]


def test_text_is_read_unless_labels_are_asked_for(model: rankone.Model, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("A rose is a rose\nand so\n")
    corpus = model.read(path)
    assert (corpus.format, corpus.labelled, corpus.n_tokens) == ("text", False, 7)
    assert corpus.remarks
    with pytest.raises(CorpusError):
        model.read(path, labelled=True)


def test_labelling_text_does_not_load_what_trains() -> None:
    """The scores of a model are no part of training."""
    code = "import sys, rankone.nn.scores; print('rankone.training' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.strip() == "False", answer.stderr
