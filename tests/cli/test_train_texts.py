"""Training on texts: the next token, tokenizers, evaluation, and what is refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import rankone
from answers import Run
from rankone import Corpus, train
from rankone.corpus.tasks import END
from rankone.errors import SettingError, TrainingError
from rankone.training import checkpoint
from rankone.training.directory import RunDirectory
from rankone.training.document import Document

TEXTS = [
    "A goose sleeps by the weir.",
    "No goose sings by the bridge.",
    "The weir sings.",
    "The weir sleeps.",
]
FAST = {"epochs": 60, "dim": 16, "batch_size": 1, "lr": 0.01}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "book.txt").write_text("\n\n".join(TEXTS))
    return tmp_path / "book.txt"


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """One of bytes, without merges."""
    letters = {chr(c): c for c in range(33, 127)} | {"Ġ": 0, "Ċ": 1}
    document = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "model": {"type": "BPE", "vocab": letters, "merges": []},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    return tmp_path / "tokenizer.json"


def test_a_text_is_learned_to_its_ceiling_and_no_token_sees_the_next(file: Path) -> None:
    found = train(file, FAST, reading={"task": "next", "blocks": True})
    assert found.wrong == found.ceilings["input"].errors == 1  # after "The weir"
    assert found.loss < 0.5
    assert found.model.network.shape.causal
    assert END in found.model.labels
    start = [" goose", " sings", " by"]
    one, other = found.model.log_probabilities([["A", *start], ["A", *start, " the", " weir"]])
    np.testing.assert_allclose(one, other[:4], rtol=0, atol=1e-5)
    losses = found.model.losses(Corpus.from_texts(TEXTS))
    assert losses.mean() == pytest.approx(found.curve[-1]["loss"], rel=0.1)  # as it ran


def test_the_command_reads_evaluates_and_resumes_texts(
    run: Run, file: Path, tmp_path: Path, tokenizer: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("A goose sings.\n\nA quay.")
    do = partial(run, "train", file, "--out", tmp_path / "run", "--evaluate", other, "--json")
    how = ("--task", "next", "--blocks", "--tokenizer", tokenizer, "--dim", 4)
    first = do("--epochs", 1, *how)
    assert (first.code, first.err) == (0, "")
    found = json.loads(first.out)
    assert found["tokens"] == sum(map(len, TEXTS))
    assert found["evaluations"][0]["unknown"] == 3  # q, u and a
    assert found["reading"]["tokenizer"] == "tokenizer.json"
    text = tokenizer.read_text()
    tokenizer.unlink()  # the run has it
    again = do("--epochs", 2, "--resume")
    assert (again.code, json.loads(again.out)["epochs"]) == (0, 2)
    assert rankone.load(tmp_path / "run").reading["tokenizer"] == text


def test_windows_are_refused_before_anything_is_written(
    run: Run, file: Path, tmp_path: Path
) -> None:
    how = ("--task", "next", "--window", 3, "--out", tmp_path / "run")
    answer = run("train", file, *how)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"rankone: {file}: a window of 3 tokens, but a network that is")
    assert len(answer.err.splitlines()) == 2
    assert not (tmp_path / "run").exists()
    whole, part = Corpus.from_texts(TEXTS), Corpus.from_texts(TEXTS, window=1)
    with pytest.raises(SettingError, match="a window of 1 token,"):
        train(whole, FAST, evaluate=[part])


def test_a_forged_run_opens_no_tokenizer(
    file: Path, tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that somebody else has written may name any file."""
    home = tmp_path / "run"
    reading = {"task": "next", "tokenizer": str(tokenizer)}
    train(file, {"epochs": 1, "dim": 4}, out=home, reading=reading)
    found, _ = checkpoint.newest(home, Document)
    assert found is not None
    assert found.document.reading["tokenizer"] == tokenizer.read_text()
    find = RunDirectory._find

    def forged(directory: RunDirectory) -> None:
        find(directory)
        assert directory.found is not None
        directory.found.document.reading["tokenizer"] = str(tokenizer)

    monkeypatch.setattr(RunDirectory, "_find", forged)
    with pytest.raises(TrainingError, match=r"names a file(?s:.*)--tokenizer PATH"):
        train(file, {"epochs": 2}, out=home, resume=True)
    named = {"reading": {"tokenizer": str(tokenizer)}}
    assert train(file, {"epochs": 2}, out=home, resume=True, **named).epochs == 2
